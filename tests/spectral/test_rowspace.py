"""Row spaces: the same geometry in fewer coordinates, and bounded memory for wide and sparse rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

import pairlens
from pairlens import Constraints
from pairlens.engines import column_means, engine_rows
from pairlens.exceptions import ApproximationWarning
from pairlens.spectral import rowspace
from pairlens.spectral.rowspace import Standardiser, looks_principal, row_space, whitened_rows
from tests.oracles import learning as oracle


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_wide_rows_keep_their_inner_products(as_rows, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 90)).astype(dtype)
    rows = as_rows(X)
    space = row_space(rows, column_means(rows))
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    assert space.dim == 19
    np.testing.assert_allclose(space.rows @ space.rows.T, centred @ centred.T, atol=1e-5)
    basis = space.lift(np.eye(space.dim))
    np.testing.assert_allclose(basis @ basis.T, np.eye(space.dim), atol=1e-7)
    np.testing.assert_allclose(centred @ basis.T, space.rows, atol=1e-5)


def test_constant_columns_leave_the_coordinates():
    X = np.random.default_rng(0).standard_normal((50, 4))
    X[:, 2] = 3.5
    space = row_space(X, X.mean(axis=0))
    assert space.dim == 3
    np.testing.assert_array_equal(space.lift(np.eye(3))[:, 2], 0)


def test_sparse_text_is_never_densified():
    """20,000 x 50,000 with pairs between 200 rows: neither f x f (20 GB) nor a dense X (8 GB) is ever formed."""
    rng = np.random.default_rng(0)
    # scipy.sparse.random would draw from all 10^9 cells at once.
    columns, starts = rng.integers(0, 50_000, 200_000), np.arange(0, 200_001, 10)
    X = sparse.csr_matrix((rng.random(200_000), columns, starts), shape=(20_000, 50_000))
    rows = rng.permutation(20_000)[:200]
    pairs = Constraints(rows[:100].reshape(-1, 2), rows[100:].reshape(-1, 2), n_samples=20_000)
    for method in (pairlens.WBDR(2, shrinkage=0.0), pairlens.CMM(2), pairlens.DCA(2)):
        tracemalloc.start()
        model = method.fit(X, constraints=pairs)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100e6
        assert model.components_.shape == (2, 50_000)
        assert np.isfinite(model.transform(X)).all()


def test_landmarks_contain_the_pairs(monkeypatch):
    """Beyond the exact limit, the span of some rows is used: those in pairs, and evenly spaced others."""
    monkeypatch.setattr(rowspace, "EXACT_LIMIT", 50)
    monkeypatch.setattr(rowspace, "LANDMARKS", 40)
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.standard_normal((120, 80)) + 4 * np.eye(3, 80)[y]
    pairs = Constraints.from_labels(y, n_pairs=12, random_state=0)
    with pytest.warns(ApproximationWarning, match="120 rows and 80 features, both more than 50"):
        space = row_space(X, X.mean(axis=0), anchors=pairs.rows)
    assert space.dim == 40
    basis = space.lift(np.eye(40))
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose((centred @ basis.T @ basis)[pairs.rows], centred[pairs.rows], atol=1e-9)
    with pytest.warns(ApproximationWarning):
        assert pairlens.WBDR().fit(X, constraints=pairs).score(X, y) > 0.9


def test_whitened_rows_of_a_landmark_space(monkeypatch):
    monkeypatch.setattr(rowspace, "EXACT_LIMIT", 50)
    monkeypatch.setattr(rowspace, "LANDMARKS", 40)
    X = np.random.default_rng(0).standard_normal((120, 80))
    with pytest.warns(ApproximationWarning):
        space, values = whitened_rows(X, Standardiser.of(X), anchors=np.arange(10))
    assert space.dim == len(values) <= 40
    np.testing.assert_allclose(space.rows.T @ space.rows, 120 * np.eye(space.dim), atol=1e-7)
    np.testing.assert_allclose((X - X.mean(axis=0)) @ space.lift(np.eye(space.dim)).T, space.rows, atol=1e-7)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_matrix])
def test_whitened_components_are_those_of_the_oracle(as_rows):
    """As many as are asked for, best first, and the way back to the features."""
    X = np.random.default_rng(0).standard_normal((60, 9)) * np.arange(1, 10)
    X[:, 3] = np.where(np.arange(60) < 57, 0.0, 5.0)
    X[:, 5] = 2.0
    rows = as_rows(X)
    space, values = whitened_rows(rows, Standardiser.of(rows), at_most=5)
    found = oracle.whitened(oracle.scaled(X), at_most=5)
    np.testing.assert_allclose(values, found.values)
    np.testing.assert_allclose(np.abs(space.rows), np.abs(found.rows), atol=1e-9)
    components = space.lift(np.eye(5))
    np.testing.assert_allclose((X - X.mean(axis=0)) @ components.T, space.rows, atol=1e-9)
    assert not components[:, 5].any()


def test_standardised_columns_are_those_of_the_oracle():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5, 3, 300), rng.random(300) < 0.02, rng.random(300) < 0.5, np.full(300, 7.0)])
    np.testing.assert_allclose(Standardiser.of(X)(X), oracle.scaled(X), atol=1e-12)
    kept = Standardiser.of(X, standardize=False)(X)
    np.testing.assert_allclose(kept, (X - X.mean(axis=0)) * [1, 1, 1, 0], atol=1e-12)
    # Sparse rows keep their zeros: the same differences.
    stored = sparse.csr_matrix(X)
    found = Standardiser.of(stored)(stored)
    assert sparse.issparse(found)
    assert found.nnz <= stored.nnz
    np.testing.assert_allclose(np.diff(found.toarray(), axis=0), np.diff(oracle.scaled(X), axis=0), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_principal_components_are_recognised(dtype):
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((200, 6)) @ rng.standard_normal((6, 6))
    scores = PCA().fit_transform(mixed)
    assert looks_principal(scores.astype(dtype))
    assert looks_principal((scores + 3).astype(dtype))
    assert looks_principal((scores[:, :3] * [1, -1, 1]).astype(dtype))
    # Not in order, of one size up to chance, correlated, too few columns, or no more rows than columns.
    for other in (scores[:, ::-1], rng.standard_normal((200, 6)), mixed, scores[:, :2], scores[:6]):
        assert not looks_principal(other.astype(dtype))
    assert not looks_principal(np.column_stack([scores, np.zeros(200)]).astype(dtype))
    assert looks_principal(sparse.csr_matrix(scores))


def test_principal_components_are_recognised_in_a_tensor():
    torch = pytest.importorskip("torch", reason="tensors need pairlens[gpu]")
    scores = PCA().fit_transform(np.random.default_rng(0).standard_normal((200, 5)) * [5, 4, 3, 2, 1])
    rows = torch.from_numpy(scores)
    assert looks_principal(engine_rows(rows, fitting=True))
    assert not looks_principal(engine_rows(rows[:, [1, 0, 2, 3, 4]], fitting=True))
