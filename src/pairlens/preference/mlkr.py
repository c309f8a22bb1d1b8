"""MLKR: a metric for kernel regression."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pairlens._sklearn import SEED, Interval, as_generator, estimator, fit_context, parameter
from pairlens.engines import Float64, row_blocks
from pairlens.exceptions import ArgumentError
from pairlens.preference.metric import MetricLearner
from pairlens.preference.objective import BLOCK_BYTES, squared_lengths
from pairlens.supervision.inputs import numbers_per_row

__all__ = ["MLKR"]


@dataclass(frozen=True)
class KernelRegression:
    r"""Sum the squared errors of leave-one-out kernel regression.

    .. math:: \sum_i (\hat y_i - y_i)^2 , \qquad
        \hat y_i = \frac{\sum_{j \ne i} k_{ij} y_j}{\sum_{j \ne i} k_{ij}} , \qquad k_{ij} = e^{-d_{ij}} .

    Distances are taken block by block, so memory is O(n_rows * block).
    """

    y: Float64

    def __call__(self, Z: Float64) -> tuple[float, Float64]:
        """Return value, and gradient of the shape of Z."""
        n = len(Z)
        norms = squared_lengths(Z)
        value, gradient = 0.0, np.zeros_like(Z)
        for block in row_blocks(n, 8 * n, BLOCK_BYTES):
            own = np.arange(n)[block]
            share = norms - 2 * (Z[own] @ Z.T)
            share[np.arange(len(own)), own] = np.inf
            np.subtract(share.min(axis=1, keepdims=True), share, out=share)
            np.exp(share, out=share)
            both = share @ np.column_stack([np.ones(n), self.y])
            predicted = both[:, 1] / both[:, 0]
            error = predicted - self.y[own]
            value += float(error @ error)
            # The derivative by d_ij is -2 error_i share_ij (y_j - predicted_i); its sum over j is 0.
            share *= self.y - predicted[:, None]
            share *= (-2 * error / both[:, 0])[:, None]
            gradient[own] -= 2 * (share @ Z)
            gradient += 2 * (share.sum(axis=0)[:, None] * Z - share.T @ Z[own])
        return value, gradient


@estimator
class MLKR(MetricLearner):
    r"""Metric learning for kernel regression.

    A linear map :math:`z = L x` that minimises the squared errors of leave-one-out kernel regression,

    .. math::
        \sum_i (\hat y_i - y_i)^2 , \qquad
        \hat y_i = \frac{\sum_{j \ne i} k_{ij} y_j}{\sum_{j \ne i} k_{ij}} , \qquad k_{ij} = e^{-\|z_i - z_j\|^2} .

    Choose it when rows have a number as target and the view should show how it changes. Standardise the features
    first. The problem is not convex: the result is a local minimum.

    Parameters
    ----------
    n_components : int or None, default=2
        Number of dimensions of the view. None learns all, from the identity on; a number starts from the principal
        directions.
    max_samples : int, default=5000
        Of more rows this many are drawn to learn from: an evaluation compares each with all others.
    random_state : int, RandomState, Generator or None, default=None
        For the draw of rows.

    Attributes
    ----------
    loss_curve_ : list of float
        The mean squared error, with the variance of y as unit, at the start and after each iteration.

    See Also
    --------
    WSDR : From which of two rows is better, in place of numbers.

    References
    ----------
    .. [1] Kilian Q. Weinberger and Gerald Tesauro, "Metric learning for kernel regression", AISTATS 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pairlens import MLKR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> view = MLKR(n_components=2).fit(StandardScaler().fit_transform(X), y)
    >>> bool(view.loss_curve_[-1] < view.loss_curve_[0])
    True
    """

    max_samples: int = parameter(Interval(Integral, 2, None, closed="left"), default=5_000)
    random_state: Any = parameter(*SEED, default=None)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Numbers, the target of the regression; NaN where it is unknown.

        Returns
        -------
        self : object
        """
        rows = self._read(X, fitting=True)
        used, objective = np.empty(0, dtype=np.int64), None
        if y is not None:
            target = numbers_per_row(y, meaning="the target of the regression")
            if len(target) != rows.shape[0]:
                raise ArgumentError("y", len(target), f"must have {rows.shape[0]} entries, one for each row of X")
            if np.isinf(target).any():
                raise ArgumentError("y", np.inf, "must hold finite numbers, and NaN where the target is unknown")
            used = np.flatnonzero(~np.isnan(target))
            if len(used) > self.max_samples:
                used = np.sort(as_generator(self.random_state).choice(used, self.max_samples, replace=False))
            spread = target[used].std() if len(used) else 0.0
            if spread > 0:
                objective = KernelRegression((target[used] - target[used].mean()) / (spread * np.sqrt(len(used))))
        lacking = "y does not have two different numbers"
        self._fit_map(rows, used, objective, whole=self.n_components is None, lacking=lacking)
        return self
