"""Answers that say which of two things is more: the better row, the closer pair. Each has an opposite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.supervision._conflicts import OnConflict, check_policy, counted, find_cycles, raise_or_warn
from pairlens.supervision._entries import name_rows, read_rows, read_weights
from pairlens.supervision._inputs import PairsLike
from pairlens.supervision._pairs import (
    AnswerTable,
    FloatArray,
    IntArray,
    among,
    as_n_samples,
    check_weight_sums,
    contains,
    distinct,
    encode,
    freeze,
    from_keys,
    frozen_weight,
    parse_members,
)
from pairlens.supervision._tables import Source, Table
from pairlens.supervision._tabular import Reading, TabularAnswers


class OrderedAnswers(TabularAnswers):
    """What :class:`Preferences`, :class:`Triplets` and :class:`Quadruplets` share: one table of tuples of rows."""

    __slots__ = ("_table",)
    _table: AnswerTable

    _WHAT: ClassVar[str]
    """What one answer is called."""
    _SAID: ClassVar[str] = "given"
    """What is said of an answer that is there."""
    _DISTINCT: ClassVar[tuple[tuple[int, int], ...]]
    """Columns that cannot name the same row."""

    def __init__(
        self,
        given: PairsLike | None = None,
        n_samples: int | None = None,
        *,
        weight: ArrayLike | None = None,
        on_conflict: OnConflict = None,
    ) -> None:
        size = as_n_samples(n_samples)
        members, values = parse_members(
            given,
            weight,
            width=len(self._COLUMNS),
            name=self._TABLES[0],
            weight_name="weight",
            what=self._WHAT,
            n_samples=size,
        )
        self._check(members)
        self._fill(_table=self._settled(self._tabled(members, values), on_conflict), _n_samples=size)

    @classmethod
    def _check(cls, members: IntArray) -> None:
        """Refuse tuples that compare nothing."""
        raise NotImplementedError

    @classmethod
    def _canonical(cls, members: IntArray) -> IntArray:
        """Tuples in the one order of their rows that stands for all with the same meaning."""
        return members

    @classmethod
    def _opposite(cls, members: IntArray) -> IntArray:
        """The tuples that say the contrary."""
        raise NotImplementedError

    @classmethod
    def _ends(cls, members: IntArray) -> tuple[IntArray, IntArray]:
        """What is more and what is less in each tuple, as numbers."""
        raise NotImplementedError

    @classmethod
    def _named(cls, ends: IntArray) -> list[Any]:
        """What the numbers of :meth:`_ends` stand for."""
        raise NotImplementedError

    @property
    def weight(self) -> FloatArray:
        """The weight of each answer."""
        return self._table.weights

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return self._table.total

    @property
    def rows(self) -> IntArray:
        """The rows that occur in an answer, sorted."""
        return distinct(self._table.members)

    def _tables(self) -> tuple[Any, ...]:
        return (self._table,)

    def _with(self, *tables: Any) -> Self:
        return self._derived(_table=tables[0], _n_samples=self._n_samples)

    def _resized(self, n_samples: int | None) -> Self:
        return self._derived(_table=self._table, _n_samples=n_samples)

    @classmethod
    def _tabled(cls, members: IntArray, weight: FloatArray | None) -> AnswerTable:
        """Distinct tuples in order: the weights of equal ones add up, and those of weight 0 say nothing."""
        return tuple_table(cls._canonical(members), weight, what=cls._WHAT)

    @classmethod
    def _joined(cls, tables: Sequence[AnswerTable]) -> AnswerTable:
        """One table of the tuples of several; the weights of a tuple in more than one of them add up."""
        plain = all(table.weight is None for table in tables)
        weight = None if plain else np.concatenate([table.weights for table in tables])
        return cls._tabled(np.concatenate([table.members for table in tables]), weight)

    def _turned(self, tables: tuple[Any, ...], chosen: list[NDArray[np.bool_]]) -> tuple[AnswerTable, ...]:
        kept, moved = tables[0].select(~chosen[0]), tables[0].select(chosen[0])
        return (self._joined([kept, self._tabled(self._opposite(moved.members), moved.weight)]),)

    def _take(self, rows: IntArray) -> Self:
        table = self._tabled(*among(self._table, rows, self._require_n_samples()))
        return self._derived(_table=table, _n_samples=len(rows))

    def merge(self, *others: Self, on_conflict: OnConflict = None) -> Self:
        """All answers together; the weights of one in several of them add up.

        Parameters
        ----------
        *others : of the same kind
            About the same rows.
        on_conflict : {"raise", "warn", "drop"}, default=None
            See the class.

        Examples
        --------
        >>> from pairlens.supervision import Preferences, Triplets
        >>> Preferences([(0, 1)], n_samples=3).merge(Preferences([(0, 1), (0, 2)])).weight
        array([2., 1.])
        >>> Triplets([(0, 1, 2)], n_samples=4).merge(Triplets([(0, 1, 2), (3, 1, 2)])).weight
        array([2., 1.])
        """
        n_samples = self._merged_n_samples(type(self), others)
        table = self._joined([self._table, *(other._table for other in others)])
        return self._derived_for(n_samples, self._settled(table, on_conflict))

    def _derived_for(self, n_samples: int | None, table: AnswerTable) -> Self:
        """The table as answers about `n_samples` rows; ValueError if one names another row."""
        made = self._derived(_table=table, _n_samples=n_samples)
        made._check_fits(n_samples)
        return made

    def _settled(self, table: AnswerTable, policy: OnConflict) -> AnswerTable:
        check_policy(policy)
        denied = table.positions(self._canonical(self._opposite(table.members))) >= 0
        if not denied.any():
            return table
        if policy == "drop":
            return table.select(~denied)
        example = tuple(table.members[int(denied.argmax())].tolist())
        raise_or_warn(
            f"{counted(int(denied.sum()) // 2, self._WHAT)} {self._SAID} both ways round, for example {example}",
            error=policy == "raise",
        )
        return table

    def cycles(self) -> list[tuple[Any, ...]]:
        """Answers that contradict one another because they go round in a circle.

        Returns
        -------
        cycles : list of tuples
            Rows of which each is preferred to the next, and the last to the first; of comparisons, pairs of rows of
            which each is said to be closer than the next. First all answers that are given both ways round; then, of
            the others, for each set of rows or pairs that lead back to one another the shortest circle through the
            first of them.

        Examples
        --------
        >>> from pairlens.supervision import Preferences, Triplets
        >>> Preferences([(0, 1), (1, 2), (2, 0), (2, 3)], n_samples=4).cycles()
        [(0, 1, 2)]
        >>> Triplets([(0, 1, 2), (2, 0, 1), (1, 2, 0)], n_samples=3).cycles()
        [((0, 1), (0, 2), (1, 2))]
        """
        ends, codes = np.unique(np.concatenate(self._ends(self._table.members)), return_inverse=True)
        more, less = codes.reshape(2, -1)
        arrows = np.column_stack([more, less])
        both_ways = contains(np.sort(encode(more, less)), encode(less, more))
        two = np.unique(arrows[both_ways & (more < less)], axis=0)
        names = self._named(ends)
        return [tuple(names[end] for end in cycle) for cycle in [*two.tolist(), *find_cycles(arrows[~both_ways])]]

    def _columns(self, ids: ArrayLike | None) -> dict[str, NDArray[Any]]:
        columns = zip(self._COLUMNS, self._table.members.T)
        named = {name: name_rows(rows, ids, self._n_rows) for name, rows in columns}
        return {**named, "weight": np.array(self.weight)}

    @classmethod
    def _from_source(cls, source: Source, how: Reading) -> Self:
        names = tuple(how.name(column) for column in cls._COLUMNS)
        return cls._from_table(source.table(names, how.weight), names, how)

    @classmethod
    def _from_table(cls, table: Table, names: Sequence[str], how: Reading) -> Self:
        members, size = read_rows(table, names, how.ids, how.n_samples, distinct=cls._DISTINCT)
        return cls(members, size, weight=read_weights(table, how.weight), on_conflict=how.on_conflict)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        mine, theirs = self._table, other._table
        return (
            self._n_samples == other._n_samples
            and np.array_equal(mine.members, theirs.members)
            and np.array_equal(mine.weights, theirs.weights)
        )

    def __hash__(self) -> int:
        return hash((self._n_samples, self._table.size))

    def __repr__(self) -> str:
        count = self._table.size
        shown = f"{count} {self._WHAT}{'' if count == 1 else 's'}"
        return f"{type(self).__name__}({shown} over {self._described_rows()})"


def tuple_table(members: IntArray, weight: FloatArray | None, *, what: str) -> AnswerTable:
    """Sort the tuples and add up the weights of equal ones; tuples of weight 0 say nothing and are dropped."""
    if members.shape[1] == 2:
        pairs = from_keys(encode(members[:, 0], members[:, 1]), weight)
        check_weight_sums(pairs.members, pairs.weights, weight_name="weight", what=what)
        return pairs
    columns = tuple(members.T[::-1])
    # Sums depend on the order of their terms, and the order of the tuples must not matter: equal ones go by weight.
    order = np.lexsort(columns if weight is None else (weight, *columns))
    ordered = members[order]
    is_start = np.ones(len(ordered), dtype=bool)
    is_start[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.flatnonzero(is_start)
    if weight is None:
        total = np.diff(starts, append=len(ordered)).astype(np.float64)
    else:
        with np.errstate(over="ignore"):
            total = np.add.reduceat(weight[order], starts) if len(starts) else np.empty(0)
    found, kept = ordered[starts], total > 0
    check_weight_sums(found, total, weight_name="weight", what=what)
    return AnswerTable(freeze(found[kept]), frozen_weight(total[kept]))
