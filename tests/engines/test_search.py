"""The blocked self-join must return what sorting the whole distance matrix returns, ties and all."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from pairlens.engines import search as module
from pairlens.engines.search import QUANTUM, Criterion, Neighbors, self_join

SMALL_BLOCKS = 20_000


def squared_distances(X: NDArray) -> tuple[NDArray, float]:
    """The full matrix, of rows divided by a power of two about as large as they spread, and that power."""
    X = X.astype(np.float64)
    spread = np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())
    scale = 2.0 ** np.rint(np.log2(spread)) if spread > 0 else 1.0
    return np.stack([(((X - x) / scale) ** 2).sum(axis=1) for x in X]), scale


def oracle(squared: NDArray, k: int) -> NDArray:
    """Sort the full matrix of rounded squared distances, ties by index."""
    key = np.rint(squared / QUANTUM)
    np.fill_diagonal(key, np.inf)
    assert len(key) > k
    return np.argsort(key, axis=1, kind="stable")[:, :k]


def assert_exact(X: Any, found: Neighbors, k: int) -> None:
    squared, scale = squared_distances(X.toarray() if scipy.sparse.issparse(X) else X)
    expected = oracle(squared, k)
    np.testing.assert_array_equal(found.nearest, expected)
    distance = scale * np.sqrt(np.take_along_axis(squared, expected, axis=1))
    np.testing.assert_allclose(found.nearest_distance, distance, rtol=1e-12)
    assert found.nearest.dtype == np.int64
    assert found.nearest_distance.dtype == np.float64


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def neighbors(X: Any, *, n_nearest: int, block_bytes: int | None = None) -> Neighbors:
    """Search with so many bytes for the tiles."""
    with mock.patch.object(module, "BLOCK_BYTES", block_bytes or module.BLOCK_BYTES):
        return module.neighbors(X, n_nearest=n_nearest)


@pytest.fixture(params=["screen32", "screen64", "grouped"])
def screen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with either precision of the screen, whatever would be chosen, and with identical rows grouped."""
    if request.param == "grouped":
        monkeypatch.setattr(module, "WORTHWHILE_GROUPS", 1.0)
    else:
        precision = np.float32 if request.param == "screen32" else np.float64
        monkeypatch.setattr(module, "WORTHWHILE_GROUPS", 0.0)
        monkeypatch.setattr(module, "_screen_dtype", lambda *_: precision)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 5, 40])
def test_random_rows(rng, screen, dtype, k):
    X = rng.normal(size=(250, 12)).astype(dtype)
    for block_bytes in (None, SMALL_BLOCKS):
        found = neighbors(X, n_nearest=k, block_bytes=block_bytes)
        assert_exact(X, found, k)


@pytest.mark.parametrize("levels", [2, 3, 5])
@pytest.mark.parametrize("factor", [1.0, 1 / 15])
def test_grid_full_of_ties(rng, screen, levels, factor):
    X = rng.integers(0, levels, size=(250, 4)) * factor
    assert_exact(X, neighbors(X, n_nearest=6, block_bytes=SMALL_BLOCKS), 6)


@pytest.mark.parametrize("factor", [1e-100, 1e-30, 1e30, 1e100])
def test_scales_beyond_single_precision(rng, factor):
    X = rng.integers(0, 5, size=(300, 4)) * factor
    assert_exact(X, neighbors(X, n_nearest=6, block_bytes=SMALL_BLOCKS), 6)


def test_masses_of_duplicates(rng, screen):
    X = rng.normal(size=(12, 5)).astype(np.float32)[rng.choice(12, p=[0.45] + 11 * [0.05], size=300)]
    assert_exact(X, neighbors(X, n_nearest=5, block_bytes=SMALL_BLOCKS), 5)


def test_near_duplicates_on_either_side_of_the_resolution(rng, screen):
    steps = rng.integers(0, 4, size=(300, 3)) * np.sqrt(QUANTUM) * rng.choice([0.1, 0.5, 1.0, 3.0], size=(300, 1))
    X = rng.normal(size=(3, 3))[rng.integers(0, 3, 300)] + steps
    assert_exact(X, neighbors(X, n_nearest=5, block_bytes=SMALL_BLOCKS), 5)


def test_all_rows_equal(screen):
    X = np.full((250, 7), 0.1, dtype=np.float32)
    found = neighbors(X, n_nearest=3, block_bytes=SMALL_BLOCKS)
    assert_exact(X, found, 3)
    np.testing.assert_array_equal(found.nearest[:5], [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2]])
    np.testing.assert_array_equal(found.nearest_distance, 0.0)


def test_one_outlier_dwarfs_the_rest(rng, screen):
    X = rng.normal(size=(250, 6))
    X[[17, 233]] *= 1e4
    assert_exact(X, neighbors(X, n_nearest=4, block_bytes=SMALL_BLOCKS), 4)


@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_far_from_the_origin(rng, screen, offset):
    X = rng.normal(size=(250, 8)) + offset
    assert_exact(X, neighbors(X, n_nearest=5, block_bytes=SMALL_BLOCKS), 5)


def test_float32_far_from_the_origin(rng, screen):
    X = (rng.normal(size=(250, 8)) + 1e4).astype(np.float32)
    assert_exact(X, neighbors(X, n_nearest=5, block_bytes=SMALL_BLOCKS), 5)


def test_two_rows():
    found = neighbors(np.array([[0.0, 0.0], [3.0, 4.0]]), n_nearest=1)
    np.testing.assert_array_equal(found.nearest, [[1], [0]])
    np.testing.assert_array_equal(found.nearest_distance, [[5.0], [5.0]])


@pytest.mark.parametrize("n", [2, 3, 65, 200])
def test_every_other_row(rng, screen, n):
    X = rng.integers(0, 4, size=(n, 2)).astype(np.float64)
    assert_exact(X, neighbors(X, n_nearest=n - 1, block_bytes=SMALL_BLOCKS), n - 1)


def test_sorted_rows_do_not_mislead_the_first_bounds(rng, screen):
    X = np.sort(rng.normal(size=(300, 1)), axis=0)
    assert_exact(X, neighbors(X, n_nearest=3, block_bytes=SMALL_BLOCKS), 3)


@pytest.mark.parametrize("layout", ["fortran", "strided", "read-only", "csr_matrix", "csr_array", "integers"])
def test_layouts(rng, layout):
    X = rng.integers(0, 3, size=(300, 10)).astype(np.float32) * rng.random((300, 10), dtype=np.float32)
    if layout == "fortran":
        X = np.asfortranarray(X)
    elif layout == "strided":
        X = X[::2, ::3]
    elif layout == "read-only":
        X.flags.writeable = False
    elif layout == "integers":
        X = (X * 10).astype(np.uint8)
    else:
        X = getattr(scipy.sparse, layout)(X)
    assert_exact(X, neighbors(X, n_nearest=4, block_bytes=SMALL_BLOCKS), 4)


@pytest.mark.parametrize("name", ["balance", "iris", "seeds", "letter_abcd", "kddcup99_subset", "cnae9"])
def test_real_sets(real_data: Callable, screen, name):
    X, _ = real_data(name)
    X = X[:250]
    for rows in (X, X.astype(np.float32)):
        assert_exact(rows, neighbors(rows, n_nearest=5, block_bytes=2**20), 5)


def test_letter_with_its_ties(real_data: Callable):
    X, _ = real_data("letter")
    X = X[:1000] / 15
    assert_exact(X, neighbors(X, n_nearest=5), 5)


@settings(deadline=None, max_examples=50)
@given(
    n=st.integers(2, 90),
    width=st.integers(1, 5),
    levels=st.integers(1, 6),
    seed=st.integers(0, 2**16),
    block_bytes=st.sampled_from([1, 10_000, 60_000, None]),
    single=st.booleans(),
    data=st.data(),
)
def test_any_small_grid(n, width, levels, seed, block_bytes, single, data):
    dtype = np.float32 if single else np.float64
    X = np.random.default_rng(seed).integers(0, levels, size=(n, width)).astype(dtype) / 7
    k = data.draw(st.integers(1, n - 1))
    assert_exact(X, neighbors(X, n_nearest=k, block_bytes=block_bytes), k)


@pytest.mark.parametrize("name", ["mnist6000", "kddcup99_subset"])
def test_neither_blocks_nor_threads_nor_precision_change_the_result(real_data: Callable, monkeypatch, name):
    X = real_data(name)[0][:800].astype(np.float32)
    reference = neighbors(X, n_nearest=5)

    def same(**options: Any) -> None:
        found = neighbors(X, n_nearest=5, **options)
        for field in ("nearest", "nearest_distance"):
            np.testing.assert_array_equal(getattr(found, field), getattr(reference, field))

    for block_bytes in (2**21, 2**24, 2**30):
        same(block_bytes=block_bytes)
    with threadpool_limits(limits=1, user_api="blas"):
        same()
    for precision in (np.float32, np.float64):
        monkeypatch.setattr(module, "_screen_dtype", lambda *_, precision=precision: precision)
        same()


@pytest.mark.parametrize("kind", ["random", "constant", "two levels"])
def test_memory_stays_below_its_bound(rng, kind):
    n, k = 5000, 5
    X = {
        "random": lambda: rng.normal(size=(n, 10)),
        "constant": lambda: np.ones((n, 10)),
        "two levels": lambda: rng.integers(0, 2, size=(n, 10)).astype(np.float64),
    }[kind]()
    block_bytes = 8 * 2**20
    neighbors(X[:100], n_nearest=k)
    tracemalloc.start()
    neighbors(X, n_nearest=k, block_bytes=block_bytes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = 16 * n * k
    assert peak - result <= block_bytes + 16 * n * (k + 20)
    assert peak < n * n / 2


def test_two_keys_in_one_pass(rng):
    """Nearest by one key, farthest by another, as a projected kernel wants it."""
    n, k = 300, 4
    X = rng.normal(size=(n, 5))
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    similar = 2 - 2 * np.exp(-squared / 3) - np.abs(X[:, None, 0] - X[:, 0]) / 2
    noise = 1e-6 * np.sin(np.arange(n)[:, None] * np.arange(n))

    def strip(rows: slice) -> Callable:
        return lambda cols: (similar[rows, cols] + noise[rows, cols], squared[rows, cols] - noise[rows, cols])

    def criterion(keys: NDArray) -> Criterion:
        return Criterion(k, lambda r, c: keys[r, c], radius=np.ones(n), unit=2.5e-7, quantum=1e-10)

    near, far = self_join(n, strip, nearest=criterion(similar), farthest=criterion(squared), block=32, n_threads=3)
    hidden = np.where(np.eye(n, dtype=bool), np.inf, 0.0)
    for found, key, sign in ((near, similar, 1), (far, squared, -1)):
        order = np.argsort(sign * key + hidden, axis=1)[:, :k]
        np.testing.assert_array_equal(found[0], order)
        np.testing.assert_array_equal(found[1], np.take_along_axis(key, order, axis=1))


@pytest.mark.parametrize("value", [-1, 0, 5, 100])
def test_impossible_numbers_of_neighbors(value):
    with pytest.raises(ValueError, match=rf"n_nearest must lie between 1 and 4.*got {value}"):
        neighbors(np.eye(5), n_nearest=value)
