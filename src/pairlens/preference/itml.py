"""ITML: a metric near the identity in which must-links are short and cannot-links long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens._sklearn import AUTO, COUNT, POSITIVE, SEED, as_generator, estimator, parameter
from pairlens.engines import Float64, Rows, pair_squared_distances
from pairlens.exceptions import ArgumentError
from pairlens.methods.base import PairTransformer
from pairlens.preference.metric import MetricLearner, log_det_penalty
from pairlens.preference.objective import Pairs, squared_lengths
from pairlens.supervision import Constraints

__all__ = ["ITML"]

RANDOM_PAIRS = 10_000
"""Pairs of rows whose distances say which are short and which long."""
SHORT, LONG = 0.05, 0.95


@dataclass(frozen=True)
class BoundedPairs:
    r"""Penalise must-links longer than u and cannot-links shorter than l, each at the least cost of slack.

    With :math:`\varphi(t) = t - 1 - \log t`, which is the LogDet divergence of a number,
    :math:`\gamma \big( \sum_{must,\, d > u} w \varphi(d / u) + \sum_{cannot,\, d < l} w \varphi(d / l) \big)`.
    """

    pairs: Pairs
    bound: Float64
    sign: Float64
    weight: Float64
    gamma: float

    def __call__(self, Z: Float64) -> tuple[float, Float64]:
        """Return value, and gradient of the shape of Z."""
        Q = self.pairs.differences(Z)
        ratio = np.maximum(squared_lengths(Q) / self.bound, np.finfo(np.float64).tiny)
        violated = self.gamma * self.weight * (self.sign * (ratio - 1) > 0)
        value = float(violated @ (ratio - 1 - np.log(ratio)))
        return value, 2 * self.pairs.gather(Q, violated * (1 - 1 / ratio) / self.bound)


@estimator
class ITML(MetricLearner, PairTransformer):
    r"""Information-theoretic metric learning.

    A metric :math:`d(x, x') = \|L (x - x')\|^2` that minimises, with :math:`M = L'L` and
    :math:`\varphi(t) = t - 1 - \log t`,

    .. math::
        \mathrm{tr} M - \log\det M + \gamma \Big( \sum_{must,\, d > u} w\, \varphi(d / u)
        + \sum_{cannot,\, d < l} w\, \varphi(d / l) \Big) :

    must-links should be at most u long and cannot-links at least l, and the metric as near the identity as that
    allows in LogDet divergence. This is the paper's problem after its slack variables have been minimised out, which
    makes it smooth and free of constraints.

    Choose it for few pairs of good quality where the plain distance is a good start: what no pair speaks of stays as it
    is. Standardise the features first.

    Parameters
    ----------
    gamma : float, default=1.0
        Weight :math:`\gamma` of the pairs.
    bounds : tuple of two floats or "auto", default="auto"
        Squared distances (u, l). "auto" takes the 5th and 95th percentile of those of random pairs of rows.
    max_pairs : int, default=20000
        Of more pairs this many are drawn.
    random_state : int, RandomState, Generator or None, default=None
        For the draws.

    Attributes
    ----------
    bounds_ : tuple of two floats
        The squared distances (u, l).
    loss_curve_ : list of float
        The objective, less the number of features, at the start and after each iteration.

    See Also
    --------
    LinearPairLens : The first choice for pairs.

    Notes
    -----
    Cannot-links of equal rows are left out: no metric separates them.

    References
    ----------
    .. [1] Jason V. Davis, Brian Kulis, Prateek Jain, Suvrit Sra and Inderjit S. Dhillon, "Information-theoretic metric
       learning", ICML 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pairlens import ITML, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    >>> ITML(2, random_state=0).fit(X, constraints=pairs).transform(X).shape
    (150, 2)
    """

    gamma: float = parameter(POSITIVE, default=1.0)
    bounds: tuple[float, float] | str = parameter(tuple, AUTO, default="auto")
    max_pairs: int = parameter(COUNT, default=20_000)
    random_state: Any = parameter(*SEED, default=None)

    def _learn(self, rows: Rows, known: Constraints) -> None:
        rng = as_generator(self.random_state)
        if known.n_pairs > self.max_pairs or known.labels is not None:
            known = known.sample(min(known.n_pairs, self.max_pairs), rng)
        self.bounds_ = self._bounds(rows, rng)
        pairs = np.concatenate([known.must_link, known.cannot_link])
        must = np.arange(len(pairs)) < known.n_must_link
        weight = np.concatenate([known.must_link_weight, known.cannot_link_weight])
        apart = pair_squared_distances(rows, pairs) > 0 if len(pairs) else np.empty(0, dtype=bool)
        pairs, must, weight = pairs[apart], must[apart], weight[apart]
        used = np.unique(pairs)
        objective = None
        if len(pairs):
            objective = BoundedPairs(
                Pairs.of(np.searchsorted(used, pairs), len(used)),
                np.where(must, *self.bounds_),
                np.where(must, 1.0, -1.0),
                weight,
                float(self.gamma),
            )
        lacking = "no pairs of different rows are known"
        self._fit_map(rows, used, objective, whole=True, penalty=log_det_penalty, lacking=lacking)

    def _bounds(self, rows: Rows, rng: np.random.Generator) -> tuple[float, float]:
        if not isinstance(self.bounds, str):
            if len(self.bounds) != 2 or not 0 < self.bounds[0] <= self.bounds[1] < np.inf:
                raise ArgumentError("bounds", self.bounds, "must be two positive numbers, the smaller first")
            return float(self.bounds[0]), float(self.bounds[1])
        n = rows.shape[0]
        first = rng.integers(n, size=RANDOM_PAIRS)
        second = (first + rng.integers(1, n, size=RANDOM_PAIRS)) % n
        found = pair_squared_distances(rows, np.stack([first, second], axis=1))
        found = found[found > 0]
        if not len(found):
            return 1.0, 1.0
        return float(np.quantile(found, SHORT)), float(np.quantile(found, LONG))
