r"""The probability that two rows belong together, from their distance in a view.

With :math:`d_k` the distance of a pair in the first k directions of a view, over the square root of twice their total
variance,

.. math::
    P(\text{same}) = \sigma\Bigl(a - \sum_k b_k d_k\Bigr), \qquad b_k \ge 0, \qquad k = 1, 2, 4, \ldots,

up to all directions. The model is that of :mod:`pairlens.judging.calibration`, moderated, and fitted to pairs that the
view did not see. It holds for pairs that belong together as often as those that were answered; where pairs to be judged
do so more rarely, as candidates of entity matching do, their base rate has to be given.

Views that place new rows by their training rows see these too well: they are measured where they would be if they were
new (:class:`~pairlens.PairLens`), so that the probabilities hold for both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from pairlens._sklearn import check_is_fitted
from pairlens._warnings import warn_user
from pairlens.engines import Float64
from pairlens.exceptions import SupervisionWarning
from pairlens.judging.calibration import PairModel, fit_moderated_model
from pairlens.judging.held_out import (
    CHANCE,
    HeldOutDistances,
    PairFolds,
    distance_columns,
    held_out_distances,
    pair_weights,
)
from pairlens.judging.suspicion import SuspiciousPairs, suspicious_pairs
from pairlens.judging.views import check_paired
from pairlens.supervision import Constraints
from pairlens.supervision.combined import combine

CALIBRATION_FOLDS = 3
FEWEST_OF_A_KIND = 3
"""Pairs of a kind below which nothing is calibrated."""


@dataclass(frozen=True)
class PairProbability:
    """The model of a view.

    Attributes
    ----------
    model : PairModel
    variance : array of shape (n_dims,)
        Total variance of the first directions.
    share : float
        Share of must-links among the answers.
    """

    model: PairModel
    variance: Float64
    share: float

    @classmethod
    def of(cls, held_out: HeldOutDistances, variance: Float64) -> PairProbability:
        """Fit the model to held-out pairs.

        Parameters
        ----------
        held_out : HeldOutDistances
        variance : array of shape (n_components,)
            Variance of each direction of the view that new pairs are measured in.
        """
        n_dims = min(held_out.must.shape[1], len(variance))
        squared = np.concatenate([held_out.must, held_out.cannot])[:, :n_dims]
        same = np.repeat([True, False], [len(held_out.must), len(held_out.cannot)])
        weight = pair_weights(held_out.known)
        model = fit_moderated_model(distance_columns(squared), same, weight)
        total = np.cumsum(variance[:n_dims], dtype=np.float64)
        return cls(model, np.where(total > 0, total, 1.0), float(np.average(same, weights=weight)))

    def __call__(self, left: Float64, right: Float64, base_rate: float | None = None) -> Float64:
        """Probabilities of pairs of embedded rows."""
        n_dims = len(self.variance)
        squared = np.cumsum((left[:, :n_dims] - right[:, :n_dims]) ** 2, axis=1) / (2 * self.variance)
        model = self.model if base_rate is None else self.model.at_base_rate(self.share, checked_rate(base_rate))
        return model(distance_columns(squared))


def checked_rate(base_rate: float) -> float:
    """The base rate; ValueError if it is none."""
    if not 0 < base_rate < 1:
        raise ValueError(
            f"base_rate must be above 0 and below 1, got {base_rate}: the share of pairs that belong together among "
            "those to be judged."
        )
    return float(base_rate)


class PairProbabilities:
    """A view that says how probable it is that two rows belong together."""

    _probability: PairProbability | None = None
    transform: Callable[[Any], Any]

    def calibrate(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Learn how distances in the fitted view translate to probabilities, for :meth:`pair_proba`.

        The view stays as it is. Three copies of it are fitted to two thirds of the pairs each, and measure the others;
        over rows instead of pairs where there are more than two pairs for each row in them, because pairs then imply
        one another. So it takes three times as long as :meth:`fit`.

        Parameters
        ----------
        X, y, constraints
            What :meth:`fit` was given: at least three pairs of each kind.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        view = in_memory(self.transform(X))
        known = combine(y, constraints, len(view))
        if min(known.n_must_link, known.n_cannot_link) < FEWEST_OF_A_KIND:
            raise ValueError(
                f"calibrate needs at least {FEWEST_OF_A_KIND} must-links and {FEWEST_OF_A_KIND} cannot-links, and got "
                f"{known.n_must_link} and {known.n_cannot_link}: what tells them apart cannot be learned from one kind."
            )

        def embed(train: Constraints) -> Float64:
            # What is to be said about the pairs, fit said.
            with warnings.catch_warnings(action="ignore"):
                return in_memory(clone(self).fit(X, constraints=train).transform(X))

        held_out = held_out_distances(embed, PairFolds.draw_independent(known, CALIBRATION_FOLDS, 0))
        self._probability = PairProbability.of(held_out, view.var(axis=0))
        return self

    @property
    def is_calibrated(self) -> bool:
        """Whether :meth:`pair_proba` has learned from held-out pairs."""
        return self._probability is not None

    def pair_proba(self, A: ArrayLike, B: ArrayLike, *, base_rate: float | None = None) -> Float64:
        """Probability that rows belong together, pair by pair, calibrated by held-out pairs.

        Parameters
        ----------
        A, B : array-like or CSR matrices of shape (n_pairs, n_features)
            Row i of A and row i of B are one pair, of rows of :meth:`fit` or new ones.
        base_rate : float in (0, 1), optional
            Share of pairs that belong together among those to be judged; by default that of must-links among the
            answers.

        Returns
        -------
        together : array of shape (n_pairs,)

        See Also
        --------
        pairlens.judging.pair_proba : The same for a Pipeline.
        """
        check_is_fitted(self)
        if self._probability is None:
            raise ValueError(self._why_no_probability())
        left, right = self._seen_as_new(A), self._seen_as_new(B)
        check_paired(left, right)
        return self._probability(left, right, base_rate)

    def _seen_as_new(self, X: ArrayLike) -> Float64:
        """Rows where the view places new ones, from which training rows may differ."""
        return in_memory(self.transform(X))

    def _why_no_probability(self) -> str:
        return (
            f"this {type(self).__name__} is not calibrated: call calibrate(X, constraints=...) after fit, with "
            "must-links and cannot-links. It fits the view three times more, to measure pairs that it did not see."
        )


class JudgedByHeldOutPairs(PairProbabilities):
    """AUC, probabilities and suspicion from the pairs that are held out in fit, and the warnings that follow."""

    n_components_: int
    _held_out: HeldOutDistances | None
    _fewest_judged: ClassVar[int]
    """Pairs of a kind below which none is held out."""

    def suspicious_pairs(self) -> SuspiciousPairs:
        """The pairs of :meth:`fit`, those that look most like wrong answers first.

        Each pair is judged by views and by models that did not see it. Its suspicion is the probability that the
        answer is wrong, given the answer and the share of wrong answers that all of them suggest.

        Returns
        -------
        SuspiciousPairs
            With the arrays ``pairs``, ``link`` (+1 or -1) and ``suspicion``, ``to_frame()``, and those that stand out,
            ``standing_out``: more probably wrong than right.
        """
        check_is_fitted(self)
        if self._held_out is None:
            raise ValueError(
                f"suspicious_pairs needs at least {self._fewest_judged} must-links and {self._fewest_judged} "
                "cannot-links in fit: with fewer, none can be held out and judged by the others."
            )
        found = suspicious_pairs(self._held_out, self.n_components_)
        landmarks = getattr(self, "_landmarks", None)
        # Of a large dask array some rows are learned from: their numbers there are meant.
        return found if landmarks is None else replace(found, pairs=landmarks[found.pairs])

    def _warn_without_pairs(self, known: Constraints) -> None:
        if known.n_pairs == 0:
            warn_user(
                f"{type(self).__name__}: no pairs were given, so the view shows the local structure of the rows alone. "
                "Give must-links and cannot-links by constraints=, or labels by y.",
                SupervisionWarning,
            )

    def _judge(self, held_out: HeldOutDistances | None, n_dims: int) -> None:
        """Keep the AUC of held-out pairs and its standard error."""
        self._held_out = held_out
        self.auc_ = self.auc_error_ = float("nan")
        if held_out is not None:
            self.auc_ = held_out.auc(min(n_dims, held_out.must.shape[1]))
            self.auc_error_ = held_out.standard_error(self.auc_)

    def _calibrate_by_held_out(self, held_out: HeldOutDistances | None, variance: Float64) -> None:
        """Learn probabilities from pairs that were held out; `variance` is that of each direction of the view."""
        self._probability = None
        if held_out is not None and min(len(held_out.must), len(held_out.cannot)) >= FEWEST_OF_A_KIND:
            self._probability = PairProbability.of(held_out, variance)

    def _why_no_probability(self) -> str:
        fewest = max(self._fewest_judged, FEWEST_OF_A_KIND)
        return (
            f"pair_proba needs at least {fewest} must-links and {fewest} cannot-links in fit: without both kinds, none "
            "can be held out to learn which distances mean the same."
        )

    def _warn_of_contradiction(self, of_rows: float) -> None:
        """Say so if pairs are told apart worse than by chance, by more than the noise of few pairs.

        Answers that are all wrong look like noise to a view that follows the answers, so the rows as they are count
        too, unless the view tells held-out pairs apart.

        Parameters
        ----------
        of_rows : float
            AUC with which distance among the rows as they are tells the pairs apart.
        """
        if self._held_out is None:
            return
        noise = 2 * self._held_out.margin
        if self.auc_ < CHANCE + noise and min(self.auc_, of_rows) < CHANCE - noise:
            warn_user(
                f"{type(self).__name__}: must-links are longer than cannot-links (AUC {of_rows:.2f} among the rows as "
                f"they are, and {self.auc_:.2f} in the view for held-out pairs, where chance is 0.50). Many answers "
                "are wrong, or must_link and cannot_link are swapped; suspicious_pairs() lists them.",
                SupervisionWarning,
            )


def pair_proba(view: Any, A: ArrayLike, B: ArrayLike, *, base_rate: float | None = None) -> Float64:
    """Probability that rows belong together, by a view or by a Pipeline that ends in one.

    Parameters
    ----------
    view : fitted estimator or Pipeline
        With `pair_proba`, or a Pipeline whose last step has it.
    A, B : array-like or CSR matrices of shape (n_pairs, n_features)
        Row i of A and row i of B are one pair.
    base_rate : float in (0, 1), optional
        Share of pairs that belong together among those to be judged, if it is another than the view learned.

    Returns
    -------
    together : array of shape (n_pairs,)

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pairlens import WBDR, Constraints
    >>> from pairlens.judging import pair_proba
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
    >>> view = make_pipeline(StandardScaler(), WBDR(2)).fit(X, wbdr__constraints=pairs)
    >>> _ = view[-1].calibrate(view[:-1].transform(X), constraints=pairs)
    >>> pair_proba(view, X[[0, 0]], X[[1, 100]]) > 0.5
    array([ True, False])
    """
    if hasattr(view, "steps"):
        if len(view.steps) > 1:
            A, B = view[:-1].transform(A), view[:-1].transform(B)
        view = view.steps[-1][1]
    if not hasattr(view, "pair_proba"):
        raise ValueError(
            f"{type(view).__name__} gives no probabilities of pairs: it learns from no must-links and cannot-links."
        )
    return np.asarray(view.pair_proba(A, B, base_rate=base_rate))


def in_memory(view: Any) -> Float64:
    """An embedding as an array, whatever it came as."""
    view = view.to_numpy() if hasattr(view, "to_numpy") else view.cpu() if hasattr(view, "cpu") else view
    return np.asarray(view, dtype=np.float64)
