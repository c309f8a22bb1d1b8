"""The projected search over pairs of chunks finds what the search in memory finds, ties included."""

from __future__ import annotations

import numpy as np
import pytest

import pairlens
from pairlens import Constraints
from pairlens.engines import config_context
from pairlens.engines.dask import neighbors as dask_neighbors
from pairlens.engines.dask import rows as dask_rows
from pairlens.engines.local.projected import LocalProjectedRows
from pairlens.kernels import nullspace
from pairlens.kernels.nullspace import must_link_null_space

dask = pytest.importorskip("dask", reason="the Dask engine needs pairlens[dask]")
da = pytest.importorskip("dask.array", reason="the Dask engine needs pairlens[dask]")

from pairlens.engines.dask.projected import DaskProjectedRows  # noqa: E402

CHUNKS = (61, 0, 17, 90, 1, 71)
N = sum(CHUNKS)


@pytest.fixture(autouse=True)
def small_chunks(keep_chunks_apart, in_this_process):
    keep_chunks_apart(64, 4)
    with dask.config.set(scheduler="threads"):
        yield


def spread(dtype=np.float64):
    return (np.random.default_rng(0).standard_normal((N, 4)) + 3).astype(dtype)


def grid():
    """Integers: most distances occur many times, and rows repeat."""
    return np.random.default_rng(1).integers(0, 4, (N, 3)).astype(np.float64)


def repeated():
    X = spread()
    X[100:160] = X[5]
    X[200:220] = X[20:40]
    return X


def linked(*groups):
    chunklets = np.full(N, -1)
    for code, rows in enumerate(groups):
        chunklets[rows] = code
    return chunklets


LINKS = {
    "none": linked(),
    "across chunks": linked([3, 70, 200], [8, 239], [64, 65, 66, 67]),
    "a crowd": linked(np.arange(0, N, 7), [1, 2]),
    "a chunk that another stands for": linked([0, *range(78, 168)], [2, 239]),
    "all": linked(np.arange(N)),
    "two halves": linked(np.arange(0, N, 2), np.arange(1, N, 2)),
}


def both(X, chunklets, gamma):
    rows = dask_rows.DaskRows.of(da.from_array(X, chunks=(CHUNKS, X.shape[1])), fitting=True)
    space = must_link_null_space(X, chunklets, gamma=gamma)
    there = DaskProjectedRows.of(rows, must_link_null_space(rows, chunklets, gamma=gamma), chunklets)
    return LocalProjectedRows.of(X, space.coordinates(X), gamma, chunklets), there


def assert_same_rows(X, chunklets, gamma, k):
    here, there = both(X, chunklets, gamma)
    np.testing.assert_array_equal(there.groups.group, here.groups.group)
    expected, found = here.neighbors(k), there.neighbors(k)
    np.testing.assert_array_equal(found.nearest, expected.nearest)
    np.testing.assert_array_equal(found.farthest, expected.farthest)
    assert found.largest_input == pytest.approx(expected.largest_input, rel=1e-12)
    assert found.largest_projected == pytest.approx(expected.largest_projected, rel=1e-10, abs=1e-12)
    pairs = np.random.default_rng(2).integers(0, N, (300, 2))
    np.testing.assert_allclose(
        there.squared_distances(*pairs.T), here.squared_distances(*pairs.T), rtol=1e-8, atol=1e-11
    )
    np.testing.assert_allclose(there.remaining, 1 - np.einsum("ij,ij->i", here.F, here.F), atol=1e-9)


@pytest.mark.parametrize("links", LINKS)
@pytest.mark.parametrize("rows", [spread, grid, repeated])
@pytest.mark.parametrize("k", [1, 6])
def test_same_rows_as_in_memory(rows, links, k):
    assert_same_rows(rows(), LINKS[links], 0.3, k)


@pytest.mark.parametrize("gamma", [1e-7, 0.05, 40.0])
def test_any_width_of_the_kernel(gamma):
    assert_same_rows(spread(), LINKS["across chunks"], gamma, 5)


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_any_scale(scale):
    assert_same_rows(scale * spread(), LINKS["across chunks"], 0.3 / scale**2, 5)


def test_single_precision():
    assert_same_rows(spread(np.float32), LINKS["a crowd"], 0.3, 5)


def test_as_many_neighbours_as_there_are():
    assert_same_rows(spread(), LINKS["across chunks"], 0.3, N - 1)
    here, there = both(spread(), LINKS["none"], 0.3)
    for rows in (here, there):
        with pytest.raises(ValueError, match=f"between 1 and {N - 1}"):
            rows.neighbors(N)


def test_null_space_of_a_part_of_the_linked_rows(monkeypatch):
    monkeypatch.setattr(nullspace, "MAX_LINKED", 20)
    with pytest.warns(pairlens.exceptions.ApproximationWarning, match="must-linked"):
        assert_same_rows(spread(), LINKS["two halves"], 0.3, 5)


def test_groups_that_may_not_be_fetched_are_searched_where_they_are(monkeypatch):
    monkeypatch.setattr(nullspace, "MAX_LINKED", 20)
    with (
        config_context(gather_bytes=30 * 4 * 8),
        pytest.warns(pairlens.exceptions.ApproximationWarning, match="must-linked"),
    ):
        assert_same_rows(spread(), LINKS["two halves"], 0.3, 5)


class Largest:
    """A scheduler that notes the longest table it brings back."""

    def __init__(self, width):
        self.width, self.rows, self.calls = width, 0, 0

    def __call__(self, graph, keys, **kwargs):
        found = dask.local.get_sync(graph, keys, **kwargs)
        self.calls += 1
        self._look(found)
        return found

    def _look(self, found):
        if isinstance(found, np.ndarray) and found.ndim == 2 and found.shape[1] == self.width:
            self.rows = max(self.rows, len(found))
        elif isinstance(found, list | tuple):
            for part in found:
                self._look(part)


def test_fit_brings_only_few_rows_together(monkeypatch):
    """At most the rows of pairs and the sample for delta; a fit on all rows would bring them."""
    monkeypatch.setattr(dask_rows, "COARSE_BYTES", 1 << 26)
    monkeypatch.setattr(dask_neighbors, "CHUNK_ROWS", 1000)
    rng = np.random.default_rng(0)
    n, f = 3000, 7
    y = rng.integers(0, 3, n)
    X = rng.standard_normal((n, f)) + 3 * np.eye(3, f)[y]
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    spy = Largest(f)
    with dask.config.set(scheduler=spy), config_context(gather_bytes=1300 * f * 8):
        model = pairlens.DSP().fit(da.from_array(X, chunks=(700, f)), constraints=pairs)
    assert 0 < spy.rows <= 1000
    reference = pairlens.DSP().fit(X, constraints=pairs)
    assert model.gamma_ == reference.gamma_
    scale = np.abs(reference.components_).max()
    np.testing.assert_allclose(model.components_, reference.components_, rtol=0, atol=1e-8 * scale)


def test_an_index_needs_the_rows_in_memory():
    """neighbors="approx" learns from rows in memory: all of them, or landmarks."""
    pytest.importorskip("faiss", reason="the approximate search needs pairlens[ann]")
    rng = np.random.default_rng(0)
    y = np.arange(800) % 3
    X = rng.standard_normal((800, 5)) + 5 * np.eye(3, 5)[y]
    pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    rows = da.from_array(X, chunks=(300, 5))
    reference = pairlens.DSP(neighbors="approx", random_state=0).fit(X, constraints=pairs)
    model = pairlens.DSP(neighbors="approx", random_state=0).fit(rows, constraints=pairs)
    np.testing.assert_allclose(model.components_, reference.components_, atol=1e-8)
    with (
        config_context(landmark_rows=400),
        pytest.warns(pairlens.exceptions.ApproximationWarning, match="DSP learns from"),
    ):
        assert pairlens.DSP(neighbors="approx", random_state=0).fit(rows, constraints=pairs).score(X, y) > 0.9
