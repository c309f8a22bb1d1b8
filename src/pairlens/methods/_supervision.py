"""From what a user passes to ``fit`` and ``score`` to what a method works with."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.engines.blocks import IntArray
from pairlens.engines.distances import pair_squared_distances
from pairlens.supervision import Constraints

__all__ = ["class_codes", "combine", "held_out_auc"]

MAX_SCORED_PAIRS = 1_000_000


def combine(y: ArrayLike | None, constraints: Constraints | None, n_samples: int) -> Constraints:
    """All that `y` and `constraints` say, as one :class:`~pairlens.Constraints` over `n_samples` rows."""
    if constraints is not None and not isinstance(constraints, Constraints):
        raise TypeError(
            f"constraints must be a pairlens.Constraints, got {type(constraints).__name__}. Build one with "
            "Constraints(must_link=[(0, 4)], cannot_link=[(0, 9)], n_samples=len(X))."
        )
    if y is None:
        known = Constraints(n_samples=n_samples)
    else:
        known = Constraints.from_labels(y)
        if len(known) != n_samples:
            raise ValueError(f"y has {len(known)} entries but X has {n_samples} rows; there must be one for each.")
    if constraints is None:
        return known
    if constraints.n_samples is None:
        constraints = constraints.with_n_samples(n_samples)
    elif len(constraints) != n_samples:
        raise ValueError(
            f"constraints are for {len(constraints)} rows but X has {n_samples}. Use constraints[rows] for a part "
            "of the rows, and n_samples=len(X) when building them."
        )
    return constraints if y is None else known.merge(constraints)


def class_codes(known: Constraints) -> IntArray:
    """Classes for methods that want labels: the labels if there are any, else the chunklets of the must-links."""
    codes = known.chunklets() if known.labels is None else known.labels
    labelled = codes >= 0
    result = np.full(len(codes), -1, dtype=np.int64)
    result[labelled] = np.unique(codes[labelled], return_inverse=True)[1]
    return result


def held_out_auc(embedded: NDArray[np.floating], known: Constraints, sample_weight: ArrayLike | None = None) -> float:
    """Area under the ROC curve with which distance tells must-links from cannot-links."""
    from sklearn.metrics import roc_auc_score

    if known.n_must_link == 0 or known.n_cannot_link == 0:
        raise ValueError(
            "score needs at least one must-link and one cannot-link among the rows, got "
            f"{known.n_must_link} and {known.n_cannot_link}."
        )
    if known.labels is not None and known.n_must_link + known.n_cannot_link > MAX_SCORED_PAIRS:
        drawn = Constraints.from_labels(known.labels, n_pairs=MAX_SCORED_PAIRS, random_state=0)
        known = drawn.merge(known.explicit, on_conflict="warn")
    pairs = np.concatenate([known.must_link, known.cannot_link])
    weight = np.concatenate([known.must_link_weight, known.cannot_link_weight])
    if sample_weight is not None:
        weight = weight * np.asarray(sample_weight, dtype=np.float64)[pairs].prod(axis=1)
    together = np.repeat([True, False], [len(known.must_link), len(known.cannot_link)])
    return float(roc_auc_score(together, -pair_squared_distances(embedded, pairs), sample_weight=weight))
