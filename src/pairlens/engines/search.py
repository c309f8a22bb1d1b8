"""The exact k nearest rows of every row, in one blocked pass, and the random walk over near rows."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from pairlens.engines.operations import blas_threads, dense, operation, pair_scatter, pair_squared_distances
from pairlens.engines.rows import Float64, Index, IntArray, Rows
from pairlens.engines.selection import Criterion, Selected, Tile, blocks, crowding, self_join, spread_sample
from pairlens.exceptions import ArgumentError

# Squared distances, in units of the rows' mean squared distance from their mean (to the nearest power of four), are
# equal if they agree to this: far above rounding in float64, far below what tells rows apart.
QUANTUM = 2.0**-33
# With more than this part of the pairs in doubt, single precision costs more in refinements than it saves in products.
TOLERABLE_CROWDING = 0.01
# Identical rows are compared once if at most this part of the rows is left, and lists are short enough to sort k
# times k rows.
WORTHWHILE_GROUPS = 0.8
LARGEST_GROUPED_K = 32
# Larger tiles leave the cache, and gain nothing in the product.
LARGEST_BLOCK = 1024
DEFAULT_BLOCK_BYTES = 576 * 2**20
NEGLIGIBLE = 1e-150
"""Weights below it are none: a row with no others has a degree whose inverse overflows."""
EXACT_SPREAD = 1e-12
"""Relative size at which the iteration of the spreading ends."""
ROUGH_SPREAD = 1e-6
"""The same on a graph whose neighbours are found roughly."""


@dataclass(frozen=True)
class Neighbors:
    """Hold the nearest rows of each row, nearest first.

    Attributes
    ----------
    nearest : int array or tensor of shape (n, n_nearest)
        Indices of the nearest rows, in ascending order of distance.
    nearest_distance : float64 array or tensor of shape (n, n_nearest)
        Their Euclidean distances.
    """

    nearest: Any
    nearest_distance: Any


@operation
def neighbors(X: Rows, *, n_nearest: int, block_bytes: int | None = None) -> Neighbors:
    """Find the exact nearest rows of every row in Euclidean distance.

    Parameters
    ----------
    X : array, CSR matrix or EngineRows of shape (n, n_features)
        Finite values in float32 or float64. Rows of a sparse matrix are made dense a block at a time.
    n_nearest : int
        How many rows to find for each row, from 1 to n - 1. A row is not its own neighbour, but its duplicates are.
    block_bytes : int, optional
        Working memory at worst, 576 MiB by default; the usual course of things needs a tenth of it. The result does not
        depend on it. It is shared by the threads, as many as BLAS may use: with many of them a larger value keeps the
        blocks from getting small.

    Returns
    -------
    Neighbors
        Indices and distances, nearest first.

    Notes
    -----
    Squared distances are computed in float64 from differences of rows, and compared to a resolution of about 1e-10 of
    the mean squared distance of the rows from their mean. Rows at equal distance in this sense come in ascending order
    of index, and where only some of them find a place, those with the smallest indices do. The distances returned
    are not rounded, hence sorted only up to that resolution.

    One pass over the blocks of the upper triangle of the distance matrix: one product of two blocks of rows serves both
    of them. Candidates are screened by matrix products: in float32, or, where float32 leaves too many in doubt (masses
    of near-duplicates), in float64. The bound on the error of a screened squared distance of centred rows is
    ``(n_features + 16) u (|x| + |y|)**2`` with the unit roundoff u. It holds for any order of summation, so the result
    is exact. See :mod:`pairlens.engines.selection` for how pairs are decided and why ties are harmless. Where at
    least a fifth of the rows repeat others, each group of identical rows is compared once.

    Memory beyond X and the result is at most ``block_bytes + 16 n (n_nearest + 20)`` bytes, as long as
    ``block_bytes`` is enough for blocks of 16 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from pairlens.engines import neighbors
    >>> found = neighbors(np.array([[0.0], [1.0], [3.0], [7.0]]), n_nearest=1)
    >>> found.nearest.ravel(), found.nearest_distance.ravel()
    (array([1, 0, 1, 2]), array([1., 1., 2., 4.]))
    """
    n, n_features = X.shape
    check_count(n, n_nearest)
    if block_bytes is None:
        block_bytes = DEFAULT_BLOCK_BYTES
    if block_bytes <= 0:
        raise ArgumentError("block_bytes", block_bytes, "must be positive")
    rows = MeasuredRows.of(X, n_nearest)
    threads = blas_threads()
    screen = DistanceScreen(rows, _screen_dtype(rows, n_nearest))
    near, _ = self_join(
        rows.n,
        screen.strip,
        nearest=screen.criterion(n_nearest),
        # One tile more than there are threads is in memory: the one that is merged.
        block=block_rows(block_bytes // (threads + 1), 256, 24 * (n_features + 2)),
        n_threads=threads,
    )
    assert near is not None
    indices, squared = near if rows.groups is None else rows.groups.expand(*near)
    return Neighbors(indices, rows.scale * np.sqrt(squared))


def check_count(n: int, n_nearest: int) -> None:
    """Refuse to list no row, or more rows than there are others."""
    if not 1 <= index(n_nearest) < n:
        raise ArgumentError("n_nearest", n_nearest, f"must lie between 1 and {n - 1}, one less than the {n} rows of X")


def block_rows(n_bytes: int, per_pair: int, per_row: int) -> int:
    """Return the b that solves ``per_pair b**2 + per_row b = n_bytes``, what a tile of b rows needs at worst."""
    half = per_row / 2
    side = int((np.sqrt(half**2 + per_pair * n_bytes) - half) / per_pair)
    return min(max(side, 16), LARGEST_BLOCK)


def _screen_dtype(rows: MeasuredRows, k: int) -> DTypeLike:
    if not 1e-15 < rows.scale < 1e15:  # so that squares stay clear of float32's range
        return np.float64
    screen = DistanceScreen(rows, np.float32)
    sample = spread_sample(rows.n, LARGEST_BLOCK // 2)
    squared, _ = screen.strip(sample)(sample)
    doubt = crowding(screen.criterion(k), sample, squared, +1)
    return np.float32 if doubt <= TOLERABLE_CROWDING else np.float64


def unit_length(mean_square: float) -> float:
    """Return the spread of rows, from their mean squared distance from their mean, to the nearest power of two."""
    spread = np.sqrt(mean_square)
    return float(2.0 ** np.rint(np.log2(spread))) if spread > 0 else 1.0


@dataclass(frozen=True)
class MeasuredRows:
    """Hold the rows to compare, each once: the rows of X or, where many are identical, one of each group.

    They are seen from the centre of all rows and in units of their spread, rounded to a power of two so that dividing
    by it rounds nothing.
    """

    X: Any
    groups: _Groups | None
    center: NDArray[np.floating]
    scale: float
    square: Float64

    @classmethod
    def of(cls, X: Any, k: int) -> MeasuredRows:
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        n = X.shape[0]
        center = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel().astype(X.dtype)
        weights = np.random.default_rng(0).standard_normal(X.shape[1])
        square, mark = np.empty(n), np.empty(n)
        for part in blocks(n, 256):
            centred = np.subtract(dense(X, part), center, dtype=np.float64)
            square[part] = np.einsum("ij,ij->i", centred, centred)
            mark[part] = (centred * weights).sum(axis=1)
        scale = unit_length(square.mean())
        groups = _Groups.of(X, mark, k)
        square = square if groups is None else square[groups.first]
        return cls(X, groups, center, scale, square / scale**2)

    @property
    def n(self) -> int:
        return self.square.size

    def __getitem__(self, rows: slice | Index) -> NDArray[np.floating]:
        return dense(self.X, rows if self.groups is None else self.groups.first[rows])

    def squared_distances(self, rows: Index, cols: Index) -> Float64:
        """Return squared distances of pairs, from differences, whose squares are summed alike for every row."""
        squared = np.empty(rows.size)
        for part in blocks(rows.size, max(1, 2**18 // self.X.shape[1])):
            difference = self[rows[part]].astype(np.float64)
            difference -= self[cols[part]]
            difference /= self.scale
            difference *= difference
            squared[part] = difference.sum(axis=1)
        return squared


@dataclass(frozen=True)
class _Groups:
    """Hold groups of identical rows, in ascending order of their first row.

    The k best groups of a group, ties by first row, hold its k best rows besides its own: every other row has k rows
    before it, the first ones of these groups.
    """

    first: Index
    group: Index

    @classmethod
    def of(cls, X: Any, mark: Float64, k: int) -> _Groups | None:
        """Group rows that have the same ``mark``; None if that would not pay."""
        _, first, group = np.unique(mark, return_index=True, return_inverse=True)
        if k > LARGEST_GROUPED_K or not k < first.size <= WORTHWHILE_GROUPS * mark.size:
            return None
        order = np.argsort(first)
        first, group = first[order], np.argsort(order)[group]
        same = (np.array_equal(dense(X, part), dense(X, first[group[part]])) for part in blocks(mark.size, 256))
        return cls(first, group) if all(same) else None

    def expand(self, indices: Index, squared: Float64) -> Selected:
        """Return the k best rows of every row, from the k best groups of every group."""
        n, k = self.group.size, indices.shape[1]
        members = self._members(k + 1)
        best = np.empty((self.first.size, k + 1), dtype=np.int64)
        best_squared = np.empty(best.shape)
        for part in blocks(self.first.size, 512):
            own = np.arange(part.start, part.stop)
            rows = members[np.column_stack((own, indices[part]))]
            values = np.broadcast_to(np.column_stack((np.zeros(own.size), squared[part]))[:, :, None], rows.shape)
            keys = np.where(rows < n, np.rint(values / QUANTUM), np.inf) + 1j * rows
            order = np.argsort(keys.reshape(own.size, -1), axis=1)[:, : k + 1]
            best[part] = np.take_along_axis(rows.reshape(own.size, -1), order, axis=1)
            best_squared[part] = np.take_along_axis(values.reshape(own.size, -1), order, axis=1)
        found = best[self.group]
        keep = found != np.arange(n)[:, None]
        keep[keep.all(axis=1), k] = False
        return found[keep].reshape(n, k), best_squared[self.group][keep].reshape(n, k)

    def _members(self, size: int) -> Index:
        """Return the first ``size`` rows of each group, filled up with n."""
        order = np.argsort(self.group, kind="stable")
        counts = np.bincount(self.group)
        place = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
        early = place < size
        members = np.full((counts.size, size), order.size)
        members[self.group[order[early]], place[early]] = order[early]
        return members


@dataclass(frozen=True)
class DistanceScreen:
    """Screen squared distances of blocks of rows by one matrix product: [-2x, |x|², 1] [y, 1, |y|²]'."""

    rows: MeasuredRows
    dtype: DTypeLike

    def criterion(self, k: int) -> Criterion:
        unit = (self.rows.X.shape[1] + 16) * float(np.finfo(self.dtype).eps) / 2
        return Criterion(k, self.rows.squared_distances, np.sqrt(self.rows.square), unit, QUANTUM)

    def strip(self, rows: slice) -> Tile:
        left = self._augmented(rows)
        left[:, :-2] *= np.asarray(-2.0 / self.rows.scale**2, left.dtype)
        left[:, [-2, -1]] = left[:, [-1, -2]]

        def tile(cols: slice) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
            squared = left @ self._augmented(cols).T
            return squared, squared

        return tile

    def _augmented(self, rows: slice) -> NDArray[np.floating]:
        x = self.rows[rows]
        block = np.empty((x.shape[0], x.shape[1] + 2), self.dtype)
        # Differences are taken in the finer precision of the two and rounded once.
        wide = np.result_type(x.dtype, block.dtype)
        np.subtract(x, self.rows.center, out=block[:, :-2], dtype=wide, casting="same_kind")
        block[:, -2] = 1
        block[:, -1] = self.rows.square[rows]
        return block


@dataclass(frozen=True)
class NearGraph:
    """Hold near rows of each row and the random walk P over them, where the rows are.

    Attributes
    ----------
    indices : int array of shape (n, k)
        The near rows that each row lists.
    weights : CSR matrix of shape (n, n), optional
        The symmetric weights of near rows; None where they are only on a device.
    walk, back : sparse matrices of shape (n, n)
        P and its transpose.
    accuracy : float
        To which relative accuracy it is worth while to follow the walk.
    """

    indices: IntArray
    weights: sparse.csr_matrix | None
    walk: Any
    back: Any
    accuracy: float

    def symmetric_weights(self) -> sparse.csr_matrix:
        """Return the symmetric weights of near rows, in memory."""
        return self.weights

    def listed_scatter(self, rows: Rows) -> Float64:
        """Return the scatter of the differences between each row and those that it lists."""
        return pair_scatter(rows, listed_pairs(self.indices))

    def spread(self, rows: Rows, a: float) -> Rows:
        r"""Return the rows, spread over the walk: :math:`(1 - a)(I - a P)^{-1} X`."""
        return spread_over(self.walk, rows, a, accuracy=self.accuracy)

    def spread_back(self, weights: Float64, a: float) -> Float64:
        """Return weights of the rows, spread over the transpose of the walk."""
        return np.asarray(spread_over(self.back, weights, a, accuracy=self.accuracy))


def listed_pairs(nearest: IntArray) -> IntArray:
    """Return each row with every row that it lists, of shape (n * k, 2); `nearest` has the lists, of shape (n, k)."""
    n, k = nearest.shape
    return np.column_stack([np.repeat(np.arange(n), k), nearest.ravel()])


@operation
def near_walk(
    X: Rows, k: int, *, scale_neighbor: int, accuracy: float, found: tuple[IntArray, Float64] | None = None
) -> NearGraph:
    r"""Return the graph of the k nearest rows with weights :math:`\exp(-d_{ij}^2 / (s_i s_j))`, and the walk over it.

    Parameters
    ----------
    X : array or EngineRows of shape (n, n_features)
    k : int
    scale_neighbor : int
        The neighbour whose distance is the s of a row, counted from 1. Rows of scale 0 have full weight to their
        duplicates and none to others.
    accuracy : float
        To which relative accuracy the walk will be followed.
    found : tuple of arrays, optional
        The nearest rows of each row, nearest first, and their distances, where they are known; otherwise they are
        searched exactly.
    """
    if found is None:
        searched = neighbors(X, n_nearest=max(k, scale_neighbor))
        found = searched.nearest, searched.nearest_distance
    nearest, scale = found[0][:, :k], found[1][:, scale_neighbor - 1]
    n = len(nearest)
    pairs = listed_pairs(nearest)
    source, target = pairs.T
    squared = pair_squared_distances(X, pairs)
    local = scale[source] * scale[target]
    # Rows that repeat seven times have scale 0: full weight to each other, none to all others.
    weight = np.where(local > 0, np.exp(-squared / np.where(local > 0, local, 1.0)), squared == 0)
    weight[weight < NEGLIGIBLE] = 0.0
    listed = sparse.csr_matrix((weight, (source, target)), shape=(n, n))
    graph = listed.maximum(listed.T)
    degree = np.asarray(graph.sum(axis=1)).ravel()
    # A row whose weights all vanish walks to itself.
    graph = graph + sparse.diags(np.where(degree > 0, 0.0, 1.0))
    walk = (sparse.diags(1 / np.where(degree > 0, degree, 1.0)) @ graph).tocsr()
    return NearGraph(nearest, graph.tocsr(), walk, walk.T.tocsr(), accuracy)


def spread_over(walk: Any, start: Any, a: float, *, accuracy: float = EXACT_SPREAD) -> Any:
    r"""Return :math:`(1 - a)(I - a P)^{-1} x` to a relative accuracy, of about 1e-12 unless given.

    The eigenvalues of a P are real and lie in [-a, a], so Chebyshev's iteration gains
    :math:`a / (1 + \sqrt{1 - a^2})` a step where the power series gains a: half as many steps at a = 0.5. Where float32
    is accurate enough, it halves what has to be moved.

    Parameters
    ----------
    walk : CSR matrix of shape (n, n)
        P, or its transpose; a sparse tensor on a device.
    start : array of shape (n,) or (n, p)
        The x; a tensor on the device of the walk.
    a : float in [0, 1)
    accuracy : float
    """
    if isinstance(walk, sparse.spmatrix) and accuracy >= ROUGH_SPREAD and walk.dtype != np.float32:
        rough = spread_over(walk.astype(np.float32), start.astype(np.float32), a, accuracy=accuracy)
        return rough.astype(np.float64)
    if a == 0:
        return start
    most_steps = int(np.ceil(np.log(accuracy) / np.log(a)))
    small = accuracy * _largest(start)
    before, result, omega = 0 * start, (1 - a) * start, 1.0
    for step in range(most_steps):
        omega = 2 / (2 - a**2) if step == 0 else 1 / (1 - a**2 * omega / 4)
        change = walk @ result
        change *= a
        change += (1 - a) * start
        change -= before
        change *= omega
        change += before
        before, result = result, change
        if _largest(result - before) <= small:
            break
    return result


def _largest(values: Any) -> float:
    return float(abs(values).max()) if min(values.shape) else 0.0
