"""Define what the metric learners share: a linear map that minimises a function of the embedded rows."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._docs import complete_docstring
from pairlens._sklearn import (
    COUNT,
    NOT_NEGATIVE,
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    check_is_fitted,
    estimator,
    parameter,
)
from pairlens._warnings import warn_fallback
from pairlens.engines import (
    Float64,
    IntArray,
    Rows,
    checked_rows,
    column_means,
    one_blas_thread,
    out_of_range,
    project,
)
from pairlens.exceptions import ArgumentError
from pairlens.judging.views import Metric, pair_distance
from pairlens.preference.objective import Pairs
from pairlens.spectral.rowspace import RowSpace, fix_signs, principal_directions, row_space, symmetric
from pairlens.supervision import Quadruplets, Triplets

__all__ = [
    "Embedded",
    "LinearView",
    "MetricLearner",
    "Solution",
    "ValueAndGradient",
    "comparison_pairs",
    "log_det_penalty",
    "minimize",
    "summed",
]

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
        return project(self._read(X, fitting=False), self.mean_, self.components_)

    def pair_distance(self, A: ArrayLike, B: ArrayLike) -> NDArray[Any]:
        """Return distances of pairs of rows in the view.

        Parameters
        ----------
        A, B : array-like or CSR matrices of shape (n_pairs, n_features)
            Row i of A and row i of B are one pair.

        Returns
        -------
        distances : array of shape (n_pairs,)
        """
        return pair_distance(self, A, B)

    def get_mahalanobis_matrix(self) -> NDArray[Any]:
        r"""Return the matrix :math:`M = L' L` of the metric.

        Returns
        -------
        M : array of shape (n_features, n_features)
        """
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def get_metric(self) -> Metric:
        """Return the distance in the view as a function of two rows of features, for scikit-learn's ``metric=``.

        Returns
        -------
        metric : callable
            ``metric(u, v)``, or ``metric(u, v, squared=True)``.
        """
        check_is_fitted(self)
        return Metric(self.components_.astype(np.float64))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


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

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete_docstring(cls)

    def _read(self, X: ArrayLike, *, fitting: bool) -> Rows:
        rows = checked_rows(self, X, fitting=fitting)
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
            with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
                value, gradient = function(start)
                if not (np.isfinite(value) and np.isfinite(gradient).all()):
                    raise out_of_range()
                found = minimize(function, start, self.max_iter, self.tol)
                # Where the start is the minimum, no iteration is made, and the curve stays flat.
                self.loss_curve_ = [value, *(found.curve or [function(found.L)[0]])]
            L = found.L
            if not (np.isfinite(L).all() and np.isfinite(self.loss_curve_).all()):
                raise out_of_range()
        self._keep(place, L, rows.dtype)

    def _coordinates(self, rows: Rows, used: IntArray) -> Coordinates:
        """Return where the map is learnt: the span of the rows."""
        mean = column_means(rows)
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
