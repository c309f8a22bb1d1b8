"""Rows of a dask array with their projected kernel distance, as :mod:`pairlens.engines.local.projected` in memory.

The coordinates F are made from each chunk where it is, and never brought together. All pairs of chunks meet as in
:mod:`pairlens.engines.dask.neighbors`; a meeting uses the screen and the precise keys of the search in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.engines import interface
from pairlens.engines.dask import neighbors as dask_neighbors
from pairlens.engines.dask.neighbors import Euclid, Listed, Points, Screened, meet_all, unit_of
from pairlens.engines.dask.operations import equal_pairs, pair_squared_distances
from pairlens.engines.dask.rows import Block, DaskRows, compute, task
from pairlens.engines.local.collapse import Collapsed, first_alike
from pairlens.engines.local.projected import LocalProjectedRows, ProjectedScreen, check_k
from pairlens.engines.types import Float64, Index, IntArray, ProjectedNeighbors, Span


@interface.projected_rows.register(DaskRows)
def projected_rows(X: DaskRows, span: Span, chunklets: IntArray) -> DaskProjectedRows:
    return DaskProjectedRows.of(X, span, chunklets)


@dataclass(frozen=True)
class DaskProjectedRows:
    """Rows of a dask array with their input distance and their projected kernel distance.

    Attributes
    ----------
    X : DaskRows of shape (n, n_features)
    space : Span
        The map to F, the coordinates in the span of must-link differences.
    chunklets : int array of shape (n,)
        Group of must-linked rows each row belongs to, -1 for none.
    groups : Collapsed
        Rows at projected distance zero from one another: must-linked or identical.
    remaining : array of shape (n,)
        The projected kernel of each row with itself.
    """

    X: DaskRows
    space: Span
    chunklets: IntArray
    groups: Collapsed
    remaining: Float64
    _euclid: Euclid
    _diameter: float

    @classmethod
    def of(cls, X: DaskRows, space: Span, chunklets: IntArray) -> DaskProjectedRows:
        """See the attributes; one pass over the chunks, and one over those that may hold identical rows."""
        center, scale = unit_of(X)
        euclid = Euclid(center, scale, 0, 0)
        shared = _shared(space)
        parts = compute(
            [task(look, chunk, euclid, shared) for _, _, chunk in X.chunks()],
            f"places of {X.shape[0]:,} rows in the null space of the must-links",
        )
        mark, remaining = (np.concatenate([part[which] for part in parts]) for which in (0, 1))
        # A number that is the same for identical rows serves to group them as well as the rows do.
        identical = first_alike(mark, lambda rows, others: equal_pairs(X, np.column_stack([rows, others])))
        groups = Collapsed.of(identical[:, None].astype(np.float64), chunklets)
        diameter = max(4 * max(part[2] for part in parts), 1e-300)
        return cls(X, space, chunklets, groups, remaining, euclid, diameter)

    @property
    def n(self) -> int:
        return self.X.shape[0]

    @property
    def F(self) -> DaskRows:
        """The coordinates, not computed yet, in the chunks of X."""
        array = require("dask.array", extra="dask", purpose="working with dask arrays")
        shared, rank = _shared(self.space), self.space.rank
        parts = [
            array.from_delayed(task(coordinates, chunk, shared), (stop - start, rank), dtype=np.float64)
            for start, stop, chunk in self.X.chunks()
        ]
        return DaskRows(array.concatenate(parts))

    def squared_distances(self, rows: Index, cols: Index) -> Float64:
        """Squared projected distances of pairs of rows; 0 inside a group."""
        assert self.space.gamma is not None
        pairs = self.groups.representative[np.column_stack([rows, cols])]
        halved = -np.expm1(-self.space.gamma * pair_squared_distances(self.X, pairs))
        if self.space.rank:
            halved -= pair_squared_distances(self.F, pairs) / 2
        return np.where(pairs[:, 0] == pairs[:, 1], 0.0, 2 * np.maximum(halved, 0.0))

    def neighbors(self, k: int, *, block_bytes: int | None = None) -> ProjectedNeighbors:
        """See :meth:`pairlens.engines.types.ProjectedRows.neighbors`: the same rows as in memory, ties included."""
        check_k(k, self.n)
        assert self.space.gamma is not None
        n_listed = min(k, self.groups.n_groups - 1)
        euclid = Euclid(self._euclid.center, self._euclid.scale, n_listed, k)
        comparison = Projected(euclid, self.space.gamma, self._diameter)
        stands = np.zeros(self.n, dtype=bool)
        stands[self.groups.first] = True
        shared = _shared(self.space)
        points = [
            task(place, chunk, start, stands[start:stop], shared)
            for start, stop, chunk in self.X.coarse(dask_neighbors.CHUNK_ROWS).chunks()
        ]
        found = meet_all(self.n, points, comparison, block_bytes)
        listed, key = np.empty((self.groups.n_groups, 0), dtype=np.int64), np.empty((self.groups.n_groups, 0))
        near, far = (Listed.joined(side) for side in zip(*((part.nearest, part.farthest) for part in found)))
        assert far is not None
        if near is not None:
            listed = self.groups.group[near.index]
            key = np.rint(near.key / near.quantum)
        return ProjectedNeighbors(
            nearest=self._expand(listed, key, k),
            farthest=far.index,
            largest_projected=float(np.sqrt(2 * max(part.largest for part in found))),
            largest_input=euclid.scale * float(np.sqrt(far.key.max())),
        )

    def _expand(self, listed: Index, key: Float64, k: int) -> Index:
        """The rows of near groups, with a distance looked up only where one decides."""
        groups, moments = self.groups, self.X.moments(scatter=True)
        assert moments.scatter is not None
        # Groups that are enough for the lists of their rows: fetched all at once if they may be.
        crowded = np.flatnonzero((groups.sizes > k)[groups.group])
        if crowded.size and self.X.fits(crowded):
            self.X.gather(crowded)
        mean_square = float(np.trace(moments.scatter)) / self.n
        return groups.expand(self.X, listed, key, k, mean_square=mean_square, part=self.X.part)


@dataclass(frozen=True)
class Projected:
    """Near in the projected kernel distance, far in the input."""

    euclid: Euclid
    gamma: float
    diameter: float

    @property
    def scale(self) -> float:
        return self.euclid.scale

    @property
    def n_nearest(self) -> int:
        return self.euclid.n_nearest

    @property
    def n_farthest(self) -> int:
        return self.euclid.n_farthest

    def screened(self, points: Points, dtype: Any) -> Screened:
        """The screen of the search in memory."""
        index = np.arange(len(points.rows))
        alone = Collapsed(index, index, index, np.arange(len(index) + 1))
        measured = self.euclid.measured(points.rows)
        unlinked = np.full(len(index), -1)
        rows = _MeetingRows(points.rows, points.F, self.gamma, unlinked, alone, measured, index, self.diameter)
        screen = _MeetingScreen(rows, dtype, points.stands)
        near = screen.nearest(self.n_nearest) if self.n_nearest else None
        return Screened(screen.strip, near, screen.euclid.criterion(self.n_farthest), lambda: screen.largest)


@dataclass(frozen=True)
class _MeetingRows(LocalProjectedRows):
    """Rows of two chunks, which know what concerns all chunks."""

    _of_all: float

    @property
    def diameter(self) -> float:
        return self._of_all


class _MeetingScreen(ProjectedScreen):
    """Those rows for which another one stands, perhaps in a third chunk, are left out of everything near."""

    def __init__(self, rows: LocalProjectedRows, dtype: Any, stands: NDArray[np.bool_]) -> None:
        super().__init__(rows, dtype)
        self.stands = stands

    def _watch(self, near: NDArray[np.floating], rows: slice | Index, cols: slice | Index) -> None:
        near[~self.stands[rows]] = -np.inf
        near[:, ~self.stands[cols]] = -np.inf
        super()._watch(near, rows, cols)


def look(block: Block, euclid: Euclid, space: Span) -> tuple[Float64, Float64, float]:
    """For the rows of a chunk: a number that identical ones share, the projected kernel, the largest distance."""
    weight = np.random.default_rng(0).standard_normal(block.shape[1])
    # Unlike a product with a vector, np.sum treats every row in the same way.
    mark = (np.ascontiguousarray(block, dtype=np.float64) * weight).sum(axis=1)
    F = space.coordinates(block)
    return mark, 1 - np.einsum("ij,ij->i", F, F), float(euclid.measured(block).square.max())


def coordinates(block: Block, space: Span) -> Float64:
    """F of a chunk."""
    return space.coordinates(block)


def place(block: Block, start: int, stands: NDArray[np.bool_], space: Span) -> Points:
    """The rows of a chunk with their F."""
    return Points(block, start, stands, space.coordinates(block))


def _shared(space: Span) -> Any:
    """One copy for all tasks of a pass."""
    return require("dask", extra="dask", purpose="working with dask arrays").delayed(space, pure=False, traverse=False)
