"""How probable it is that two rows belong together: distances in the spaces and evidence, calibrated by held-out pairs.

Three folds, over the pairs; over the *rows* if there are more than two pairs for each constrained row, for then pairs
imply one another. A fold over rows trains on the pairs that touch none of its rows and holds out all others, so a pair
may be held out twice. Spaces and evidence are learned again for each fold (:class:`~pairlens.learning.stack.Stack`).

The layout measures training rows in all spaces. Probabilities of any pairs (:meth:`PairMap.pair_proba`) are those of a
model of its own, without the diffusion space: new rows are means of training rows there, and so
nearer to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import Float64, IntArray
from pairlens.judging.calibration import PairModel, base_rate, fit_moderated_model, fit_pair_model
from pairlens.judging.suspicion import share_of_mistakes, suspicion_of
from pairlens.learning.stack import Fold, effective_answers
from pairlens.supervision import Constraints

__all__ = ["HeldOutPairs", "Judgement", "judged", "with_evidence"]


OF_NEW_ROWS = [0, 1, 2, 4]
"""Columns of the distances that new rows have as training rows do: not those in the diffusion space."""


def with_evidence(lengths: Float64, evidence: Float64) -> Float64:
    """Return lengths of pairs in the spaces with one minus the evidence beside them, in columns."""
    return np.column_stack([lengths, 1 - evidence])


@dataclass(frozen=True)
class HeldOutPairs:
    """Held-out pairs with their distances in spaces that did not see them; a pair may occur in two folds.

    Attributes
    ----------
    pairs : array of shape (n, 2)
    same : bool array of shape (n,)
    weight : array of shape (n,)
    distances : array of shape (n, n_spaces)
    fold : int array of shape (n,)
    """

    pairs: IntArray
    same: NDArray[np.bool_]
    weight: Float64
    distances: Float64
    fold: IntArray

    def once(self, values: Float64) -> tuple[IntArray, NDArray[np.bool_], Float64]:
        """Every pair once, its answer, and the mean of its values."""
        # Two answers about one pair may contradict each other: both are listed.
        said = np.column_stack([self.pairs, self.same])
        _, first, back, times = np.unique(said, axis=0, return_index=True, return_inverse=True, return_counts=True)
        return self.pairs[first], self.same[first], np.bincount(back.ravel(), values) / times


@dataclass(frozen=True)
class Judgement:
    """What held-out pairs say.

    Attributes
    ----------
    model : PairModel
        The probability that two rows belong together, from their distances: of pairs that are answered as often "same"
        as the given ones (:func:`judged`), or of random pairs (:meth:`of_random_pairs`).
    share : float
        The share of pairs that belong together where the model holds.
    answers : PairModel
        The probability of any pair, new rows included, as often "same" as the given ones.
    answered : float
        Share of must-links among the answers.
    effective : float
        Number of answers that the held-out pairs count as.
    held_out : HeldOutPairs
        With weights that add up to at most `effective`.
    """

    model: PairModel
    share: float
    answers: PairModel
    answered: float
    effective: float
    held_out: HeldOutPairs

    def pair_proba(self, distances: Float64, rate: float | None) -> Float64:
        """Probabilities of pairs, at the base rate of the answers or at another one."""
        model = self.answers if rate is None else self.answers.at_base_rate(self.answered, rate)
        return model(distances[:, OF_NEW_ROWS])

    def together(self) -> tuple[NDArray[np.bool_], Float64]:
        """The answer of every pair, and the probability that it belongs together by a model fitted without it."""
        held_out = self.held_out
        together = np.empty(len(held_out.pairs))
        for number in np.unique(held_out.fold):
            inside = held_out.fold == number
            # Not only the spaces: the probability too comes from other pairs than those it is of.
            part = held_out.distances[~inside], held_out.same[~inside], held_out.weight[~inside]
            together[inside] = fit_pair_model(*part)(held_out.distances[inside])
        _, same, together = held_out.once(together)
        return same, together

    def suspicion(self) -> tuple[IntArray, NDArray[np.bool_], Float64]:
        """Every pair, its answer, and the probability that the answer is wrong by models fitted without it."""
        held_out = self.held_out
        return held_out.once(suspicion_of(held_out.distances, held_out.same, held_out.weight, held_out.fold))

    def mistakes(self) -> float:
        """Estimated share of wrong answers."""
        return share_of_mistakes(self.held_out.distances, self.held_out.same, self.held_out.weight)

    def of_random_pairs(self, distances: Float64) -> Judgement:
        """The same with the model at the base rate that the distances of random pairs of rows suggest."""
        rate = base_rate(self.model, distances, self.share, self.effective)
        return replace(self, model=self.model.at_base_rate(self.share, rate), share=rate)


def judged(known: Constraints, folds: Sequence[Fold], distances: Sequence[Float64]) -> Judgement | None:
    """Calibrate probabilities by held-out pairs; None if there are too few.

    Parameters
    ----------
    known : Constraints
    folds : sequence of Fold
    distances : sequence of arrays of shape (n_pairs, n_spaces)
        Of the held-out pairs of each fold, after learning from the others.
    """
    if not folds:
        return None
    effective = effective_answers(known)
    weight = np.concatenate([fold.weight for fold in folds])
    weight = weight * min(1.0, effective / float(weight.sum()))
    held_out = HeldOutPairs(
        np.concatenate([fold.pairs for fold in folds]),
        np.concatenate([fold.same for fold in folds]),
        weight,
        np.concatenate(distances),
        np.repeat(np.arange(len(folds)), [len(fold.pairs) for fold in folds]),
    )
    share = float(np.average(held_out.same, weights=weight))
    return Judgement(
        model=fit_pair_model(held_out.distances, held_out.same, weight),
        share=share,
        answers=fit_moderated_model(held_out.distances[:, OF_NEW_ROWS], held_out.same, weight),
        answered=share,
        effective=effective,
        held_out=held_out,
    )
