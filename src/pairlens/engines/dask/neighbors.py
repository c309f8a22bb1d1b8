"""The exact nearest rows of every row of a dask array: all pairs of chunks meet, two at a time.

A task compares the rows of one chunk with those of another and lists the nearest; lists are merged in a tree. The
screen, the bound on its error, the precise keys and the rules for ties are those of
:mod:`pairlens.engines.local.neighbors`, so the result is the same to the last row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from pairlens.engines import interface
from pairlens.engines.config import settings
from pairlens.engines.dask.rows import Block, DaskRows, compute, task, tree
from pairlens.engines.local.neighbors import QUANTUM, DistanceScreen, MeasuredRows, check_count, unit_length
from pairlens.engines.local.selection import kth_bound, true_places
from pairlens.engines.types import Float64, Index, Neighbors

TILE_BYTES = 1 << 24
CHUNK_ROWS = 8192
"""Rows of a chunk when all pairs of chunks meet: many tasks for many workers, each of about a second."""
TOLERABLE = 8
"""Candidates for each place of a list beyond which single precision is not worth its refinements."""


@dataclass(frozen=True)
class Listed:
    """The nearest rows of some rows so far, nearest first, and their precise keys."""

    index: Index
    key: Float64

    def best(self, k: int) -> Listed:
        """Return the first k of each list, ties by index."""
        # NumPy orders complex numbers by real part, then imaginary part.
        order = np.argsort(np.rint(self.key / QUANTUM) + 1j * self.index, axis=1)[:, :k]
        return Listed(np.take_along_axis(self.index, order, 1), np.take_along_axis(self.key, order, 1))


def joined(parts: list[Listed], *, axis: int) -> Listed:
    """Join lists of several sets of rows (axis 0), or several lists of the same rows (axis 1)."""
    return Listed(
        np.concatenate([part.index for part in parts], axis=axis),
        np.concatenate([part.key for part in parts], axis=axis),
    )


@dataclass(frozen=True)
class Search:
    """What every task knows: centre and spread of all rows, and how many neighbours are wanted."""

    center: Float64
    scale: float
    k: int
    tile_bytes: int

    @property
    def precisions(self) -> list[Any]:
        """Precisions to screen with; squares must stay clear of float32's range."""
        return [np.float32, np.float64] if 1e-15 < self.scale < 1e15 else [np.float64]

    def measured(self, rows: Block) -> MeasuredRows:
        """Return rows from the centre of all, in units of the spread of all."""
        center = self.center.astype(rows.dtype)
        centred = np.subtract(rows, center, dtype=np.float64)
        return MeasuredRows(rows, None, center, self.scale, np.einsum("ij,ij->i", centred, centred) / self.scale**2)


@interface.neighbors.register(DaskRows)
def neighbors(X: DaskRows, *, n_nearest: int, block_bytes: int | None = None) -> Neighbors:
    n = X.shape[0]
    check_count(n, n_nearest)
    if n > settings().exact_rows:
        raise ValueError(
            f"the neighbours of {n:,} rows of a dask array would take {n:,} x {n:,} distances; up to "
            f"{settings().exact_rows:,} rows are searched. Raise pairlens.config_context(exact_rows=...) on a large "
            "cluster, or fit on a part of the rows."
        )
    moments = X.moments(scatter=True)
    assert moments.scatter is not None
    scale = unit_length(np.trace(moments.scatter) / n)
    search = Search(moments.mean, scale, n_nearest, min(TILE_BYTES, block_bytes or TILE_BYTES))
    chunks = [(start, chunk) for start, _, chunk in X.coarse(CHUNK_ROWS).chunks()]
    merged = [
        tree([task(meet, search, chunk, start, other, first) for first, other in chunks], partial(merge, n_nearest))
        for start, chunk in chunks
    ]
    found = compute(merged, f"all {len(chunks)} x {len(chunks)} pairs of chunks: neighbours of {n:,} rows")
    whole = joined(list(found), axis=0)
    return Neighbors(whole.index, scale * np.sqrt(whole.key))


def merge(k: int, parts: list[Listed]) -> Listed:
    """Merge lists over several chunks."""
    return joined(parts, axis=1).best(k)


def meet(search: Search, left: Block, start: int, right: Block, first: int) -> Listed:
    """Return the nearest rows of `right`, which begins at row `first`, for each row of `left`, which begins at `start`.

    Both are the same chunk if they begin at the same row; a row is not its own neighbour.
    """
    same = start == first
    rows = search.measured(left if same else np.concatenate([left, right]))
    cols = slice(0 if same else len(left), rows.n)
    k = min(search.k, len(right) - same)
    screens = cache(partial(DistanceScreen, rows))
    step = max(16, search.tile_bytes // (4 * len(right)))
    parts = []
    for low in range(0, len(left), step):
        part = slice(low, min(low + step, len(left)))
        for dtype in search.precisions:
            listed = _nearest(screens(dtype), part, cols, k, same=same, final=dtype == np.float64)
            if listed is not None:
                parts.append(Listed(listed.index + first, listed.key))
                break
    return joined(parts, axis=0)


def _nearest(screen: DistanceScreen, rows: slice, cols: slice, k: int, *, same: bool, final: bool) -> Listed | None:
    """Return the k nearest columns of some rows, counted from the first one; None if too many are in doubt.

    Candidates are the columns within a reach of the k-th screened one; `final` lists them however many there are.
    """
    n_rows = rows.stop - rows.start
    if k <= 0:
        return Listed(np.empty((n_rows, 0), dtype=np.int64), np.empty((n_rows, 0)))
    criterion = screen.criterion(k)
    tile, _ = screen.strip(rows)(cols)
    if same:
        own = np.arange(n_rows)
        tile[own, rows.start + own] = np.inf
    limit = kth_bound(tile, k, +1) + 2 * (QUANTUM * criterion.error(rows, cols) + QUANTUM)
    edge = np.nextafter(limit.astype(tile.dtype), np.asarray(np.inf, tile.dtype))[:, None]
    line, other = np.divmod(true_places(tile <= edge), tile.shape[1])
    if not final and line.size > TOLERABLE * k * n_rows:
        return None
    key = criterion.refine(rows.start + line, cols.start + other)
    order = np.lexsort((other, np.rint(key / QUANTUM), line))
    place = np.arange(order.size) - np.searchsorted(line[order], line[order])
    chosen = order[place < k]
    return Listed(other[chosen].reshape(-1, k), key[chosen].reshape(-1, k))
