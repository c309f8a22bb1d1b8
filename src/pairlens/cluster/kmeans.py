r"""Weighted k-means on explicit features: first centres, iterations, exchanges, restarts and mixtures of results.

Moves of single points between clusters go on where Lloyd's iterations end. Moving a point of weight w from cluster a to
cluster b changes the cost by

.. math:: \frac{w\, n_b}{n_b + w} \|x - m_b\|^2 - \frac{w\, n_a}{n_a - w} \|x - m_a\|^2,

where n and m are the weights and means before the move. Lloyd's iterations stop where every point is nearest to the
mean of its own cluster; the factors, which count how the means follow, leave moves that lower the cost all the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pairlens.engines import Float64

Labels = NDArray[np.int64]

PATIENCE = 2
"""Mixtures that may bring nothing better, for each of the first runs."""
TIE = 1e-9
"""Squared distances that agree to this share of the mean squared norm are equal."""


def squared_distances(points: Float64, centers: Float64, square: Float64 | None = None) -> Float64:
    """Return squared distances of points to centres, of shape (n_points, n_centers), none below zero.

    `square` holds the squared norms of the points, where they are known.
    """
    own = (points**2).sum(axis=1) if square is None else square
    squared = points @ centers.T
    squared *= -2
    squared += own[:, None]
    squared += (centers**2).sum(axis=1)
    return np.maximum(squared, 0.0, out=squared)


@dataclass(frozen=True)
class WeightedPoints:
    """Points to cluster, with the number of rows that each stands for and their squared norms."""

    rows: Float64
    weight: Float64
    square: Float64

    @classmethod
    def of(cls, rows: Float64, weight: Float64) -> WeightedPoints:
        """See the attributes."""
        return cls(rows, weight, (rows**2).sum(axis=1))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def scale(self) -> float:
        """The mean squared norm."""
        return float(np.average(self.square, weights=self.weight))

    @property
    def negligible(self) -> float:
        """Squared distances that differ by this are equal."""
        return TIE * self.scale

    def squared_distances(self, centers: Float64) -> Float64:
        """Return squared distances to centres, of shape (n_points, n_centers)."""
        return squared_distances(self.rows, centers, self.square)


def greedy_seeds(points: WeightedPoints, k: int, rng: np.random.Generator, centers: Float64 | None = None) -> Float64:
    r"""Add points by greedy k-means++ [1]_ to the centres until there are k; fewer if there are fewer distinct points.

    For each centre :math:`2 + \lfloor\ln k\rfloor` points are drawn with a probability proportional to
    :math:`w_i d_i^2`, with the distance to the nearest centre so far. The one is taken that leaves the smallest
    potential :math:`\sum_i w_i \min(d_i^2, \|x_i - c\|^2)`, the first drawn of those that tie.

    .. [1] D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.
    """
    weight, negligible = points.weight, points.negligible
    mass, nearest = weight, np.full(len(points), np.inf)
    found = points.rows[:0] if centers is None else centers
    if len(found):
        nearest = points.squared_distances(found).min(axis=1)
        mass = weight * np.where(nearest <= negligible, 0.0, nearest)
    while len(found) < k and mass.sum() > 0:
        drawn = rng.choice(len(points), size=2 + int(math.log(k)), p=mass / mass.sum())
        left = np.minimum(nearest[:, None], points.squared_distances(points.rows[drawn]))
        left[left <= negligible] = 0.0
        potential = weight @ left
        best = int(np.argmax(potential <= potential.min() + negligible * weight.sum()))
        found = np.concatenate([found, points.rows[drawn[best]][None]])
        nearest = left[:, best]
        mass = weight * nearest
    return found


@dataclass(frozen=True)
class Clustering:
    """Cluster of each point, centres in rows, the weighted sum of squared distances, and the iterations it took."""

    labels: Labels
    centers: Float64
    inertia: float
    n_iter: int


def assign(points: Float64, centers: Float64, scale: float) -> tuple[Labels, Float64]:
    """Return the nearest centre of each point, the first of those that tie, and the squared distance to it.

    Squared distances are equal if they agree to :data:`TIE` of `scale`.
    """
    return _nearest(squared_distances(points, centers), TIE * scale)


def _nearest(squared: Float64, negligible: float) -> tuple[Labels, Float64]:
    labels = np.argmax(squared <= squared.min(axis=1, keepdims=True) + negligible, axis=1)
    return labels, squared[np.arange(len(squared)), labels]


def weighted_kmeans(
    points: WeightedPoints, n_clusters: int, *, n_init: int, max_iter: int, rng: np.random.Generator
) -> Clustering:
    """Return the best of `n_init` runs from greedy seeds, and of runs from mixtures of their results.

    A run is Lloyd's iterations, then moves of single points. Mixtures are made until :data:`PATIENCE` times `n_init` in
    a row have brought nothing better. Clusters are numbered by their first point. There are fewer than asked for if
    there are fewer distinct points.

    References
    ----------
    D. Gribel, T. Vidal, "HG-means: a scalable hybrid genetic algorithm for minimum sum-of-squares clustering",
    Pattern Recognition 88, 2019.
    """

    def run(centers: Float64) -> Clustering:
        return exchanged(points, lloyd(points, centers, max_iter), max_iter)

    found = [run(greedy_seeds(points, n_clusters, rng)) for _ in range(n_init)]
    gap = points.negligible * points.weight.sum()
    in_vain = 0 if n_init > 1 and 1 < len(found[0].centers) < len(points) else PATIENCE * n_init
    while in_vain < PATIENCE * n_init:
        first, second = (_better(points, found, rng) for _ in range(2))
        child = run(mixed_centers(points, first.centers, second.centers, rng))
        in_vain = 0 if child.inertia < _best(points, found).inertia - gap else in_vain + 1
        worst = max(range(n_init), key=lambda place: found[place].inertia)
        # An optimum that is there already would only crowd out others.
        if child.inertia < found[worst].inertia and all(abs(child.inertia - other.inertia) > gap for other in found):
            found[worst] = child
    return _numbered(points, _best(points, found))


def _best(points: WeightedPoints, found: list[Clustering]) -> Clustering:
    """Return the first of those with the least cost: runs that end in the same optimum differ by rounding."""
    least = min(clustering.inertia for clustering in found)
    return next(c for c in found if c.inertia <= least + points.negligible * points.weight.sum())


def _better(points: WeightedPoints, found: list[Clustering], rng: np.random.Generator) -> Clustering:
    """Return the better of two drawn at random."""
    return _best(points, [found[place] for place in rng.integers(len(found), size=2)])


def mixed_centers(points: WeightedPoints, first: Float64, second: Float64, rng: np.random.Generator) -> Float64:
    """Return centres of two clusterings, matched one to one: one of each pair at random, and one seeded anew."""
    left, right = linear_sum_assignment(squared_distances(first, second))
    k = len(left)
    mixed = np.where(rng.random(k)[:, None] < 0.5, first[left], second[right])
    return greedy_seeds(points, k, rng, np.delete(mixed, rng.integers(k), axis=0))


def lloyd(points: WeightedPoints, centers: Float64, max_iter: int) -> Clustering:
    """Assign points to centres and centres to means in turn until nothing changes."""
    negligible = points.negligible
    labels, squared = _nearest(points.squared_distances(centers), negligible)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        centers = _means(points, labels, squared, len(centers))
        before = labels
        labels, squared = _nearest(points.squared_distances(centers), negligible)
        if np.array_equal(labels, before):
            break
    return Clustering(labels, centers, float(points.weight @ squared), n_iter)


def move_costs(squared: Float64, weight: Float64, labels: Labels, total: Float64) -> Float64:
    """Return what each move adds to the cost; 0 for staying, infinite to empty a cluster.

    `squared` are the distances of the points to the means of the clusters, `total` the weights of these.
    """
    lines = np.arange(len(labels))
    rest = total[labels] - weight
    alone = rest <= 1e-9 * weight
    saved = weight * total[labels] / np.where(alone, 1.0, rest) * squared[lines, labels]
    added = weight[:, None] * total / (total + weight[:, None]) * squared
    costs = added - saved[:, None]
    costs[alone] = np.inf
    costs[lines, labels] = 0.0
    return costs


def exchange_pass(points: WeightedPoints, labels: Labels, centers: Float64) -> tuple[Labels, Float64]:
    """Try the best move of each point once, those first that save most; returns new labels and their means."""
    rows, weight, negligible = points.rows, points.weight, points.negligible
    labels, centers = labels.copy(), centers.copy()
    total = np.bincount(labels, weight, minlength=len(centers)).astype(np.float64)
    costs = move_costs(points.squared_distances(centers), weight, labels, total).min(axis=1)
    worthwhile = np.flatnonzero(costs < -negligible)
    for i in worthwhile[np.argsort(np.rint(costs[worthwhile] / negligible), kind="stable")]:
        # The means may have moved since.
        squared = ((centers - rows[i]) ** 2).sum(axis=1)
        costs = move_costs(squared[None], weight[[i]], labels[[i]], total)[0]
        target = int(np.argmax(costs <= costs.min() + negligible))
        if costs[target] >= -negligible:
            continue
        source = labels[i]
        centers[source] += weight[i] / (total[source] - weight[i]) * (centers[source] - rows[i])
        centers[target] += weight[i] / (total[target] + weight[i]) * (rows[i] - centers[target])
        total[source] -= weight[i]
        total[target] += weight[i]
        labels[i] = target
    return labels, centers


def exchanged(points: WeightedPoints, found: Clustering, max_iter: int) -> Clustering:
    """Move single points between clusters until no move lowers the cost."""
    while found.n_iter < max_iter:
        labels, centers = exchange_pass(points, found.labels, found.centers)
        if np.array_equal(labels, found.labels):
            break
        squared = ((points.rows - centers[labels]) ** 2).sum(axis=1)
        found = Clustering(labels, centers, float(points.weight @ squared), found.n_iter + 1)
    return found


def _numbered(points: WeightedPoints, found: Clustering) -> Clustering:
    """Number the clusters by their first point, so that neither seeds nor rounding show in the labels."""
    k, labels, centers = len(found.centers), found.labels, found.centers
    for _ in range(k):
        used, first = np.unique(labels, return_index=True)
        order = used[np.argsort(first)]
        centers = centers[np.concatenate([order, np.setdiff1d(np.arange(k), order)])]
        # Of centres at the same distance the first gets the point, and another one may be first now.
        labels, squared = _nearest(points.squared_distances(centers), points.negligible)
        if np.array_equal(order, np.arange(len(order))):
            break
    return Clustering(labels, centers, float(points.weight @ squared), found.n_iter)


def _means(points: WeightedPoints, labels: Labels, squared: Float64, k: int) -> Float64:
    """Return weighted means of the clusters; an empty one gets the point that costs most where it is, each another."""
    total = np.bincount(labels, points.weight, minlength=k)
    member = np.zeros((k, len(points)))
    member[labels, np.arange(len(points))] = points.weight
    centers = member @ points.rows / np.where(total > 0, total, 1.0)[:, None]
    empty = np.flatnonzero(total == 0)
    centers[empty] = points.rows[np.argsort(-points.weight * squared, kind="stable")[: len(empty)]]
    return centers
