"""Constraints: which rows belong together and which do not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pairlens._sklearn import as_generator
from pairlens._warnings import warn_user
from pairlens.exceptions import ArgumentError, ConflictWarning
from pairlens.supervision import answers, inputs
from pairlens.supervision import pairs as packed
from pairlens.supervision.answer_set import AnswerSet
from pairlens.supervision.answers import AnswerColumns
from pairlens.supervision.conflicts import (
    Conflicts,
    OnConflict,
    close_cannot,
    close_must,
    component_ids,
    counted,
    find_conflicts,
    settle,
)
from pairlens.supervision.pairs import MAX_LISTED, AnswerTable, FloatArray, IntArray

MUST, CANNOT = 0, 1
"""The positions of the two kinds of pairs in ``Constraints._tables``."""

_WEIGHTS = ("must_link_weight", "cannot_link_weight")
_NONE = packed.from_keys(np.empty(0, dtype=np.int64))


class Constraints(AnswerSet):
    """Pairs of rows that belong together (must-link) and that do not (cannot-link).

    Immutable. The order of the pairs and the order inside a pair do not matter; a pair that is given more than
    once is kept once, and its weights add up. The object is aligned with the rows of X: ``len(c)`` is the number
    of rows and ``c[rows]`` are the constraints among those rows, renumbered. So scikit-learn's metadata routing
    slices it along with X in pipelines, cross-validation and grid search. Where `rows` names a row more than once (a
    bootstrap sample), every copy inherits the pairs of the row; copies of one row are linked with each other only
    if the row has a label (see :meth:`from_labels`).

    Parameters
    ----------
    must_link : array-like of shape (n_pairs, 2) or iterable of pairs, default=None
        Pairs of row numbers that belong together, none if None.
    cannot_link : array-like of shape (n_pairs, 2) or iterable of pairs, default=None
        Pairs of row numbers that do not belong together, none if None.
    n_samples : int, default=None
        Number of rows of X. Unknown if None, and then the object cannot be sliced along with X.
    must_link_weight, cannot_link_weight : float or array-like of shape (n_pairs,), default=None
        How much each pair counts, 1 if None. Pairs of weight 0 are left out.
    on_conflict : {"raise", "warn", "drop"}, default=None
        What to do about contradictions, which are either *direct* (a pair in both sets) or *chained* (a
        cannot-link whose rows a chain of must-links joins). By default a direct one is a
        :class:`~pairlens.exceptions.ConflictError`, because it is mostly a mistake in a program, and chained ones are
        a :class:`~pairlens.exceptions.ConflictWarning`, because noisy answers always have some. "raise" and "warn" do
        the same to both, keeping the pairs. "drop" leaves direct ones out of both sets, and then all cannot-links that
        a chain contradicts.

    See Also
    --------
    Constraints.from_labels : Constraints from the labels of some rows.
    Preferences : Which of two rows is better.

    Examples
    --------
    >>> from pairlens.supervision import Constraints
    >>> pairs = Constraints(must_link=[(4, 0), (0, 4), (2, 3)], cannot_link=[(0, 2)], n_samples=6)
    >>> pairs
    Constraints(2 must-links, 1 cannot-link over 6 rows)
    >>> pairs.must_link_weight
    array([2., 1.])
    >>> pairs[[4, 0, 2]].cannot_link
    array([[1, 2]])
    """

    # Pairs that labels imply stay implicit: `_codes` holds the labels, and a pair weighs what the labels give it
    # (1 or nothing) plus what the tables give it.
    __slots__ = ("_codes",)
    _codes: IntArray | None
    _ARGUMENTS: ClassVar[tuple[str, ...]] = ("must_link", "cannot_link")
    _KINDS: ClassVar[tuple[str, ...]] = ("must-link", "cannot-link")
    _EXAMPLE: ClassVar[str] = "Constraints(must_link=[(0, 4)], cannot_link=[(0, 9)], n_samples=len(X))"

    def __init__(
        self,
        must_link: inputs.PairsLike | None = None,
        cannot_link: inputs.PairsLike | None = None,
        n_samples: int | None = None,
        *,
        must_link_weight: ArrayLike | None = None,
        cannot_link_weight: ArrayLike | None = None,
        on_conflict: OnConflict = None,
    ) -> None:
        size = inputs.as_n_samples(n_samples)
        must = _checked_pairs(must_link, must_link_weight, MUST, size)
        cannot = _checked_pairs(cannot_link, cannot_link_weight, CANNOT, size)
        n_rows = max(must.n_rows, cannot.n_rows) if size is None else size
        self._fill(_tables=settle(must, cannot, None, n_rows, on_conflict), _codes=None, _n_samples=size)

    @classmethod
    def _derived(cls, **values: Any) -> Self:
        """Return an object of parts that are checked already; codes that label no row are left out."""
        codes = values.setdefault("_codes", None)
        if codes is not None and codes.max(initial=-1) < 0:
            values["_codes"] = None
        return super()._derived(**values)

    @classmethod
    def from_labels(
        cls,
        y: ArrayLike,
        *,
        per_class: int | None = None,
        n_pairs: int | None = None,
        fraction: float | None = None,
        random_state: Any = None,
    ) -> Self:
        """Return the pairs that labels imply: same label, must-link; different labels, cannot-link.

        Without a count these are all pairs of labelled rows. They are then kept as the labels themselves, so a
        million labelled rows take a million numbers and not half a trillion pairs; see :attr:`labels`.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels of any kind; -1, NaN, None, ``pandas.NA``, NaT and masked entries mean unlabelled. So does
            the text "nan" in a NumPy array of text, because that is what NumPy makes of NaN there; in a list or a
            Series it is a label like any other.
        per_class : int, default=None
            Number of must-links to draw inside every class, and of cannot-links with one end in it, all distinct (all
            there are where a class has fewer).
        n_pairs : int, default=None
            Number of distinct pairs to draw uniformly from all pairs of labelled rows.
        fraction : float, default=None
            Draw this share, in (0, 1], of all pairs of labelled rows.
        random_state : int, RandomState, Generator or None, default=None
            Makes the draw repeatable.

        Returns
        -------
        Constraints
            With ``n_samples = len(y)``.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints.from_labels(["cat", None, "dog", "cat"])
        Constraints(1 must-link, 2 cannot-links over 4 rows)
        """
        codes = inputs.encode_labels(y)
        counts = {"per_class": per_class, "n_pairs": n_pairs, "fraction": fraction}
        given = [name for name, count in counts.items() if count is not None]
        if len(given) > 1:
            raise ArgumentError(given[1], counts[given[1]], f"must be None if {given[0]} is given")
        everything = cls._derived(_tables=(_NONE, _NONE), _codes=codes, _n_samples=len(codes))
        if per_class is not None:
            keys = packed.draw_per_class(codes, inputs.check_count(per_class, "per_class"), as_generator(random_state))
            return everything._with(*map(packed.from_keys, keys))
        if fraction is not None:
            share = inputs.check_fraction(fraction)
            if share < 1 and everything.n_pairs:
                return everything.sample(max(1, round(share * everything.n_pairs)), random_state)
            return everything
        return everything if n_pairs is None else everything.sample(n_pairs, random_state)

    @classmethod
    def from_chunklets(cls, chunklets: Iterable[ArrayLike], n_samples: int | None = None) -> Self:
        """Return must-links between all rows of each chunklet, a group of rows known to belong together.

        Parameters
        ----------
        chunklets : sequence of array-like of int, or ndarray of shape (n_samples,)
            The row numbers of each chunklet; or, as a one-dimensional array (or list) of integers, the number of
            the chunklet of each row, -1 for a row in none.
        n_samples : int, default=None
            Number of rows of X; known already where `chunklets` has one entry per row.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints.from_chunklets([[0, 3, 5], [1, 2]], n_samples=6).to_lists()[0]
        [(0, 3), (0, 5), (1, 2), (3, 5)]
        """
        (order, start, length), size = inputs.chunklet_rows(list(chunklets), inputs.as_n_samples(n_samples))
        remedy = "Split the large ones, or pass the groups as labels to from_labels with n_pairs"
        packed.check_listable(int((length * (length - 1) // 2).sum()), "chunklets", remedy)
        must = packed.from_keys(packed.pairs_within(order, start, length))
        return cls._derived(_tables=(must, _NONE), _n_samples=size)

    @property
    def labels(self) -> IntArray | None:
        """Codes of the labels whose pairs all count, -1 for unlabelled rows; None if there are none.

        A method that can use class sums takes :attr:`labels` and :attr:`explicit` in place of all pairs: the
        weight of a pair is the sum of both.
        """
        return self._codes

    @property
    def explicit(self) -> Self:
        """The constraints without those that :attr:`labels` imply."""
        return self if self._codes is None else self._with(*self._tables)

    @property
    def must_link(self) -> IntArray:
        """Pairs (i, j), i < j, that belong together, in lexicographic order; shape (n_must_link, 2)."""
        return self._table(MUST).members

    @property
    def cannot_link(self) -> IntArray:
        """Pairs (i, j), i < j, that do not belong together, in lexicographic order; shape (n_cannot_link, 2)."""
        return self._table(CANNOT).members

    @property
    def must_link_weight(self) -> FloatArray:
        """The weight of each pair of :attr:`must_link`."""
        return self._table(MUST).weights

    @property
    def cannot_link_weight(self) -> FloatArray:
        """The weight of each pair of :attr:`cannot_link`."""
        return self._table(CANNOT).weights

    @property
    def n_must_link(self) -> int:
        """Number of distinct must-links."""
        return self._count(MUST)

    @property
    def n_cannot_link(self) -> int:
        """Number of distinct cannot-links."""
        return self._count(CANNOT)

    @property
    def n_pairs(self) -> int:
        """Number of distinct must-links and cannot-links together."""
        return self.n_must_link + self.n_cannot_link

    @property
    def must_link_total(self) -> float:
        """Sum of the weights of the must-links."""
        return self._implied_counts()[MUST] + self._tables[MUST].total

    @property
    def cannot_link_total(self) -> float:
        """Sum of the weights of the cannot-links."""
        return self._implied_counts()[CANNOT] + self._tables[CANNOT].total

    @property
    def rows(self) -> IntArray:
        """The rows that occur in a pair, sorted."""
        rows = packed.distinct(np.concatenate([table.members for table in self._tables]))
        if self._codes is not None and any(self._implied_counts()):
            rows = packed.distinct(np.concatenate([rows, np.flatnonzero(self._codes >= 0)]))
        return rows

    def chunklets(self) -> IntArray:
        """Return the groups of rows that must-links join, directly or through others.

        Returns
        -------
        ndarray of shape (n_samples,)
            The number of each row's group, counted by first row; -1 for a row in no must-link. Where the number
            of rows is unknown, the array ends with the last row that occurs.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints([(1, 4), (4, 2)], n_samples=6).chunklets()
        array([-1,  0,  0, -1,  0, -1])
        """
        part = component_ids(self._tables[MUST].members, self._codes, self._n_rows)
        alone = np.bincount(part)[part] == 1 if len(part) else np.empty(0, dtype=bool)
        return packed.renumber(np.where(alone, -1, part))

    def conflicts(self) -> Conflicts:
        """Find the contradictions among the constraints, direct and through chains of must-links.

        Returns
        -------
        Conflicts
            A sequence of :class:`Conflict`, each with its pair and its chain; false if there are none.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> noisy = Constraints([(0, 1), (1, 2), (0, 2)], n_samples=3).flip(0.3, random_state=0)
        >>> noisy.conflicts()[0].chain
        (1, 0, 2)
        """
        must, cannot = self._tables
        return find_conflicts(must, cannot, self._codes, self._n_rows)

    def closure(self) -> Self:
        """Compute the transitive closure.

        All rows that a chain of must-links joins are must-linked, and all rows of two such groups are cannot-linked
        if there is a cannot-link between the groups. Given pairs keep their weight, new ones weigh 1. Cannot-links
        that a chain contradicts are left out with a :class:`~pairlens.exceptions.ConflictWarning`.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints([(0, 1), (1, 2)], [(2, 3)], n_samples=4).closure().to_lists()
        ([(0, 1), (0, 2), (1, 2)], [(0, 3), (1, 3), (2, 3)])
        """
        if self._codes is not None and not any(table.size for table in self._tables):
            return self
        part = component_ids(self._tables[MUST].members, self._codes, self._n_rows)
        cannot, contradicted = close_cannot(self._table(CANNOT), part)
        if contradicted:
            left_out = f"{counted(contradicted, 'cannot-link')} left out of the closure"
            warn_user(f"{left_out}, being contradicted by a chain of must-links", ConflictWarning)
        return self._with(close_must(self._table(MUST), part), cannot)

    def merge(self, *others: Constraints, on_conflict: OnConflict = None) -> Self:
        """Return all constraints together; the weights of a pair in several of them add up.

        Parameters
        ----------
        *others : Constraints
            About the same rows.
        on_conflict : {"raise", "warn", "drop"}, default=None
            As for :class:`Constraints`. Where a pair contradicts the labels, "drop" leaves out the pair.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> one = Constraints([(0, 1)], n_samples=3)
        >>> one.merge(Constraints([(1, 0)], [(1, 2)])).must_link_weight
        array([2.])
        """
        size = self._merged_n_samples(Constraints, others)
        everyone: list[Constraints] = [self, *others]
        # One set of labels can stay implicit: the one that would be longest as a list.
        keeper = max(everyone, key=lambda each: sum(each._implied_counts()))
        parts = [each._tables if each is keeper else each._listed() for each in everyone]
        must, cannot = (packed.combine(tables, weight_name=name) for tables, name in zip(zip(*parts), _WEIGHTS))
        for table, name in zip((must, cannot), self._ARGUMENTS):
            inputs.check_rows(table.members, size, name)
        n_rows = max(must.n_rows, cannot.n_rows) if size is None else size
        tables = settle(must, cannot, keeper._codes, n_rows, on_conflict)
        return self._derived(_tables=tables, _codes=keeper._codes, _n_samples=size)

    def sample(self, n_pairs: int, random_state: Any = None) -> Self:
        """Draw distinct pairs uniformly from all must-links and cannot-links; they keep their weights.

        Parameters
        ----------
        n_pairs : int
            How many.
        random_state : int, RandomState, Generator or None, default=None
            Makes the draw repeatable.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints.from_labels([0, 1, 1, 0]).sample(4, random_state=0).n_pairs
        4
        """
        count = inputs.check_count(n_pairs, "n_pairs", least=0, most=self.n_pairs, of="distinct pairs")
        drawn = packed.draw_distinct(self.n_pairs, count, as_generator(random_state))
        # The numbers of pairs that labels imply come first, then other must-links, then other cannot-links.
        start = sum(self._implied_counts())
        implied = self._implied_pairs(drawn[drawn < start])
        tables = []
        for kind, (table, name) in enumerate(zip(self._tables, _WEIGHTS)):
            spare = table.select(self._implied_at(table.members, kind) == 0)
            chosen = spare.select(drawn[(drawn >= start) & (drawn < start + spare.size)] - start)
            weighted = packed.from_keys(implied[kind], 1 + table.weight_at(implied[kind]))
            tables.append(packed.combine([chosen, weighted], weight_name=name))
            start += spare.size
        return self._with(*tables)

    def to_sparse(self) -> sparse.csr_array:
        """Return a symmetric sparse matrix with the weights of the must-links, and of the cannot-links negated.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints([(0, 1)], [(1, 2)], n_samples=3).to_sparse().toarray()
        array([[ 0.,  1.,  0.],
               [ 1.,  0., -1.],
               [ 0., -1.,  0.]])
        """
        must, cannot = self._listed()
        first, second = np.concatenate([must.members, cannot.members]).T
        ends = np.concatenate([first, second]), np.concatenate([second, first])
        signed = np.tile(np.concatenate([must.weights, -cannot.weights]), 2)
        matrix = sparse.coo_array((signed, ends), shape=(self._n_rows, self._n_rows)).tocsr()
        # The weights of a pair of both kinds may cancel.
        matrix.eliminate_zeros()
        return matrix

    def to_lists(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the must-links and the cannot-links as two lists of tuples; the weights are lost.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints([(1, 0)], [(1, 2)], n_samples=3).to_lists()
        ([(0, 1)], [(1, 2)])
        """
        must, cannot = self.must_link.T.tolist(), self.cannot_link.T.tolist()
        return list(zip(*must)), list(zip(*cannot))

    def __eq__(self, other: object) -> bool:
        """Return whether both hold the same pairs with the same weights over the same number of rows.

        It does not matter whether labels imply a pair or it is given, except where the labels of both sides differ
        and imply too many pairs to be listed; these count as different.
        """
        if not isinstance(other, Constraints):
            return NotImplemented
        if self._n_samples != other._n_samples or self._sizes() != other._sizes():
            return False
        mine, theirs = self._tables, other._tables
        if not _same_codes(self._codes, other._codes):
            both_implied = self._codes is not None and other._codes is not None
            if both_implied and max(self._sizes()) > MAX_LISTED:
                return False
            mine, theirs = self._listed(), other._listed()
        return all(
            np.array_equal(one.members, another.members) and np.array_equal(one.weights, another.weights)
            for one, another in zip(mine, theirs)
        )

    def __hash__(self) -> int:
        # Equal constraints may be stored differently, but they have equal counts.
        return hash((self._n_samples, self._sizes()))

    def _sizes(self) -> tuple[int, ...]:
        return self.n_must_link, self.n_cannot_link

    def _implied_counts(self) -> tuple[int, int]:
        """Return the number of must-links and cannot-links that the labels imply."""
        if self._codes is None:
            return 0, 0
        size = np.bincount(self._codes[self._codes >= 0])
        labelled = int(size.sum())
        must = int((size * (size - 1) // 2).sum())
        return must, labelled * (labelled - 1) // 2 - must

    def _implied_at(self, pairs: IntArray, kind: int) -> FloatArray:
        """Return 1 where the labels imply the pair, else 0."""
        if self._codes is None:
            return np.zeros(len(pairs))
        left, right = self._codes[pairs].T
        return ((left >= 0) & (right >= 0) & ((left == right) == (kind == MUST))).astype(np.float64)

    def _implied_pairs(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """Return the keys of the must-links and cannot-links at these numbers among those that labels imply."""
        if self._codes is None:
            return numbers, numbers
        rows = np.flatnonzero(self._codes >= 0)
        i, j = packed.triangle(numbers)
        same = self._codes[rows[i]] == self._codes[rows[j]]
        keys = packed.encode(rows[i], rows[j])
        return keys[same], keys[~same]

    def _count(self, kind: int) -> int:
        given = self._tables[kind].members
        return self._implied_counts()[kind] + len(given) - int(self._implied_at(given, kind).sum())

    def _table(self, kind: int) -> AnswerTable:
        """Return all pairs of one kind, those that the labels imply included."""
        if self._codes is None:
            return self._tables[kind]
        remedy = "Draw fewer pairs with n_pairs, or with sample"
        packed.check_listable(self._implied_counts()[kind], "y", remedy)
        pairs_of = packed.pairs_within if kind == MUST else packed.pairs_across
        implied = pairs_of(*packed.group_rows(self._codes))
        return packed.combine([packed.from_keys(implied), self._tables[kind]], weight_name=_WEIGHTS[kind])

    def _listed(self) -> tuple[AnswerTable, ...]:
        return self._table(MUST), self._table(CANNOT)

    def _take(self, rows: IntArray) -> Self:
        codes = None if self._codes is None else packed.freeze(packed.renumber(self._codes[rows]))
        found = (packed.among(table, rows, len(self)) for table in self._tables)
        tables = tuple(
            packed.from_keys(packed.canonical(*members.T), weight, weight_name=name)
            for (members, weight), name in zip(found, _WEIGHTS)
        )
        return self._derived(_tables=tables, _codes=codes, _n_samples=len(rows))

    def _flipped(self, tables: tuple[AnswerTable, ...], chosen: list[NDArray[np.bool_]]) -> tuple[AnswerTable, ...]:
        (must, cannot), (from_must, from_cannot) = tables, chosen
        return (
            packed.combine([must.select(~from_must), cannot.select(from_cannot)], weight_name=_WEIGHTS[MUST]),
            packed.combine([cannot.select(~from_cannot), must.select(from_must)], weight_name=_WEIGHTS[CANNOT]),
        )

    def _resized(self, n_samples: int | None) -> Self:
        codes = self._codes
        if codes is not None and n_samples is not None:
            if (codes[n_samples:] >= 0).any():
                last = int(np.flatnonzero(codes >= 0)[-1])
                raise ArgumentError(
                    "n_samples", n_samples, f"must be at least {last + 1}, because row {last} has a label"
                )
            lacking = max(n_samples - len(codes), 0)
            codes = packed.freeze(np.concatenate([codes[:n_samples], np.full(lacking, -1, dtype=np.int64)]))
        return self._derived(_tables=self._tables, _codes=codes, _n_samples=n_samples)

    def _columns(self, ids: ArrayLike | None) -> dict[str, NDArray[Any]]:
        must, cannot = self._listed()
        first, second = np.concatenate([must.members, cannot.members]).T
        return {
            "a": answers.name_rows(first, ids, self._n_rows),
            "b": answers.name_rows(second, ids, self._n_rows),
            "link": np.repeat(np.array(["must", "cannot"]), [must.size, cannot.size]),
            "weight": np.concatenate([must.weights, cannot.weights]),
        }

    @classmethod
    def _read(cls, table: AnswerColumns, ids: ArrayLike | None, n_samples: int | None, on_conflict: OnConflict) -> Self:
        link = table.find(*answers.KIND_COLUMNS) or "link"
        table.require((*table.ends, link))
        pairs, size = answers.read_rows(table, table.ends, ids, n_samples)
        must = answers.read_kinds(table, link, preferences=False) == "must-link"
        weights = answers.read_weights(table)
        return cls(
            pairs[must],
            pairs[~must],
            size,
            must_link_weight=None if weights is None else weights[must],
            cannot_link_weight=None if weights is None else weights[~must],
            on_conflict=on_conflict,
        )


def _checked_pairs(
    given: inputs.PairsLike | None, weight: ArrayLike | None, kind: int, n_samples: int | None
) -> AnswerTable:
    """Check unordered pairs from outside and bring them into their one form."""
    name = Constraints._ARGUMENTS[kind]
    pairs, values = inputs.answers_of_rows(
        given, weight, width=2, name=name, weight_name=_WEIGHTS[kind], n_samples=n_samples
    )
    first, second = pairs.T
    inputs.check_different(first, second, pairs, name, "rows")
    return packed.from_keys(packed.canonical(first, second), values, weight_name=_WEIGHTS[kind])


def _same_codes(left: IntArray | None, right: IntArray | None) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(left, right)
