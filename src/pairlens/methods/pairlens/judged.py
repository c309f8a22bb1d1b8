"""What both estimators know of themselves from held-out pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pairlens._sklearn import check_is_fitted
from pairlens._warnings import warn_user
from pairlens.exceptions import SupervisionWarning
from pairlens.judging import HeldOutDistances, SuspiciousPairs, suspicious_pairs
from pairlens.judging.probability import FEWEST_OF_A_KIND, PairProbabilities, PairProbability
from pairlens.judging.scores import CHANCE
from pairlens.supervision import Constraints


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

    def _calibrate_by_held_out(self, held_out: HeldOutDistances | None, variance: NDArray[np.float64]) -> None:
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

    def _warn_of_contradiction(self) -> None:
        """Say so if held-out pairs are told apart worse than by chance, by more than the noise of few pairs."""
        if self._held_out is not None and self.auc_ < CHANCE - 2 * self._held_out.margin:
            warn_user(
                f"{type(self).__name__}: held-out must-links are longer than held-out cannot-links (AUC "
                f"{self.auc_:.2f}, where chance is 0.50). Many answers are wrong, or must_link and cannot_link are "
                "swapped; suspicious_pairs() lists them.",
                SupervisionWarning,
            )
