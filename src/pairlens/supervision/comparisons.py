"""Hold preferences, triplets and quadruplets: which of two rows is better, which of two pairs is more alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import as_generator
from pairlens.exceptions import AnswerError, ArgumentError
from pairlens.supervision import answers, inputs
from pairlens.supervision import pairs as packed
from pairlens.supervision.answer_set import AnswerSet
from pairlens.supervision.answers import AnswerColumns
from pairlens.supervision.conflicts import OnConflict, check_policy, counted, find_cycles, raise_or_warn
from pairlens.supervision.constraints import Constraints
from pairlens.supervision.pairs import AnswerTable, FloatArray, IntArray


class OrderedAnswers(AnswerSet):
    """Hold answers that say which of two things is more: the better row, or the closer pair."""

    __slots__ = ()
    _COLUMNS: ClassVar[tuple[str, ...]]
    """The columns of the rows in a file."""
    _DISTINCT: ClassVar[tuple[tuple[int, int], ...]]
    """Columns that cannot name the same row."""
    _OPPOSITE: ClassVar[list[int]]
    """The order of the columns that says the contrary."""

    def __init__(
        self,
        given: inputs.PairsLike | None = None,
        n_samples: int | None = None,
        *,
        weight: ArrayLike | None = None,
        on_conflict: OnConflict = None,
    ) -> None:
        size = inputs.as_n_samples(n_samples)
        name = self._ARGUMENTS[0]
        width = len(self._COLUMNS)
        members, values = inputs.answers_of_rows(
            given, weight, width=width, name=name, weight_name="weight", n_samples=size
        )
        for one, other in self._DISTINCT:
            inputs.check_different(members[:, one], members[:, other], members, name, "rows")
        inputs.check_different(*self._ends(members), members, name, "pairs")
        self._fill(_tables=(self._settled(self._tabled(members, values), on_conflict),), _n_samples=size)

    @classmethod
    def _ends(cls, members: IntArray) -> tuple[IntArray, IntArray]:
        """Return what is more and what is less in each tuple: rows, or the keys of two pairs that it begins and ends
        with.
        """
        first, *_, last = columns = list(members.T)
        if len(columns) == 2:
            return first, last
        # The pairs of a triplet both have its first row.
        third = first if len(columns) == 3 else columns[2]
        return packed.canonical(first, columns[1]), packed.canonical(third, last)

    @property
    def weight(self) -> FloatArray:
        """The weight of each answer."""
        return self._tables[0].weights

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return self._tables[0].total

    @property
    def rows(self) -> IntArray:
        """The rows that occur in an answer, sorted."""
        return packed.distinct(self._tables[0].members)

    def merge(self, *others: Self, on_conflict: OnConflict = None) -> Self:
        """Return all answers together; the weights of one in several of them add up.

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
        table = self._settled(self._joined([each._tables[0] for each in (self, *others)]), on_conflict)
        inputs.check_rows(table.members, n_samples, self._ARGUMENTS[0])
        return self._derived(_tables=(table,), _n_samples=n_samples)

    def cycles(self) -> list[tuple[Any, ...]]:
        """Find answers that contradict one another because they go round in a circle.

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
        members = self._tables[0].members
        ends, codes = np.unique(np.concatenate(self._ends(members)), return_inverse=True)
        arrows = codes.reshape(2, -1).T
        denied = self._denied(members)
        two = np.unique(arrows[denied & (arrows[:, 0] < arrows[:, 1])], axis=0)
        names: list[Any] = (
            ends.tolist() if members.shape[1] == 2 else [tuple(pair) for pair in packed.decode(ends).tolist()]
        )
        return [tuple(names[end] for end in cycle) for cycle in [*two.tolist(), *find_cycles(arrows[~denied])]]

    @classmethod
    def _denied(cls, members: IntArray) -> NDArray[np.bool_]:
        """Return which answers of a table have their opposite in it."""
        more, less = cls._ends(members)
        if members.shape[1] == 2:
            return packed.contains(packed.encode(more, less), packed.encode(less, more))
        more, less = np.unique(np.concatenate([more, less]), return_inverse=True)[1].reshape(2, -1)
        return packed.contains(np.sort(packed.encode(more, less)), packed.encode(less, more))

    def _settled(self, table: AnswerTable, policy: OnConflict) -> AnswerTable:
        check_policy(policy)
        denied = self._denied(table.members)
        if not denied.any():
            return table
        if policy == "drop":
            return table.select(~denied)
        example = tuple(table.members[int(denied.argmax())].tolist())
        reason = f"{counted(int(denied.sum()) // 2, self._KINDS[0])} given both ways round, for example {example}"
        raise_or_warn(self._ARGUMENTS[0], example, reason, error=policy == "raise")
        return table

    @classmethod
    def _tabled(cls, members: IntArray, weight: FloatArray | None) -> AnswerTable:
        """Return distinct tuples in order, in the one form that stands for all with the same meaning."""
        return packed.from_tuples(members, weight)

    @classmethod
    def _joined(cls, tables: Sequence[AnswerTable]) -> AnswerTable:
        """Return one table of the tuples of several; the weights of a tuple in more than one of them add up."""
        plain = all(table.weight is None for table in tables)
        weight = None if plain else np.concatenate([table.weights for table in tables])
        return cls._tabled(np.concatenate([table.members for table in tables]), weight)

    def _flipped(self, tables: tuple[AnswerTable, ...], chosen: list[NDArray[np.bool_]]) -> tuple[AnswerTable, ...]:
        kept, moved = tables[0].select(~chosen[0]), tables[0].select(chosen[0])
        return (self._joined([kept, self._tabled(moved.members[:, self._OPPOSITE], moved.weight)]),)

    def _take(self, rows: IntArray) -> Self:
        table = self._tabled(*packed.among(self._tables[0], rows, len(self)))
        return self._derived(_tables=(table,), _n_samples=len(rows))

    def _columns(self, ids: ArrayLike | None) -> dict[str, NDArray[Any]]:
        columns = zip(self._COLUMNS, self._tables[0].members.T)
        named = {name: answers.name_rows(rows, ids, self._n_rows) for name, rows in columns}
        return {**named, "weight": np.array(self.weight)}

    @classmethod
    def _read(cls, table: AnswerColumns, ids: ArrayLike | None, n_samples: int | None, on_conflict: OnConflict) -> Self:
        columns = cls._named_columns(table)
        table.require(columns)
        members, size = answers.read_rows(table, columns, ids, n_samples, distinct=cls._DISTINCT)
        return cls(members, size, weight=answers.read_weights(table), on_conflict=on_conflict)

    @classmethod
    def _named_columns(cls, table: AnswerColumns) -> tuple[str, ...]:
        """Return the columns of a table that hold the rows."""
        return cls._COLUMNS

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        mine, theirs = self._tables[0], other._tables[0]
        return (
            self._n_samples == other._n_samples
            and np.array_equal(mine.members, theirs.members)
            and np.array_equal(mine.weights, theirs.weights)
        )

    def __hash__(self) -> int:
        return hash((self._n_samples, self._tables[0].size))


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
        Number of rows of X. Unknown if None, and then the object cannot be sliced along with X.
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
    _ARGUMENTS: ClassVar[tuple[str, ...]] = ("pairs",)
    _COLUMNS: ClassVar[tuple[str, ...]] = ("better", "worse")
    _EXAMPLE: ClassVar[str] = "Preferences([(better, worse), ...], n_samples=len(X))"
    _KINDS: ClassVar[tuple[str, ...]] = ("pair",)
    _DISTINCT: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1),)
    _OPPOSITE: ClassVar[list[int]] = [1, 0]

    def __init__(
        self,
        pairs: inputs.PairsLike | None = None,
        n_samples: int | None = None,
        *,
        weight: ArrayLike | None = None,
        on_conflict: OnConflict = None,
    ) -> None:
        super().__init__(pairs, n_samples, weight=weight, on_conflict=on_conflict)

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
        """Return the preferences that scores imply: the row with the higher score is better.

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
        scores = inputs.numbers_per_row(y, meaning="the higher the better")
        difference = float(min_difference)
        if not (np.isfinite(difference) and difference >= 0):
            raise ArgumentError("min_difference", min_difference, "must be finite and at least 0")
        codes = np.zeros(len(scores), dtype=np.int64)
        if groups is not None:
            codes, _ = inputs.factorise(groups, name="groups")
            if len(codes) != len(scores):
                raise ArgumentError("groups", len(codes), f"must have {len(scores)} entries, one per row")
        rows = np.flatnonzero(~np.isnan(scores) & (codes >= 0))
        order, start, length = _better_runs(scores[rows], codes[rows], difference)
        ends = np.cumsum(length)
        total = int(ends[-1]) if len(ends) else 0
        drawn = _all_or_drawn(total, n_pairs, random_state, name="n_pairs", what="pairs")
        worse = np.searchsorted(ends, drawn, side="right")
        better = order[start[worse] + drawn - (ends - length)[worse]]
        return cls._derived(
            _tables=(packed.from_keys(packed.encode(rows[better], rows[worse])),), _n_samples=len(scores)
        )

    @property
    def pairs(self) -> IntArray:
        """Pairs (better, worse) in lexicographic order; shape (n_pairs, 2)."""
        return self._tables[0].members

    @property
    def n_pairs(self) -> int:
        """Number of distinct pairs."""
        return self._tables[0].size

    @classmethod
    def _named_columns(cls, table: AnswerColumns) -> tuple[str, ...]:
        kind = table.find(*answers.KIND_COLUMNS)
        if kind is None or set(cls._COLUMNS) <= set(table.names):
            return cls._COLUMNS
        table.require((*table.ends, kind))
        others = int((answers.read_kinds(table, kind, preferences=True) != "prefer").sum())
        if others:
            raise AnswerError(
                f"{table.title} has {others} lines of other kinds than prefer",
                "read_answers reads all kinds",
                problem="other-kinds",
                file=table.file,
                column=kind,
            )
        return table.ends


def _better_runs(scores: FloatArray, codes: IntArray, difference: float) -> tuple[IntArray, IntArray, IntArray]:
    """Sort rows by group and score, and return for every row the run of those among them that are better than it."""
    # A bar stands for each row at its score plus the difference; what comes after it in its group is better.
    is_bar = np.repeat([False, True], len(scores))
    ranking = np.lexsort((is_bar, np.concatenate([scores, scores + difference]), np.tile(codes, 2)))
    before = np.cumsum(~is_bar[ranking])
    start = np.empty(len(scores), dtype=np.int64)
    bars = ranking >= len(scores)
    start[ranking[bars] - len(scores)] = before[bars]
    group_end = np.cumsum(np.bincount(codes)) if len(codes) else np.empty(0, dtype=np.int64)
    return ranking[~bars], start, group_end[codes] - start


class Triplets(OrderedAnswers):
    """Statements "a is more like near than like far".

    Immutable. The order of the triplets does not matter; one that is given more than once is kept once, and its weights
    add up. Like :class:`Constraints`, the object is aligned with the rows of X: ``len(t)`` is the number of rows and
    ``t[rows]`` are the triplets among those rows, renumbered, so that scikit-learn's metadata routing slices it along
    with X.

    Parameters
    ----------
    triplets : array-like of shape (n_triplets, 3) or iterable of triplets, default=None
        Row numbers (a, near, far), none if None.
    n_samples : int, default=None
        Number of rows of X. Unknown if None, and then the object cannot be sliced along with X.
    weight : float or array-like of shape (n_triplets,), default=None
        How much each triplet counts, 1 if None. Triplets of weight 0 are left out.
    on_conflict : {"raise", "warn", "drop"}, default=None
        What to do where (a, b, c) and (a, c, b) are both given. People contradict themselves and each other, so by
        default this is a :class:`~pairlens.exceptions.ConflictWarning` and both are kept; "drop" leaves both out.

    See Also
    --------
    Quadruplets : Two pairs that need not have a row in common.

    Examples
    --------
    >>> from pairlens.supervision import Triplets
    >>> answers = Triplets([(4, 0, 1), (4, 0, 1), (2, 3, 4)], n_samples=6)
    >>> answers
    Triplets(2 triplets over 6 rows)
    >>> answers.weight
    array([1., 2.])
    >>> answers[[0, 1, 4]].triplets
    array([[2, 0, 1]])
    """

    __slots__ = ()
    _ARGUMENTS: ClassVar[tuple[str, ...]] = ("triplets",)
    _COLUMNS: ClassVar[tuple[str, ...]] = ("a", "near", "far")
    _EXAMPLE: ClassVar[str] = "Triplets([(a, near, far), ...], n_samples=len(X))"
    _KINDS: ClassVar[tuple[str, ...]] = ("triplet",)
    _DISTINCT: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (0, 2), (1, 2))
    _OPPOSITE: ClassVar[list[int]] = [0, 2, 1]

    def __init__(
        self,
        triplets: inputs.PairsLike | None = None,
        n_samples: int | None = None,
        *,
        weight: ArrayLike | None = None,
        on_conflict: OnConflict = None,
    ) -> None:
        super().__init__(triplets, n_samples, weight=weight, on_conflict=on_conflict)

    @classmethod
    def from_labels(cls, y: ArrayLike, *, n_triplets: int | None = None, random_state: Any = None) -> Self:
        """Return triplets that labels imply: near has the label of a, far has another one.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels of any kind; -1, NaN, None, ``pandas.NA``, NaT and masked entries mean unlabelled.
        n_triplets : int, default=None
            Number of distinct triplets to draw uniformly from all there are; all of them if None.
        random_state : int, RandomState, Generator or None, default=None
            Makes the draw repeatable.

        Examples
        --------
        >>> from pairlens.supervision import Triplets
        >>> Triplets.from_labels([0, 0, 1]).triplets
        array([[0, 1, 2],
               [1, 0, 2]])
        """
        codes = inputs.encode_labels(y)
        members = _triplets_of_labels(codes, n_triplets, as_generator(random_state))
        return cls._derived(_tables=(cls._tabled(members, None),), _n_samples=len(codes))

    @property
    def triplets(self) -> IntArray:
        """Triplets (a, near, far) in lexicographic order; shape (n_triplets, 3)."""
        return self._tables[0].members

    @property
    def n_triplets(self) -> int:
        """Number of distinct triplets."""
        return self._tables[0].size

    @property
    def closer(self) -> IntArray:
        """The pair of each triplet that is said to be more alike, shape (n, 2), smaller row first."""
        return packed.decode(self._ends(self.triplets)[0])

    @property
    def farther(self) -> IntArray:
        """The pair of each triplet that is said to be less alike, shape (n, 2), smaller row first."""
        return packed.decode(self._ends(self.triplets)[1])

    def to_quadruplets(self) -> Quadruplets:
        """Return the same statements about two pairs: a and near are more alike than a and far.

        Examples
        --------
        >>> from pairlens.supervision import Triplets
        >>> Triplets([(3, 1, 2)], n_samples=4).to_quadruplets().quadruplets
        array([[1, 3, 2, 3]])
        """
        table = Quadruplets._tabled(np.column_stack([self.closer, self.farther]), self._tables[0].weight)
        return Quadruplets._derived(_tables=(table,), _n_samples=self._n_samples)

    def to_constraints(self) -> Constraints:
        """Return the triplets as pairs: the closer pair is a must-link, the farther one a cannot-link.

        A pair that some triplets call the closer and others the farther one counts with the difference of their
        weights. This loses that triplets are relative, so it suits answers that people gave with groups in mind;
        learners of comparisons (:class:`~pairlens.LMCA`, :class:`~pairlens.SCML`) keep it.

        Examples
        --------
        >>> from pairlens.supervision import Triplets
        >>> Triplets([(0, 1, 2), (0, 2, 3)], n_samples=4).to_constraints().to_lists()
        ([(0, 1)], [(0, 3)])
        """
        keys, codes = np.unique(np.concatenate(self._ends(self.triplets)), return_inverse=True)
        signed = np.concatenate([self.weight, -self.weight])
        net = np.bincount(codes.ravel(), signed, len(keys)).astype(np.float64)
        must, cannot = packed.from_keys(keys[net > 0], net[net > 0]), packed.from_keys(keys[net < 0], -net[net < 0])
        return Constraints._derived(_tables=(must, cannot), _n_samples=self._n_samples)


class Quadruplets(OrderedAnswers):
    """Statements "a and b are more alike than c and d".

    A triplet is a quadruplet with a row in common, but most quadruplets are not triplets; see
    :meth:`Triplets.to_quadruplets`. Immutable and aligned with the rows of X as Triplets are. The order of the rows
    inside a pair does not matter.

    Parameters
    ----------
    quadruplets : array-like of shape (n_quadruplets, 4) or iterable of quadruplets, default=None
        Row numbers (a, b, c, d), none if None.
    n_samples : int, default=None
        Number of rows of X. Unknown if None, and then the object cannot be sliced along with X.
    weight : float or array-like of shape (n_quadruplets,), default=None
        How much each quadruplet counts, 1 if None. Quadruplets of weight 0 are left out.
    on_conflict : {"raise", "warn", "drop"}, default=None
        What to do where a quadruplet and its opposite (c, d, a, b) are both given; see :class:`Triplets`.

    See Also
    --------
    Triplets : Comparisons with one row in common.

    Examples
    --------
    >>> from pairlens.supervision import Quadruplets
    >>> answers = Quadruplets([(4, 0, 1, 2), (0, 4, 2, 1)], n_samples=6)
    >>> answers.quadruplets, answers.weight
    (array([[0, 4, 1, 2]]), array([2.]))
    """

    __slots__ = ()
    _ARGUMENTS: ClassVar[tuple[str, ...]] = ("quadruplets",)
    _COLUMNS: ClassVar[tuple[str, ...]] = ("a", "b", "c", "d")
    _EXAMPLE: ClassVar[str] = "Quadruplets([(a, b, c, d), ...], n_samples=len(X))"
    _KINDS: ClassVar[tuple[str, ...]] = ("quadruplet",)
    _DISTINCT: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (2, 3))
    _OPPOSITE: ClassVar[list[int]] = [2, 3, 0, 1]

    def __init__(
        self,
        quadruplets: inputs.PairsLike | None = None,
        n_samples: int | None = None,
        *,
        weight: ArrayLike | None = None,
        on_conflict: OnConflict = None,
    ) -> None:
        super().__init__(quadruplets, n_samples, weight=weight, on_conflict=on_conflict)

    @classmethod
    def _tabled(cls, members: IntArray, weight: FloatArray | None) -> AnswerTable:
        ordered = [np.sort(pair, axis=1) for pair in (members[:, :2], members[:, 2:])]
        return packed.from_tuples(np.column_stack(ordered), weight)

    @classmethod
    def from_labels(cls, y: ArrayLike, n_quadruplets: int, *, random_state: Any = None) -> Self:
        """Draw quadruplets that labels imply: a and b have one label, c and d have two.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels of any kind; -1, NaN, None, ``pandas.NA``, NaT and masked entries mean unlabelled.
        n_quadruplets : int
            Number of distinct quadruplets to draw.
        random_state : int, RandomState, Generator or None, default=None
            Makes the draw repeatable.

        Examples
        --------
        >>> from pairlens.supervision import Quadruplets
        >>> Quadruplets.from_labels([0, 0, 1], 1, random_state=0).quadruplets[0, :2]
        array([0, 1])
        """
        codes = inputs.encode_labels(y)
        return cls(_quadruplets_of_labels(codes, n_quadruplets, as_generator(random_state)), len(codes))

    @property
    def quadruplets(self) -> IntArray:
        """Quadruplets (a, b, c, d), a < b and c < d, in lexicographic order; shape (n_quadruplets, 4)."""
        return self._tables[0].members

    @property
    def n_quadruplets(self) -> int:
        """Number of distinct quadruplets."""
        return self._tables[0].size

    @property
    def closer(self) -> IntArray:
        """The pair of each quadruplet that is said to be more alike, shape (n, 2), smaller row first."""
        return self.quadruplets[:, :2]

    @property
    def farther(self) -> IntArray:
        """The pair of each quadruplet that is said to be less alike, shape (n, 2), smaller row first."""
        return self.quadruplets[:, 2:]


def _all_or_drawn(total: int, count: Any, random_state: Any, *, name: str, what: str) -> IntArray:
    """Return the numbers of all `total` answers that y implies, or of `count` of them; `name` is the parameter."""
    if count is None:
        packed.check_listable(total, "y", f"Draw fewer {what} with {name}")
        return np.arange(total)
    wanted = inputs.check_count(count, name, least=0, most=total, of=f"distinct {what} that y implies")
    return packed.draw_distinct(total, wanted, as_generator(random_state))


def _triplets_of_labels(codes: IntArray, n_triplets: int | None, rng: np.random.Generator) -> IntArray:
    """List or draw triplets (a, near, far) with near in the class of a and far in another."""
    order, start, size = packed.group_rows(codes)
    others = len(order) - size
    ends = np.cumsum(size * (size - 1) * others)
    total = int(ends[-1]) if len(ends) else 0
    drawn = _all_or_drawn(total, n_triplets, rng, name="n_triplets", what="triplets")
    group = np.searchsorted(ends, drawn, side="right")
    local = drawn - (ends - size * (size - 1) * others)[group]
    a, rest = np.divmod(local, ((size - 1) * others)[group])
    near, far = np.divmod(rest, others[group])
    near += near >= a
    far += np.where(far >= start[group], size[group], 0)
    return np.column_stack([order[start[group] + a], order[start[group] + near], order[far]])


def _quadruplets_of_labels(codes: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """Draw distinct quadruplets of a pair inside a class and a pair between two."""
    order, start, size = packed.group_rows(codes)
    others = len(order) - size
    inside, across = np.cumsum(size * (size - 1) // 2), np.cumsum(size * others)
    if not len(size) or inside[-1] == 0 or across[-1] == 0:
        raise ArgumentError("y", size.tolist(), "must have two rows of one label and two rows of different labels")

    def draw(n: int) -> tuple[IntArray, IntArray]:
        drawn = rng.integers(inside[-1], size=n)
        group = np.searchsorted(inside, drawn, side="right")
        i, j = packed.triangle(drawn - (inside - size * (size - 1) // 2)[group])
        near = packed.canonical(order[start[group] + i], order[start[group] + j])
        drawn = rng.integers(across[-1], size=n)
        group = np.searchsorted(across, drawn, side="right")
        one, other = np.divmod(drawn - (across - size * others)[group], others[group])
        other += np.where(other >= start[group], size[group], 0)
        return near, packed.canonical(order[start[group] + one], order[other])

    most = int(inside[-1]) * (int(across[-1]) // 2)
    count = inputs.check_count(count, "n_quadruplets", least=0, most=most, of="distinct quadruplets that y implies")
    found = np.empty((0, 2), dtype=np.int64)
    while len(found) < count:
        found = np.unique(np.concatenate([found, np.column_stack(draw(2 * (count - len(found)) + 16))]), axis=0)
    if len(found) > count:
        # They are sorted, so the first of them would not be a fair choice.
        found = found[rng.choice(len(found), count, replace=False)]
    return np.column_stack([packed.decode(found[:, 0]), packed.decode(found[:, 1])])
