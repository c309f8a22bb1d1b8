"""From what a user passes to ``fit`` and ``score`` to what a method works with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._warnings import warn_user
from pairlens.engines import IntArray, Rows, pair_squared_distances
from pairlens.exceptions import ApproximationWarning, SupervisionWarning
from pairlens.supervision import Constraints

__all__ = ["class_codes", "combine", "held_out_auc", "listed"]

MAX_SCORED_PAIRS = 1_000_000
MAX_LISTED_PAIRS = 1_000_000


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
        known = Constraints.from_labels(_in_memory(y))
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
    if y is None:
        return constraints
    # What was accepted as contradictory when it was built is not refused now.
    return known.merge(constraints, on_conflict="warn" if len(constraints.conflicts().direct) else None)


def _in_memory(y: Any) -> ArrayLike:
    """Labels as an array: those of a tensor or of a dask array or series are few enough for that."""
    if type(y).__module__.partition(".")[0] == "torch":
        return y.detach().cpu().numpy()
    return np.asarray(y.compute()) if hasattr(y, "dask") else y


def listed(known: Constraints) -> Constraints:
    """The pairs as a list, for methods that need each; of more than a million that labels imply, so many are drawn."""
    if known.labels is None:
        return known
    if known.n_pairs > MAX_LISTED_PAIRS:
        warn_user(
            f"the labels imply {known.n_pairs} pairs, and the method looks at each: {MAX_LISTED_PAIRS} are drawn.",
            ApproximationWarning,
        )
        return known.sample(MAX_LISTED_PAIRS, random_state=0)
    return known.sample(known.n_pairs)


def class_codes(known: Constraints) -> IntArray:
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


def held_out_auc(embedded: Rows, known: Constraints, sample_weight: ArrayLike | None = None) -> float:
    """Area under the ROC curve with which distance tells must-links from cannot-links.

    Without pairs of both kinds there is nothing to tell apart: 0.5, with a warning. So a fold of a cross-validation
    that happens to hold none is neutral between the candidates.
    """
    from sklearn.metrics import roc_auc_score

    if known.n_must_link == 0 or known.n_cannot_link == 0:
        warn_user(
            f"score found {known.n_must_link} must-links and {known.n_cannot_link} cannot-links among the rows and "
            "needs both kinds, so it is 0.5. With few pairs, cross-validate over the pairs (Constraints.split) and not "
            "over the rows.",
            SupervisionWarning,
        )
        return 0.5
    (must, must_weight), (cannot, cannot_weight) = _scored_pairs(known)
    pairs, weight = np.concatenate([must, cannot]), np.concatenate([must_weight, cannot_weight])
    if sample_weight is not None:
        share = np.asarray(sample_weight, dtype=np.float64)
        if share.shape != (embedded.shape[0],) or not (np.isfinite(share).all() and (share >= 0).all()):
            raise ValueError(
                f"sample_weight must hold {embedded.shape[0]} finite numbers of at least 0, one for each row."
            )
        weight = weight * share[pairs].prod(axis=1)
    together = np.repeat([True, False], [len(must), len(cannot)])
    return float(roc_auc_score(together, -pair_squared_distances(embedded, pairs), sample_weight=weight))


def _scored_pairs(known: Constraints) -> list[tuple[IntArray, NDArray[np.float64]]]:
    """Pairs and weights of both kinds; where labels imply very many of a kind, those among a million drawn."""
    if known.labels is None or known.n_pairs <= MAX_SCORED_PAIRS:
        few = many = known
    else:
        few, many = known, known.sample(MAX_SCORED_PAIRS, random_state=0)
    must = few if known.n_must_link <= MAX_SCORED_PAIRS // 2 else many
    cannot = few if known.n_cannot_link <= MAX_SCORED_PAIRS // 2 else many
    return [(must.must_link, must.must_link_weight), (cannot.cannot_link, cannot.cannot_link_weight)]
