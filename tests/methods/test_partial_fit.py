"""Batch by batch is the same as all at once."""

from __future__ import annotations

import itertools
import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import pairlens
from pairlens import Constraints
from pairlens.exceptions import SupervisionWarning
from pairlens.methods.base import IncrementalPairTransformer
from tests.estimators import linear_methods

INCREMENTAL = [cls for cls in linear_methods() if issubclass(cls, IncrementalPairTransformer)]
MODELS = [cls() for cls in INCREMENTAL] + [
    pairlens.BWDR(shrinkage=0.0),
    pairlens.WBDR(shrinkage=0.0, threshold=0.9),
    pairlens.SSDR(n_components=4, normalization="half"),
    pairlens.DCA(n_components=3),
]


def batches(n=300, f=10, cuts=(0, 40, 41, 180, 300), seed=0):
    """Rows and pairs in batches, and the same all at once."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    X = rng.standard_normal((n, f)) * np.linspace(1, 2, f) + 2 * rng.standard_normal((4, f))[y] + 100
    X[:, 3] = 0.1
    parts, must, cannot, weight = [], [], [], []
    for start, stop in itertools.pairwise(cuts):
        pairs = Constraints.from_labels(y[start:stop], n_pairs=min(40, (stop - start) * (stop - start - 1) // 2))
        weighted = Constraints(
            pairs.must_link,
            pairs.cannot_link,
            n_samples=stop - start,
            must_link_weight=rng.uniform(0.5, 2, pairs.n_must_link),
        )
        parts.append((X[start:stop], weighted))
        must.append(weighted.must_link + start)
        cannot.append(weighted.cannot_link + start)
        weight.append(weighted.must_link_weight)
    together = Constraints(
        np.concatenate(must), np.concatenate(cannot), n_samples=n, must_link_weight=np.concatenate(weight)
    )
    return X, y, together, parts


def assert_same(model, reference, tol=1e-8):
    scale = np.abs(reference.components_).max()
    np.testing.assert_allclose(model.components_, reference.components_, rtol=0, atol=tol * scale)
    np.testing.assert_allclose(model.mean_, reference.mean_, rtol=tol)
    np.testing.assert_allclose(
        model.eigenvalues_, reference.eigenvalues_, rtol=tol, atol=tol * np.abs(reference.eigenvalues_).max()
    )


def test_the_methods_whose_scatters_are_sums_have_it():
    assert {cls.__name__ for cls in INCREMENTAL} == {"BWDR", "WBDR", "SSDR", "CMM", "RCA", "CFLD", "DCA"}
    assert not any(hasattr(cls, "partial_fit") for cls in linear_methods() if cls not in INCREMENTAL)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 0, 2, 1), (2, 3, 1, 0)])
def test_batches_are_the_whole(model, order):
    X, _, together, parts = batches()
    reference = clone(model).fit(X, constraints=together)
    learner = clone(model)
    for i in order:
        # What was seen so far travels with the model.
        learner = pickle.loads(pickle.dumps(learner)).partial_fit(parts[i][0], constraints=parts[i][1])
    assert_same(learner, reference)
    assert learner.n_samples_seen_ == reference.n_samples_seen_ == 300
    assert not learner.components_[:, 3].any()


@pytest.mark.parametrize("model", [pairlens.BWDR(), pairlens.WBDR(), pairlens.SSDR(), pairlens.CMM(), pairlens.RCA()])
def test_fewer_rows_than_features(model):
    X, _, together, parts = batches(n=60, f=90, cuts=(0, 25, 60))
    learner = clone(model)
    for rows, pairs in parts:
        learner.partial_fit(rows, constraints=pairs)
    reference = clone(model).fit(X, constraints=together)
    np.testing.assert_allclose(
        learner.components_, reference.components_, rtol=0, atol=1e-7 * np.abs(reference.components_).max()
    )


@pytest.mark.parametrize("cls", INCREMENTAL)
def test_labels_make_pairs_inside_a_batch(cls):
    X, y, _, _ = batches()
    labels = [np.where(np.arange(150) % 3 == 0, y[part], -1) for part in (slice(0, 150), slice(150, 300))]
    learner = cls().partial_fit(X[:150], labels[0]).partial_fit(X[150:], labels[1])
    inside = [Constraints.from_labels(part) for part in labels]
    pairs = Constraints(
        np.concatenate([inside[0].must_link, inside[1].must_link + 150]),
        np.concatenate([inside[0].cannot_link, inside[1].cannot_link + 150]),
        n_samples=300,
    )
    if cls is pairlens.DCA:  # chunklets join rows of equal label; all pairs of chunklets are then joined inside a batch
        pairs = pairs.closure()
    assert_same(learner, cls().fit(X, constraints=pairs))


def test_sparse_and_single_precision_batches():
    X, _, together, parts = batches()
    reference = pairlens.SSDR().fit(X, constraints=together)
    learner, single = pairlens.SSDR(), pairlens.SSDR()
    for rows, pairs in parts:
        learner.partial_fit(sparse.csr_matrix(rows), constraints=pairs)
        single.partial_fit(rows.astype(np.float32), constraints=pairs)
    assert_same(learner, reference, tol=1e-7)
    assert single.components_.dtype == single.mean_.dtype == np.float32
    np.testing.assert_allclose(np.abs(single.components_), np.abs(reference.components_), atol=1e-3)
    assert learner.partial_fit(parts[0][0], constraints=parts[0][1]).components_.dtype == np.float64


def test_single_precision_squares_that_overflow():
    X, _, together, parts = batches()
    reference = pairlens.SSDR().fit(1e25 * X, constraints=together)
    learner = pairlens.SSDR()
    for rows, pairs in parts:
        learner.partial_fit((1e25 * rows).astype(np.float32), constraints=pairs)
    assert np.isfinite(learner.components_).all()
    np.testing.assert_allclose(np.abs(learner.components_), np.abs(reference.components_), atol=1e-3)


def test_no_pairs_at_all_is_pca():
    X, _, _, _ = batches()
    with pytest.warns(SupervisionWarning, match="PCA"):
        learner = pairlens.RCA().partial_fit(X[:100])
    with pytest.warns(SupervisionWarning, match="PCA"):
        learner.partial_fit(X[100:])
    with pytest.warns(SupervisionWarning, match="PCA"):
        reference = pairlens.RCA().fit(X)
    assert_same(learner, reference)


def test_errors():
    X, _, together, parts = batches()
    fitted = pairlens.SSDR().fit(X, constraints=together)
    again = pairlens.SSDR().fit(X, constraints=together)
    with pytest.warns(UserWarning, match="begins anew"):
        again.partial_fit(parts[3][0], constraints=parts[3][1])
    assert_same(again, pairlens.SSDR().fit(parts[3][0], constraints=parts[3][1]))
    assert again.n_samples_seen_ == 120
    learner = pairlens.SSDR().partial_fit(*parts[0][:1], constraints=parts[0][1])
    with pytest.raises(ValueError, match="7 features, but SSDR is expecting 10"):
        learner.partial_fit(X[:, :7])
    assert learner.n_samples_seen_ == 40
    with pytest.raises(ValueError, match="no variation"):
        pairlens.SSDR().partial_fit(X[:2][[0, 0]])
    # fit forgets what came before.
    learner.fit(X, constraints=together)
    assert_same(learner, fitted)
    assert learner.n_samples_seen_ == 300


def test_batches_of_other_kinds():
    da = pytest.importorskip("dask.array", reason="needs pairlens[dask]")
    torch = pytest.importorskip("torch", reason="needs pairlens[gpu]")
    X, _, together, parts = batches()
    reference = pairlens.WBDR().fit(X, constraints=together)
    learner = pairlens.WBDR()
    kinds = [lambda rows: da.from_array(rows, chunks=(17, 10)), torch.from_numpy, np.asarray, np.asfortranarray]
    for (rows, pairs), kind in zip(parts, kinds):
        learner.partial_fit(kind(rows), constraints=pairs)
    assert_same(learner, reference)


@pytest.mark.parametrize("cls", INCREMENTAL)
def test_memory_does_not_depend_on_how_many_rows_have_gone_by(cls):
    """A trillion rows with the mean and covariance of the first batch, then one more batch."""
    X, y, _, parts = batches()
    first = cls().partial_fit(X, constraints=Constraints.from_labels(y, n_pairs=200, random_state=0))
    learner = pickle.loads(pickle.dumps(first))
    moments = learner._batches.moments
    many = replace(moments, n=10**12, scatter=moments.scatter * (10**12 / moments.n))
    learner._batches = replace(learner._batches, moments=many)
    empty = Constraints(n_samples=len(parts[0][0]))
    tracemalloc.start()
    learner.partial_fit(parts[0][0], constraints=empty)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20
    assert learner.n_samples_seen_ == 10**12 + len(parts[0][0])
    assert_same(learner, first, tol=1e-6)
