"""Say which answers look wrong, by models that did not see them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.engines import IntArray
from pairlens.judging.held_out import HeldOutDistances, distance_columns, pair_weights
from pairlens.judging.probability import (
    MISTAKES,
    MISTAKES_PENALTY,
    fit_pair_model,
    fit_with_mistakes,
    probability_wrong,
)

STANDS_OUT = 0.6
ONE_VIEW_STANDS_OUT = 0.4
"""Suspicions beyond which an answer stands out, by several spaces and by one view: about 1 % of right answers do."""
FOLDS = 3
ONE_VIEW_PENALTY = 1.0
"""One view of few directions says less about what is true than the spaces of PairMap together."""


@dataclass(frozen=True)
class SuspiciousPairs:
    """Pairs in order of suspicion, the most suspicious first.

    Attributes
    ----------
    pairs : int array of shape (n_pairs, 2)
    link : int array of shape (n_pairs,)
        +1 for a must-link, -1 for a cannot-link.
    suspicion : array of shape (n_pairs,)
        Estimated probability that the answer is wrong, from models that did not see it.
    together : array of shape (n_pairs,)
        Estimated probability that the rows belong together, from models that did not see the answer.
    threshold : float
        Suspicion beyond which an answer stands out. About 1 % of right answers do.
    """

    pairs: NDArray[np.int64]
    link: NDArray[np.int64]
    suspicion: NDArray[np.float64]
    together: NDArray[np.float64]
    threshold: float

    @classmethod
    def ranked(
        cls,
        pairs: NDArray[np.int64],
        same: NDArray[np.bool_],
        suspicion: NDArray[np.float64],
        together: NDArray[np.float64],
        threshold: float,
    ) -> SuspiciousPairs:
        """Return pairs, of which `same` were said to belong together, in order of suspicion."""
        order = np.argsort(-suspicion, kind="stable")
        link = np.where(same, 1, -1)
        return cls(pairs[order], link[order], suspicion[order], together[order], threshold)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def standing_out(self) -> SuspiciousPairs:
        """The pairs with a suspicion above the threshold. Often there are none."""
        out = slice(int(np.count_nonzero(self.suspicion > self.threshold)))
        return replace(
            self,
            pairs=self.pairs[out],
            link=self.link[out],
            suspicion=self.suspicion[out],
            together=self.together[out],
        )

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the columns a, b, link and suspicion."""
        pandas = require("pandas", extra="io", purpose="SuspiciousPairs.to_frame")
        return pandas.DataFrame(
            {
                "a": self.pairs[:, 0],
                "b": self.pairs[:, 1],
                "link": np.where(self.link > 0, "must", "cannot"),
                "suspicion": self.suspicion,
            }
        )


def suspicion_of(
    distances: NDArray[np.float64],
    same: NDArray[np.bool_],
    weight: NDArray[np.float64],
    fold: IntArray,
    penalty: float = MISTAKES_PENALTY,
) -> NDArray[np.float64]:
    """Return how probable it is that each answer is wrong, by models fitted to the answers of other folds.

    The distances are those in spaces that did not see the pairs, and `penalty` that of the slopes of the models.
    """
    probable = fit_with_mistakes(distances, same, weight, penalty=penalty)[1]
    wrong = np.zeros(len(distances))
    for number in np.unique(fold):
        inside = fold == number
        models = fit_with_mistakes(distances[~inside], same[~inside], weight[~inside], penalty=penalty)[0]
        for share, chance, truth in zip(MISTAKES, probable, models):
            wrong[inside] += chance * probability_wrong(truth(distances[inside]), same[inside], float(share))
    return wrong


def share_of_mistakes(distances: NDArray[np.float64], same: NDArray[np.bool_], weight: NDArray[np.float64]) -> float:
    """Return the estimated share of wrong answers. Parameters as :func:`suspicion_of`."""
    return float(fit_with_mistakes(distances, same, weight)[1] @ MISTAKES)


def suspicious_pairs(held_out: HeldOutDistances, n_dims: int | None = None) -> SuspiciousPairs:
    """Rank pairs by how probable it is that their answers are wrong, given distances in views that did not see them.

    The models of what is true and of mistakes are those of :mod:`pairlens.judging.probability`; each answer is judged
    by models fitted to other answers.

    Parameters
    ----------
    held_out : HeldOutDistances
    n_dims : int, optional
        Number of directions of the view; all that were measured by default.
    """
    if not isinstance(held_out, HeldOutDistances):
        raise TypeError(
            f"held_out must be HeldOutDistances, as held_out_distances gives them, got {type(held_out).__name__}; "
            "PairLens, LinearPairLens and PairMap have a method suspicious_pairs() of their own."
        )
    squared = np.concatenate([held_out.must, held_out.cannot])[:, :n_dims]
    same = np.repeat([True, False], [len(held_out.must), len(held_out.cannot)])
    fold = np.random.default_rng(0).permutation(len(same)) % FOLDS
    columns, weight = np.sqrt(distance_columns(squared)), pair_weights(held_out.known)
    wrong = suspicion_of(columns, same, weight, fold, ONE_VIEW_PENALTY)
    # One slope: the order of the pairs stays that of their distances.
    whole = np.sqrt(squared[:, -1:])
    together = fit_pair_model(whole, same, weight)(whole)
    pairs = np.concatenate([held_out.known.must_link, held_out.known.cannot_link])
    return SuspiciousPairs.ranked(pairs, same, wrong, together, ONE_VIEW_STANDS_OUT)
