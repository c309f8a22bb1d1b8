"""Combine answers of several kinds: those of one file, and the labels and pairs that users pass to ``fit``."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._warnings import warn_user
from pairlens.engines import is_tensor
from pairlens.exceptions import ApproximationWarning, ArgumentError
from pairlens.supervision.answer_set import AnswerSet
from pairlens.supervision.answers import ANSWER_KINDS, AnswerFile
from pairlens.supervision.comparisons import Preferences
from pairlens.supervision.conflicts import OnConflict
from pairlens.supervision.constraints import Constraints
from pairlens.supervision.inputs import factorise
from pairlens.supervision.pairs import FloatArray, IntArray

_Answers = TypeVar("_Answers", bound=AnswerSet)

MAX_WRITTEN_PAIRS = 1_000_000
"""Most pairs that labels imply which are listed for methods that look at each."""


@dataclass(frozen=True)
class Answers:
    """Hold answers of all kinds about the same rows.

    Attributes
    ----------
    constraints : Constraints
        Which rows belong together and which do not.
    preferences : Preferences
        Which row is better.
    """

    constraints: Constraints
    preferences: Preferences

    def counts(self) -> dict[str, int]:
        """Return the number of distinct pairs of each kind."""
        return {
            "must_link": self.constraints.n_must_link,
            "cannot_link": self.constraints.n_cannot_link,
            "prefer": self.preferences.n_pairs,
        }


def read_answers(
    path: str | PathLike[str],
    *,
    ids: ArrayLike | None = None,
    n_samples: int | None = None,
    on_conflict: OnConflict = None,
) -> Answers:
    """Read a file of must-links, cannot-links and preferences.

    Parameters
    ----------
    path : str or path
        A file with the columns a, b, kind and perhaps weight; see :mod:`pairlens.supervision.answers`.
    ids : array-like of shape (n_samples,), default=None
        Names of the rows of X, in order, where the file names rows. It holds row numbers if None.
    n_samples : int, default=None
        Number of rows of X, ``len(ids)`` where `ids` is given.
    on_conflict : {"raise", "warn", "drop"}, default=None
        See :class:`~pairlens.Constraints`.

    Returns
    -------
    Answers
        With the attributes ``constraints`` and ``preferences``.

    Raises
    ------
    AnswerError
        If the file or an entry of it cannot be read; it holds the file, the line, the column and the value.

    See Also
    --------
    Constraints.from_file, Preferences.from_file : Files of one kind.

    Examples
    --------
    >>> import os, tempfile
    >>> from pairlens.supervision import read_answers
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "answers.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("a;b;kind\\nx;y;same\\ny;z;different\\nz;x;prefer\\n")
    ...     answers = read_answers(path, ids=["x", "y", "z"])
    >>> answers.constraints
    Constraints(1 must-link, 1 cannot-link over 3 rows)
    >>> answers.preferences.pairs
    array([[2, 0]])
    """
    return answers_of(AnswerFile.read(path), ids, n_samples, on_conflict)


def answers_of(
    file: AnswerFile, ids: ArrayLike | None, n_samples: int | None, on_conflict: OnConflict = None
) -> Answers:
    """Return the lines of a file as answers about rows; see :func:`read_answers`."""
    rows, size = file.rows(ids, n_samples)
    must, cannot, prefer = (file.kind == kind for kind in ANSWER_KINDS)

    def weight(chosen: NDArray[np.bool_]) -> FloatArray | None:
        return None if file.weight is None else file.weight[chosen]

    constraints = Constraints(
        rows[must],
        rows[cannot],
        size,
        must_link_weight=weight(must),
        cannot_link_weight=weight(cannot),
        on_conflict=on_conflict,
    )
    return Answers(constraints, Preferences(rows[prefer], size, weight=weight(prefer), on_conflict=on_conflict))


def listed_answers(known: Constraints | Preferences) -> tuple[IntArray, NDArray[Any], FloatArray]:
    """Return the rows of each answer, shape (n_answers, 2), its kind and its weight."""
    if isinstance(known, Preferences):
        return known.pairs, np.repeat(ANSWER_KINDS[2], known.n_pairs), known.weight
    pairs = np.concatenate([known.must_link, known.cannot_link])
    kind = np.repeat(ANSWER_KINDS[:2], [known.n_must_link, known.n_cannot_link])
    return pairs, kind, np.concatenate([known.must_link_weight, known.cannot_link_weight])


def combine(y: ArrayLike | None, constraints: Constraints | None, n_samples: int) -> Constraints:
    """Return `y` and `constraints` as one :class:`~pairlens.Constraints` over `n_samples` rows."""
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
    """Return scores `y` and `preferences` as one; `max_pairs` are drawn of those that `y` implies, if it is more."""
    if preferences is not None:
        preferences = over_rows(preferences, Preferences, n_samples)
    if y is None:
        if groups is not None and preferences is None:
            raise ArgumentError("y", None, "must hold ordinal scores, because groups say which rows y compares")
        return Preferences(n_samples=n_samples) if preferences is None else preferences
    for name, values in (("y", y), ("groups", groups)):
        if values is not None:
            _check_entries(name, len(np.asarray(values)), n_samples)
    limit = max_pairs if n_samples * (n_samples - 1) // 2 > max_pairs else None
    if limit is not None and _count_pairs(y, groups) <= max_pairs:
        limit = None
    implied = Preferences.from_scores(y, groups=groups, n_pairs=limit, random_state=random_state)
    return implied if preferences is None else implied.merge(preferences)


def _count_pairs(y: ArrayLike, groups: ArrayLike | None) -> int:
    """Return the number of pairs of rows of one group with different scores."""
    level, _ = factorise(y, name="y")
    group = np.zeros(len(level), dtype=np.int64) if groups is None else factorise(groups, name="groups")[0]
    usable = (level >= 0) & (group >= 0)
    in_group = np.bincount(group[usable])
    in_level = np.unique(np.stack([group[usable], level[usable]]), axis=1, return_counts=True)[1]
    return int((in_group**2).sum() - (in_level**2).sum()) // 2


def over_rows(given: Any, kind: type[_Answers], n_samples: int) -> _Answers:
    """Return answers that a user passed, about `n_samples` rows; TypeError if they are of another kind."""
    name = kind.__name__.lower()
    if not isinstance(given, kind):
        raise TypeError(
            f"{name} must be a pairlens.{kind.__name__}, got {type(given).__name__}. Build one with {kind._EXAMPLE}."
        )
    if given.n_samples is None:
        return given.with_n_samples(n_samples)
    if len(given) != n_samples:
        remedy = f"Use {name}[rows] for a part of the rows, and n_samples=len(X) when building them"
        raise ArgumentError(name, len(given), f"must be for {n_samples} rows, as many as X has", remedy)
    return given


def pair_shares(sample_weight: ArrayLike, pairs: IntArray, n_samples: int) -> FloatArray:
    """Return how much each pair counts by the weights that a user gave to the rows: their product."""
    reason = f"must hold {n_samples} finite numbers of at least 0, one for each row"
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError("sample_weight", sample_weight, f"{reason} ({error})") from error
    if weight.shape != (n_samples,) or not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ArgumentError("sample_weight", sample_weight, reason)
    share = weight[pairs].prod(axis=1)
    if len(pairs) and not share.any():
        raise ArgumentError(
            "sample_weight", sample_weight, "must leave a pair of which both rows have a weight above 0"
        )
    return np.asarray(share)


def _from_labels(y: Any, n_samples: int) -> Constraints:
    if is_tensor(y):
        y = y.detach().cpu().numpy()
    # Labels of a dask array or series are few enough for the memory.
    known = Constraints.from_labels(np.asarray(y.compute()) if hasattr(y, "dask") else y)
    _check_entries("y", len(known), n_samples)
    return known


def _check_entries(name: str, count: int, n_samples: int) -> None:
    if count != n_samples:
        raise ArgumentError(name, count, f"must have {n_samples} entries, one for each row of X")


def written_pairs(known: Constraints) -> Constraints:
    """Return the pairs as a list, for methods that look at each; a million are drawn if labels imply more."""
    if known.labels is None:
        return known
    if known.n_pairs > MAX_WRITTEN_PAIRS:
        warn_user(
            f"the labels imply {known.n_pairs} pairs, and the method looks at each: {MAX_WRITTEN_PAIRS} are drawn.",
            ApproximationWarning,
        )
        return known.sample(MAX_WRITTEN_PAIRS, random_state=0)
    return known.sample(known.n_pairs)


def class_codes(known: Constraints) -> IntArray:
    """Return classes for methods that need labels.

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
