"""Weighted k-means on explicit features: iterations, exchanges, restarts and mixtures of their results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pairlens.cluster.exchange import exchange_pass
from pairlens.cluster.points import TIE, WeightedPoints, greedy_seeds, squared_distances
from pairlens.engines import Float64

Labels = NDArray[np.int64]

PATIENCE = 2
"""Mixtures that may bring nothing better, for each of the first runs."""


@dataclass(frozen=True)
class Clustering:
    """Cluster of each point, centres in rows, the weighted sum of squared distances, and the iterations it took."""

    labels: Labels
    centers: Float64
    inertia: float
    n_iter: int


def assign(points: Float64, centers: Float64, scale: float) -> tuple[Labels, Float64]:
    """The nearest centre of each point, the first of those that tie, and the squared distance to it.

    Squared distances are equal if they agree to :data:`~pairlens.cluster.points.TIE` of `scale`.
    """
    return _nearest(squared_distances(points, centers), TIE * scale)


def _nearest(squared: Float64, negligible: float) -> tuple[Labels, Float64]:
    labels = np.argmax(squared <= squared.min(axis=1, keepdims=True) + negligible, axis=1)
    return labels, squared[np.arange(len(squared)), labels]


def weighted_kmeans(
    points: WeightedPoints, n_clusters: int, *, n_init: int, max_iter: int, rng: np.random.Generator
) -> Clustering:
    """The best of `n_init` runs from greedy seeds, and of runs from mixtures of their results.

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
    """The first of those with the least cost: runs that end in the same optimum differ by rounding."""
    least = min(clustering.inertia for clustering in found)
    return next(c for c in found if c.inertia <= least + points.negligible * points.weight.sum())


def _better(points: WeightedPoints, found: list[Clustering], rng: np.random.Generator) -> Clustering:
    """The better of two drawn at random."""
    return _best(points, [found[place] for place in rng.integers(len(found), size=2)])


def mixed_centers(points: WeightedPoints, first: Float64, second: Float64, rng: np.random.Generator) -> Float64:
    """Centres of two clusterings, matched one to one, of each pair one at random; one of them is then seeded anew."""
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
    """Weighted means of the clusters; an empty one gets the point that costs most where it is, each another."""
    total = np.bincount(labels, points.weight, minlength=k)
    member = np.zeros((k, len(points)))
    member[labels, np.arange(len(points))] = points.weight
    centers = member @ points.rows / np.where(total > 0, total, 1.0)[:, None]
    empty = np.flatnonzero(total == 0)
    centers[empty] = points.rows[np.argsort(-points.weight * squared, kind="stable")[: len(empty)]]
    return centers
