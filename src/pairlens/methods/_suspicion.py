"""Which answers look wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.methods._held_out import HeldOut

__all__ = ["SuspiciousPairs", "suspicious_pairs"]


@dataclass(frozen=True)
class SuspiciousPairs:
    """Pairs in order of suspicion, the most suspicious first.

    Attributes
    ----------
    pairs : int array of shape (n_pairs, 2)
    link : int array of shape (n_pairs,)
        +1 for a must-link, -1 for a cannot-link.
    suspicion : array of shape (n_pairs,)
        From 0 (as expected) to 1 (longer than all cannot-links, or shorter than all must-links).
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


def suspicious_pairs(held_out: HeldOut) -> SuspiciousPairs:
    """Rank pairs by how far the distance in a view that did not see them contradicts them."""
    must, cannot = held_out.must[:, -1], held_out.cannot[:, -1]
    shorter_cannot = np.searchsorted(np.sort(cannot), must) / max(1, len(cannot))
    longer_must = 1 - np.searchsorted(np.sort(must), cannot, side="right") / max(1, len(must))
    suspicion = np.concatenate([shorter_cannot, longer_must])
    pairs = np.concatenate([held_out.known.must_link, held_out.known.cannot_link])
    link = np.repeat([1, -1], [len(must), len(cannot)])
    order = np.argsort(-suspicion, kind="stable")
    return SuspiciousPairs(pairs[order], link[order], suspicion[order])
