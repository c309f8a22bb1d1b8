"""ITML and MLKR, and what all metric learners share: a linear map that minimises a function of the embedded rows."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pairlens import engines
from pairlens._sklearn import (
    AUTO,
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    Interval,
    as_generator,
    estimator,
    fit_context,
    parameter,
)
from pairlens._warnings import warn_fallback
from pairlens.engines import Float64, IntArray, Rows
from pairlens.exceptions import ArgumentError
from pairlens.methods.base import LinearPairTransformer, PairTransformer
from pairlens.preference.objective import BLOCK_BYTES, Pairs, squared_lengths
from pairlens.spectral.rowspace import RowSpace, fix_signs, principal_directions, row_space, symmetric
from pairlens.supervision import Constraints, Quadruplets, Triplets
from pairlens.supervision.inputs import numbers_per_row

ValueAndGradient = Callable[[Float64], tuple[float, Float64]]
"""A function of a matrix that gives its value and its gradient."""

Embedded = tuple[IntArray, ValueAndGradient]
"""Rows, and a function of their embedding."""


@dataclass(frozen=True)
class Solution:
    """Hold a map, and the objective after each iteration.

    Of alternating directions also how far the two copies are apart, relative to L, and how far the objective is from
    flat there: the size of its gradient times that of L, relative to the objective.
    """

    L: Float64
    curve: list[float]
    disagreement: float = 0.0
    slope: float = 0.0


def minimize(
    function: ValueAndGradient, start: Float64, max_iter: int, tol: float, *, lowest: float | None = None
) -> Solution:
    """Minimise a function of a matrix by limited-memory BFGS, whose entries may have a lower bound."""
    from scipy import optimize

    def flat(x: Float64) -> tuple[float, Float64]:
        value, gradient = function(x.reshape(start.shape))
        return value, gradient.ravel()

    curve: list[float] = []

    def note(intermediate_result: optimize.OptimizeResult) -> None:
        curve.append(float(intermediate_result.fun))

    found = optimize.minimize(
        flat,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=None if lowest is None else [(lowest, None)] * start.size,
        callback=note,
        options={"maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": tol, "gtol": 1e-3 * tol},
    )
    return Solution(found.x.reshape(start.shape), curve)


def summed(parts: Sequence[Embedded]) -> tuple[IntArray, ValueAndGradient | None]:
    """Return the rows of several functions of embedded rows, and the sum of the functions; None of none."""
    if not parts:
        return np.empty(0, dtype=np.int64), None
    rows = np.unique(np.concatenate([used for used, _ in parts]))
    places = [np.searchsorted(rows, used) for used, _ in parts]

    def function(Z: Float64) -> tuple[float, Float64]:
        value, gradient = 0.0, np.zeros_like(Z)
        for place, (_, part) in zip(places, parts):
            more, slope = part(Z[place])
            value += more
            gradient[place] += slope
        return value, gradient

    return rows, parts[0][1] if len(parts) == 1 else function


def comparison_pairs(known: Triplets | Quadruplets) -> tuple[Pairs, Pairs]:
    """Return the closer and the farther pairs of comparisons, among the rows that occur in them."""
    rows, weight = known.rows, np.array(known.weight)
    closer, farther = (np.searchsorted(rows, pairs) for pairs in (known.closer, known.farther))
    return Pairs.of(closer, len(rows), weight), Pairs.of(farther, len(rows), weight)


def log_det_penalty(L: Float64) -> tuple[float, Float64]:
    r"""Return the LogDet divergence :math:`\mathrm{tr} M - \log\det M - d` of :math:`M = L'L`, and its gradient."""
    with np.errstate(invalid="ignore"):
        # A step too far may leave the range of numbers: it is refused, as one to a singular L.
        _, log_det = np.linalg.slogdet(L)
    if not np.isfinite(log_det):
        return np.inf, np.zeros_like(L)
    return float(np.vdot(L, L)) - 2 * float(log_det) - len(L), 2 * (L - np.linalg.inv(L).T)


class Coordinates(NamedTuple):
    """Hold the coordinates that a map is learnt in, the scatter of the rows there, and their principal directions."""

    space: RowSpace
    covariance: Float64
    directions: Float64
    wanted: int


class LinearView(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Project rows by :math:`z = L (x - m)`, which is a metric of the features."""

    components_: NDArray[Any]
    mean_: NDArray[Any]
    _read: Callable[..., Rows]

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Project rows, :math:`(x - m) L'` with :attr:`components_` as L and :attr:`mean_` as m.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        Z : array of shape (n_samples, n_components)
            A tensor on the device of X for a tensor.
        """
        check_is_fitted(self)
        return engines.project(self._read(X, fitting=False), self.mean_, self.components_)

    pair_distance = LinearPairTransformer.pair_distance
    get_mahalanobis_matrix = LinearPairTransformer.get_mahalanobis_matrix
    get_metric = LinearPairTransformer.get_metric
    _n_features_out = LinearPairTransformer._n_features_out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@estimator
class MetricLearner(LinearView, BaseEstimator, ABC):
    """Learn a linear map :math:`z = L x`, that is the metric :math:`M = L'L`, by limited-memory BFGS.

    Parameters
    ----------
    n_components : int or None, default=2
        Number of dimensions of the view: those in which the embedded rows vary most. None keeps all.
    max_iter : int, default=100
        Iterations of limited-memory BFGS.
    tol : float, default=1e-6
        Stop when the objective improves by less than this share.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The map L, turned so that the components are uncorrelated and ordered by variance.
    mean_ : array of shape (n_features,)
        Mean of the rows of X; it is mapped to the origin.
    loss_curve_ : list of float
        The objective at the start and after each iteration.
    n_iter_ : int
        Number of iterations.
    """

    n_components: Any = parameter(COUNT, None, default=2, kw_only=False)
    max_iter: int = parameter(COUNT, default=100)
    tol: float = parameter(NOT_NEGATIVE, default=1e-6)

    def _read(self, X: ArrayLike, *, fitting: bool) -> Rows:
        rows = engines.checked_rows(self, X, fitting=fitting)
        if fitting and self.n_components is not None and self.n_components > rows.shape[1]:
            reason = f"must be at most the number of features, {rows.shape[1]}"
            raise ArgumentError("n_components", self.n_components, reason)
        return rows

    def _fit_map(
        self,
        rows: Rows,
        used: IntArray,
        objective: ValueAndGradient | None,
        *,
        whole: bool,
        penalty: ValueAndGradient | None = None,
        lacking: str = "",
    ) -> None:
        """Minimise the objective, a function of the embedded `used` rows, plus a penalty on L.

        Without an objective nothing is known: the view is that of PCA, with a warning that says what is `lacking`.
        `whole` learns all directions, from the identity, and cuts the view from them; otherwise only those of the view
        are learnt, from the principal directions.
        """
        place = self._coordinates(rows, used)
        L, self.loss_curve_ = place.directions, []
        if objective is None:
            warn_fallback(self, lacking)
        else:
            inside = place.space.rows[used].astype(np.float64)
            start = np.eye(place.space.dim) if whole else L

            def function(L: Float64) -> tuple[float, Float64]:
                value, gradient = objective(np.asarray(inside @ L.T))
                pulled = np.asarray(inside.T @ gradient).T
                if penalty is None:
                    return value, pulled
                more, slope = penalty(L)
                return value + more, pulled + slope

            # Steps that lead out of the range of numbers are taken back; the start and the end have to be inside. An
            # evaluation is a chain of short products and sums: threads waiting for each other took four times as long.
            with engines.one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
                value, gradient = function(start)
                if not (np.isfinite(value) and np.isfinite(gradient).all()):
                    raise engines.out_of_range()
                found = minimize(function, start, self.max_iter, self.tol)
                # Where the start is the minimum, no iteration is made, and the curve stays flat.
                self.loss_curve_ = [value, *(found.curve or [function(found.L)[0]])]
            L = found.L
            if not (np.isfinite(L).all() and np.isfinite(self.loss_curve_).all()):
                raise engines.out_of_range()
        self._keep(place, L, rows.dtype)

    def _coordinates(self, rows: Rows, used: IntArray) -> Coordinates:
        """Return where the map is learnt: the span of the rows."""
        mean = engines.column_means(rows)
        self.mean_ = mean.astype(rows.dtype)
        space = row_space(rows, mean, anchors=used)
        wanted = space.dim if self.n_components is None else self.n_components
        return Coordinates(space, *principal_directions(space, wanted), wanted)

    def _keep(self, place: Coordinates, L: Float64, dtype: np.dtype[Any]) -> None:
        """Turn the map so that its components are uncorrelated, and keep those of most variance."""
        if not L.any():
            warn_fallback(self, "what is known contradicts itself so far that no direction is left")
            L = place.directions
        _, turn = symmetric(L @ place.covariance @ L.T, min(place.wanted, len(L)))
        self.n_iter_ = max(0, len(self.loss_curve_) - 1)
        self.components_ = fix_signs(place.space.lift((turn.T @ L).T)).astype(dtype)


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
        apart = engines.pair_squared_distances(rows, pairs) > 0 if len(pairs) else np.empty(0, dtype=bool)
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
        found = engines.pair_squared_distances(rows, np.stack([first, second], axis=1))
        found = found[found > 0]
        if not len(found):
            return 1.0, 1.0
        return float(np.quantile(found, SHORT)), float(np.quantile(found, LONG))


@dataclass(frozen=True)
class KernelRegression:
    r"""Sum the squared errors of leave-one-out kernel regression.

    .. math:: \sum_i (\hat y_i - y_i)^2 , \qquad
        \hat y_i = \frac{\sum_{j \ne i} k_{ij} y_j}{\sum_{j \ne i} k_{ij}} , \qquad k_{ij} = e^{-d_{ij}} .

    Distances are taken block by block, so memory is O(n_rows * block).
    """

    y: Float64

    @np.errstate(under="ignore")
    def __call__(self, Z: Float64) -> tuple[float, Float64]:
        n = len(Z)
        norms = squared_lengths(Z)
        value, gradient = 0.0, np.zeros_like(Z)
        for block in engines.row_blocks(n, 8 * n, BLOCK_BYTES):
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
