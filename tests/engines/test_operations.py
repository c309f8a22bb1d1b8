"""Each operation on a dask array or a tensor against the same on a NumPy array."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from pairlens import engines
from pairlens.engines import config_context, engine_rows, operations
from pairlens.exceptions import ArgumentError
from pairlens.kernels import KernelFeatures

da = pytest.importorskip("dask.array", reason="the Dask engine needs pairlens[dask]")
torch = pytest.importorskip("torch", reason="the torch engine needs pairlens[gpu]")

N, F = 400, 7
GATHER = [1 << 29, 1]


def on_dask(X):
    return engine_rows(da.from_array(X, chunks=((90, 1, 200, 109), X.shape[1])), fitting=True)


@pytest.fixture
def on_torch():
    return lambda X: engine_rows(torch.from_numpy(X), fitting=True)


@pytest.fixture(params=["dask", "torch"])
def rows_of(request, on_torch):
    return on_dask if request.param == "dask" else on_torch


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((N, F)) * np.arange(1, F + 1) + 3


def test_pairs(X, rows_of):
    rng = np.random.default_rng(1)
    pairs, weight = rng.integers(0, N, (300, 2)), rng.uniform(0.1, 2, 300)
    rows = rows_of(X)
    for some in (slice(None), slice(0, 40)):
        for values in (None, weight[some]):
            np.testing.assert_allclose(
                engines.pair_scatter(rows, pairs[some], values), engines.pair_scatter(X, pairs[some], values)
            )
        np.testing.assert_allclose(
            engines.pair_squared_distances(rows, pairs[some]), engines.pair_squared_distances(X, pairs[some])
        )
    assert not engines.pair_scatter(rows, pairs[:0]).any()
    assert engines.pair_squared_distances(rows, pairs[:0]).shape == (0,)


@pytest.mark.parametrize("gather_bytes", GATHER)
def test_groups(X, rows_of, gather_bytes):
    codes = np.random.default_rng(1).integers(-1, 5, N)
    few = np.where(np.arange(N) % 3 == 0, codes, -1)
    with config_context(gather_bytes=gather_bytes):
        rows = rows_of(X)
        for group in (codes, few):
            np.testing.assert_allclose(engines.group_means(rows, group), engines.group_means(X, group))
            for values in (None, np.arange(1.0, 6)):
                np.testing.assert_allclose(
                    engines.group_scatter(rows, group, weight=values), engines.group_scatter(X, group, weight=values)
                )
        assert not engines.group_scatter(rows, np.full(N, -1)).any()


def test_graphs_with_weights_of_both_signs(X, on_torch):
    graph = sparse.random(N, N, 0.02, random_state=0, data_rvs=np.random.default_rng(0).standard_normal).tocsr()
    graph = graph + graph.T
    expected = engines.graph_scatter(X, graph)
    np.testing.assert_allclose(engines.graph_scatter(on_torch(X), graph), expected, atol=1e-9)
    upper = sparse.triu(graph, 1).tocoo()
    edges = engines.Edges(np.column_stack([upper.row, upper.col]), upper.data)
    for rows in (X, on_torch(X)):
        np.testing.assert_allclose(engines.graph_scatter(rows, edges), expected, atol=1e-9)


def test_sums_over_all_rows(X, rows_of):
    rows = rows_of(X)
    weight = np.random.default_rng(0).random(N)
    np.testing.assert_allclose(engines.column_means(rows), X.mean(axis=0))
    for offset in (X.mean(axis=0), np.zeros(F)):
        np.testing.assert_allclose(
            engines.weighted_scatter(rows, offset=offset), engines.weighted_scatter(X, offset=offset)
        )
        np.testing.assert_allclose(
            engines.weighted_scatter(rows, weight=weight, offset=offset),
            engines.weighted_scatter(X, weight=weight, offset=offset),
        )


def test_other_coordinates(X, on_torch):
    rng = np.random.default_rng(0)
    directions, origin, scale = rng.standard_normal((F, 3)), rng.standard_normal(F), rng.uniform(1, 2, F)
    rows, mean = on_torch(X), X.mean(axis=0)
    np.testing.assert_allclose(engines.mean_norm(rows), engines.mean_norm(X))

    def host(found):
        return engines.rows_in_memory(found)

    np.testing.assert_allclose(host(rows), X)
    np.testing.assert_allclose(engines.column_deviations(rows, mean), X.std(axis=0))
    np.testing.assert_allclose(engines.absolute_deviations(rows, mean), np.abs(X - mean).mean(axis=0))
    np.testing.assert_allclose(host(engines.along(rows, directions)), X @ directions, atol=1e-12)
    np.testing.assert_allclose(
        host(engines.along(rows, directions, origin=origin)), (X - origin) @ directions, atol=1e-12
    )
    np.testing.assert_allclose(host(engines.rescaled(rows, scale=scale)), X / scale)
    np.testing.assert_allclose(host(engines.rescaled(rows, offset=origin, scale=scale)), (X - origin) / scale)


def test_deviations_of_sparse_rows_and_of_large_and_small_values():
    rng = np.random.default_rng(0)
    rows = sparse.random(200, F, 0.3, format="csr", random_state=0)
    mean = np.asarray(rows.mean(axis=0)).ravel()
    np.testing.assert_allclose(engines.column_deviations(rows, mean), rows.toarray().std(axis=0))
    for scale in (1e-200, 1e200):
        X = scale * rng.standard_normal((50, 2))
        np.testing.assert_allclose(engines.column_deviations(X, X.mean(axis=0)), scale * (X / scale).std(axis=0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_absolute_deviations(dtype, monkeypatch):
    """Dense and sparse rows, block by block; zeros that are stored and those that are not are the same."""
    monkeypatch.setattr(operations, "row_blocks", lambda n, _: (slice(at, at + 70) for at in range(0, n, 70)))
    X = sparse.random(200, F, 0.3, format="csr", random_state=0).toarray().astype(dtype) - dtype(0.1) * (
        np.arange(F) < 2
    )
    X[:, 4] = 3.0
    stored = sparse.csr_matrix(X)
    stored.data[:5] = 0
    for rows, dense in ((X, X), (stored, stored.toarray()), (sparse.csr_array(stored), stored.toarray())):
        mean = dense.mean(axis=0, dtype=np.float64)
        expected = np.abs(dense.astype(np.float64) - mean).mean(axis=0)
        found = engines.absolute_deviations(rows, mean)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_kernel_features(X, on_torch):
    rng = np.random.default_rng(0)
    anchors, combination, gamma = X[rng.choice(N, 20)], rng.standard_normal((20, 3)), engines.median_gamma(X)
    rows = on_torch(X)
    assert engines.median_gamma(rows) == engines.median_gamma(on_dask(X)) == gamma
    squared = ((X[:, None] - anchors) ** 2).sum(axis=2)
    assert gamma == pytest.approx(1 / np.median(((X[:, None] - X) ** 2).sum(axis=2)[np.triu_indices(N, 1)]))
    offset = np.array([1.0, -2.0, 0.5])
    expected = np.exp(-gamma * squared) @ combination - offset
    for given in (X, rows):
        found = KernelFeatures(anchors, combination, offset, "rbf", gamma)(given)
        np.testing.assert_allclose(engines.rows_in_memory(found), expected, atol=1e-12)


def test_other_kernels_are_for_rows_in_memory(X, on_torch):
    for kernel in ("linear", lambda left, right: left @ right):
        features = KernelFeatures(X[:2], np.eye(2), np.zeros(2), kernel, None)
        np.testing.assert_allclose(features(X), X @ X[:2].T)
        with pytest.raises(ArgumentError, match=r"X.cpu\(\)") as caught:
            features(on_torch(X))
        assert (caught.value.argument, caught.value.value) == ("kernel", kernel)


@pytest.mark.parametrize("given", [True, False])
def test_walks_over_near_rows(X, on_torch, given):
    """The last rows repeat: those of scale 0 walk to their duplicates alone."""
    X[-9:] = X[0]
    found = engines.neighbors(X, n_nearest=8)
    nearest, scale = found.nearest[:, :5], found.nearest_distance[:, 6]
    rows = on_torch(X)
    known = (found.nearest, found.nearest_distance)
    here = engines.near_walk(X, 5, scale_neighbor=7, accuracy=1e-12, found=known)
    there = engines.near_walk(rows, 5, scale_neighbor=7, accuracy=1e-12, found=known if given else None)
    weight = np.zeros((N, N))
    for row in range(N):
        for other in nearest[row]:
            squared, local = ((X[row] - X[other]) ** 2).sum(), scale[row] * scale[other]
            weight[row, other] = weight[other, row] = np.exp(-squared / local) if local > 0 else squared == 0
    np.testing.assert_allclose(here.weights.toarray(), weight, atol=1e-12)
    walk = weight / weight.sum(axis=1, keepdims=True)
    inverse = 0.4 * np.linalg.inv(np.eye(N) - 0.6 * walk)
    listed = np.repeat(X, 5, axis=0) - X[nearest.ravel()]
    for graph, own in ((here, X), (there, rows)):
        np.testing.assert_array_equal(graph.indices, nearest)
        np.testing.assert_allclose(engines.pair_scatter(own, engines.listed_pairs(graph.indices)), listed.T @ listed)
        np.testing.assert_allclose(engines.rows_in_memory(graph.spread(own, 0.6)), inverse @ X, atol=1e-9)
        np.testing.assert_allclose(graph.spread_back(X[:, 0].copy(), 0.6), inverse.T @ X[:, 0], atol=1e-9)


def test_columns_and_rows_by_number(X):
    rows = on_dask(X)
    order = np.array([399, 0, 5, 5, 90, 91])
    np.testing.assert_array_equal(rows[order], X[order])
    part = rows[:, np.array([5, 2])]
    np.testing.assert_array_equal(part[order], X[order][:, [5, 2]])
    np.testing.assert_allclose(engines.column_means(part), X[:, [5, 2]].mean(axis=0))
