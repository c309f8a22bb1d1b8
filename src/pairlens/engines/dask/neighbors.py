"""The exact nearest and farthest rows of every row of a dask array: all pairs of chunks meet, two at a time.

A task compares the rows of one chunk with those of another and lists the best; lists are merged in a tree. The screen,
the bound on its error, the precise keys and the rules for ties are those of :mod:`pairlens.engines.local.neighbors`,
so the result is the same to the last row. What is compared is up to a :class:`Comparison`: distances here, those of a
projected kernel in :mod:`pairlens.engines.dask.projected`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import interface
from pairlens.engines.config import settings
from pairlens.engines.dask.rows import Block, DaskRows, compute, task, tree
from pairlens.engines.local.neighbors import DistanceScreen, MeasuredRows, check_counts, unit_length
from pairlens.engines.local.selection import Criterion, kth_bound, true_places
from pairlens.engines.types import Float64, Index, Neighbors

TILE_BYTES = 1 << 24
CHUNK_ROWS = 8192
"""Rows of a chunk when all pairs of chunks meet: many tasks for many workers, each of about a second."""
TOLERABLE = 8
"""Candidates for each place of a list beyond which single precision is not worth its refinements."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Points:
    """The rows of a chunk, as they meet others.

    Attributes
    ----------
    rows : array of shape (n, n_features)
    start : int
        Number of the first row.
    stands : bool array of shape (n,)
        Which rows are searched for near ones and found as such; the others have one that represents them.
    F : array of shape (n, rank)
        What else is known about them.
    """

    rows: Block
    start: int
    stands: Mask
    F: Float64

    @classmethod
    def of(cls, block: Block, start: int) -> Points:
        """Rows of which none represents another."""
        return cls(block, start, np.ones(len(block), dtype=bool), np.empty((len(block), 0)))

    def before(self, other: Points) -> Points:
        """These rows, then others."""
        parts = zip((self.rows, self.stands, self.F), (other.rows, other.stands, other.F))
        rows, stands, F = (np.concatenate(part) for part in parts)
        return Points(rows, self.start, stands, F)


@dataclass(frozen=True)
class Screened:
    """Quick keys of two sets of the same points, and what is asked of them.

    Attributes
    ----------
    strip : callable
        As :func:`pairlens.engines.local.selection.self_join` wants it.
    nearest, farthest : Criterion or None
    largest : callable
        The largest of what :class:`Found` calls so, among the tiles made so far.
    """

    strip: Callable[[slice], Callable[[slice], tuple[NDArray[Any], NDArray[Any]]]]
    nearest: Criterion | None
    farthest: Criterion | None
    largest: Callable[[], float] = float


class Comparison(Protocol):
    """What is compared; travels with every task."""

    @property
    def scale(self) -> float:
        """Unit of length."""

    @property
    def n_nearest(self) -> int:
        """Near rows that are asked for."""

    @property
    def n_farthest(self) -> int:
        """Far rows that are asked for."""

    def screened(self, points: Points, dtype: Any) -> Screened:
        """The screen of some points in some precision."""


@dataclass(frozen=True)
class Listed:
    """The best rows of some rows so far, best first, and their precise keys."""

    index: Index
    key: Float64
    sign: int
    quantum: float

    @classmethod
    def joined(cls, parts: Sequence[Listed | None]) -> Listed | None:
        """The lists of several sets of rows, one set after the other; None where they were not asked for."""
        lists = [part for part in parts if part is not None]
        if not lists:
            return None
        index, key = np.concatenate([part.index for part in lists]), np.concatenate([part.key for part in lists])
        return cls(index, key, lists[0].sign, lists[0].quantum)

    def best(self, k: int) -> Listed:
        """The first k of each list, ties by index."""
        # NumPy orders complex numbers by real part, then imaginary part.
        order = np.argsort(self.sign * np.rint(self.key / self.quantum) + 1j * self.index, axis=1)[:, :k]
        index, key = np.take_along_axis(self.index, order, 1), np.take_along_axis(self.key, order, 1)
        return Listed(index, key, self.sign, self.quantum)


@dataclass(frozen=True)
class Found:
    """Near rows of those rows of a chunk that no other represents, and far rows of all.

    `largest` is the largest key of near rows, for comparisons that keep it.
    """

    nearest: Listed | None
    farthest: Listed | None
    largest: float


@dataclass(frozen=True)
class Euclid:
    """Distances in the input; see :func:`pairlens.engines.local.neighbors.neighbors`."""

    center: Float64
    scale: float
    n_nearest: int
    n_farthest: int

    def measured(self, rows: Block) -> MeasuredRows:
        """Rows from the centre of all, in units of the spread of all."""
        center = self.center.astype(rows.dtype)
        centred = np.subtract(rows, center, dtype=np.float64)
        return MeasuredRows(rows, None, center, self.scale, np.einsum("ij,ij->i", centred, centred) / self.scale**2)

    def screened(self, points: Points, dtype: Any) -> Screened:
        """Squared distances by products."""
        screen = DistanceScreen(self.measured(points.rows), dtype)
        near, far = (screen.criterion(k) if k else None for k in (self.n_nearest, self.n_farthest))
        return Screened(screen.strip, near, far)


@interface.neighbors.register(DaskRows)
def neighbors(X: DaskRows, *, n_nearest: int = 0, n_farthest: int = 0, block_bytes: int | None = None) -> Neighbors:
    check_counts(X.shape[0], n_nearest, n_farthest)
    if not (n_nearest or n_farthest):
        return Neighbors(None, None, None, None)
    center, scale = unit_of(X)
    points = [task(Points.of, chunk, start) for start, _, chunk in X.coarse(CHUNK_ROWS).chunks()]
    found = meet_all(X.shape[0], points, Euclid(center, scale, n_nearest, n_farthest), block_bytes)
    sides: list[Any] = []
    for parts in zip(*((part.nearest, part.farthest) for part in found)):
        side = Listed.joined(parts)
        sides += [None, None] if side is None else [side.index, scale * np.sqrt(side.key)]
    return Neighbors(*sides)


def unit_of(X: DaskRows) -> tuple[Float64, float]:
    """Centre and spread of all rows, the latter to the nearest power of two."""
    moments = X.moments(scatter=True)
    assert moments.scatter is not None
    return moments.mean, unit_length(np.trace(moments.scatter) / X.shape[0])


def meet_all(n: int, points: Sequence[Any], comparison: Comparison, block_bytes: int | None = None) -> list[Found]:
    """Let all pairs of chunks meet.

    Parameters
    ----------
    n : int
        Number of rows.
    points : sequence of tasks
        :class:`Points` of each chunk, in order.
    comparison : Comparison
    block_bytes : int, optional
        Size of a block of keys in a task, at most :data:`TILE_BYTES`.
    """
    if n > settings().exact_rows:
        raise ValueError(
            f"the neighbours of {n:,} rows of a dask array would take {n:,} x {n:,} distances; up to "
            f"{settings().exact_rows:,} rows are searched. Raise pairlens.config_context(exact_rows=...) on a large "
            "cluster, or fit on a part of the rows."
        )
    tile_bytes = min(TILE_BYTES, block_bytes or TILE_BYTES)
    merged = [
        tree([task(meet, comparison, chunk, other, tile_bytes) for other in points], partial(merge, comparison))
        for chunk in points
    ]
    return list(compute(merged, f"all {len(points)} x {len(points)} pairs of chunks: neighbours of {n:,} rows"))


def merge(comparison: Comparison, parts: list[Found]) -> Found:
    """Lists over several chunks from those over each."""
    near = _merged([part.nearest for part in parts], comparison.n_nearest)
    far = _merged([part.farthest for part in parts], comparison.n_farthest)
    return Found(near, far, max(part.largest for part in parts))


def _merged(parts: list[Any], k: int) -> Listed | None:
    if k == 0:
        return None
    index = np.concatenate([part.index for part in parts], axis=1)
    key = np.concatenate([part.key for part in parts], axis=1)
    return Listed(index, key, parts[0].sign, parts[0].quantum).best(k)


def meet(comparison: Comparison, left: Points, right: Points, tile_bytes: int = TILE_BYTES) -> Found:
    """The nearest and the farthest of `right` for each row of `left`."""
    same = left.start == right.start
    n, m = len(left.rows), len(right.rows)
    meeting = _Meeting(comparison, left if same else left.before(right), 0 if same else n, right.start, same)
    step = max(16, tile_bytes // (4 * m))
    parts = [meeting.listed(slice(low, min(low + step, n))) for low in range(0, n, step)]
    near, far = (Listed.joined(side) for side in zip(*parts))
    return Found(near, far, meeting.largest)


class _Meeting:
    """Points of two chunks, of which those from `offset` on are listed for the others; the same ones if `same`."""

    def __init__(self, comparison: Comparison, points: Points, offset: int, first: int, same: bool) -> None:
        self.comparison, self.points, self.first, self.same = comparison, points, first, same
        self.cols = slice(offset, len(points.rows))
        # Squares must stay clear of float32's range.
        self.precisions: list[Any] = [np.float32, np.float64] if 1e-15 < comparison.scale < 1e15 else [np.float64]
        self._screened: dict[Any, Screened] = {}

    @property
    def largest(self) -> float:
        return max(screened.largest() for screened in self._screened.values())

    def listed(self, rows: slice) -> tuple[Listed | None, Listed | None]:
        """The best of the points for some rows, in the first precision that leaves few in doubt."""
        for dtype in self.precisions:
            if dtype not in self._screened:
                self._screened[dtype] = self.comparison.screened(self.points, dtype)
            screened = self._screened[dtype]
            near, far = screened.strip(rows)(self.cols)
            try:
                return (
                    self._best(near, rows, screened.nearest, +1, self.points.stands),
                    self._best(far, rows, screened.farthest, -1, np.ones_like(self.points.stands)),
                )
            except _TooManyInDoubt:
                continue
        raise AssertionError("double precision is always enough")

    def _best(self, tile: Any, rows: slice, criterion: Criterion | None, sign: int, stands: Mask) -> Listed | None:
        if criterion is None:
            return None
        lines = rows.start + np.flatnonzero(stands[rows])
        columns = self.cols.start + np.flatnonzero(stands[self.cols])
        k = min(criterion.k, len(columns) - 1 if self.same else len(columns))
        if k <= 0 or lines.size == 0:
            shape = (lines.size, max(k, 0))
            return Listed(np.empty(shape, dtype=np.int64), np.empty(shape), sign, criterion.quantum)
        if self.same:
            own = np.arange(rows.start, rows.stop)
            tile[own - rows.start, own] = sign * np.inf
        if (lines.size, columns.size) != tile.shape:
            tile = tile[np.ix_(lines - rows.start, columns - self.cols.start)]
        error = criterion.quantum * criterion.error(rows, self.cols)[lines - rows.start]
        line, other = _candidates(tile, k, sign, 2 * (error + criterion.quantum))
        if tile.dtype != self.precisions[-1] and line.size > TOLERABLE * k * lines.size:
            raise _TooManyInDoubt
        key = criterion.refine(lines[line], columns[other])
        order = np.lexsort((other, sign * np.rint(key / criterion.quantum), line))
        place = np.arange(order.size) - np.searchsorted(line[order], line[order])
        chosen = order[place < k]
        index = columns[other[chosen]] - self.cols.start + self.first
        return Listed(index.reshape(-1, k), key[chosen].reshape(-1, k), sign, criterion.quantum)


class _TooManyInDoubt(Exception):
    """The screen is too coarse."""


def _candidates(tile: Any, k: int, sign: int, reach: Float64) -> tuple[Index, Index]:
    """Pairs that may be among the k best of their row: within a reach of the k-th screened one."""
    limit = sign * (kth_bound(tile, k, sign) + reach)
    edge = np.nextafter(limit.astype(tile.dtype), np.asarray(sign * np.inf, tile.dtype))[:, None]
    line, other = np.divmod(true_places(tile <= edge if sign > 0 else tile >= edge), tile.shape[1])
    return line, other
