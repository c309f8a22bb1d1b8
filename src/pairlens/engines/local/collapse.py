"""Groups of rows that count as one point in a search, and the way back from points to rows.

Must-linked rows coincide in the projected kernel space, identical rows everywhere. All rows of a group are then equally
near to any other row, and rounding would decide who is listed. So the search compares one row of each group, and
:meth:`Collapsed.expand` lists the rows: those of the nearer group first, inside a group those that are nearer in the
input, then those with the smaller index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from pairlens.engines.interface import neighbors, pair_squared_distances
from pairlens.engines.local.rows import dense, row_blocks
from pairlens.engines.types import Index, IntArray, Rows

# Squared input distances are equal if they agree to this share of the mean squared distance from the mean.
RESOLUTION = 2.0**-33
PORTION = 1 << 18


def first_identical(X: Rows) -> Index:
    """For each row the first row that is identical to it, itself if there is none before."""
    n = X.shape[0]
    weight = np.random.default_rng(0).standard_normal(X.shape[1])
    mark = np.empty(n)
    for block in row_blocks(n, 8 * X.shape[1]):
        # Unlike a product with a vector, np.sum treats every row in the same way.
        mark[block] = (dense(X, block).astype(np.float64) * weight).sum(axis=1)
    _, first, inverse = np.unique(mark, return_index=True, return_inverse=True)
    candidate = first[inverse].astype(np.int64)
    repeated = np.flatnonzero(candidate != np.arange(n))
    for block in row_blocks(len(repeated), 16 * X.shape[1]):
        rows = repeated[block]
        alone = rows[(dense(X, rows) != dense(X, candidate[rows])).any(axis=1)]
        candidate[alone] = alone
    return candidate


@dataclass(frozen=True)
class Collapsed:
    """Rows in groups, numbered by their first row.

    Attributes
    ----------
    group : int array of shape (n,)
        Group of each row.
    first : int array of shape (n_groups,)
        The first row of each group, which represents it; ascending.
    members : int array of shape (n,)
        All rows, sorted by group, ascending inside.
    start : int array of shape (n_groups + 1,)
        Where each group begins in `members`.
    """

    group: Index
    first: Index
    members: Index
    start: Index

    @classmethod
    def of(cls, X: Rows, codes: IntArray | None = None) -> Collapsed:
        """Put identical rows together, and rows with the same non-negative code."""
        n = X.shape[0]
        target = first_identical(X)
        links = [np.column_stack([np.arange(n), target])]
        if codes is not None:
            linked = np.flatnonzero(codes >= 0)
            _, first, inverse = np.unique(codes[linked], return_index=True, return_inverse=True)
            links.append(np.column_stack([linked, linked[first[inverse]]]))
        source, other = np.concatenate(links).T
        graph = sparse.csr_matrix((np.ones(len(source), dtype=np.int8), (source, other)), shape=(n, n))
        _, label = connected_components(graph, directed=False)
        _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        group = rank[inverse].astype(np.int64)
        members = np.argsort(group, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(group))])
        return cls(group, np.sort(first).astype(np.int64), members, start)

    @property
    def n_groups(self) -> int:
        return self.first.size

    @property
    def sizes(self) -> Index:
        """Number of rows of each group."""
        return np.diff(self.start)

    @property
    def representative(self) -> Index:
        """For each row the one that represents its group."""
        return self.first[self.group]

    def expand(self, X: Rows, listed: IntArray, key: NDArray[np.float64], k: int) -> Index:
        """The k nearest rows of every row, from the nearest groups of every group.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Rows whose distances decide inside a group.
        listed : int array of shape (n_groups, at least min(k, n_groups - 1))
            Groups near to each group, nearest first, not itself.
        key : array of the shape of `listed`
            What they are ordered by; rows of groups with equal keys are ordered as if they were of one group.
        k : int
            At most n - 1.
        """
        n = self.group.size
        sizes = self.sizes
        others = sizes[self.group] - 1
        nearest = np.empty((n, k), dtype=np.int64)
        for crowded in np.flatnonzero(sizes > k):
            rows = self.members[self.start[crowded] : self.start[crowded + 1]]
            nearest[rows] = rows[nearest_inside(X[rows], k)]
        plain = others == 0
        if listed.shape[1] >= k:
            plain &= (sizes[listed[:, :k]] == 1).all(axis=1)[self.group]
            nearest[plain] = self.first[listed[self.group[plain], :k]]
        else:
            plain[:] = False
        scale = _mean_square(X) * RESOLUTION
        is_new = np.diff(key, axis=1, prepend=-np.inf) != 0
        for rows in self._portions(np.flatnonzero(~plain & (others < k)), listed, is_new, k):
            nearest[rows] = self._expand_rows(X, rows, listed, is_new, k, scale)
        return nearest

    def _tables(
        self, rows: Index, listed: IntArray, is_new: NDArray[np.bool_], k: int
    ) -> tuple[Index, NDArray[np.bool_], Index]:
        """Groups of each row, its own first, whether each is farther than the one before, and its rows to look at."""
        own = self.group[rows]
        groups = np.column_stack([own, listed[own]])
        farther = np.column_stack([np.ones(rows.size, dtype=bool), is_new[own]])
        count = self.sizes[groups]
        before = np.cumsum(count, axis=1) - count - 1
        before[:, 0] = 0
        before = np.maximum.accumulate(np.where(farther, before, 0), axis=1)
        return groups, farther, np.where(before < k, count, 0)

    def _portions(self, rows: Index, listed: IntArray, is_new: NDArray[np.bool_], k: int) -> Iterator[Index]:
        """Parts of the rows with about :data:`PORTION` pairs each."""
        for coarse in np.array_split(rows, max(1, rows.size // PORTION)):
            if coarse.size == 0:
                continue
            end = np.cumsum(self._tables(coarse, listed, is_new, k)[2].sum(axis=1))
            cuts = np.flatnonzero(np.diff(end // PORTION)) + 1
            yield from np.split(coarse, cuts)

    def _expand_rows(
        self, X: Rows, rows: Index, listed: IntArray, is_new: NDArray[np.bool_], k: int, scale: float
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
        squared = pair_squared_distances(X, np.column_stack([rows[line], other]))
        if scale > 0:
            squared = np.rint(squared / scale)
        order = np.lexsort((other, squared, place, line))
        position = np.arange(order.size) - np.searchsorted(line[order], line[order])
        return other[order][position < k].reshape(rows.size, k)


def nearest_inside(part: Rows, k: int) -> Index:
    """The k nearest of each row among some rows; if all of these are identical, the first ones."""
    size = part.shape[0]
    if (first_identical(part) == 0).all():
        table = np.broadcast_to(np.arange(k + 1), (size, k + 1))
        keep = table != np.arange(size)[:, None]
        keep[keep.all(axis=1), k] = False
        return table[keep].reshape(size, k)
    return neighbors(part, n_nearest=k).nearest


def _mean_square(X: Rows) -> float:
    """Mean squared distance of the rows from their mean."""
    if sparse.issparse(X):
        total, mean = X.multiply(X).sum(), np.asarray(X.mean(axis=0)).ravel()
        return float(max(0.0, total / X.shape[0] - mean @ mean))
    total = 0.0
    mean = X.mean(axis=0, dtype=np.float64)
    for block in row_blocks(X.shape[0], 8 * X.shape[1]):
        total += float(((X[block] - mean) ** 2).sum())
    return total / X.shape[0]
