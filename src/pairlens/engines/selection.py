"""Exact k-best selection over all pairs of n rows: one symmetric blocked pass, no n x n array.

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

import numpy as np
from numpy.typing import NDArray

from pairlens.engines.operations import blas_threads, one_blas_thread
from pairlens.engines.rows import Float64, Index

Floats = NDArray[np.floating]
Tile = Callable[[slice], tuple[Floats, Floats]]
Selected = tuple[Index, Float64]
Hits = tuple[Index, Index, Float64]

# Places beyond k for what a coarse screen cannot tell from the k-th; each costs 16 bytes a row.
SPARE = 8
# A screen is fine if its errors stay below this part of the quantum: then few pairs lie on an edge.
FINE = 0.125


@dataclass(frozen=True)
class Criterion:
    """Ask one of the two questions of a self-join: which k rows have the best key.

    Parameters
    ----------
    k : int
        How many rows to select for each row.
    refine : callable
        ``refine(rows, cols)`` gives the precise float64 keys of the pairs ``zip(rows, cols)``; it must not depend on
        which pairs are asked for together. Called from several threads.
    radius : ndarray of shape (n,)
        Together with ``unit`` bounds the screen: ``|screened - precise| <= unit * (radius[i] + radius[j]) ** 2``.
    unit : float
        See ``radius``.
    quantum : float
        Keys are equal if they round to the same multiple of this.
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

    Parameters
    ----------
    n : int
        Number of rows.
    strip : callable
        ``strip(rows)(cols)``, for two slices of the rows, returns the screened keys for ``nearest`` and for
        ``farthest`` as C-contiguous arrays of shape (rows, cols) that the driver may overwrite; both may be the same
        array. What concerns ``rows`` alone is best done in ``strip(rows)``, once. The keys must be symmetric in the
        pair. Called from several threads.
    nearest, farthest : Criterion, optional
        What to select; None leaves that side out.
    block : int
        Rows of a tile. The result does not depend on it.
    n_threads : int, optional
        Tiles in work at once, each on one thread while BLAS itself is held to one; by default the number of threads
        that BLAS was allowed. The result does not depend on it.

    Returns
    -------
    nearest, farthest : tuple of (indices, keys) or None
        Arrays of shape (n, k), best first: row indices, and the precise keys.

    Notes
    -----
    Memory in bytes beyond what ``strip`` and ``refine`` take: about ``16 n (k + 8)`` for each side, and at most
    ``256 block**2`` for each thread and for the tile that is merged meanwhile. The usual course needs a tenth of it.
    """
    sides: dict[int, _Best] = {}
    if nearest is not None:
        sides[0] = _Best(nearest, n, +1)
    if farthest is not None:
        sides[1] = _Best(farthest, n, -1)
    n_threads = n_threads or blas_threads()
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

    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
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
