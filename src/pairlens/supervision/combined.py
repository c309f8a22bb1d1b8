"""From what a user passes to ``fit`` and ``score`` to what a method works with."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._warnings import warn_user
from pairlens.engines import is_tensor
from pairlens.exceptions import ApproximationWarning
from pairlens.supervision._answer_set import AnswerSet
from pairlens.supervision._pairs import IntArray
from pairlens.supervision.constraints import Constraints
from pairlens.supervision.labels import factorise
from pairlens.supervision.preferences import Preferences

_Answers = TypeVar("_Answers", bound=AnswerSet)

MAX_WRITTEN_PAIRS = 1_000_000
"""Most pairs that labels imply which are written out for methods that look at each."""


def combine(y: ArrayLike | None, constraints: Constraints | None, n_samples: int) -> Constraints:
    """All that `y` and `constraints` say, as one :class:`~pairlens.Constraints` over `n_samples` rows."""
    if constraints is None:
        return Constraints(n_samples=n_samples) if y is None else _from_labels(y, n_samples)
    constraints = over_rows(constraints, Constraints, n_samples)
    if y is None:
        return constraints
    # What was accepted as contradictory when it was built is not refused now.
    contradictory = len(constraints.conflicts().direct) > 0
    return _from_labels(y, n_samples).merge(constraints, on_conflict="warn" if contradictory else None)


def combine_preferences(
    y: ArrayLike | None,
    preferences: Preferences | None,
    n_samples: int,
    *,
    groups: ArrayLike | None = None,
    max_pairs: int = MAX_WRITTEN_PAIRS,
    random_state: Any = None,
) -> Preferences:
    """All that scores `y` and `preferences` say, over `n_samples` rows; `max_pairs` of what `y` says, if it is more."""
    if preferences is not None:
        preferences = over_rows(preferences, Preferences, n_samples)
    if y is None:
        if groups is not None and preferences is None:
            raise ValueError("groups say which rows y compares, but y is None: give ordinal scores by y.")
        return Preferences(n_samples=n_samples) if preferences is None else preferences
    for name, values in (("y", y), ("groups", groups)):
        if values is not None and len(np.asarray(values)) != n_samples:
            raise ValueError(
                f"{name} has {len(np.asarray(values))} entries but X has {n_samples} rows; there must be one for each."
            )
    limit = max_pairs if n_samples * (n_samples - 1) // 2 > max_pairs else None
    if limit is not None and _count_pairs(y, groups) <= max_pairs:
        limit = None
    implied = Preferences.from_scores(y, groups=groups, n_pairs=limit, random_state=random_state)
    return implied if preferences is None else implied.merge(preferences)


def _count_pairs(y: ArrayLike, groups: ArrayLike | None) -> int:
    """Number of pairs of rows of one group with different scores."""
    level, _ = factorise(y, name="y")
    group = np.zeros(len(level), dtype=np.int64) if groups is None else factorise(groups, name="groups")[0]
    usable = (level >= 0) & (group >= 0)
    in_group = np.bincount(group[usable])
    in_level = np.unique(np.stack([group[usable], level[usable]]), axis=1, return_counts=True)[1]
    return int((in_group**2).sum() - (in_level**2).sum()) // 2


def of_kind(given: Any, kind: type[_Answers]) -> _Answers:
    """Answers that a user gave; TypeError with an example if they are something else."""
    if isinstance(given, kind):
        return given
    name = kind.__name__
    raise TypeError(
        f"{name.lower()} must be a pairlens.{name}, got {type(given).__name__}. Build one with {kind._EXAMPLE}."
    )


def over_rows(given: Any, kind: type[_Answers], n_samples: int) -> _Answers:
    """Answers that a user gave, about `n_samples` rows."""
    name, given = kind.__name__.lower(), of_kind(given, kind)
    if given.n_samples is None:
        return given.with_n_samples(n_samples)
    if len(given) != n_samples:
        raise ValueError(
            f"{name} are for {len(given)} rows but X has {n_samples}. Use {name}[rows] for a part of the rows, and "
            "n_samples=len(X) when building them."
        )
    return given


def pair_shares(sample_weight: ArrayLike, pairs: IntArray, n_samples: int) -> NDArray[np.float64]:
    """How much each pair counts by the weights that a user gave to the rows: their product."""
    right = f"sample_weight must hold {n_samples} finite numbers of at least 0, one for each row"
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{right}: {error}.") from error
    if weight.shape != (n_samples,) or not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(f"{right}.")
    share = weight[pairs].prod(axis=1)
    if len(pairs) and not share.any():
        raise ValueError("sample_weight leaves no pair with a weight: one row of each has 0, or a product vanishes.")
    return np.asarray(share)


def _from_labels(y: Any, n_samples: int) -> Constraints:
    known = Constraints.from_labels(_in_memory(y))
    if len(known) != n_samples:
        raise ValueError(f"y has {len(known)} entries but X has {n_samples} rows; there must be one for each.")
    return known


def _in_memory(y: Any) -> ArrayLike:
    """Labels as an array: those of a tensor or of a dask array or series are few enough for that."""
    if is_tensor(y):
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
