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

PRIOR_VARIANCE = 4.0
MOST_COLUMNS = 100
STEPS = 50
DRAWS = 200
"""Rankings that are drawn from the posterior to see how far a row moves."""
COVERED = 0.9
"""Share of these rankings that an interval of ranks holds."""


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
    """Return mode and covariance of the weights, by Newton's method.

    `differences` are first row less second row of each comparison, `share` that of the answers in which the first was
    better, and `weight` their number.
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
    """Return the chance that the first row of each comparison is better.

    It is the mean of a logistic curve over a normal variable, by MacKay's approximation (The evidence framework applied
    to classification networks, 1992).
    """
    mean, variance = differences @ ranking.weights, _variance(differences, ranking)
    return logistic(mean / np.sqrt(1 + np.pi * variance / 8))


def _variance(differences: Float64, ranking: Ranking) -> Float64:
    return np.asarray(np.einsum("ij,ij->i", differences @ ranking.covariance, differences))


def information(differences: Float64, ranking: Ranking) -> Float64:
    r"""Return what the answer to a comparison is expected to tell of w: :math:`\frac12 \log(1 + p (1 - p) s^2)`.

    p is the chance that the first is better, s the standard deviation of the difference of the scores.
    """
    p = better_chance(differences, ranking)
    return np.asarray(0.5 * np.log1p(p * (1 - p) * _variance(differences, ranking)))


@dataclass(frozen=True)
class RankedRows:
    """All rows in order, the best first, and how sure their places are.

    `order` has row numbers. By row number, `score` is the higher the better, and the true rank lies between `low` and
    `high`, from 1, with a probability of 90 %.
    """

    order: NDArray[np.int64]
    score: Float64
    low: NDArray[np.int64]
    high: NDArray[np.int64]


def rank_rows(rows: Float64, ranking: Ranking, seed: int = 0) -> RankedRows:
    """Return rows of a :class:`RankLens` in order, with intervals of their ranks from rankings drawn from the
    posterior.
    """
    score = np.asarray(rows @ ranking.weights)
    order = np.argsort(-np.round(score, 9), kind="stable")
    drawn = np.random.default_rng([seed, 5]).multivariate_normal(ranking.weights, ranking.covariance, DRAWS).T
    ranks = np.empty((DRAWS, len(rows)), dtype=np.int32)
    for k in range(DRAWS):
        ranks[k, np.argsort(-(rows @ drawn[:, k]), kind="stable")] = np.arange(1, len(rows) + 1)
    outside = round(DRAWS * (1 - COVERED) / 2)
    ranks.partition((outside, DRAWS - 1 - outside), axis=0)
    own = np.empty(len(rows), dtype=np.int64)
    own[order] = np.arange(1, len(rows) + 1)
    low, high = ranks[outside].astype(np.int64), ranks[DRAWS - 1 - outside].astype(np.int64)
    return RankedRows(order, score, np.minimum(low, own), np.maximum(high, own))
