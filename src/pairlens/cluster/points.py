"""Points with weights, and their squared distances to centres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

TIE = 1e-9
"""Squared distances that agree to this share of the mean squared norm are equal."""


def squared_distances(points: Float64, centers: Float64, square: Float64 | None = None) -> Float64:
    """Squared distances of points to centres, of shape (n_points, n_centers), none below zero.

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
        """Of shape (n_points, n_centers)."""
        return squared_distances(self.rows, centers, self.square)
