"""From what a user passes to ``fit`` and ``score`` to what a method works with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._warnings import warn_user
from pairlens.exceptions import ApproximationWarning
from pairlens.supervision.constraints import Constraints

__all__ = ["class_codes", "combine", "written_pairs"]

MAX_WRITTEN_PAIRS = 1_000_000
"""Most pairs that labels imply which are written out for methods that look at each."""


def combine(y: ArrayLike | None, constraints: Constraints | None, n_samples: int) -> Constraints:
    """All that `y` and `constraints` say, as one :class:`~pairlens.Constraints` over `n_samples` rows."""
    if constraints is not None and not isinstance(constraints, Constraints):
        raise TypeError(
            f"constraints must be a pairlens.Constraints, got {type(constraints).__name__}. Build one with "
            "Constraints(must_link=[(0, 4)], cannot_link=[(0, 9)], n_samples=len(X))."
        )
    if constraints is None:
        return Constraints(n_samples=n_samples) if y is None else _from_labels(y, n_samples)
    if constraints.n_samples is None:
        constraints = constraints.with_n_samples(n_samples)
    elif len(constraints) != n_samples:
        raise ValueError(
            f"constraints are for {len(constraints)} rows but X has {n_samples}. Use constraints[rows] for a part "
            "of the rows, and n_samples=len(X) when building them."
        )
    if y is None:
        return constraints
    # What was accepted as contradictory when it was built is not refused now.
    contradictory = len(constraints.conflicts().direct) > 0
    return _from_labels(y, n_samples).merge(constraints, on_conflict="warn" if contradictory else None)


def _from_labels(y: Any, n_samples: int) -> Constraints:
    known = Constraints.from_labels(_in_memory(y))
    if len(known) != n_samples:
        raise ValueError(f"y has {len(known)} entries but X has {n_samples} rows; there must be one for each.")
    return known


def _in_memory(y: Any) -> ArrayLike:
    """Labels as an array: those of a tensor or of a dask array or series are few enough for that."""
    if type(y).__module__.partition(".")[0] == "torch":
        return y.detach().cpu().numpy()
    return np.asarray(y.compute()) if hasattr(y, "dask") else y


def written_pairs(known: Constraints) -> Constraints:
    """The pairs as a list, for methods that look at each; of more than a million that labels imply, a million drawn."""
    if known.labels is None:
        return known
    if known.n_pairs > MAX_WRITTEN_PAIRS:
        warn_user(
            f"the labels imply {known.n_pairs} pairs, and the method looks at each: {MAX_WRITTEN_PAIRS} are drawn.",
            ApproximationWarning,
        )
        return known.sample(MAX_WRITTEN_PAIRS, random_state=0)
    return known.sample(known.n_pairs)


def class_codes(known: Constraints) -> NDArray[np.int64]:
    """Classes for methods that want labels.

    Rows that chains of must-links join to rows of one label have that label, and those that they join to no label are a
    class of their own. Where a chain joins two labels, only the labels count.
    """
    labels = np.full(len(known), -1, dtype=np.int64) if known.labels is None else known.labels
    part = known.explicit.chunklets()
    n_labels, n_parts = labels.max(initial=-1) + 1, part.max(initial=-1) + 1
    both = np.flatnonzero((labels >= 0) & (part >= 0))
    lowest = np.full(n_parts, n_labels)
    np.minimum.at(lowest, part[both], labels[both])
    highest = np.full(n_parts, -1)
    np.maximum.at(highest, part[both], labels[both])
    of_part = np.where(highest < 0, n_labels + np.arange(n_parts), np.where(lowest == highest, lowest, -1))
    inherits = (labels < 0) & (part >= 0)
    codes = labels.copy()
    codes[inherits] = of_part[part[inherits]]
    labelled = codes >= 0
    result = np.full(len(codes), -1, dtype=np.int64)
    result[labelled] = np.unique(codes[labelled], return_inverse=True)[1]
    return result
