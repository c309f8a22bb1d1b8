"""Graphs against loops over neighbour lists."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.manifold._locally_linear import barycenter_kneighbors_graph

from pairlens.engines import weight_matrix
from pairlens.graphs.edges import (
    default_gamma,
    edges_of,
    heat,
    nearest_edges,
    reconstruction_weights,
    shared_neighbors,
)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    indices = np.array([rng.choice(np.delete(np.arange(30), i), 4, replace=False) for i in range(30)])
    return indices, [set(row) for row in indices]


def test_edges_with_or_and_and(table):
    indices, lists = table
    either = {(i, j) for i in range(30) for j in range(i + 1, 30) if j in lists[i] or i in lists[j]}
    both = {(i, j) for i in range(30) for j in range(i + 1, 30) if j in lists[i] and i in lists[j]}
    assert {tuple(e) for e in edges_of(indices).tolist()} == either
    assert {tuple(e) for e in edges_of(indices, join="and").tolist()} == both


def test_shared_neighbors(table):
    indices, lists = table
    expected = np.zeros((30, 30))
    for i in range(30):
        for j in range(30):
            if j in lists[i] or i in lists[j]:
                expected[i, j] = len(lists[i] & lists[j])
    np.testing.assert_array_equal(shared_neighbors(indices).toarray(), expected)


def test_nearest_edges_of_few_rows_join_all():
    assert len(nearest_edges(np.arange(4.0)[:, None], 10)) == 6


def test_weight_matrix_is_symmetric():
    graph = weight_matrix(np.array([[0, 2], [1, 2]]), np.array([3.0, 4.0]), 3)
    np.testing.assert_array_equal(graph.toarray(), [[0, 0, 3], [0, 0, 4], [3, 4, 0]])


def test_heat_and_its_default_width():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3)) + 5
    theta = np.linalg.norm(X - X.mean(axis=0), axis=1).mean() ** 2
    assert default_gamma(X) == pytest.approx(1 / theta)
    assert default_gamma(sparse.csr_matrix(X)) == pytest.approx(1 / theta)
    edges = np.array([[0, 1], [3, 7]])
    expected = [np.exp(-np.sum((X[i] - X[j]) ** 2) / theta) for i, j in edges]
    np.testing.assert_allclose(heat(X, edges), expected)
    np.testing.assert_array_equal(heat(np.ones((4, 2)), edges[:1]), [1.0])


def test_reconstruction_weights_match_scikit_learn():
    X = np.random.default_rng(0).standard_normal((60, 5))
    expected = barycenter_kneighbors_graph(X, n_neighbors=4, reg=1e-3).toarray()
    np.testing.assert_allclose(reconstruction_weights(X, 4, 1e-3).toarray(), expected, atol=1e-8)
    np.testing.assert_allclose(reconstruction_weights(sparse.csr_matrix(X), 4).toarray(), expected, atol=1e-8)


def test_reconstruction_of_repeated_rows_is_finite():
    X = np.repeat(np.random.default_rng(0).standard_normal((3, 2)), 8, axis=0)
    weights = reconstruction_weights(X, 4)
    assert np.isfinite(weights.data).all()
    np.testing.assert_allclose(np.asarray(weights.sum(axis=1)).ravel(), 1.0)
