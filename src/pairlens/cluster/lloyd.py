"""Weighted k-means on explicit features: seeding, iterations, empty clusters and restarts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Clustering", "assign", "weighted_kmeans"]

Float64 = NDArray[np.float64]
Labels = NDArray[np.int64]

TIE = 1e-9
"""Squared distances that agree to this share of the mean squared norm are equal; the first cluster gets the point."""


@dataclass(frozen=True)
class Clustering:
    """Cluster of each point, centres in rows, the weighted sum of squared distances, and the iterations it took."""

    labels: Labels
    centers: Float64
    inertia: float
    n_iter: int


def assign(points: Float64, centers: Float64, scale: float) -> tuple[Labels, Float64]:
    """The nearest centre of each point, the first of those that tie, and the squared distance to it."""
    squared = (points**2).sum(axis=1)[:, None] - 2 * points @ centers.T + (centers**2).sum(axis=1)
    np.maximum(squared, 0.0, out=squared)
    least = squared.min(axis=1)
    labels = np.argmax(squared <= least[:, None] + TIE * scale, axis=1)
    return labels, squared[np.arange(len(points)), labels]


def weighted_kmeans(
    points: Float64, weight: Float64, n_clusters: int, *, n_init: int, max_iter: int, rng: np.random.Generator
) -> Clustering:
    """The best of `n_init` runs of Lloyd's iterations from k-means++ seeds; clusters are numbered by their first point.

    There are fewer clusters than asked for if there are fewer distinct points.
    """
    scale = float(np.average((points**2).sum(axis=1), weights=weight))
    best: Clustering | None = None
    for _ in range(n_init):
        found = _lloyd(points, weight, _seeds(points, weight, n_clusters, scale, rng), max_iter, scale)
        # Runs that end in the same optimum differ by rounding, which must not choose among them.
        if best is None or found.inertia < best.inertia - TIE * scale * weight.sum():
            best = found
    assert best is not None
    return _numbered(points, weight, best, scale)


def _numbered(points: Float64, weight: Float64, found: Clustering, scale: float) -> Clustering:
    """Number the clusters by their first point, so that neither seeds nor rounding show in the labels."""
    labels, centers, inertia = found.labels, found.centers, found.inertia
    for _ in range(len(centers)):
        used, first = np.unique(labels, return_index=True)
        order = used[np.argsort(first)]
        if np.array_equal(order, np.arange(len(order))):
            break
        centers = centers[np.concatenate([order, np.setdiff1d(np.arange(len(centers)), order)])]
        # Of centres at the same distance the first gets the point, and another one may be first now.
        labels, squared = assign(points, centers, scale)
        inertia = float(weight @ squared)
    return Clustering(labels, centers, inertia, found.n_iter)


def _seeds(points: Float64, weight: Float64, n_clusters: int, scale: float, rng: np.random.Generator) -> Float64:
    """k-means++: each next one with a probability that grows with the squared distance to those chosen."""
    chosen = [int(rng.choice(len(points), p=weight / weight.sum()))]
    nearest = np.full(len(points), np.inf)
    while True:
        nearest = np.minimum(nearest, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        nearest[nearest <= TIE * scale] = 0.0
        mass = weight * nearest
        if len(chosen) == n_clusters or mass.sum() <= 0:
            return points[chosen]
        chosen.append(int(rng.choice(len(points), p=mass / mass.sum())))


def _lloyd(points: Float64, weight: Float64, centers: Float64, max_iter: int, scale: float) -> Clustering:
    labels, squared = assign(points, centers, scale)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        centers = _means(points, weight, labels, squared, len(centers))
        before = labels
        labels, squared = assign(points, centers, scale)
        if np.array_equal(labels, before):
            break
    return Clustering(labels, centers, float(weight @ squared), n_iter)


def _means(points: Float64, weight: Float64, labels: Labels, squared: Float64, k: int) -> Float64:
    """Weighted means of the clusters; an empty one gets the point that costs most where it is, each another."""
    total = np.bincount(labels, weight, minlength=k)
    member = np.zeros((k, len(points)))
    member[labels, np.arange(len(points))] = weight
    centers = member @ points / np.where(total > 0, total, 1.0)[:, None]
    empty = np.flatnonzero(total == 0)
    centers[empty] = points[np.argsort(-weight * squared, kind="stable")[: len(empty)]]
    return centers
