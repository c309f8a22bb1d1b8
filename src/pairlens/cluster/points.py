"""Points with weights, their squared distances to centres, and the choice of the first centres among them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pairlens.engines import Float64

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
    """Points to cluster.

    Attributes
    ----------
    rows : array of shape (n_points, n_features)
    weight : array of shape (n_points,)
        What each counts for: the number of rows that it stands for.
    square : array of shape (n_points,)
        Squared norms.
    """

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
    r"""Add points by greedy k-means++ to the centres until there are k; fewer if there are fewer distinct points.

    For each centre :math:`2 + \lfloor\ln k\rfloor` points are drawn with a probability proportional to
    :math:`w_i d_i^2`, with the distance to the nearest centre so far. The one is taken that leaves the smallest
    potential :math:`\sum_i w_i \min(d_i^2, \|x_i - c\|^2)`, the first drawn of those that tie.

    Parameters
    ----------
    points : WeightedPoints
    k : int
        Centres wanted.
    rng : numpy.random.Generator
    centers : array of shape (n_centers, n_features), optional
        Centres that are there already.

    References
    ----------
    D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.
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
