"""What Constraints store: explicit pairs of two kinds, and pairs that labels imply."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pairlens.supervision._algebra import symmetric
from pairlens.supervision._chains import component_ids
from pairlens.supervision._conflicts import OnConflict, settle
from pairlens.supervision._inputs import PairsLike
from pairlens.supervision._pairs import (
    MAX_MATERIALISED,
    FloatArray,
    IntArray,
    PairTable,
    among,
    as_n_samples,
    canonical,
    check_not_too_many,
    check_sums,
    combine,
    decode,
    distinct,
    freeze,
    from_keys,
    group_rows,
    pairs_across,
    pairs_within,
    parse_pairs,
    renumber,
)
from pairlens.supervision._tabular import TabularAnswers

# By whether it is about must-links.
WEIGHT_NAME = {True: "must_link_weight", False: "cannot_link_weight"}


class StoredPairs(TabularAnswers):
    """Must-links and cannot-links: what is stored, counted and cut to fewer rows.

    Pairs that labels imply stay implicit: ``_codes`` holds the labels, and a pair weighs what the labels give it
    (1 or nothing) plus what the explicit tables give it.
    """

    __slots__ = ("_cannot", "_codes", "_must")
    _TABLES: ClassVar[tuple[str, ...]] = ("must_link", "cannot_link")
    _EXAMPLE: ClassVar[str] = "Constraints(must_link=[(0, 4)], cannot_link=[(0, 9)], n_samples=len(X))"
    _must: PairTable
    _cannot: PairTable
    _codes: IntArray | None

    def __init__(
        self,
        must_link: PairsLike | None = None,
        cannot_link: PairsLike | None = None,
        n_samples: int | None = None,
        *,
        must_link_weight: ArrayLike | None = None,
        cannot_link_weight: ArrayLike | None = None,
        on_conflict: OnConflict = None,
    ) -> None:
        size = as_n_samples(n_samples)
        must = parse_pairs(must_link, must_link_weight, name="must_link", weight_name=WEIGHT_NAME[True], n_samples=size)
        cannot = parse_pairs(
            cannot_link, cannot_link_weight, name="cannot_link", weight_name=WEIGHT_NAME[False], n_samples=size
        )
        n_rows = max(must.n_rows, cannot.n_rows) if size is None else size
        must, cannot = settle(must, cannot, None, n_rows, on_conflict)
        self._fill(_must=must, _cannot=cannot, _codes=None, _n_samples=size)

    @classmethod
    def _derived(cls, **values: Any) -> Self:
        """Return an object of parts that are checked already; codes that label no row are left out."""
        codes = values["_codes"]
        if codes is not None and codes.max(initial=-1) < 0:
            values["_codes"] = None
        return super()._derived(**values)

    def _with(self, *tables: PairTable) -> Self:
        must, cannot = tables
        return self._derived(_must=must, _cannot=cannot, _codes=None, _n_samples=self._n_samples)

    @property
    def labels(self) -> IntArray | None:
        """Codes of the labels whose pairs all count, -1 for unlabelled rows; None if there are none.

        A method that can use class sums takes :attr:`labels` and :attr:`explicit` in place of all pairs: the
        weight of a pair is the sum of what the two say.
        """
        return self._codes

    @property
    def explicit(self) -> Self:
        """The constraints without what is implied by :attr:`labels`."""
        return self if self._codes is None else self._with(self._must, self._cannot)

    @property
    def must_link(self) -> IntArray:
        """Pairs (i, j), i < j, that belong together, in lexicographic order; shape (n_must_link, 2)."""
        return self._table(must=True).members

    @property
    def cannot_link(self) -> IntArray:
        """Pairs (i, j), i < j, that do not belong together, in lexicographic order; shape (n_cannot_link, 2)."""
        return self._table(must=False).members

    @property
    def must_link_weight(self) -> FloatArray:
        """The weight of each pair of :attr:`must_link`."""
        return self._table(must=True).weights

    @property
    def cannot_link_weight(self) -> FloatArray:
        """The weight of each pair of :attr:`cannot_link`."""
        return self._table(must=False).weights

    @property
    def n_must_link(self) -> int:
        """Number of distinct must-links."""
        return self._count(must=True)

    @property
    def n_cannot_link(self) -> int:
        """Number of distinct cannot-links."""
        return self._count(must=False)

    @property
    def n_pairs(self) -> int:
        """Number of distinct must-links and cannot-links together."""
        return self.n_must_link + self.n_cannot_link

    @property
    def must_link_total(self) -> float:
        """Sum of the weights of the must-links."""
        return self._implied_counts()[0] + self._must.total

    @property
    def cannot_link_total(self) -> float:
        """Sum of the weights of the cannot-links."""
        return self._implied_counts()[1] + self._cannot.total

    @property
    def rows(self) -> IntArray:
        """The rows that occur in a pair, sorted."""
        rows = distinct(np.concatenate([self._must.members, self._cannot.members]))
        if self._codes is not None and any(self._implied_counts()):
            rows = distinct(np.concatenate([rows, np.flatnonzero(self._codes >= 0)]))
        return rows

    def _explicit_table(self, *, must: bool) -> PairTable:
        return self._must if must else self._cannot

    def _implied_counts(self) -> tuple[int, int]:
        """Number of must-links and cannot-links that the labels imply."""
        if self._codes is None:
            return 0, 0
        size = np.bincount(self._codes[self._codes >= 0])
        labelled = int(size.sum())
        must = int((size * (size - 1) // 2).sum())
        return must, labelled * (labelled - 1) // 2 - must

    def _implied_at(self, pairs: IntArray, *, must: bool) -> FloatArray:
        """1 where the labels imply the pair, else 0."""
        if self._codes is None:
            return np.zeros(len(pairs))
        left, right = self._codes[pairs].T
        return ((left >= 0) & (right >= 0) & ((left == right) == must)).astype(np.float64)

    def _weight_at(self, keys: IntArray, *, must: bool) -> FloatArray:
        """The whole weight of each pair, 0 where there is no such pair of this kind."""
        table = self._explicit_table(must=must)
        return table.weight_at(keys) + self._implied_at(decode(keys), must=must)

    def _count(self, *, must: bool) -> int:
        given = self._explicit_table(must=must).members
        if self._codes is None:
            return len(given)
        known = int(self._implied_at(given, must=must).sum())
        return self._implied_counts()[0 if must else 1] + len(given) - known

    def _table(self, *, must: bool) -> PairTable:
        """All pairs of one kind, those that the labels imply written out."""
        table = self._explicit_table(must=must)
        if self._codes is None:
            return table
        check_not_too_many(
            self._implied_counts()[0 if must else 1],
            what="what these labels imply",
            remedy="draw some of them by Constraints.from_labels(y, n_pairs=...) or .sample(n_pairs)",
        )
        written_out = (pairs_within if must else pairs_across)(*group_rows(self._codes))
        return combine([from_keys(written_out), table], weight_name=WEIGHT_NAME[must])

    def _written_out(self) -> Self:
        """The same constraints, all of them explicit."""
        return self if self._codes is None else self._with(*self._listed())

    def _take(self, rows: IntArray) -> Self:
        must, cannot = (self._among(rows, must=must) for must in (True, False))
        return self._derived(
            _must=must,
            _cannot=cannot,
            _codes=None if self._codes is None else freeze(renumber(self._codes[rows])),
            _n_samples=len(rows),
        )

    def _among(self, rows: IntArray, *, must: bool) -> PairTable:
        members, weight = among(self._explicit_table(must=must), rows, self._require_n_samples())
        return check_sums(from_keys(canonical(*members.T), weight), weight_name=WEIGHT_NAME[must])

    def _tables(self) -> tuple[PairTable, ...]:
        return self._must, self._cannot

    def _listed(self) -> tuple[PairTable, ...]:
        return self._table(must=True), self._table(must=False)

    def _turned(self, tables: tuple[PairTable, ...], chosen: list[NDArray[np.bool_]]) -> tuple[PairTable, ...]:
        (must, cannot), (from_must, from_cannot) = tables, chosen
        return (
            combine([must.select(~from_must), cannot.select(from_cannot)], weight_name=WEIGHT_NAME[True]),
            combine([cannot.select(~from_cannot), must.select(from_must)], weight_name=WEIGHT_NAME[False]),
        )

    def _resized(self, n_samples: int | None) -> Self:
        codes = self._codes
        if codes is not None and n_samples is not None:
            if (codes[n_samples:] >= 0).any():
                row = n_samples + int((codes[n_samples:] >= 0).argmax())
                raise ValueError(f"row {row} has a label, so n_samples={n_samples} is too few")
            lacking = max(n_samples - len(codes), 0)
            codes = freeze(np.concatenate([codes[:n_samples], np.full(lacking, -1, dtype=np.int64)]))
        return self._derived(_must=self._must, _cannot=self._cannot, _codes=codes, _n_samples=n_samples)

    def chunklets(self) -> IntArray:
        """The groups of rows that must-links join, directly or through others.

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
        part = self._components()
        alone = np.bincount(part)[part] == 1 if len(part) else np.empty(0, dtype=bool)
        return renumber(np.where(alone, -1, part))

    def _components(self) -> IntArray:
        return component_ids(self._must.members, self._codes, self._n_rows)

    def must_link_graph(self) -> sparse.csr_array:
        """The must-links as a symmetric sparse matrix of weights, shape (n_samples, n_samples).

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints([(0, 1)], n_samples=2).must_link_graph().toarray()
        array([[0., 1.],
               [1., 0.]])
        """
        return symmetric(self._table(must=True), self._n_rows)

    def cannot_link_graph(self) -> sparse.csr_array:
        """The cannot-links as a symmetric sparse matrix of weights, shape (n_samples, n_samples).

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints([], [(0, 1)], n_samples=2).cannot_link_graph().toarray()
        array([[0., 1.],
               [1., 0.]])
        """
        return symmetric(self._table(must=False), self._n_rows)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same pairs with the same weights over the same number of rows.

        It does not matter whether labels imply a pair or it is given, except where the labels of both sides differ
        and imply too many pairs to be written out; these count as different.
        """
        if not isinstance(other, StoredPairs):
            return NotImplemented
        if self._n_samples != other._n_samples or self._counts() != other._counts():
            return False
        if not same_codes(self._codes, other._codes):
            both_implied = self._codes is not None and other._codes is not None
            if both_implied and max(self._counts()) > MAX_MATERIALISED:
                return False
            return self._written_out() == other._written_out()
        return all(
            np.array_equal(mine.pairs, theirs.pairs) and np.array_equal(mine.weights, theirs.weights)
            for mine, theirs in ((self._must, other._must), (self._cannot, other._cannot))
        )

    def _counts(self) -> tuple[int, int]:
        return self.n_must_link, self.n_cannot_link

    def __hash__(self) -> int:
        # Equal constraints may be stored differently, but they have equal counts.
        return hash((self._n_samples, self._counts()))

    def __repr__(self) -> str:
        must, cannot = self._counts()
        return (
            f"{type(self).__name__}({must} must-link{'' if must == 1 else 's'}, "
            f"{cannot} cannot-link{'' if cannot == 1 else 's'} over {self._described_rows()})"
        )


def same_codes(left: IntArray | None, right: IntArray | None) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(left, right)
