"""Distances in a view and the metric of a linear one, for every public estimator that has them, by definition."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import GBWSDR, WBDR, WSDR, PairLens
from pairlens.exceptions import ArgumentError
from pairlens.judging import pair_distance
from tests.estimators import all_estimators

Y = np.repeat(np.arange(3), 12)
X = np.random.default_rng(0).standard_normal((36, 5)) + 2 * np.eye(3, 5)[Y]
A, B = X[:10], X[20:30]
LINEAR = [cls for cls in all_estimators() if hasattr(cls, "get_metric")]


def fitted(cls):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls().fit(X, Y)


def test_every_estimator_with_components_is_a_linear_view():
    """A method added later has the three calls too, or this names it."""
    documented = "components_ : array of shape (n_components, n_features)"
    with_components = {cls for cls in all_estimators() if documented in (cls.__doc__ or "")}
    # GBWSDR adds trees to its linear map.
    assert with_components - set(LINEAR) == {GBWSDR}
    assert len(LINEAR) >= 22


@pytest.mark.parametrize("cls", LINEAR, ids=lambda cls: cls.__name__)
def test_distances_are_those_of_the_metric(cls):
    model = fitted(cls)
    L, M = model.components_, model.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, L.T @ L, rtol=1e-12)
    expected = np.array([np.sqrt((a - b) @ M @ (a - b)) for a, b in zip(A, B)])
    metric = model.get_metric()
    tolerance = {"rtol": 1e-7, "atol": 1e-9 * np.sqrt(np.trace(M))}
    np.testing.assert_allclose(model.pair_distance(A, B), expected, **tolerance)
    np.testing.assert_allclose([metric(a, b) for a, b in zip(A, B)], expected, **tolerance)
    np.testing.assert_allclose([metric(a, b, squared=True) for a, b in zip(A, B)], expected**2, **tolerance)


def test_scikit_learn_takes_the_metric():
    model = WBDR(2).fit(X, Y)
    by_metric = NearestNeighbors(n_neighbors=4, metric=pickle.loads(pickle.dumps(model.get_metric()))).fit(X)
    by_view = NearestNeighbors(n_neighbors=4).fit(model.transform(X))
    np.testing.assert_allclose(by_metric.kneighbors(X)[0], by_view.kneighbors(model.transform(X))[0], atol=1e-6)


def test_the_metric_stays_as_it_was():
    model = WBDR(2).fit(X, Y)
    metric, before = model.get_metric(), model.pair_distance(A, B)[0]
    model.fit(10 * X, Y)
    assert metric(A[0], B[0]) == pytest.approx(before)


def test_a_pipeline_and_a_curved_view_have_distances():
    pipeline = make_pipeline(StandardScaler(), WBDR(2)).fit(X, Y)
    Z = pipeline.transform(X)
    np.testing.assert_allclose(pair_distance(pipeline, A, B), np.linalg.norm(Z[:10] - Z[20:30], axis=1))
    curved = fitted(PairLens)
    Z = curved.transform(X)
    np.testing.assert_allclose(curved.pair_distance(A, B), np.linalg.norm(Z[:10] - Z[20:30], axis=1), atol=1e-9)


def test_rows_of_other_kinds():
    model = WBDR(2).fit(X, Y)
    expected = model.pair_distance(A, B)
    np.testing.assert_allclose(model.pair_distance(sparse.csr_matrix(A), B), expected)
    np.testing.assert_allclose(model.set_output(transform="pandas").pair_distance(A, B), expected)
    torch = pytest.importorskip("torch")
    found = WBDR(2).fit(X, Y).pair_distance(torch.as_tensor(A), torch.as_tensor(B))
    np.testing.assert_allclose(found.numpy(), expected)


def test_what_is_wrong_is_said():
    with pytest.raises(NotFittedError):
        WBDR().get_metric()
    with pytest.raises(NotFittedError):
        WSDR().get_mahalanobis_matrix()
    with pytest.raises(ArgumentError, match=r"^B must have 3 rows, as many as A"):
        WBDR(2).fit(X, Y).pair_distance(X[:3], X[:2])
