"""Preferences: which of two rows is better."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pairlens.exceptions import AnswerError
from pairlens.supervision._conflicts import OnConflict
from pairlens.supervision._entries import ENDS, KIND_COLUMNS, read_kinds
from pairlens.supervision._inputs import PairsLike
from pairlens.supervision._ordered import OrderedAnswers
from pairlens.supervision._pairs import FloatArray, IntArray, check_two_rows, encode, from_keys
from pairlens.supervision._sampling import all_or_drawn
from pairlens.supervision._tables import Source
from pairlens.supervision._tabular import Reading
from pairlens.supervision.labels import factorise, numbers_per_row


class Preferences(OrderedAnswers):
    """Pairs of rows of which the first is better than the second.

    Immutable. The order of the pairs does not matter; a pair that is given more than once is kept once, and its
    weights add up. Like :class:`Constraints`, the object is aligned with the rows of X: ``len(p)`` is the number of
    rows and ``p[rows]`` are the preferences among those rows, renumbered.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2) or iterable of pairs, default=None
        Row numbers (better, worse), none if None.
    n_samples : int, default=None
        Number of rows of X. Unknown if None, and then the object cannot be cut along with X.
    weight : float or array-like of shape (n_pairs,), default=None
        How much each pair counts, 1 if None. Pairs of weight 0 are left out.
    on_conflict : {"raise", "warn", "drop"}, default=None
        What to do where (a, b) and (b, a) are both given. People contradict themselves and each other, so by
        default this is a :class:`~pairlens.exceptions.ConflictWarning` and both pairs are kept; "drop" leaves both
        out.

    See Also
    --------
    Preferences.from_scores : Preferences from a score of each row.
    Constraints : Which rows belong together and which do not.

    Examples
    --------
    >>> from pairlens.supervision import Preferences
    >>> answers = Preferences([(4, 0), (4, 0), (2, 3)], n_samples=6)
    >>> answers
    Preferences(2 pairs over 6 rows)
    >>> answers.weight
    array([1., 2.])
    >>> answers[[0, 4]].pairs
    array([[1, 0]])
    """

    __slots__ = ()
    _COLUMNS: ClassVar[tuple[str, ...]] = ("better", "worse")
    _TABLES: ClassVar[tuple[str, ...]] = ("pairs",)
    _EXAMPLE: ClassVar[str] = "Preferences([(better, worse), ...], n_samples=len(X))"
    _WHAT: ClassVar[str] = "pair"
    _SAID: ClassVar[str] = "preferred"
    _DISTINCT: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1),)

    def __init__(
        self,
        pairs: PairsLike | None = None,
        n_samples: int | None = None,
        *,
        weight: ArrayLike | None = None,
        on_conflict: OnConflict = None,
    ) -> None:
        super().__init__(pairs, n_samples, weight=weight, on_conflict=on_conflict)

    @classmethod
    def _check(cls, members: IntArray) -> None:
        check_two_rows(members, name="pairs")

    @classmethod
    def _opposite(cls, members: IntArray) -> IntArray:
        return members[:, ::-1]

    @classmethod
    def _ends(cls, members: IntArray) -> tuple[IntArray, IntArray]:
        return members[:, 0], members[:, 1]

    @classmethod
    def _named(cls, ends: IntArray) -> list[int]:
        return ends.tolist()

    @classmethod
    def from_scores(
        cls,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        n_pairs: int | None = None,
        min_difference: float = 0,
        random_state: Any = None,
    ) -> Self:
        """Preferences that scores imply: the row with the higher score is better.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            The scores, the higher the better; NaN, None, ``pandas.NA`` and masked entries mean not scored.
        groups : array-like of shape (n_samples,), default=None
            Compare rows of one group only, such as the answers to one query. Rows without a group (NaN, None) are
            compared with none.
        n_pairs : int, default=None
            Number of distinct pairs to draw uniformly from all there are; all of them if None.
        min_difference : float, default=0
            Compare only rows with ``y[better] > y[worse] + min_difference``.
        random_state : int, RandomState, Generator or None, default=None
            Makes the draw repeatable.

        Returns
        -------
        Preferences
            With ``n_samples = len(y)``.

        Examples
        --------
        >>> from pairlens.supervision import Preferences
        >>> Preferences.from_scores([3, 1, None, 2]).pairs
        array([[0, 1],
               [0, 3],
               [3, 1]])
        """
        scores = numbers_per_row(y, meaning="the higher the better")
        difference = float(min_difference)
        if not (np.isfinite(difference) and difference >= 0):
            raise ValueError(f"min_difference must be finite and at least 0, got {min_difference!r}")
        codes = np.zeros(len(scores), dtype=np.int64)
        if groups is not None:
            codes, _ = factorise(groups, name="groups")
            if len(codes) != len(scores):
                raise ValueError(f"groups must name a group per row: expected {len(scores)}, got {len(codes)}")
        rows = np.flatnonzero(~np.isnan(scores) & (codes >= 0))
        order, start, length = _better_runs(scores[rows], codes[rows], difference)
        ends = np.cumsum(length)
        total = int(ends[-1]) if len(ends) else 0
        drawn = all_or_drawn(total, n_pairs, random_state, name="n_pairs", what="pair", source="scores")
        worse = np.searchsorted(ends, drawn, side="right")
        better = order[start[worse] + drawn - (ends - length)[worse]]
        return cls._derived(_table=from_keys(encode(rows[better], rows[worse])), _n_samples=len(scores))

    @property
    def pairs(self) -> IntArray:
        """Pairs (better, worse) in lexicographic order; shape (n_pairs, 2)."""
        return self._table.members

    @property
    def n_pairs(self) -> int:
        """Number of distinct pairs."""
        return self._table.size

    @classmethod
    def _from_source(cls, source: Source, how: Reading) -> Self:
        kind = source.find(*KIND_COLUMNS)
        if how.renamed or kind is None or set(cls._COLUMNS) <= set(source.names):
            return super()._from_source(source, how)
        table = source.table((*ENDS, kind), how.weight)
        others = int((read_kinds(table, kind, preferences=True) != "prefer").sum())
        if others:
            raise AnswerError(
                f"{source.title} has {others} lines of other kinds than prefer",
                "read_answers reads all kinds",
                problem="other-kinds",
                file=source.file,
                column=kind,
            )
        return cls._from_table(table, ENDS, how)


def _better_runs(scores: FloatArray, codes: IntArray, difference: float) -> tuple[IntArray, IntArray, IntArray]:
    """Rows sorted by group and score, and for every row the run of those among them that are better than it."""
    # A bar stands for each row at its score plus the difference; what comes after it in its group is better.
    is_bar = np.repeat([False, True], len(scores))
    ranking = np.lexsort((is_bar, np.concatenate([scores, scores + difference]), np.tile(codes, 2)))
    before = np.cumsum(~is_bar[ranking])
    start = np.empty(len(scores), dtype=np.int64)
    bars = ranking >= len(scores)
    start[ranking[bars] - len(scores)] = before[bars]
    group_end = np.cumsum(np.bincount(codes)) if len(codes) else np.empty(0, dtype=np.int64)
    return ranking[~bars], start, group_end[codes] - start
