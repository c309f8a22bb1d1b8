"""Diffusion coordinates: the dense oracle, both solvers, graphs of several parts, repeated rows, new rows."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.graphs import nearest as module
from pairlens.graphs.nearest import diffusion, near_graph
from tests.learning.cases import assert_same_geometry
from tests.oracles import learning as oracle


def clusters(n=60, parts=3, gap=4.0, seed=0):
    rng = np.random.default_rng(seed)
    return np.vstack([rng.standard_normal((n, 4)) + gap * k * np.eye(4)[0] for k in range(parts)])


@pytest.mark.parametrize("gap", [0.0, 4.0, 1000.0], ids=["one part", "bridges", "several parts"])
def test_coordinates_are_those_of_the_oracle(gap):
    Z = clusters(gap=gap)
    found = diffusion(Z, near_graph(Z, 10)).values
    expected = oracle.diffusion_coordinates(oracle.neighbour_graph(Z))
    assert found.shape == (180, 15)
    assert_same_geometry(found, expected)
    # Column by column where eigenvalues are simple, best first.
    if gap == 0:
        signs = np.sign((found * expected).sum(axis=0))
        np.testing.assert_allclose(found * signs, expected, atol=1e-7 * np.abs(expected).max())


def test_rows_that_repeat_more_often_than_neighbours_are_counted():
    Z = np.repeat(np.random.default_rng(0).standard_normal((8, 3)), 12, axis=0)
    found = diffusion(Z, near_graph(Z, 10))
    assert np.isfinite(found.values).all()
    np.testing.assert_allclose(found.values, np.repeat(found.values[::12], 12, axis=0), atol=1e-7)
    np.testing.assert_allclose(found(Z), found.values, atol=1e-7)
    np.testing.assert_allclose(found.as_new(Z), found.values, atol=1e-7)


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_few_rows(n):
    Z = np.random.default_rng(0).standard_normal((n, 3))
    found = diffusion(Z, near_graph(Z, 10))
    assert found.values.shape == (n, min(15, n - 1))
    assert_same_geometry(found.values, oracle.diffusion_coordinates(oracle.neighbour_graph(Z), n - 1))
    assert np.isfinite(found(Z + 0.1)).all()


def test_rounding_is_not_a_coordinate():
    """Each of a few rows is near all others: no eigenvalue but the constant's is positive, and nothing is left."""
    Z = np.random.default_rng(0).standard_normal((5, 3))
    np.testing.assert_array_equal(diffusion(Z, near_graph(Z, 10)).values, 0)


def test_the_sparse_solver_gives_the_dense_coordinates(monkeypatch):
    Z = clusters(n=150, parts=4)
    graph = near_graph(Z, 10)
    monkeypatch.setattr(module, "DENSE_LIMIT", 1000)
    dense = diffusion(Z, graph).values
    monkeypatch.setattr(module, "DENSE_LIMIT", 100)
    assert_same_geometry(diffusion(Z, graph).values, dense, 1e-6)


def test_new_rows_are_means_of_their_nearest():
    Z = clusters()
    found = diffusion(Z, near_graph(Z, 10))
    new = Z[::9] + 0.3
    expected = [oracle.mean_of_nearest(Z, found.values, row) for row in new]
    np.testing.assert_allclose(found(new), expected, atol=1e-9)
    # Nobody is their equal, so nothing is left out.
    np.testing.assert_allclose(found.as_new(new), expected, atol=1e-9)


def test_training_rows_keep_their_place_and_as_new_ones_do_not():
    Z = clusters()
    graph = near_graph(Z, 10)
    found = diffusion(Z, graph)
    np.testing.assert_allclose(found(Z), found.values, atol=1e-12)
    np.testing.assert_allclose(found(Z * (1 + 1e-15)), found.values, atol=1e-12)
    others = [oracle.mean_of_nearest(Z, found.values, row, leave_out=i) for i, row in enumerate(Z)]
    np.testing.assert_allclose(found.as_new(Z), others, atol=1e-9)
    np.testing.assert_allclose(found.of_others(graph.indices), others, atol=1e-9)
    assert np.abs(found.as_new(Z) - found.values).max() > 1e-3


def test_new_rows_by_an_index():
    pytest.importorskip("faiss")
    Z = clusters(n=400, parts=4)
    new = Z[::7] + 0.1 * np.random.default_rng(1).standard_normal((len(Z[::7]), 4))
    graph = near_graph(Z, 10)
    exactly, nearly = (diffusion(Z, graph, search=search, n_queries=10**7) for search in ("exact", "auto"))
    apart = np.abs(exactly(new) - nearly(new)).max(axis=1)
    assert 0 < np.mean(apart > 0) < 0.5
    assert np.median(apart) < 1e-12
    np.testing.assert_allclose(nearly(Z[:9]), exactly.values[:9], atol=1e-12)
