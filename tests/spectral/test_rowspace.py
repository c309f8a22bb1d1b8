"""Row spaces: the same geometry in fewer coordinates, and bounded memory for wide and sparse rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import pairlens
from pairlens import Constraints
from pairlens.engines import column_means
from pairlens.exceptions import ApproximationWarning
from pairlens.spectral import rowspace
from pairlens.spectral.rowspace import row_space


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
