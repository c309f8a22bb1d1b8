r"""The k nearest rows in the projected kernel distance and the k farthest in the input, in one blocked pass.

With the coordinates F of :mod:`pairlens.kernels`, the squared distance in the null space of the must-links is
:math:`\hat d^2 = 2 - 2 K - \|F_x - F_y\|^2`. A tile of it costs the product that the squared input distances need
anyway, one exponential and a narrow second product; the n x n matrices are never formed.

Must-linked rows coincide in the projected kernel space, identical rows everywhere. All rows of such a group are equally
near to any other row, and rounding would decide who is listed. So the search compares one row of each group, and
:meth:`RowGroups.expand` lists the rows: those of the nearer group first, inside a group those that are nearer in the
input, then those with the smaller index.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn import get_config

from pairlens.engines import operations, search
from pairlens.engines.rows import Float64, Index, IntArray, Rows
from pairlens.engines.search import Criterion, DistanceScreen, MeasuredRows, Selected
from pairlens.exceptions import ArgumentError

Tiles = tuple[NDArray[np.floating], NDArray[np.floating]]

# Squared input distances are equal if they agree to this share of the mean squared distance from the mean.
RESOLUTION = 2.0**-33
# Pairs that are measured together when groups are expanded.
PORTION = 1 << 18
# Halved squared projected distances, in units of what is usual for the kernel, are compared to this, above rounding.
QUANTUM = 2.0**-40
# However wide the kernel, so that quotients stay finite.
SMALLEST_QUANTUM = 2.0**-1000
# Those that agree to about this are ordered by input distance: its square, as a share of the largest possible one, is
# added with this weight.
TIE = 2.0**-27
# Pairs of one tile whose precise distance is asked for when they may hold the largest of all.
LARGEST_CANDIDATES = 256


@operations.operation
def first_identical(X: Rows) -> Index:
    """Return for each row the first row that is identical to it, itself if there is none before."""
    n = X.shape[0]
    weight = np.random.default_rng(0).standard_normal(X.shape[1])
    mark = np.empty(n)
    for block in operations.row_blocks(n, 8 * X.shape[1]):
        # Unlike a product with a vector, np.sum treats every row in the same way.
        mark[block] = (operations.dense(X, block).astype(np.float64) * weight).sum(axis=1)
    _, first, inverse = np.unique(mark, return_index=True, return_inverse=True)
    candidate = first[inverse].astype(np.int64)
    repeated = np.flatnonzero(candidate != np.arange(n))
    for block in operations.row_blocks(len(repeated), 16 * X.shape[1]):
        rows = repeated[block]
        alone = rows[(operations.dense(X, rows) != operations.dense(X, candidate[rows])).any(axis=1)]
        candidate[alone] = alone
    return candidate


@dataclass(frozen=True)
class RowGroups:
    """Hold rows in groups, numbered by their first row.

    `group` is that of each row, `first` the row that represents a group, and `representative` that row for each row.
    `members` are all rows sorted by group, ascending inside, and `start` says where each group begins among them.
    """

    group: Index
    first: Index
    members: Index
    start: Index
    representative: Index

    @classmethod
    def of(cls, X: Rows, codes: IntArray) -> RowGroups:
        """Put identical rows together, and rows with the same non-negative code."""
        representative = _joined(first_identical(X), codes)
        stands = representative == np.arange(len(representative))
        group = (np.cumsum(stands) - 1)[representative]
        start = np.concatenate([[0], np.cumsum(np.bincount(group))])
        return cls(group, np.flatnonzero(stands), np.argsort(group, kind="stable"), start, representative)

    @property
    def n_groups(self) -> int:
        return self.first.size

    @property
    def sizes(self) -> Index:
        """Number of rows of each group."""
        return np.diff(self.start)

    def expand(self, X: Rows, listed: IntArray, key: Float64, k: int, quantum: float) -> Index:
        """Return the k nearest rows of every row, from the nearest groups of every group.

        The rows of groups with equal keys are ordered as if they were of one group: by their squared distances in X,
        which are equal if they round to the same multiple of the quantum, then by index. `listed` has at least min(k,
        n_groups - 1) groups near to each group, nearest first and not itself, and `key` what they are ordered by.
        """
        n = self.group.size
        sizes = self.sizes
        others = sizes[self.group] - 1
        nearest = np.empty((n, k), dtype=np.int64)
        for crowded in np.flatnonzero(sizes > k):
            rows = self.members[self.start[crowded] : self.start[crowded + 1]]
            nearest[rows] = rows[nearest_inside(operations.rows_in_memory(X, rows), k)]
        plain = others == 0
        if listed.shape[1] >= k:
            plain &= (sizes[listed[:, :k]] == 1).all(axis=1)[self.group]
            nearest[plain] = self.first[listed[self.group[plain], :k]]
        else:
            plain[:] = False
        is_new = np.diff(key, axis=1, prepend=-np.inf) != 0
        for rows in self._portions(np.flatnonzero(~plain & (others < k)), listed, is_new, k):
            nearest[rows] = self._expand_rows(X, rows, listed, is_new, k, quantum)
        return nearest

    def _tables(
        self, rows: Index, listed: IntArray, is_new: NDArray[np.bool_], k: int
    ) -> tuple[Index, NDArray[np.bool_], Index]:
        """Return groups of each row, its own first, whether each is farther than the last, and its rows to look at."""
        own = self.group[rows]
        groups = np.column_stack([own, listed[own]])
        farther = np.column_stack([np.ones(rows.size, dtype=bool), is_new[own]])
        count = self.sizes[groups]
        before = np.cumsum(count, axis=1) - count - 1
        before[:, 0] = 0
        before = np.maximum.accumulate(np.where(farther, before, 0), axis=1)
        return groups, farther, np.where(before < k, count, 0)

    def _portions(self, rows: Index, listed: IntArray, is_new: NDArray[np.bool_], k: int) -> Iterator[Index]:
        """Yield parts of the rows with about :data:`PORTION` pairs each."""
        for coarse in np.array_split(rows, max(1, rows.size // PORTION)):
            if coarse.size == 0:
                continue
            end = np.cumsum(self._tables(coarse, listed, is_new, k)[2].sum(axis=1))
            cuts = np.flatnonzero(np.diff(end // PORTION)) + 1
            yield from np.split(coarse, cuts)

    def _expand_rows(
        self, X: Rows, rows: Index, listed: IntArray, is_new: NDArray[np.bool_], k: int, quantum: float
    ) -> Index:
        groups, farther, count = self._tables(rows, listed, is_new, k)
        flat = count.ravel()
        slot = np.repeat(np.arange(flat.size), flat)
        offset = np.arange(slot.size) - np.repeat(np.cumsum(flat) - flat, flat)
        other = self.members[self.start[groups.ravel()[slot]] + offset]
        line = slot // groups.shape[1]
        keep = other != rows[line]
        line, other, slot = line[keep], other[keep], slot[keep]
        place = np.cumsum(farther, axis=1).ravel()[slot]
        squared = operations.pair_squared_distances(X, np.column_stack([rows[line], other]))
        if quantum > 0:
            squared = np.rint(squared / quantum)
        order = np.lexsort((other, squared, place, line))
        position = np.arange(order.size) - np.searchsorted(line[order], line[order])
        return other[order][position < k].reshape(rows.size, k)


def _joined(representative: Index, codes: IntArray) -> Index:
    """Return representatives for which rows with the same code, and rows identical to any of them, are one group."""
    linked = np.flatnonzero(codes >= 0)
    if linked.size == 0:
        return representative
    repeated = np.flatnonzero(representative != np.arange(len(representative)))
    _, first, inverse = np.unique(codes[linked], return_index=True, return_inverse=True)
    source = np.concatenate([linked, repeated])
    target = np.concatenate([linked[first[inverse]], representative[repeated]])
    involved, local = np.unique(np.concatenate([source, target]), return_inverse=True)
    ends = local.reshape(2, -1)
    graph = sparse.csr_matrix((np.ones(len(source), dtype=np.int8), (ends[0], ends[1])), shape=(len(involved),) * 2)
    _, label = connected_components(graph, directed=False)
    # The rows are in ascending order, so the first of a label is its smallest.
    _, first_of = np.unique(label, return_index=True)
    joined = representative.copy()
    joined[involved] = involved[first_of[label]]
    return joined


def nearest_inside(part: Rows, k: int) -> Index:
    """Return the k nearest of each row among some rows; if all of these are identical, the first ones."""
    size = part.shape[0]
    if (first_identical(part) == 0).all():
        table = np.broadcast_to(np.arange(k + 1), (size, k + 1))
        keep = table != np.arange(size)[:, None]
        keep[keep.all(axis=1), k] = False
        return table[keep].reshape(size, k)
    return search.neighbors(part, n_nearest=k).nearest


@dataclass(frozen=True)
class ProjectedNeighbors:
    """Hold the rows near in the projected kernel distance and far in the input, and the largest of all distances."""

    nearest: Index
    farthest: Index
    largest_projected: float
    largest_input: float


@dataclass(frozen=True)
class ProjectedRows(ABC):
    r"""Hold rows with the input distance d and the distance :math:`\hat d` in the null space of must-links.

    F are the coordinates in the span of must-link differences, `groups` the must-linked or identical rows, and `rows`
    the rows as they are measured. The kernel is exp(-gamma d²).
    """

    X: Rows
    F: Any
    gamma: float
    groups: RowGroups
    rows: Any

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    # What halved squared distances are measured in is the same in all engines, so that they decide ties alike.

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
        """The unit to which halved squared distances are rounded."""
        return max(QUANTUM * self.unit, SMALLEST_QUANTUM)

    @cached_property
    def tie(self) -> float:
        """Share of the squared input distance in the key that near rows are ordered by."""
        # The largest squared distance, in the units of the screen, is at most four times the largest square.
        return TIE * self.unit / max(4 * float(self.rows.square.max()), 1e-300)

    @property
    @abstractmethod
    def remaining(self) -> Float64:
        r"""The projected kernel of each row with itself, :math:`\hat K(x, x)`."""

    @abstractmethod
    def squared_distances(self, rows: Index, cols: Index) -> Float64:
        r"""Return squared projected distances :math:`\hat d^2` of pairs of rows; 0 inside a group."""

    @abstractmethod
    def _search(self, k: int, n_listed: int) -> tuple[Selected | None, Selected, float]:
        """Return the nearest rows with their keys, the farthest with squared distances, and the largest halved one."""

    def neighbors(self, k: int) -> ProjectedNeighbors:
        """Find for every row the k nearest in projected distance and the k farthest in input distance, exactly.

        Rows whose squared projected distances agree to about 1e-9 (less, if all are small because the kernel is wide)
        come in the order of their input distance, then of their index; input distances are compared as in
        :func:`~pairlens.engines.neighbors`. The result depends neither on threads nor on `block_bytes`, a bound on the
        working memory: by default scikit-learn's setting `working_memory`, for tensors 256 MiB on a CPU and 4 GiB on a
        GPU. In memory ``16 n (2 k + 40)`` bytes come on top.
        """
        if not 1 <= k < self.n:
            raise ArgumentError("k", k, f"must lie between 1 and {self.n - 1}, one less than the {self.n} rows")
        groups = self.groups
        near, far, largest = self._search(k, min(k, groups.n_groups - 1))
        listed, key = np.empty((groups.n_groups, 0), dtype=np.int64), np.empty((groups.n_groups, 0))
        if near is not None:
            listed, key = groups.group[near[0][groups.first]], np.rint(near[1][groups.first] / self.quantum)
        mean_square = self.rows.scale**2 * float(self.rows.square.mean())
        return ProjectedNeighbors(
            nearest=groups.expand(self.X, listed, key, k, RESOLUTION * mean_square),
            farthest=far[0],
            largest_projected=float(np.sqrt(2 * largest)),
            largest_input=float(self.rows.scale * np.sqrt(far[1].max())),
        )


@operations.operation
def projected_rows(X: Rows, F: Rows, gamma: float, chunklets: IntArray) -> ProjectedRows:
    """Return rows with their distance in the null space of must-links, with the kernel exp(-gamma d²).

    F are the coordinates in the span of must-link differences (:meth:`pairlens.kernels.NullSpace.coordinates`),
    `chunklets` the group of must-linked rows each row belongs to, -1 for none.
    """
    # With more neighbours than are grouped, rows stay as they are: the groups hold identical and must-linked ones.
    return LocalProjectedRows(X, F, gamma, RowGroups.of(X, chunklets), MeasuredRows.of(X, search.LARGEST_GROUPED_K + 1))


@dataclass(frozen=True)
class LocalProjectedRows(ProjectedRows):
    """Project rows in memory."""

    @property
    def remaining(self) -> Float64:
        return np.asarray(1 - np.einsum("ij,ij->i", self.F, self.F))

    def squared_distances(self, rows: Index, cols: Index) -> Float64:
        return 2 * self.halved(rows, cols)[0]

    def halved(self, rows: Index, cols: Index) -> tuple[Float64, Float64]:
        """Return halved squared projected distances of pairs, and squared input distances in units of the screen."""
        rows, cols = self.groups.representative[rows], self.groups.representative[cols]
        squared = self.rows.squared_distances(rows, cols)
        halved = -np.expm1(-self.rate * squared)
        for part in search.blocks(rows.size, max(1, 2**18 // max(1, self.F.shape[1]))):
            difference = self.F[rows[part]]
            difference -= self.F[cols[part]]
            difference *= difference
            halved[part] -= difference.sum(axis=1) / 2
        return np.where(rows == cols, 0.0, np.maximum(halved, 0.0)), squared

    def _search(self, k: int, n_listed: int) -> tuple[Selected | None, Selected, float]:
        block_bytes = int(get_config()["working_memory"] * 2**20)
        threads = operations.blas_threads()
        screen = ProjectedScreen(self, self._screen_dtype(k, n_listed))
        near, far = search.self_join(
            self.n,
            screen.strip,
            nearest=screen.nearest(n_listed) if n_listed else None,
            farthest=screen.euclid.criterion(k),
            # One tile more than there are threads is in memory: the one that is merged.
            block=search.block_rows(block_bytes // (threads + 1), 288, 24 * (self.X.shape[1] + self.F.shape[1] + 4)),
            n_threads=threads,
        )
        assert far is not None
        return near, far, screen.largest

    def _screen_dtype(self, k: int, n_listed: int) -> DTypeLike:
        """Return single precision, unless it leaves too many pairs in doubt."""
        if not 1e-15 < self.rows.scale < 1e15:
            return np.float64
        screen = ProjectedScreen(self, np.float32)
        sample = search.spread_sample(self.n, search.LARGEST_BLOCK // 2)
        near, squared = screen.strip(sample)(sample)
        doubt = search.crowding(screen.euclid.criterion(k), sample, squared, -1)
        alone = np.flatnonzero(screen.stands[sample])
        if n_listed and alone.size:
            of_points = screen.nearest(n_listed, screen.index[sample][alone])
            doubt = max(doubt, search.crowding(of_points, slice(None), near[np.ix_(alone, alone)], +1))
        return np.float32 if doubt <= search.TOLERABLE_CROWDING else np.float64


class ProjectedScreen:
    """Screen halved squared projected distances and squared input distances of blocks of rows.

    Rows that another one represents are infinitely far from all others in the former. `largest` is the largest halved
    squared projected distance seen.
    """

    def __init__(self, rows: LocalProjectedRows, dtype: DTypeLike) -> None:
        self.rows, self.dtype = rows, np.dtype(dtype)
        self.euclid = DistanceScreen(rows.rows, dtype)
        self.level = (1 - np.einsum("ij,ij->i", rows.F, rows.F)) / 2
        self.stands = np.zeros(rows.n, dtype=bool)
        self.stands[rows.groups.first] = True
        self.index = np.arange(rows.n)
        self.tie = rows.tie
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
        halved, squared = self.rows.halved(rows[real], cols[real])
        keys[real] = halved + self.tie * squared
        return keys

    def strip(self, rows: slice) -> Callable[[slice], Tiles]:
        """Screen rows, as :func:`~pairlens.engines.search.self_join` wants it."""
        euclid = self.euclid.strip(rows)
        left = self._augmented(rows)
        left[:, [-2, -1]] = left[:, [-1, -2]]
        replaced = np.flatnonzero(~self.stands[rows])

        def tile(cols: slice) -> Tiles:
            squared, _ = euclid(cols)
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
            self._watch(near, rows, cols)
            if replaced.size:
                near[replaced] = np.inf
            also = np.flatnonzero(~self.stands[cols])
            if also.size:
                near[:, also] = np.inf
            return near, squared

        return tile

    def _augmented(self, rows: slice) -> NDArray[np.floating]:
        F = self.rows.F[rows]
        block = np.empty((F.shape[0], F.shape[1] + 2), self.dtype)
        block[:, :-2] = F
        block[:, -2] = 1
        block[:, -1] = self.level[rows]
        return block

    def _watch(self, near: NDArray[np.floating], rows: slice, cols: slice) -> None:
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

    def _offer(self, places: Index, width: int, rows: slice, cols: slice) -> None:
        line, place = np.divmod(places, width)
        halved, _ = self.rows.halved(self.index[rows][line], self.index[cols][place])
        with self._lock:
            self.largest = max(self.largest, float(halved.max(initial=0.0)))
