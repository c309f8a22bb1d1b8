"""Which answers look wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.judging.held_out import HeldOutDistances

PENALTY_INVERSE = 1000.0
"""Nearly no penalty: just enough for a finite slope where distance tells all pairs apart."""


@dataclass(frozen=True)
class SuspiciousPairs:
    """Pairs in order of suspicion, the most suspicious first.

    Attributes
    ----------
    pairs : int array of shape (n_pairs, 2)
    link : int array of shape (n_pairs,)
        +1 for a must-link, -1 for a cannot-link.
    suspicion : array of shape (n_pairs,)
        Estimated probability, from the held-out distance of the pair, that it is of the other kind.
    """

    pairs: NDArray[np.int64]
    link: NDArray[np.int64]
    suspicion: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.pairs)

    def to_frame(self) -> Any:
        """As a pandas DataFrame with the columns a, b, link and suspicion."""
        pandas = require("pandas", extra="io", purpose="SuspiciousPairs.to_frame")
        return pandas.DataFrame(
            {
                "a": self.pairs[:, 0],
                "b": self.pairs[:, 1],
                "link": np.where(self.link > 0, "must", "cannot"),
                "suspicion": self.suspicion,
            }
        )


def suspicious_pairs(held_out: HeldOutDistances) -> SuspiciousPairs:
    """Rank pairs by how far the distance in a view that did not see them contradicts them.

    A logistic model of the kind on the rank of the distance says how likely a pair of that distance is of the other
    kind. It knows how many there are of each: where most pairs are cannot-links and mistakes fall on all alike, a
    must-link is wrong more often. Where longer pairs are not the cannot-links, there is no such model, and the
    suspicion of a pair is the share of the other kind whose distances contradict it.
    """
    must, cannot = held_out.must[:, -1], held_out.cannot[:, -1]
    link = np.repeat([1, -1], [len(must), len(cannot)])
    suspicion = _of_other_kind(np.concatenate([must, cannot]), link)
    if suspicion is None:
        shorter_cannot = np.searchsorted(np.sort(cannot), must) / len(cannot)
        longer_must = 1 - np.searchsorted(np.sort(must), cannot, side="right") / len(must)
        suspicion = np.concatenate([shorter_cannot, longer_must])
    pairs = np.concatenate([held_out.known.must_link, held_out.known.cannot_link])
    order = np.argsort(-suspicion, kind="stable")
    return SuspiciousPairs(pairs[order], link[order], suspicion[order])


def _of_other_kind(distance: NDArray[np.float64], link: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Probability that a pair of such a distance is of the other kind; None if must-links are not the shorter ones."""
    from sklearn.linear_model import LogisticRegression

    # Of equal distances the middle rank, so that their order does not matter.
    ordered = np.sort(distance)
    rank = (np.searchsorted(ordered, distance) + np.searchsorted(ordered, distance, side="right")) / (2 * len(distance))
    model = LogisticRegression(C=PENALTY_INVERSE).fit(rank[:, None], link)
    if model.coef_[0, 0] >= 0:
        return None
    together = model.predict_proba(rank[:, None])[:, 1]
    return np.where(link > 0, 1 - together, together)
