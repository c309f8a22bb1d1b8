"""Greedy k-means++: of several points drawn for a centre, the one that leaves the least cost."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pairlens.cluster.points import WeightedPoints

Float64 = NDArray[np.float64]


def greedy_seeds(points: WeightedPoints, k: int, rng: np.random.Generator, centers: Float64 | None = None) -> Float64:
    r"""Add points to the centres until there are k; fewer if there are fewer distinct points.

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
