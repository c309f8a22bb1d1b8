r"""The k nearest rows in the projected kernel distance and the k farthest in the input, in one blocked pass.

With the coordinates F of :mod:`pairlens.kernels.nullspace`, the squared distance in the null space of the must-links is
:math:`\hat d^2 = 2 - 2 K - \|F_x - F_y\|^2`. A tile of it costs the product that the squared input distances need
anyway, one exponential and a narrow second product; the n x n matrices are never formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pairlens.engines import interface
from pairlens.engines.local.collapse import Collapsed
from pairlens.engines.local.neighbors import (
    DEFAULT_BLOCK_BYTES,
    LARGEST_BLOCK,
    LARGEST_GROUPED_K,
    TOLERABLE_CROWDING,
    DistanceScreen,
    MeasuredRows,
    block_rows,
)
from pairlens.engines.local.rows import blas_threads
from pairlens.engines.local.selection import Criterion, blocks, crowding, self_join, spread_sample
from pairlens.engines.types import Float64, Index, IntArray, ProjectedNeighbors, Rows, Span

Tiles = tuple[NDArray[np.floating], NDArray[np.floating]]

# Halved squared projected distances, in units of what is usual for the kernel, are compared to this, above rounding.
QUANTUM = 2.0**-40
# However wide the kernel, so that quotients stay finite.
SMALLEST_QUANTUM = 2.0**-1000
# Those that agree to about this are ordered by input distance: its square, as a share of the largest possible one, is
# added with this weight.
TIE = 2.0**-27
# Pairs of one tile whose precise distance is asked for when they may hold the largest of all.
LARGEST_CANDIDATES = 256


@interface.projected_rows.register(object)
def projected_rows(X: Rows, span: Span, chunklets: IntArray) -> LocalProjectedRows:
    assert span.gamma is not None
    return LocalProjectedRows.of(X, span.coordinates(X), span.gamma, chunklets)


class ProjectedUnits:
    """What halved squared distances are measured in: the same in all engines, so that they decide ties alike."""

    gamma: float
    rows: Any
    """The rows as they are measured, with their scale and their squared lengths."""

    @property
    def diameter(self) -> float:
        """Bound on the largest squared distance, in the units of the screen."""
        return max(4 * float(self.rows.square.max()), 1e-300)

    @property
    def rate(self) -> float:
        """Gamma in units of the rows."""
        return float(self.gamma * self.rows.scale**2)

    @property
    def unit(self) -> float:
        """The usual size of a halved squared distance: 1, or less if the kernel is much wider than the data."""
        return min(1.0, self.rate)

    @property
    def quantum(self) -> float:
        """What halved squared distances are compared to."""
        return max(QUANTUM * self.unit, SMALLEST_QUANTUM)


@dataclass(frozen=True)
class LocalProjectedRows(ProjectedUnits):
    """Rows with their input distance d and their projected kernel distance.

    Attributes
    ----------
    X : array or CSR matrix of shape (n, n_features)
    F : array of shape (n, rank)
        Coordinates in the span of must-link differences.
    gamma : float
        Of the kernel exp(-gamma d²).
    chunklets : int array of shape (n,)
        Group of must-linked rows each row belongs to, -1 for none.
    groups : Collapsed
        Rows at projected distance zero from one another: must-linked or identical.
    """

    X: Rows
    F: Float64
    gamma: float
    chunklets: IntArray
    groups: Collapsed
    rows: MeasuredRows
    _representative: Index

    @classmethod
    def of(cls, X: Rows, F: Float64, gamma: float, chunklets: IntArray) -> LocalProjectedRows:
        """See the attributes."""
        # With more neighbours than are grouped, rows stay as they are: `groups` holds identical and must-linked ones.
        groups = Collapsed.of(X, chunklets)
        return cls(X, F, gamma, chunklets, groups, MeasuredRows.of(X, LARGEST_GROUPED_K + 1), groups.representative)

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def remaining(self) -> Float64:
        """The projected kernel of each row with itself."""
        return np.asarray(1 - np.einsum("ij,ij->i", self.F, self.F))

    def squared_distances(self, rows: Index, cols: Index) -> Float64:
        """Squared projected distances of pairs of rows; 0 inside a group."""
        return 2 * self._halved(rows, cols)[0]

    def _halved(self, rows: Index, cols: Index) -> tuple[Float64, Float64]:
        """Halved squared projected distances of pairs, and their squared input distances in units of the screen."""
        rows, cols = self._representative[rows], self._representative[cols]
        squared = self.rows.squared_distances(rows, cols)
        halved = -np.expm1(-self.rate * squared)
        for part in blocks(rows.size, max(1, 2**18 // max(1, self.F.shape[1]))):
            difference = self.F[rows[part]]
            difference -= self.F[cols[part]]
            difference *= difference
            halved[part] -= difference.sum(axis=1) / 2
        return np.where(rows == cols, 0.0, np.maximum(halved, 0.0)), squared

    def neighbors(self, k: int, *, block_bytes: int | None = None) -> ProjectedNeighbors:
        """See :meth:`pairlens.engines.types.ProjectedRows.neighbors`.

        The result depends neither on blocks nor on threads. Memory beyond X, F and the result is at most
        ``block_bytes + 16 n (2 k + 40)`` bytes (576 MiB by default), as long as ``block_bytes`` is enough for blocks of
        16 rows.
        """
        check_k(k, self.n)
        threads = blas_threads()
        n_listed = min(k, self.groups.n_groups - 1)
        screen = ProjectedScreen(self, self._screen_dtype(k, n_listed))
        near, far = self_join(
            self.n,
            screen.strip,
            nearest=screen.nearest(n_listed) if n_listed else None,
            farthest=screen.euclid.criterion(k),
            # One tile more than there are threads is in memory: the one that is merged.
            block=block_rows(
                (block_bytes or DEFAULT_BLOCK_BYTES) // (threads + 1), 288, 24 * (self.X.shape[1] + self.F.shape[1] + 4)
            ),
            n_threads=threads,
        )
        assert far is not None
        listed, key = np.empty((self.groups.n_groups, 0), dtype=np.int64), np.empty((self.groups.n_groups, 0))
        if near is not None:
            listed = self.groups.group[near[0][self.groups.first]]
            key = np.rint(near[1][self.groups.first] / self.quantum)
        return ProjectedNeighbors(
            nearest=self.groups.expand(self.X, listed, key, k),
            farthest=far[0],
            largest_projected=float(np.sqrt(2 * screen.largest)),
            largest_input=self.rows.scale * float(np.sqrt(far[1].max())),
        )

    def _screen_dtype(self, k: int, n_listed: int) -> DTypeLike:
        """Single precision, unless it leaves too many pairs in doubt."""
        if not 1e-15 < self.rows.scale < 1e15:
            return np.float64
        screen = ProjectedScreen(self, np.float32)
        sample = spread_sample(self.n, LARGEST_BLOCK // 2)
        near, squared = screen.strip(sample)(sample)
        doubt = crowding(screen.euclid.criterion(k), sample, squared, -1)
        alone = np.flatnonzero(screen.stands[sample])
        if n_listed and alone.size:
            of_points = screen.nearest(n_listed, screen.index[sample][alone])
            doubt = max(doubt, crowding(of_points, slice(None), near[np.ix_(alone, alone)], +1))
        return np.float32 if doubt <= TOLERABLE_CROWDING else np.float64


def check_k(k: int, n: int) -> None:
    """Refuse to list no row, or more than there are others."""
    if not 1 <= k < n:
        raise ValueError(f"k={k} must lie between 1 and {n - 1}, one less than the {n} rows.")


class ProjectedScreen:
    """Halved squared projected distances and squared input distances of blocks of rows.

    Rows that another one represents are infinitely far from all others in the former. `largest` is the largest halved
    squared projected distance seen.
    """

    def __init__(self, rows: LocalProjectedRows, dtype: DTypeLike, *, watch: bool = True) -> None:
        self.rows, self.dtype, self.watch = rows, np.dtype(dtype), watch
        self.euclid = DistanceScreen(rows.rows, dtype)
        self.level = (1 - np.einsum("ij,ij->i", rows.F, rows.F)) / 2
        self.stands = np.zeros(rows.n, dtype=bool)
        self.stands[rows.groups.first] = True
        self.index = np.arange(rows.n)
        self.tie = TIE * rows.unit / rows.diameter
        unit = float(np.finfo(dtype).eps) / 2
        of_kernel = 2 * rows.rate * (rows.rows.X.shape[1] + 16) * unit * rows.rows.square
        # Where rounding may make a squared distance negative by much, its exponential is bounded.
        self.clip = float(of_kernel.max()) > 0.01
        of_product = 2 * (rows.F.shape[1] + 32) * unit * (1 + np.sqrt(np.maximum(1 - 2 * self.level, 0))) ** 2
        # A sum of two bounds of the form (r + s)² is at most one of that form, by the triangle inequality.
        self.radius = np.sqrt(of_kernel + of_product + (TIE * rows.unit if self.dtype == np.float32 else 0.0))
        self.largest = 0.0
        self._lock = Lock()

    def nearest(self, k: int, rows: Index | None = None) -> Criterion:
        return Criterion(k, self._refine, self.radius if rows is None else self.radius[rows], 1.0, self.rows.quantum)

    def _refine(self, rows: Index, cols: Index) -> Float64:
        keys = np.full(rows.size, np.inf)
        # Rows that another one represents have no list; the selection asks about them with n as the other row.
        real = cols < self.rows.n
        halved, squared = self.rows._halved(rows[real], cols[real])
        keys[real] = halved + self.tie * squared
        return keys

    def strip(self, rows: slice | Index) -> Callable[[slice | Index], Tiles]:
        """As :func:`~pairlens.engines.local.selection.self_join` wants it; also for rows in any order."""
        euclid = self.euclid.strip(rows)  # type: ignore[arg-type]
        left = self._augmented(rows)
        left[:, [-2, -1]] = left[:, [-1, -2]]
        replaced = np.flatnonzero(~self.stands[rows])

        def tile(cols: slice | Index) -> Tiles:
            squared, _ = euclid(cols)  # type: ignore[arg-type]
            near = left @ self._augmented(cols).T
            kernel = np.multiply(squared, np.asarray(-self.rows.rate, self.dtype))
            if self.clip:
                np.minimum(kernel, 0, out=kernel)
            np.exp(kernel, out=kernel)
            near -= kernel
            if self.dtype == np.float64:
                # Here rounding of F, which nothing bounds, may exceed that of the screen.
                np.maximum(near, 0, out=near)
                near += np.multiply(squared, self.tie, out=kernel)
            if self.watch:
                self._watch(near, rows, cols)
            if replaced.size:
                near[replaced] = np.inf
            also = np.flatnonzero(~self.stands[cols])
            if also.size:
                near[:, also] = np.inf
            return near, squared

        return tile

    def _augmented(self, rows: slice | Index) -> NDArray[np.floating]:
        F = self.rows.F[rows]
        block = np.empty((F.shape[0], F.shape[1] + 2), self.dtype)
        block[:, :-2] = F
        block[:, -2] = 1
        block[:, -1] = self.level[rows]
        return block

    def _watch(self, near: NDArray[np.floating], rows: slice | Index, cols: slice | Index) -> None:
        """Keep the largest precise distance; a screened one tells which pairs may have it."""
        reach = (self.radius[rows].max() + self.radius[cols].max()) ** 2
        place = int(near.argmax())
        if near.reshape(-1)[place] <= self.largest - reach:
            return
        self._offer(np.array([place]), near.shape[1], rows, cols)
        places = np.flatnonzero(near.reshape(-1) > self.largest - reach)
        if places.size > LARGEST_CANDIDATES:
            top = np.argpartition(near.reshape(-1)[places], -LARGEST_CANDIDATES)[-LARGEST_CANDIDATES:]
            places = places[top]
        self._offer(places, near.shape[1], rows, cols)

    def _offer(self, places: Index, width: int, rows: slice | Index, cols: slice | Index) -> None:
        line, place = np.divmod(places, width)
        halved, _ = self.rows._halved(self.index[rows][line], self.index[cols][place])
        with self._lock:
            self.largest = max(self.largest, float(halved.max(initial=0.0)))
