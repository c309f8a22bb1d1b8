"""The exact k nearest rows of every row, in one blocked pass, and the random walk over near rows.

:func:`self_join` is given a cheap *screen* of the pairwise keys, tile by tile, with a bound on its rounding error, and
a slow, precise *refinement* of single pairs. It returns what sorting all refined keys would have returned.

How a pair is decided
---------------------
Keys are compared in whole multiples of a ``quantum``: keys that round to the same multiple are equal, and among equals
the smaller row index wins. A pair is looked at only if its screened key, less its error bound, beats the k-th key that
its row holds so far. What happens then depends on how the screen compares with the quantum:

* A fine screen (errors well below the quantum) *settles* pairs at once: if the whole error interval rounds to one
  multiple, that multiple is the key; the rare pair on an edge is refined. Each row holds exactly k settled keys.
* A coarse screen keeps its pairs as they are, in lists with a few spare places. Whatever lies within twice the error
  of the k-th key stays; should more than the spare places do so, these are refined and the best k kept. In the end
  the few that are left are refined.

Either way an inaccurate screen costs time, never correctness.

Each row meets the others in ascending order of index, because tiles run through the upper triangle row by row and are
merged in that order. So a newcomer that only ties with the k-th key has the larger index, and is refused by the
screen: thousands of identical rows, or a grid full of ties, cost k places per row and no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from pairlens.engines import operations
from pairlens.engines.rows import Float64, Index, IntArray, Rows
from pairlens.exceptions import ArgumentError

Floats = NDArray[np.floating]
Tile = Callable[[slice], tuple[Floats, Floats]]
Selected = tuple[Index, Float64]
Hits = tuple[Index, Index, Float64]

# Places beyond k for what a coarse screen cannot tell from the k-th; each costs 16 bytes a row.
SPARE = 8
# A screen is fine if its errors stay below this part of the quantum: then few pairs lie on an edge.
FINE = 0.125
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
# Bytes of the tiles of all threads together.
BLOCK_BYTES = 576 * 2**20
NEGLIGIBLE = 1e-150
"""Weights below it are none: a row with no others has a degree whose inverse overflows."""
EXACT_SPREAD = 1e-12
"""Relative size at which the iteration of the spreading ends."""
ROUGH_SPREAD = 1e-6
"""The same on a graph whose neighbours are found roughly."""


@dataclass(frozen=True)
class Criterion:
    """Ask which k rows have the best key; keys are equal if they round to the same multiple of `quantum`.

    ``refine(rows, cols)`` gives the precise float64 keys of the pairs ``zip(rows, cols)``, whichever are asked for
    together, and is called from several threads. The screen is bounded by
    ``|screened - precise| <= unit * (radius[i] + radius[j]) ** 2``.
    """

    k: int
    refine: Callable[[Index, Index], Float64]
    radius: Float64
    unit: float
    quantum: float

    def error(self, rows: slice | Index, cols: slice | Index) -> Float64:
        """Return a bound on the screen's error in quanta: of pairs, or of each row against a slice of columns."""
        reach = self.radius[cols].max() if isinstance(cols, slice) else self.radius[cols]
        return self.unit / self.quantum * (self.radius[rows] + reach) ** 2

    @property
    def fine(self) -> bool:
        return self.unit * (2 * self.radius.max()) ** 2 <= FINE * self.quantum


def self_join(
    n: int,
    strip: Callable[[slice], Tile],
    *,
    nearest: Criterion | None = None,
    farthest: Criterion | None = None,
    block: int = 1024,
    n_threads: int | None = None,
) -> tuple[Selected | None, Selected | None]:
    """Select for each of n rows the k rows with the smallest key, the k rows with the largest, or both.

    ``strip(rows)(cols)``, for two slices of the rows, returns the screened keys for `nearest` and for `farthest`,
    symmetric in the pair, as C-contiguous arrays that may be overwritten; both may be the same array. What concerns
    `rows` alone is best done in ``strip(rows)``, once. It is called from `n_threads` threads, as many as BLAS was
    allowed by default, while BLAS is held to one. Indices and precise keys, of shape (n, k) and best first, depend
    neither on them nor on `block`, the rows of a tile.

    Beside what `strip` and `refine` take, memory is about ``16 n (k + 8)`` bytes for each side, and at most
    ``256 block**2`` for each thread and for the tile that is merged meanwhile. The usual course needs a tenth of it.
    """
    sides: dict[int, _Best] = {}
    if nearest is not None:
        sides[0] = _Best(nearest, n, +1)
    if farthest is not None:
        sides[1] = _Best(farthest, n, -1)
    n_threads = n_threads or operations.blas_threads()
    sample = spread_sample(n, block)

    def start(rows: slice) -> None:
        keys = strip(rows)(sample)
        for which, best in sides.items():
            best.start(rows, sample, keys[which])

    def screen(tile: Tile, rows: slice, cols: slice) -> list[Hits]:
        keys = tile(cols)
        hits = []
        for which, best in sides.items():
            if rows == cols:
                np.fill_diagonal(keys[which], best.sign * np.inf)
            hits.append(best.screen(rows, cols, keys[which]))
        return hits

    running: deque[Future[list[Hits]]] = deque()

    def merge_oldest() -> None:
        for best, hits in zip(sides.values(), running.popleft().result()):
            best.absorb(*hits)

    with operations.one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(start, blocks(n, block)))
        for rows in blocks(n, block):
            tile = strip(rows)
            for cols in blocks(n, block, first=rows.start):
                running.append(pool.submit(screen, tile, rows, cols))
                if len(running) > n_threads:
                    merge_oldest()
        while running:
            merge_oldest()
        found = {which: _stack(pool.map(best.finish, blocks(n, block))) for which, best in sides.items()}
    return found.get(0), found.get(1)


def _stack(parts: Iterable[Selected]) -> Selected:
    indices, keys = zip(*parts)
    return np.concatenate(indices), np.concatenate(keys)


def blocks(n: int, size: int, first: int = 0) -> Iterator[slice]:
    """Return the rows from ``first`` to n in consecutive slices of ``size``."""
    return (slice(start, min(start + size, n)) for start in range(first, n, size))


def spread_sample(n: int, size: int) -> slice:
    """Return at most ``size`` of n rows, evenly spaced."""
    return slice(0, n, -(-n // size))


def crowding(criterion: Criterion, rows: slice, keys: Floats, sign: int) -> float:
    """Return the fraction of a sample's pairs that its screen cannot tell from the k-th of their row.

    ``keys`` is the tile of the sample ``rows`` with itself; ``sign`` is -1 where the largest keys are wanted. Tells
    whether a coarse screen is enough, or leaves too many ties and near-duplicates to refine.
    """
    k = criterion.k
    if keys.shape[1] <= k:
        return 0.0
    signed = sign * keys
    kth = np.partition(signed, k, axis=1)[:, k]
    reach = (2 * criterion.quantum * criterion.error(rows, rows)).astype(keys.dtype)
    return float(np.mean(signed <= (kth + reach)[:, None])) - (k + 1) / keys.shape[1]


class _Best:
    """Hold the best of each row so far, for keys in quanta that are better when smaller (``sign`` -1 turns them round).

    A newcomer to row i is of interest if its key, less its error, lies below ``limit[i]``. Whatever is held within
    ``slack[i]`` of the k-th cannot be distinguished from it yet.
    """

    def __init__(self, criterion: Criterion, n: int, sign: int) -> None:
        self.criterion, self.sign, self.fine = criterion, sign, criterion.fine
        self.k = criterion.k
        self.width = self.k + (0 if self.fine else SPARE)
        self.slack = np.zeros(n) if self.fine else 2 * criterion.error(slice(n), slice(n)) + 1
        self.limit = np.full(n, np.inf)
        # NumPy orders complex numbers by real part, then imaginary part: key + index·i sorts by key, ties by index.
        self.held = np.full((n, self.width), complex(np.inf, n))

    def start(self, rows: slice, sample: slice, keys: Floats) -> None:
        """Bound the rows by their k-th best key in a sample; ties are accepted, for the sample is out of order."""
        if keys.shape[1] > self.k:  # one more than k, for the row itself may be among them
            kth = kth_bound(keys, self.k + 1, self.sign)
            self.limit[rows] = np.rint(kth / self.criterion.quantum + self.criterion.error(rows, sample)) + 0.5

    def screen(self, rows: slice, cols: slice, keys: Floats) -> Hits:
        """Return the pairs of a tile that may enter a list, for its rows and, off the diagonal, for its columns."""
        owners, others, screened = self._hits(rows, cols, keys, across=False)
        if rows != cols:
            more_owners, more_others, more = self._hits(cols, rows, keys, across=True)
            owners, others = np.append(owners, more_owners), np.append(others, more_others)
            screened = np.append(screened, more)
        return self._settle(owners, others, screened)

    def _hits(self, lists: slice, others: slice, keys: Floats, *, across: bool) -> tuple[Index, Index, Floats]:
        axis = 1 if across else 0
        limit = self.limit[lists] + self.criterion.error(lists, others)
        edge = (self.sign * self.criterion.quantum * limit).astype(keys.dtype)
        # A reduction is cheaper than a mask, and soon leaves only a few lists to look at.
        hit = keys.min(axis=1 - axis) < edge if self.sign > 0 else keys.max(axis=1 - axis) > edge
        lines = np.flatnonzero(hit)
        if 4 * lines.size < hit.size:
            keys, edge = np.take(keys, lines, axis=axis), edge[lines]
        else:
            lines = np.arange(hit.size)
        edge = np.expand_dims(edge, 1 - axis)
        places = true_places(keys < edge if self.sign > 0 else keys > edge)
        row, col = np.divmod(places, keys.shape[1])
        owner, other = (lines[col], row) if across else (lines[row], col)
        return owner + lists.start, other + others.start, keys.reshape(-1)[places]

    def _settle(self, rows: Index, cols: Index, keys: Floats) -> Hits:
        quanta = self.sign / self.criterion.quantum * keys.astype(np.float64)
        if not self.fine:
            return rows, cols, quanta
        error = self.criterion.error(rows, cols)
        settled = np.rint(quanta - error)
        unsure = np.flatnonzero(settled != np.rint(quanta + error))
        settled[unsure] = self._precise(rows[unsure], cols[unsure])
        better = settled < self.limit[rows]
        return rows[better], cols[better], settled[better]

    def _precise(self, rows: Index, cols: Index) -> Float64:
        return self.sign * np.rint(self.criterion.refine(rows, cols) / self.criterion.quantum)

    def absorb(self, rows: Index, cols: Index, keys: Float64) -> None:
        """Merge newcomers into the lists of ``rows``, a limited number per row at a time."""
        batch = max(self.width, 16)
        order = np.argsort(rows, kind="stable")
        rows, entries = rows[order], keys[order] + 1j * cols[order]
        while rows.size:
            first = np.flatnonzero(np.diff(rows, prepend=-1))
            counts = np.diff(first, append=rows.size)
            place = np.arange(rows.size) - np.repeat(first, counts)
            line = np.repeat(np.arange(first.size), counts)
            now, here = place < batch, rows[first]
            table = np.full((here.size, self.width + min(batch, int(counts.max()))), complex(np.inf, 0))
            table[:, : self.width] = self.held[here]
            table[line[now], self.width + place[now]] = entries[now]
            table.sort(axis=1)
            if not self.fine:
                self._thin(here, table)
            self.held[here] = table[:, : self.width]
            kth = table[:, self.k - 1].real
            bound = kth - 0.5 if self.fine else kth + self.slack[here] / 2
            self.limit[here] = np.minimum(self.limit[here], bound)
            later = ~now & (entries.real < self.limit[rows] + self.slack[rows] / 2)
            rows, entries = rows[later], entries[later]

    def _thin(self, rows: Index, table: NDArray[np.complex128]) -> None:
        """Reduce to k refined entries those sorted lists of ``table`` that their spare places cannot hold."""
        reach = table[:, self.k - 1].real + self.slack[rows]
        over = table[:, self.width].real
        crowded = np.flatnonzero(np.isfinite(over) & (over <= reach))
        part = table[crowded]
        line, place = np.nonzero(part.real <= reach[crowded, None])
        cols = part.imag[line, place].astype(np.int64)
        part[:] = complex(np.inf, 0)
        part[line, place] = self._precise(rows[crowded[line]], cols) + 1j * cols
        part.sort(axis=1)
        part[:, self.k :] = complex(np.inf, 0)
        table[crowded] = part

    def finish(self, rows: slice) -> Selected:
        """Return indices and precise keys of the k best of some rows, in order."""
        held = self.held[rows]
        line, place = np.nonzero(held.real <= (held[:, self.k - 1].real + self.slack[rows])[:, None])
        index = held.imag.astype(np.int64)
        precise = np.full(held.shape, np.inf)
        precise[line, place] = self.criterion.refine(rows.start + line, index[line, place])
        quanta = self.sign * np.rint(precise / self.criterion.quantum)
        quanta[~np.isfinite(precise)] = np.inf
        order = np.argsort(quanta + 1j * index, axis=1)[:, : self.k]
        return np.take_along_axis(index, order, axis=1), np.take_along_axis(precise, order, axis=1)


def kth_bound(keys: Floats, k: int, sign: int) -> Float64:
    """Return an upper bound on the k-th smallest of each row of ``sign * keys``, mostly tight."""
    n_rows, n_cols = keys.shape
    groups = 16 * k
    if n_cols >= 4 * groups:
        # The k-th best of the groups' best has k entries that are as good, and far fewer to look through.
        table = keys[:, : n_cols // groups * groups].reshape(n_rows, -1, groups)
        keys = table.min(axis=1) if sign > 0 else table.max(axis=1)
    return np.partition(sign * keys, k - 1, axis=1)[:, k - 1].astype(np.float64)


def true_places(mask: NDArray[np.bool_]) -> Index:
    """Return ``np.flatnonzero`` of masks that are nearly all False: eight at a time, many times as fast."""
    flat = mask.reshape(-1)
    whole = flat.size // 8 * 8
    words = np.flatnonzero(flat[:whole].view(np.uint64) != 0)
    word, bit = np.nonzero(flat[:whole].reshape(-1, 8)[words])
    return np.concatenate((words[word] * 8 + bit, whole + np.flatnonzero(flat[whole:])))


@dataclass(frozen=True)
class Neighbors:
    """Hold the nearest rows of each row, in ascending order of their Euclidean distances: arrays or tensors."""

    nearest: Any
    nearest_distance: Any


@operations.operation
def neighbors(X: Rows, *, n_nearest: int) -> Neighbors:
    """Find the exact nearest rows of every row in Euclidean distance.

    A row is not its own neighbour, but its duplicates are. Squared distances are computed in float64 from differences
    of rows, and compared to a resolution of about 1e-10 of the mean squared distance of the rows from their mean. Rows
    at equal distance in this sense come in ascending order of index, and where only some of them find a place, those
    with the smallest indices do. The distances returned are not rounded, hence sorted only up to that resolution.

    One pass over the blocks of the upper triangle of the distance matrix: one product of two blocks of rows serves both
    of them. Candidates are screened in float32, or, where that leaves too many in doubt (masses of near-duplicates), in
    float64. The error of a screened squared distance of centred rows is at most ``(n_features + 16) u (|x| + |y|)**2``
    with the unit roundoff u, in any order of summation, so the result is exact. Where at least a fifth of the rows
    repeat others, each group of identical rows is compared once. Rows of a sparse matrix are made dense a block at a
    time.

    Memory beyond X and the result is at most 576 MiB, which the threads share, and ``16 n (n_nearest + 20)`` bytes.

    >>> import numpy as np
    >>> from pairlens.engines import neighbors
    >>> found = neighbors(np.array([[0.0], [1.0], [3.0], [7.0]]), n_nearest=1)
    >>> found.nearest.ravel(), found.nearest_distance.ravel()
    (array([1, 0, 1, 2]), array([1., 1., 2., 4.]))
    """
    n, n_features = X.shape
    check_count(n, n_nearest)
    rows = MeasuredRows.of(X, n_nearest)
    threads = operations.blas_threads()
    screen = DistanceScreen(rows, _screen_dtype(rows, n_nearest))
    near, _ = self_join(
        rows.n,
        screen.strip,
        nearest=screen.criterion(n_nearest),
        # One tile more than there are threads is in memory: the one that is merged.
        block=block_rows(BLOCK_BYTES // (threads + 1), 256, 24 * (n_features + 2)),
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
            centred = np.subtract(operations.dense(X, part), center, dtype=np.float64)
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
        return operations.dense(self.X, rows if self.groups is None else self.groups.first[rows])

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
        same = (
            np.array_equal(operations.dense(X, part), operations.dense(X, first[group[part]]))
            for part in blocks(mark.size, 256)
        )
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

    Row i of `indices` lists the rows near to i; `weights` is the symmetric CSR matrix of their weights, None where they
    are only on a device. `walk` and `back` are P and its transpose, which are worth following to the relative
    `accuracy`.
    """

    indices: IntArray
    weights: sparse.csr_matrix | None
    walk: Any
    back: Any
    accuracy: float

    def symmetric_weights(self) -> sparse.csr_matrix:
        """Return the symmetric weights of near rows, in memory."""
        return self.weights

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


@operations.operation
def near_walk(
    X: Rows, k: int, *, scale_neighbor: int, accuracy: float, found: tuple[IntArray, Float64] | None = None
) -> NearGraph:
    r"""Return the graph of the k nearest rows with weights :math:`\exp(-d_{ij}^2 / (s_i s_j))`, and the walk over it.

    The s of a row is the distance of its neighbour number `scale_neighbor`; rows of scale 0 have full weight to their
    duplicates and none to others. `found` are the nearest rows and their distances where they are known; otherwise they
    are searched exactly.
    """
    if found is None:
        searched = neighbors(X, n_nearest=max(k, scale_neighbor))
        found = searched.nearest, searched.nearest_distance
    nearest, scale = found[0][:, :k], found[1][:, scale_neighbor - 1]
    n = len(nearest)
    pairs = listed_pairs(nearest)
    source, target = pairs.T
    squared = operations.pair_squared_distances(X, pairs)
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
    r"""Return :math:`(1 - a)(I - a P)^{-1} x`, 0 <= a < 1, with P the walk or its transpose, to a relative accuracy.

    The eigenvalues of a P are real and lie in [-a, a], so Chebyshev's iteration gains :math:`a / (1 + \sqrt{1 - a^2})`
    a step where the power series gains a: half as many steps at a = 0.5. Where float32 is accurate enough, it halves
    what has to be moved.
    """
    if isinstance(walk, sparse.spmatrix) and accuracy >= ROUGH_SPREAD and walk.dtype != np.float32:
        rough = spread_over(walk.astype(np.float32), start.astype(np.float32), a, accuracy=accuracy)
        return rough.astype(np.float64)
    if a == 0:
        return start
    most_steps = int(np.ceil(np.log(accuracy) / np.log(a)))
    small = accuracy * _largest(start)
    fresh = (1 - a) * start
    before, result, omega = 0 * start, fresh, 1.0
    for step in range(most_steps):
        omega = 2 / (2 - a**2) if step == 0 else 1 / (1 - a**2 * omega / 4)
        change = walk @ result
        change *= a
        change += fresh
        change -= before
        change *= omega
        change += before
        before, result = result, change
        if _largest(result - before) <= small:
            break
    return result


def _largest(values: Any) -> float:
    return float(abs(values).max()) if min(values.shape) else 0.0
