r"""A linear ranking from preferences, with how sure it is: logistic regression on differences of rows.

:math:`P(i \text{ better than } j) = \sigma(w'(x_i - x_j))`, :math:`w \sim N(0, 4 I)` in coordinates of total variance
1. The posterior of w is taken as normal about its mode (Laplace).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.asking.posterior import logistic
from pairlens.asking.view import checked_rows, whitened_coordinates
from pairlens.engines import Float64

__all__ = ["RankJob", "RankLens", "Ranking", "better_chance", "information", "laplace"]


PRIOR_VARIANCE = 4.0
MOST_COLUMNS = 100
STEPS = 50


@dataclass(frozen=True)
class RankJob:
    """Preferences to learn a ranking from; small, and can go to another process.

    Attributes
    ----------
    key : str
    pairs : array of shape (m, 2)
    share : array of shape (m,)
        Share of the answers in which the first row was better; 1/2 where both are equally good.
    weight : array of shape (m,)
        Number of answers.
    answers : int
        Number of entries of the log that they know.
    """

    key: str
    pairs: NDArray[np.int64]
    share: Float64
    weight: Float64
    answers: int


@dataclass(frozen=True)
class Ranking:
    """A learned ranking: the weights of the coordinates and their covariance."""

    key: str
    weights: Float64
    covariance: Float64


class RankLens:
    """Rows, ready to be ranked: their principal components, at most 100, scaled to total variance 1.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
        Finite numbers.
    standardize : bool, default=True
        Whether to divide each feature by its deviation.
    """

    def __init__(self, X: ArrayLike, *, standardize: bool = True) -> None:
        given = checked_rows(X)
        self.n_rows = int(given.shape[0])
        whitened, values = whitened_coordinates(given, standardize)
        rows = whitened[:, :MOST_COLUMNS] * np.sqrt(values[:MOST_COLUMNS])
        size = np.sqrt(np.einsum("ij,ij->", rows, rows) / len(rows))
        self.rows = rows / (size if size > 0 else 1.0)

    def fit(self, job: RankJob) -> Ranking:
        """Learn the ranking that the preferences of a job show."""
        differences = self.rows[job.pairs[:, 0]] - self.rows[job.pairs[:, 1]]
        return Ranking(job.key, *laplace(differences, job.share, job.weight))


def laplace(differences: Float64, share: Float64, weight: Float64) -> tuple[Float64, Float64]:
    """Mode and covariance of the weights, by Newton's method.

    Parameters
    ----------
    differences : array of shape (m, d)
        First row less second row of each comparison.
    share : array of shape (m,)
        Share of the answers in which the first was better.
    weight : array of shape (m,)
        Number of answers.
    """
    dim = differences.shape[1]
    w = np.zeros(dim)
    precision = np.eye(dim) / PRIOR_VARIANCE
    for _ in range(STEPS):
        p = logistic(differences @ w)
        slope = differences.T @ (weight * (share - p)) - w / PRIOR_VARIANCE
        curvature = (differences * (weight * p * (1 - p))[:, None]).T @ differences + precision
        step = np.linalg.solve(curvature, slope)
        w = w + step
        if np.abs(step).max() < 1e-10:
            break
    p = logistic(differences @ w)
    curvature = (differences * (weight * p * (1 - p))[:, None]).T @ differences + precision
    return w, np.asarray(np.linalg.inv(curvature))


def better_chance(differences: Float64, ranking: Ranking) -> Float64:
    """Chance that the first row of each comparison is better: the mean of a logistic curve over a normal variable.

    By MacKay's approximation (The evidence framework applied to classification networks, 1992).
    """
    mean, variance = differences @ ranking.weights, _variance(differences, ranking)
    return logistic(mean / np.sqrt(1 + np.pi * variance / 8))


def _variance(differences: Float64, ranking: Ranking) -> Float64:
    return np.asarray(np.einsum("ij,ij->i", differences @ ranking.covariance, differences))


def information(differences: Float64, ranking: Ranking) -> Float64:
    r"""What the answer to a comparison is expected to tell of w: :math:`\frac12 \log(1 + p (1 - p) s^2)`.

    p is the chance that the first is better, s the standard deviation of the difference of the scores.
    """
    p = better_chance(differences, ranking)
    return np.asarray(0.5 * np.log1p(p * (1 - p) * _variance(differences, ranking)))
