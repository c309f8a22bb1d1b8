"""The blocked pass over two distances must return what sorting both n x n matrices returns, ties and all."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context

from pairlens import Constraints
from pairlens.engines import projected as module
from pairlens.engines.projected import (
    QUANTUM,
    SMALLEST_QUANTUM,
    TIE,
    LocalProjectedRows,
    RowGroups,
    first_identical,
    projected_rows,
)
from pairlens.exceptions import ArgumentError
from pairlens.kernels import delta_to_gamma, must_link_null_space


def projected(X, must, delta):
    chunklets = Constraints(must, n_samples=X.shape[0]).chunklets()
    space = must_link_null_space(X, chunklets, gamma=delta_to_gamma(delta))
    return projected_rows(X, space.coordinates(X), delta_to_gamma(delta), chunklets)


def brute(rows: LocalProjectedRows, k: int):
    """Sort all rows by projected distance with its share of input distance, then by input distance, then by index."""
    n = rows.n
    X = rows.X.toarray() if sparse.issparse(rows.X) else rows.X
    X = X.astype(np.float64)
    D2 = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    square = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    i, j = np.divmod(np.arange(n * n), n)
    squared = rows.squared_distances(i, j).reshape(n, n)
    stands = rows.groups.representative
    unit = min(1.0, rows.gamma * 4.0 ** np.rint(np.log2(square.mean()) / 2))
    key = squared / 2 + TIE * unit * D2[np.ix_(stands, stands)] / (4 * square.max())
    key = np.rint(key / max(QUANTUM * unit, SMALLEST_QUANTUM))
    key[np.equal.outer(stands, stands)] = 0
    key[np.diag_indices(n)] = np.inf
    rounded = np.rint(D2 / square.mean() / 1e-10)
    index = np.broadcast_to(np.arange(n), (n, n))
    near = np.lexsort((index, rounded, key), axis=1)[:, :k]
    far = np.lexsort((index, np.where(np.eye(n) > 0, np.inf, -rounded)), axis=1)[:, :k]
    return near, far, np.sqrt(squared.max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("delta", [0.05, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("kind", ["normal", "outliers", "near duplicates", "duplicates", "grid", "sparse"])
def test_agrees_with_sorting(kind, delta, dtype):
    rng = np.random.default_rng(0)
    n = 200
    X = rng.standard_normal((n, 4))
    if kind == "outliers":
        X[:20] *= 50
    elif kind == "near duplicates":
        X[100:200] = X[:100] + 1e-4 * rng.standard_normal((100, 4))
    elif kind == "duplicates":
        X = np.repeat(X[:40], 5, axis=0)
    elif kind == "grid":
        X = rng.integers(0, 4, (n, 3)).astype(float)
    elif kind == "sparse":
        X = np.maximum(X, 0)
    X = X.astype(dtype)
    if kind == "sparse":
        X = sparse.csr_matrix(X)
    must = [(0, 100), (100, 150), (3, 4), (50, 60), (60, 70), (70, 80), (80, 90), (90, 95), (95, 99)]
    rows = projected(X, must, delta)
    near, far, largest = brute(rows, 5)
    for working_memory in (None, 0.1):
        with config_context(working_memory=working_memory):
            found = rows.neighbors(5)
        np.testing.assert_array_equal(found.farthest, far)
        assert found.largest_projected == pytest.approx(largest, rel=1e-7)
        np.testing.assert_array_equal(found.nearest, near)


@pytest.mark.parametrize("step", [1.0, 0.1, 0.37])
@pytest.mark.parametrize("delta", [0.3, 1.0, 3.0])
def test_rounding_does_not_decide_between_equals(step, delta):
    """On a grid most rows tie with others. Coordinates that differ in the last digits, as those of another LAPACK on
    another processor do, give the same lists: equal rows are ordered by the rule, their index."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        n = int(rng.integers(20, 60))
        X = step * rng.integers(0, 4, (n, int(rng.integers(1, 4)))).astype(float)
        must = rng.permutation(n)[:6].reshape(3, 2)
        rows = projected(X, must, delta)
        noise = 1e-15 * rng.standard_normal(rows.F.shape)
        other = projected_rows(X, rows.F + noise, rows.gamma, Constraints(must, n_samples=n).chunklets())
        for k in (1, 4):
            found, again = rows.neighbors(k), other.neighbors(k)
            np.testing.assert_array_equal(found.nearest, again.nearest)
            np.testing.assert_array_equal(found.farthest, again.farthest)


@pytest.mark.parametrize("screen", [np.float32, np.float64])
def test_both_screens_agree(screen, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((700, 6))
    rows = projected(X, rng.permutation(700)[:60].reshape(30, 2), 1.0)
    near, far, largest = brute(rows, 4)
    monkeypatch.setattr(LocalProjectedRows, "_screen_dtype", lambda *_: screen)
    found = rows.neighbors(4)
    np.testing.assert_array_equal(found.nearest, near)
    np.testing.assert_array_equal(found.farthest, far)
    assert found.largest_projected == pytest.approx(largest, rel=1e-12)


def test_memory_stays_within_its_bound():
    rng = np.random.default_rng(0)
    n, k = 4500, 5
    X = rng.standard_normal((n, 10))
    rows = projected(X, rng.permutation(n)[:100].reshape(50, 2), 4.0)
    budget = 8 * 2**20
    tracemalloc.start()
    with config_context(working_memory=8):
        rows.neighbors(k)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < budget + 16 * n * (2 * k + 40)
    assert peak < n * n  # one byte for each pair would be more


def test_bounds_of_k():
    rows = projected(np.arange(5.0)[:, None], [(0, 1)], 1.0)
    for k in (0, 5):
        with pytest.raises(ArgumentError, match="must lie between 1 and 4") as caught:
            rows.neighbors(k)
        assert (caught.value.argument, caught.value.value) == ("k", k)
    assert rows.neighbors(4).nearest.shape == (5, 4)


def test_everything_in_one_group():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    found = projected(X, [(0, 1), (1, 2), (2, 3)], 1.0).neighbors(2)
    np.testing.assert_array_equal(found.nearest, [[1, 2], [0, 2], [1, 0], [2, 1]])
    assert found.largest_projected == 0


class TestGroups:
    def test_identical_rows(self):
        X = np.array([[1.0, 2], [0, 0], [1, 2], [-0.0, 0], [1, 2.0000001]])
        np.testing.assert_array_equal(first_identical(X), [0, 1, 0, 1, 4])
        np.testing.assert_array_equal(first_identical(sparse.csr_matrix(X)), [0, 1, 0, 1, 4])

    def test_groups_join_codes_and_identical_rows(self):
        X = np.array([[5.0], [1], [1], [2], [3], [5]])
        groups = RowGroups.of(X, np.array([-1, -1, 0, 0, -1, -1]))
        np.testing.assert_array_equal(groups.group, [0, 1, 1, 1, 2, 0])
        np.testing.assert_array_equal(groups.first, [0, 1, 4])
        np.testing.assert_array_equal(groups.representative, [0, 1, 1, 1, 4, 0])

    def test_large_groups_of_identical_rows(self):
        X = np.repeat([[0.0], [4.0]], [5, 4], axis=0)
        groups = RowGroups.of(X, np.full(9, -1))
        nearest = groups.expand(X, np.array([[1], [0]]), np.zeros((2, 1)), 3, 1e-9)
        np.testing.assert_array_equal(nearest[:5], [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2]])
        np.testing.assert_array_equal(nearest[5:], [[6, 7, 8], [5, 7, 8], [5, 6, 8], [5, 6, 7]])

    def test_portions_change_nothing(self, monkeypatch):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((200, 2))
        rows = projected(X, rng.integers(200, size=(80, 2)), 1.0)
        whole = rows.neighbors(6).nearest
        monkeypatch.setattr("pairlens.engines.projected.PORTION", 7)
        np.testing.assert_array_equal(rows.neighbors(6).nearest, whole)


def test_many_candidates_for_the_largest_distance(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_CANDIDATES", 2)
    X = np.random.default_rng(0).standard_normal((200, 3))
    rows = projected(X, [(0, 1)], 0.01)  # nearly all pairs are at the square root of two
    assert rows.neighbors(3).largest_projected == pytest.approx(np.sqrt(2), rel=1e-6)
