"""Define what the preference estimators share: input, preferences from scores, start, ranking and score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pairlens._sklearn import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    Interval,
    StrOptions,
    as_generator,
    estimator,
    fit_context,
    parameter,
)
from pairlens._warnings import warn_fallback, warn_fewer
from pairlens.engines import Float64, IntArray, Rows, as_numpy, checked_rows, column_means
from pairlens.exceptions import ArgumentError, InputError
from pairlens.methods.base import PairTransformer
from pairlens.preference.objective import Objective, Pairs, largest_differences, like
from pairlens.spectral.rowspace import EXACT_LIMIT, RowSpace, fix_signs, principal_directions, row_space
from pairlens.supervision import Preferences
from pairlens.supervision.combined import combine_preferences, pair_shares

C_PATH = (0.001, 0.01, 0.1, 1.0)
"""Values of C that C="auto" tries, in this order: each starts from the solution before it."""

MAX_SCORED_PAIRS = 1_000_000


class PreferenceEstimator(BaseEstimator, ABC):
    """Learn from preferences and rank rows."""

    # With metadata routing enabled, pipelines and searches hand these to fit and score unasked.
    __metadata_request__fit: ClassVar = {"preferences": True, "groups": True}
    __metadata_request__score: ClassVar = {"preferences": True, "groups": True}

    max_pairs: int
    random_state: Any
    _power: ClassVar[int] = 2
    """The highest power of the values of X that is summed."""

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        preferences: Preferences | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn from which rows are better than which.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All rows; those without preferences help to find the start of a view. Linear methods also take CSR matrices,
            :class:`WSDR` torch tensors, and :class:`GBWSDR` dask arrays.
        y : array-like of shape (n_samples,), optional
            Ordinal scores, the higher the better; missing where unknown. Every pair of different scores is a
            preference.
        preferences : Preferences, optional
            Which rows are better than which. Adds to what `y` says.
        groups : array-like of shape (n_samples,), optional
            Query of each row: `y` compares rows of one query only.

        Returns
        -------
        self : object
        """
        rows = self._read(X, fitting=True)
        self._check(rows, y, preferences)
        rng = as_generator(self.random_state)
        known = combine_preferences(
            y, preferences, rows.shape[0], groups=groups, max_pairs=self.max_pairs, random_state=rng
        )
        self._learn(rows, known, rng)
        return self

    def _read(self, X: Any, *, fitting: bool) -> Rows:
        """Check what a user passed as X; `fitting` sets the features, otherwise they are compared."""
        return checked_rows(self, X, fitting=fitting, power=self._power)

    @abstractmethod
    def _check(self, rows: Rows, y: ArrayLike | None, preferences: Preferences | None) -> None:
        """Refuse what the parameters cannot be, and supervision that is not there."""

    @abstractmethod
    def _learn(self, rows: Rows, known: Preferences, rng: np.random.Generator) -> None:
        """Learn from checked rows and all that is known about them, and set the attributes."""

    @abstractmethod
    def decision_function(self, X: ArrayLike) -> Float64:
        """Return the score of each row, higher is better.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        scores : array of shape (n_samples,)
        """

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        preferences: Preferences | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the share of the preferences whose better row gets the higher score; ties count half.

        Parameters
        ----------
        X, y, preferences, groups
            As for :meth:`fit`, held out. If `y` implies more than a million pairs, a million drawn with a fixed seed
            are used.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a preference counts with the product of those of its rows.

        Returns
        -------
        accuracy : float
            0.5 is chance.
        """
        from pairlens.metrics import pairwise_accuracy

        scores = as_numpy(self.decision_function(X))
        known = combine_preferences(
            y, preferences, len(scores), groups=groups, max_pairs=MAX_SCORED_PAIRS, random_state=0
        )
        if sample_weight is not None:
            share = pair_shares(sample_weight, known.pairs, len(scores))
            known = Preferences(known.pairs, len(scores), weight=known.weight * share)
        if known.n_pairs == 0:
            raise InputError(
                "score needs at least one preference among the rows",
                argument="preferences",
                remedy="Give preferences=, or scores of at least two levels by y=",
            )
        return pairwise_accuracy(scores, known)


@estimator
class MarginTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PreferenceEstimator):
    r"""Learn a low-dimensional view that minimises the large-margin objective, and a linear ranking in it.

    Parameters
    ----------
    n_components : int, default=2
        Number of dimensions of the view.
    gamma1 : float, default=1.0
        Margin :math:`\gamma_1` of the distances; it sets the scale of the view.
    gamma2 : float, default=1.0
        Margin :math:`\gamma_2` of the cosines. From 1 on the second term has a closed form that costs O(pairs). Below,
        pairs that already agree to that cosine are left alone and more dimensions stay in use, but all combinations of
        two preferences are summed, at 20 times the cost and more: choose a `max_pairs` of a few thousand.
    sigma : float, default=0.1
        Width of the rounded corner of the hinges, for distances times :math:`\|x_i - x_j\|_\infty`.
    angle_loss : {"hinge", "squared"}, default="hinge"
        "squared" squares the second hinge (our variant; gamma2 >= 1): nearly as cheap, and keeps more dimensions in
        use. It did not rank better.
    max_pairs : int, default=200000
        If `y` implies more preferences, this many are drawn.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        Mean of the rows of X; it is mapped to the origin.
    ranking_ : array of shape (n_components,)
        Weights of the view that rank rows; see :meth:`decision_function`. Missing if there were no preferences.
    """

    n_components: int = parameter(COUNT, default=2, kw_only=False)
    gamma1: float = parameter(POSITIVE, default=1.0)
    gamma2: float = parameter(Interval(Real, -1, None, closed="neither"), default=1.0)
    C: Any = parameter(NOT_NEGATIVE, default=1.0)
    sigma: float = parameter(NOT_NEGATIVE, default=0.1)
    angle_loss: str = parameter(StrOptions({"hinge", "squared"}), default="hinge")
    max_pairs: int = parameter(COUNT, default=200_000)
    cv: int = parameter(Interval(Integral, 2, None, closed="left"), default=5)
    random_state: Any = parameter(*SEED, default=None)

    def _check(self, rows: Rows, y: ArrayLike | None, preferences: Preferences | None) -> None:
        if self.n_components > rows.shape[1]:
            reason = f"must be at most the number of features, {rows.shape[1]}"
            raise ArgumentError("n_components", self.n_components, reason)
        if self.angle_loss == "squared" and self.gamma2 < 1:
            raise ArgumentError("gamma2", self.gamma2, 'must be at least 1 for angle_loss="squared"')

    def _start(self, X: Rows, known: Preferences) -> tuple[RowSpace, Float64]:
        """Return the coordinates to work in, and the leading principal directions in them (in rows)."""
        mean = column_means(X)
        self.mean_ = mean.astype(X.dtype)
        # Only where both are many, rows in preferences must be in the span of those chosen; finding them takes a sort.
        space = row_space(X, mean, anchors=known.rows if min(X.shape) > EXACT_LIMIT else None)
        _, directions = principal_directions(space, self.n_components)
        if len(directions) < self.n_components:
            warn_fewer(self, len(directions), self.n_components, "the rows of X span no more")
        return space, directions

    def _keep_principal(self, space: RowSpace, directions: Float64, rows: Rows) -> None:
        """Keep the view of PCA, which cannot rank rows, where preferences are missing."""
        self.__dict__.pop("ranking_", None)
        self.components_ = fix_signs(space.lift(directions.T)).astype(rows.dtype)
        self.loss_curve_: list[float] = []
        warn_fallback(self, "no preferences were given")

    def _objective(self, X: Rows, known: Preferences, C: float) -> tuple[Objective, IntArray]:
        """Return the objective for an embedding of the rows that occur in preferences, and which rows these are."""
        used = known.rows
        pairs = Pairs.of(np.searchsorted(used, known.pairs), len(used), known.weight)
        return self._objective_of(pairs, largest_differences(X, known.pairs), C), used

    def _objective_of(self, pairs: Any, largest: Any, C: float) -> Objective:
        """Return the objective of pairs whose largest differences are known, on arrays or on tensors."""
        return Objective(
            pairs,
            self.sigma * largest,
            gamma1=float(self.gamma1),
            gamma2=float(self.gamma2),
            C=C,
            sigma=float(self.sigma),
            squared=self.angle_loss == "squared",
        )

    @abstractmethod
    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Map rows to the view."""

    pair_distance = PairTransformer.pair_distance
    _n_features_out = PairTransformer._n_features_out

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Return the score of each row, higher is better: a linear ranking of the view, from the same preferences."""
        check_is_fitted(self)
        if not hasattr(self, "ranking_"):
            raise InputError(
                f"this {type(self).__name__} was fitted without preferences, so it cannot rank rows",
                argument="preferences",
                remedy="Fit it with preferences=, or with scores by y",
            )
        view = self.transform(X)
        return view @ like(view, self.ranking_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
