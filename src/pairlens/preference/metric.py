"""What the metric learners share: a linear map that minimises a function of the embedded rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._docs import complete_docstring
from pairlens._sklearn import BaseEstimator, Interval, fit_context
from pairlens._warnings import warn_fallback
from pairlens.engines import Float64, IntArray, Rows, checked_rows, column_means, fitting_threads, out_of_range
from pairlens.judging.probability import PairProbabilities
from pairlens.judging.views import JudgedView, LinearView
from pairlens.preference.linear import minimize
from pairlens.preference.pairs import Pairs
from pairlens.spectral.eigen import fix_signs, symmetric
from pairlens.spectral.rowspace import RowSpace, principal_directions, row_space
from pairlens.supervision import Constraints, Quadruplets, Triplets
from pairlens.supervision.combined import combine

__all__ = [
    "Embedded",
    "MetricLearner",
    "PairScored",
    "ValueAndGradient",
    "comparison_pairs",
    "log_det_penalty",
    "summed",
]

ValueAndGradient = Callable[[Float64], tuple[float, Float64]]
"""A function of a matrix that gives its value and its gradient."""

Embedded = tuple[IntArray, ValueAndGradient]
"""Rows, and a function of their embedding."""


def summed(parts: Sequence[Embedded]) -> tuple[IntArray, ValueAndGradient | None]:
    """The rows of several functions of embedded rows, and the sum of the functions; None of none."""
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
    """The closer and the farther pairs of comparisons, among the rows that occur in them."""
    rows, weight = known.rows, np.array(known.weight)
    closer, farther = (np.searchsorted(rows, pairs) for pairs in (known.closer, known.farther))
    return Pairs.of(closer, len(rows), weight), Pairs.of(farther, len(rows), weight)


def log_det_penalty(L: Float64) -> tuple[float, Float64]:
    r"""LogDet divergence of :math:`M = L'L` from the identity, :math:`\mathrm{tr} M - \log\det M - d`, and gradient."""
    with np.errstate(invalid="ignore"):
        # A step too far may leave the range of numbers: it is refused, as one to a singular L.
        _, log_det = np.linalg.slogdet(L)
    if not np.isfinite(log_det):
        return np.inf, np.zeros_like(L)
    return float(np.vdot(L, L)) - 2 * float(log_det) - len(L), 2 * (L - np.linalg.inv(L).T)


class Coordinates(NamedTuple):
    """The coordinates that a map is learnt in, the scatter of the rows there, and their principal directions."""

    space: RowSpace
    covariance: Float64
    directions: Float64
    wanted: int


class MetricLearner(LinearView, BaseEstimator, ABC):
    """A linear map :math:`z = L x`, that is the metric :math:`M = L'L`, learnt by limited-memory BFGS.

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

    components_: NDArray[Any]
    n_components: int | None
    max_iter: int
    tol: float

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete_docstring(cls)

    @abstractmethod
    def fit(self, X: ArrayLike, y: Any = None, *args: Any, **kwargs: Any) -> Self:
        """Learn the map."""

    def _read(self, X: ArrayLike, *, fitting: bool) -> Rows:
        rows = checked_rows(self, X, fitting=fitting)
        if fitting and self.n_components is not None and self.n_components > rows.shape[1]:
            raise ValueError(
                f"n_components={self.n_components} must be at most the number of features, {rows.shape[1]}."
            )
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
    ) -> Self:
        """Minimise the objective, a function of the embedded `used` rows, plus a penalty on L.

        Parameters
        ----------
        rows : Rows
        used : array of int
            Rows about which anything is known.
        objective : callable or None
            None if nothing is known: the view is then that of PCA, with a warning that says what is `lacking`.
        whole : bool
            Whether all directions are learnt, from the identity, and the view is cut from them; otherwise only those
            of the view are, from the principal directions.
        penalty : callable, optional
        lacking : str
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

            # Steps that lead out of the range of numbers are taken back; the start and the end have to be inside.
            with fitting_threads(len(used) ** 2 * len(start)), np.errstate(over="ignore", invalid="ignore"):
                value, gradient = function(start)
                if not (np.isfinite(value) and np.isfinite(gradient).all()):
                    raise out_of_range()
                found = minimize(function, start, self.max_iter, self.tol)
                # Where the start is the minimum, no iteration is made, and the curve stays flat.
                self.loss_curve_ = [value, *(found.curve or [function(found.L)[0]])]
            L = found.L
            if not (np.isfinite(L).all() and np.isfinite(self.loss_curve_).all()):
                raise out_of_range()
        return self._keep(place, L, rows.dtype)

    def _coordinates(self, rows: Rows, used: IntArray) -> Coordinates:
        """Where the map is learnt: the span of the rows."""
        mean = column_means(rows)
        self.mean_ = mean.astype(rows.dtype)
        space = row_space(rows, mean, anchors=used)
        wanted = space.dim if self.n_components is None else self.n_components
        return Coordinates(space, *principal_directions(space, wanted), wanted)

    def _keep(self, place: Coordinates, L: Float64, dtype: np.dtype[Any]) -> Self:
        """Turn the map so that its components are uncorrelated, and keep those of most variance."""
        if not L.any():
            warn_fallback(self, "what is known contradicts itself so far that no direction is left")
            L = place.directions
        _, turn = symmetric(L @ place.covariance @ L.T, min(place.wanted, len(L)))
        self.n_iter_ = max(0, len(self.loss_curve_) - 1)
        self.components_ = fix_signs(place.space.lift((turn.T @ L).T)).astype(dtype)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class PairScored(PairProbabilities, JudgedView, MetricLearner):
    """A metric learner that classes or pairs teach and judge."""

    __metadata_request__fit: ClassVar = {"constraints": True}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Classes, -1 or missing where unknown. Where a method learns from pairs, those of labelled rows become
            constraints.
        constraints : Constraints, optional
            Pairs of rows that belong together or do not, which add to what `y` says. Where a method learns from
            classes, rows that must-links put together count as one if there are no others.

        Returns
        -------
        self : object
        """
        rows = self._read(X, fitting=True)
        return self._learn(rows, combine(y, constraints, rows.shape[0]))

    @abstractmethod
    def _learn(self, rows: Rows, known: Constraints) -> Self:
        """Learn from checked rows and all that is known about them."""

    def _keep(self, place: Coordinates, L: Float64, dtype: np.dtype[Any]) -> Self:
        self._probability = None
        return super()._keep(place, L, dtype)
