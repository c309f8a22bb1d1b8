r"""Must-links turned into cannot-links: the first step of SODRPaC, its four rules as products of sparse relations.

Let F hold the given must-links and the identity (who is me or my friend), E the given cannot-links, and B, for rows
that have a friend but no enemy, their mutual nearest neighbours. Then

- my enemies are the enemies of my friends, and so are their friends: the pairs of :math:`F E F` (basic form, enemy's
  friend), all of them certain;
- the enemies of my neighbour are enemies of me and of my friends, and so are their friends: the pairs of
  :math:`F B E F` (proximity form), as reliable as the neighbours are alike.

A pair that several ways lead to keeps the most reliable one, so the order of the pairs cannot matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pairlens.engines import IntArray, Rows, canonical, pair_squared_distances, weight_matrix
from pairlens.exceptions import ArgumentError
from pairlens.graphs.edges import default_gamma, heat_weights, nearest_edges
from pairlens.supervision import Constraints
from pairlens.supervision.combined import over_rows

PORTION = 1 << 23
"""Pairs that are written out at a time before repeated ones are dropped: about 300 MB."""


@dataclass(frozen=True)
class Mutual:
    """Pairs i < j of rows that are among the nearest of each other, and their squared distances."""

    edges: IntArray
    squared_distance: NDArray[np.float64]

    @classmethod
    def of(cls, X: Rows, n_neighbors: int) -> Mutual:
        edges = nearest_edges(X, n_neighbors, join="and")
        return cls(edges, pair_squared_distances(X, edges))


@dataclass(frozen=True)
class Generated:
    """Generated cannot-links i < j in lexicographic order, none of which was given, and what makes their reliability.

    `weight`, at most 1, is that of the given cannot-link behind each, and `squared_distance` that of the neighbours
    through which each was passed on, 0 if through none.
    """

    pairs: IntArray
    weight: NDArray[np.float64]
    squared_distance: NDArray[np.float64]

    def reliability(self, gamma: float) -> NDArray[np.float64]:
        r"""Return the weight times :math:`\exp(-\gamma d^2)`, which is 1 for every gamma where d = 0."""
        return self.weight * heat_weights(self.squared_distance, gamma)


def transform_constraints(
    X: ArrayLike,
    constraints: Constraints,
    *,
    n_neighbors: int = 3,
    gamma: float | str = "auto",
) -> Constraints:
    r"""Turn must-links into cannot-links that are safe to use where classes consist of several clusters.

    Two rows of one class may lie in different clusters of it, so a must-link does not mean that they should be near.
    It does mean that they have the same enemies:

    - basic form: the enemies of a row are enemies of its friends;
    - enemy's friend: and so are the friends of those enemies;
    - proximity form: a row with a friend but without enemies takes over those of its mutual nearest neighbours, for its
      friends too, with reliability :math:`\exp(-\gamma \|x_i - x_j\|^2)` for the neighbours i and j;
    - proximity form with enemy's friend: likewise the friends of those.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
        The rows.
    constraints : Constraints
        Must-links and cannot-links among them.
    n_neighbors : int, default=3
        Two rows are neighbours if each is among this many nearest rows of the other.
    gamma : float or "auto", default="auto"
        How fast reliability falls with distance; "auto" is one over the squared mean norm of the centred rows.

    Returns
    -------
    Constraints
        The given cannot-links with the weights they had, and the generated ones with their reliabilities, at most 1, as
        weights. It has no must-links: those that lead to no cannot-link are left out.

    See Also
    --------
    pairlens.SODRPaC : Learns directions from the result.

    Notes
    -----
    One pass over what is given: generated pairs generate no others. Of several ways to a pair the most reliable counts.
    Pairs that a chain of must-links joins are never generated. Where given cannot-links have weights, those made from
    them have the same weight up to 1, times the reliability; a way through no neighbours takes precedence. The
    weights of must-links do not matter.

    References
    ----------
    .. [1] B. Tong, E. Suzuki, "Subclass-oriented dimension reduction with constraint transformation and manifold
       regularization", PAKDD 2010, Algorithm 1.

    Examples
    --------
    >>> from pairlens import Constraints, transform_constraints
    >>> X = [[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [10.0, 0.0]]
    >>> given = Constraints(must_link=[(0, 2)], cannot_link=[(1, 3)], n_samples=4)
    >>> made = transform_constraints(X, given, n_neighbors=1, gamma=1.0)
    >>> made.to_lists()
    ([], [(0, 3), (1, 3), (2, 3)])
    >>> made.cannot_link_weight.round(2).tolist()
    [0.99, 1.0, 0.99]
    """
    from sklearn.utils import check_array

    rows = canonical(check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2))
    n = rows.shape[0]
    constraints = over_rows(constraints, Constraints, n)
    if n_neighbors < 1:
        raise ArgumentError("n_neighbors", n_neighbors, "must be at least 1")
    made = generate(constraints, Mutual.of(rows, n_neighbors))
    if gamma != "auto" and (isinstance(gamma, str) or not gamma > 0):
        raise ArgumentError("gamma", gamma, 'must be a positive number or "auto"')
    reliability = made.reliability(default_gamma(rows) if isinstance(gamma, str) else float(gamma))
    return Constraints(
        cannot_link=np.concatenate([constraints.cannot_link, made.pairs]),
        n_samples=n,
        cannot_link_weight=np.concatenate([constraints.cannot_link_weight, reliability]),
    )


def generate(known: Constraints, mutual: Mutual, *, unit: float = 1.0) -> Generated:
    """Return the cannot-links that follow from the given pairs by the four rules, without the given ones.

    A given cannot-link of the weight `unit` counts as certain.
    """
    n = len(known)
    if known.n_must_link == 0 or known.n_cannot_link == 0 or (known.labels is not None and not known.explicit.n_pairs):
        # Labels alone say of every two labelled rows what they are to each other.
        ways = _Ways.none()
    elif known.labels is None:
        ways = _follow(known, mutual, unit)
    else:
        kept, place = _without_doubles(known.labels, known.explicit.rows)
        ways = _follow(known[kept], Mutual(place[mutual.edges], mutual.squared_distance), unit)
        stands_for = sparse.csr_matrix((np.ones(n), (place, np.arange(n))), shape=(len(kept), n))
        ways = ways.spread(stands_for).swapped().spread(stands_for).best(n)
    return Generated(np.column_stack([ways.first, ways.second]), ways.weight, ways.squared_distance)


def _without_doubles(labels: IntArray, special: IntArray) -> tuple[IntArray, IntArray]:
    """Return rows that are enough to follow the rules, and for every row the place of the one that represents it.

    Labelled rows about which nothing else is said have the same friends and the same enemies as the others of their
    class. Two of them are kept, for two are friends.
    """
    plain = labels >= 0
    plain[special] = False
    rows = np.flatnonzero(plain)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    number = np.arange(len(rows)) - np.searchsorted(labels[rows], labels[rows])
    kept = np.sort(np.concatenate([np.flatnonzero(~plain), rows[number < 2]]))
    stand_in = np.arange(len(labels))
    stand_in[rows] = rows[np.searchsorted(labels[rows], labels[rows])]
    return kept, np.searchsorted(kept, stand_in)


def _follow(known: Constraints, mutual: Mutual, unit: float) -> _Ways:
    """Apply the four rules."""
    n = len(known)
    trust = np.minimum(known.cannot_link_weight / unit, 1.0)
    given = _Ways(known.cannot_link[:, 0], known.cannot_link[:, 1], trust, np.zeros(len(trust)))
    friends, enemies = weight_matrix(known.must_link, 1.0, n), weight_matrix(known.cannot_link, trust, n)
    has_friend, has_enemy = (np.diff(relation.indptr) > 0 for relation in (friends, enemies))
    near = _Ways(mutual.edges[:, 0], mutual.edges[:, 1], np.ones(len(mutual.edges)), mutual.squared_distance)
    near = near.joined(near.swapped())
    near = near.at(has_friend[near.first] & ~has_enemy[near.first] & has_enemy[near.second])
    start = given.joined(near.swapped().spread(enemies).swapped())

    group = known.chunklets()
    me_and_friends = (friends + sparse.identity(n)).tocsr()
    found = given
    for part in start.portions(me_and_friends):
        ways = part.spread(me_and_friends).best(n).swapped().spread(me_and_friends)
        joined = (group[ways.first] >= 0) & (group[ways.first] == group[ways.second])
        found = found.joined(ways.at(~joined & (ways.first != ways.second)).ascending()).best(n)
    return found.at(~np.isin(found.keys(n), given.keys(n), assume_unique=True))


@dataclass(frozen=True)
class _Ways:
    """Ordered pairs of rows, each with the weight and the squared distance of the way that led to it."""

    first: IntArray
    second: IntArray
    weight: NDArray[np.float64]
    squared_distance: NDArray[np.float64]

    @classmethod
    def none(cls) -> _Ways:
        rows, values = np.empty(0, dtype=np.int64), np.empty(0)
        return cls(rows, rows, values, values)

    def at(self, index: NDArray[Any] | slice) -> _Ways:
        return _Ways(self.first[index], self.second[index], self.weight[index], self.squared_distance[index])

    def joined(self, other: _Ways) -> _Ways:
        return _Ways(
            np.concatenate([self.first, other.first]),
            np.concatenate([self.second, other.second]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.squared_distance, other.squared_distance]),
        )

    def swapped(self) -> _Ways:
        return replace(self, first=self.second, second=self.first)

    def ascending(self) -> _Ways:
        """Return the smaller row first."""
        return replace(self, first=np.minimum(self.first, self.second), second=np.maximum(self.first, self.second))

    def keys(self, n: int) -> IntArray:
        return self.first * n + self.second

    def spread(self, relation: sparse.csr_matrix) -> _Ways:
        """Return every row that is related to the first one in place of it, the weights multiplied."""
        related = relation[self.first]
        way = np.repeat(np.arange(len(self.first)), np.diff(related.indptr))
        spread = self.at(way)
        return replace(spread, first=related.indices.astype(np.int64), weight=spread.weight * related.data)

    def best(self, n: int) -> _Ways:
        """Return each pair once, in lexicographic order, by the shortest and of those the heaviest way."""
        keys = self.keys(n)
        order = np.lexsort((-self.weight, self.squared_distance, keys))
        keys = keys[order]
        return self.at(order[np.flatnonzero(np.diff(keys, prepend=-1))])

    def portions(self, relation: sparse.csr_matrix) -> Iterator[_Ways]:
        """Return parts that stay within :data:`PORTION` when both ends are spread, or have a single way each."""
        size = np.diff(relation.indptr).astype(np.int64)
        end = np.cumsum(size[self.first] * size[self.second])
        start = 0
        while start < len(end):
            before = end[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(end, before + PORTION, side="right")))
            yield self.at(slice(start, stop))
            start = stop
