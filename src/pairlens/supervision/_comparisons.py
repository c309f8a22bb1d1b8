"""What triplets and quadruplets share: statements that one pair of rows is closer than another."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import as_generator
from pairlens.supervision._conflicts import OnConflict, check_policy, counted, find_cycles, raise_or_warn
from pairlens.supervision._entries import name_rows, read_rows, read_weights
from pairlens.supervision._inputs import PairsLike
from pairlens.supervision._pairs import (
    AnswerTable,
    IntArray,
    as_n_samples,
    check_count,
    contains,
    decode,
    from_keys,
)
from pairlens.supervision._tables import Source
from pairlens.supervision._tabular import Reading, SingleTable
from pairlens.supervision._tuples import (
    merge_tuples,
    parse_tuples,
    positions_in,
    take_tuples,
    tuple_table,
)
from pairlens.supervision.constraints import Constraints


class Comparisons(SingleTable):
    """What :class:`Triplets` and :class:`Quadruplets` share: each says that one pair of rows is closer than another."""

    __slots__ = ()

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
        members, values = parse_tuples(
            given,
            weight,
            width=len(self._COLUMNS),
            name=f"{self._WHAT}s",
            what=self._WHAT,
            n_samples=size,
            check=self._check,
        )
        table = tuple_table(self._canonical(members), values, what=self._WHAT)
        self._fill(_table=self._settled(table, on_conflict), _n_samples=size)

    @classmethod
    def _check(cls, members: IntArray) -> None:
        """Refuse tuples that compare nothing."""
        for one, other in cls._DISTINCT:
            same = members[:, one] == members[:, other]
            if same.any():
                position = int(same.argmax())
                raise ValueError(
                    f"{cls._WHAT}s[{position}] is {tuple(members[position].tolist())}: {cls._COLUMNS[one]} and "
                    f"{cls._COLUMNS[other]} are the same row, so it compares nothing; leave it out"
                )

    @classmethod
    def _canonical(cls, members: IntArray) -> IntArray:
        """Tuples in the one order of their rows that stands for all with the same meaning."""
        return members

    @classmethod
    def _ends(cls, members: IntArray) -> tuple[IntArray, IntArray]:
        """Keys of the closer and of the farther pair of each tuple."""
        raise NotImplementedError

    @classmethod
    def _opposite(cls, members: IntArray) -> IntArray:
        """The tuples that say the contrary."""
        raise NotImplementedError

    @property
    def closer(self) -> IntArray:
        """The pair of each comparison that is said to be more alike, shape (n, 2), smaller row first."""
        return decode(self._ends(self._table.members)[0])

    @property
    def farther(self) -> IntArray:
        """The pair of each comparison that is said to be less alike, shape (n, 2), smaller row first."""
        return decode(self._ends(self._table.members)[1])

    def _turned(self, tables: tuple[Any, ...], chosen: list[NDArray[np.bool_]]) -> tuple[AnswerTable, ...]:
        kept, moved = tables[0].select(~chosen[0]), tables[0].select(chosen[0])
        turned = tuple_table(self._opposite(moved.members), moved.weight, what=self._WHAT)
        return (merge_tuples([kept, turned], what=self._WHAT),)

    def _take(self, rows: IntArray) -> Self:
        table = take_tuples(self._table, rows, self._require_n_samples(), self._canonical, what=self._WHAT)
        return self._derived(_table=table, _n_samples=len(rows))

    def sample(self, n: int, random_state: Any = None) -> Self:
        """Draw distinct comparisons uniformly; they keep their weights.

        Parameters
        ----------
        n : int
            How many.
        random_state : int, RandomState, Generator or None, default=None
            Makes the draw repeatable.
        """
        count = check_count(n, name="n", least=0)
        if count > self._table.size:
            raise ValueError(f"n={count} exceeds the {self._table.size} distinct {self._WHAT}s there are")
        chosen = as_generator(random_state).choice(self._table.size, count, replace=False)
        return self._with(self._table.select(np.sort(chosen)))

    def merge(self, *others: Self, on_conflict: OnConflict = None) -> Self:
        """All comparisons together; the weights of one in several of them add up.

        Parameters
        ----------
        *others : of the same kind
            About the same rows.
        on_conflict : {"raise", "warn", "drop"}, default=None
            See the class.

        Examples
        --------
        >>> from pairlens.supervision import Triplets
        >>> Triplets([(0, 1, 2)], n_samples=4).merge(Triplets([(0, 1, 2), (3, 1, 2)])).weight
        array([2., 1.])
        """
        n_samples = self._merged_n_samples(type(self), others)
        table = merge_tuples([self._table, *(other._table for other in others)], what=self._WHAT)
        made = self._derived(_table=self._settled(table, on_conflict), _n_samples=n_samples)
        made._check_fits(n_samples)
        return made

    def __or__(self, other: object) -> Self:
        """Comparisons of either side, with the larger weight."""
        return self._joint(other, np.maximum) if isinstance(other, type(self)) else NotImplemented

    def __and__(self, other: object) -> Self:
        """Comparisons that both sides have, with the smaller weight."""
        return self._joint(other, np.minimum) if isinstance(other, type(self)) else NotImplemented

    def __sub__(self, other: object) -> Self:
        """Comparisons of the left side that the right side does not have."""
        if not isinstance(other, type(self)):
            return NotImplemented
        n_samples = self._merged_n_samples(type(self), (other,))
        table = self._table.select(positions_in(other._table, self._table.members) < 0)
        return self._derived(_table=table, _n_samples=n_samples)

    def _joint(self, other: Self, choose: np.ufunc) -> Self:
        n_samples = self._merged_n_samples(type(self), (other,))
        everything = merge_tuples([self._table, other._table], what=self._WHAT).members
        weights = []
        for table in (self._table, other._table):
            position = positions_in(table, everything)
            weights.append(np.where(position >= 0, np.append(table.weights, 0.0)[position], 0.0))
        table = tuple_table(everything, choose(*weights), what=self._WHAT)
        made = self._derived(_table=table, _n_samples=n_samples)
        made._check_fits(n_samples)
        return made

    def _settled(self, table: AnswerTable, policy: OnConflict) -> AnswerTable:
        check_policy(policy)
        denied = positions_in(table, self._canonical(self._opposite(table.members))) >= 0
        if not denied.any():
            return table
        if policy == "drop":
            return table.select(~denied)
        example = tuple(table.members[int(denied.argmax())].tolist())
        raise_or_warn(
            f"{counted(int(denied.sum()) // 2, self._WHAT)} given both ways round, for example {example}",
            error=policy == "raise",
        )
        return table

    def cycles(self) -> list[tuple[tuple[int, int], ...]]:
        """Comparisons that contradict one another because they go round in a circle.

        Returns
        -------
        cycles : list of tuples of pairs
            Pairs of rows of which each is said to be closer than the next, and the last closer than the first. First
            all comparisons that are given both ways round; then, of the others, for each set of pairs that lead back
            to one another the shortest circle through the first of them.

        Examples
        --------
        >>> from pairlens.supervision import Triplets
        >>> Triplets([(0, 1, 2), (2, 0, 1), (1, 2, 0)], n_samples=3).cycles()
        [((0, 1), (0, 2), (1, 2))]
        """
        near, far = self._ends(self._table.members)
        nodes, codes = np.unique(np.concatenate([near, far]), return_inverse=True)
        first, second = codes.reshape(2, -1)
        forth, back = first * len(nodes) + second, second * len(nodes) + first
        both_ways = contains(np.sort(forth), back)
        two = np.unique(np.column_stack([first, second])[both_ways & (first < second)], axis=0)
        found = [*map(tuple, two.tolist()), *find_cycles(np.column_stack([first, second])[~both_ways])]
        pairs = [tuple(pair) for pair in decode(nodes).tolist()]
        return [tuple(pairs[node] for node in cycle) for cycle in found]

    def to_constraints(self) -> Constraints:
        """The comparisons read as pairs: the closer pair a must-link, the farther one a cannot-link.

        A pair that some comparisons call the closer and others the farther one counts with the difference of their
        weights. What is lost is that comparisons are relative, so this suits answers that people gave with groups in
        mind; learners of comparisons (:class:`~pairlens.LMCA`, :class:`~pairlens.SCML`) keep it.

        Examples
        --------
        >>> from pairlens.supervision import Triplets
        >>> Triplets([(0, 1, 2), (0, 2, 3)], n_samples=4).to_constraints().to_lists()
        ([(0, 1)], [(0, 3)])
        """
        keys, codes = np.unique(np.concatenate(self._ends(self._table.members)), return_inverse=True)
        signed = np.concatenate([self.weight, -self.weight])
        net = np.bincount(codes.ravel(), signed, len(keys)).astype(np.float64)
        return Constraints._derived(
            _must=from_keys(keys[net > 0], net[net > 0]),
            _cannot=from_keys(keys[net < 0], -net[net < 0]),
            _codes=None,
            _n_samples=self._n_samples,
        )

    def _columns(self, ids: ArrayLike | None) -> dict[str, NDArray[Any]]:
        columns = zip(self._COLUMNS, self._table.members.T)
        return {
            **{name: name_rows(rows, ids, self._n_rows) for name, rows in columns},
            "weight": np.array(self.weight),
        }

    @classmethod
    def _from_source(cls, source: Source, how: Reading) -> Self:
        names = tuple(how.name(column) for column in cls._COLUMNS)
        table = source.table(names, how.weight)
        members, size = read_rows(table, names, how.ids, how.n_samples, distinct=cls._DISTINCT)
        return cls(members, size, weight=read_weights(table, how.weight), on_conflict=how.on_conflict)
