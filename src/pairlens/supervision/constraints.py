"""Constraints: which rows belong together and which do not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pairlens._sklearn import as_generator
from pairlens._warnings import warn_user
from pairlens.exceptions import ConflictWarning
from pairlens.supervision._algebra import close_cannot, close_must
from pairlens.supervision._answer_set import common_n_samples
from pairlens.supervision._conflicts import Conflicts, OnConflict, counted, find_conflicts, settle
from pairlens.supervision._core import WEIGHT_NAME, same_codes
from pairlens.supervision._exchange import ExchangedPairs
from pairlens.supervision._pairs import (
    MAX_ROWS,
    IntArray,
    PairTable,
    as_n_samples,
    check_count,
    check_fits,
    check_not_too_many,
    check_sums,
    combine,
    decode,
    encode,
    from_keys,
    group_rows,
    pairs_within,
    row_array,
)
from pairlens.supervision._sampling import check_fraction, draw_distinct, draw_per_class, triangle
from pairlens.supervision.labels import encode_labels


class Constraints(ExchangedPairs):
    """Pairs of rows that belong together (must-link) and that do not (cannot-link).

    Immutable. The order of the pairs and the order inside a pair do not matter; a pair that is given more than
    once is kept once, and its weights add up. The object is aligned with the rows of X: ``len(c)`` is the number
    of rows and ``c[rows]`` are the constraints among those rows, renumbered. So scikit-learn's metadata routing
    cuts it along with X in pipelines, cross-validation and grid search. Where `rows` names a row more than once (a
    bootstrap sample), every copy inherits the pairs of the row; copies of one row are linked with each other only
    where labels say so, that is where the row has a label (see :meth:`from_labels`).

    Parameters
    ----------
    must_link : array-like of shape (n_pairs, 2) or iterable of pairs, default=None
        Pairs of row numbers that belong together, none if None.
    cannot_link : array-like of shape (n_pairs, 2) or iterable of pairs, default=None
        Pairs of row numbers that do not belong together, none if None.
    n_samples : int, default=None
        Number of rows of X. Unknown if None, and then the object cannot be cut along with X.
    must_link_weight, cannot_link_weight : float or array-like of shape (n_pairs,), default=None
        How much each pair counts, 1 if None. Pairs of weight 0 are left out.
    on_conflict : {"raise", "warn", "drop"}, default=None
        What to do about contradictions, which are either *direct* (a pair in both sets) or *chained* (a
        cannot-link whose rows a chain of must-links joins). By default a direct one is a
        :class:`~pairlens.exceptions.ConflictError`, for it is mostly a mistake in a program, and chained ones are a
        :class:`~pairlens.exceptions.ConflictWarning`, for noisy answers always have some. "raise" and "warn" do the
        same to both, keeping the pairs. "drop" leaves direct ones out of both sets, and then all cannot-links that
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

    __slots__ = ()

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
        """Pairs that the labels of some rows imply: same label, must-link; different labels, cannot-link.

        Without a count these are all pairs of labelled rows. They are then kept as the labels themselves, so a
        million labelled rows take a million numbers and not half a trillion pairs; see :attr:`labels`.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels of any kind; -1, NaN, None, ``pandas.NA``, NaT and masked entries mean unlabelled. So does
            the text "nan" in a NumPy array of text, for that is what NumPy makes of NaN there; in a list or a
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
        codes = encode_labels(y)
        counts = {"per_class": per_class, "n_pairs": n_pairs, "fraction": fraction}
        given = [name for name, count in counts.items() if count is not None]
        if len(given) > 1:
            raise ValueError(f"give at most one of per_class, n_pairs and fraction, got {' and '.join(given)}")
        none = from_keys(np.empty(0, dtype=np.int64))
        everything = cls._derived(_must=none, _cannot=none, _codes=codes, _n_samples=len(codes))
        if per_class is not None:
            count = check_count(per_class, name="per_class")
            must, cannot = draw_per_class(codes, count, as_generator(random_state))
            return everything._with(from_keys(must), from_keys(cannot))
        if fraction is not None:
            share = check_fraction(fraction)
            if share < 1 and everything.n_pairs:
                return everything.sample(max(1, round(share * everything.n_pairs)), random_state)
            return everything
        return everything if n_pairs is None else everything.sample(n_pairs, random_state)

    @classmethod
    def from_chunklets(cls, chunklets: Iterable[ArrayLike], n_samples: int | None = None) -> Self:
        """Must-links between all rows of each chunklet, a group of rows known to belong together.

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
        size = as_n_samples(n_samples)
        groups: list[Any] = list(chunklets)
        if groups and not any(isinstance(group, Iterable) and getattr(group, "ndim", 1) for group in groups):
            codes = row_array(groups, name="chunklets")
            if size is not None and size != len(codes):
                raise ValueError(f"chunklets has {len(codes)} entries, one per row, but n_samples={size}")
            size = len(codes)
            if codes.min() < -1:
                raise ValueError(f"chunklets holds {codes.min()}: numbers count from 0, and -1 means none")
            order, start, length = group_rows(encode_labels(codes))
        else:
            members = [np.unique(row_array(group, name=f"chunklets[{k}]")) for k, group in enumerate(groups)]
            order = np.concatenate([*members, np.empty(0, dtype=np.int64)])
            limit = MAX_ROWS if size is None else size
            if len(order) and (order.min() < 0 or order.max() >= limit):
                row = order.min() if order.min() < 0 else order.max()
                raise ValueError(f"chunklets holds the row {row}: row numbers go from 0 to {limit - 1}")
            length = np.array([len(group) for group in members], dtype=np.int64)
            start = np.cumsum(length) - length
        check_not_too_many(
            int((length * (length - 1) // 2).sum()),
            what="all pairs inside these chunklets",
            remedy="split the large ones, or give the chunklets as labels to from_labels with n_pairs",
        )
        none = from_keys(np.empty(0, dtype=np.int64))
        must = from_keys(pairs_within(order, start, length))
        return cls._derived(_must=must, _cannot=none, _codes=None, _n_samples=size)

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
        count = check_count(n_pairs, name="n_pairs", least=0)
        if count > self.n_pairs:
            raise ValueError(f"n_pairs={count} exceeds the {self.n_pairs} distinct pairs there are")
        spare_must = self._must.select(self._implied_at(self._must.pairs, must=True) == 0)
        spare_cannot = self._cannot.select(self._implied_at(self._cannot.pairs, must=False) == 0)
        drawn = draw_distinct(self.n_pairs, count, as_generator(random_state))

        implied = sum(self._implied_counts())
        from_must = drawn[(drawn >= implied) & (drawn < implied + spare_must.size)] - implied
        from_cannot = drawn[drawn >= implied + spare_must.size] - implied - spare_must.size
        must, cannot = spare_must.select(from_must), spare_cannot.select(from_cannot)
        if self._codes is not None:
            rows = np.flatnonzero(self._codes >= 0)
            i, j = triangle(drawn[drawn < implied])
            same = self._codes[rows[i]] == self._codes[rows[j]]
            keys = encode(rows[i], rows[j])
            more_must = from_keys(keys[same], 1 + self._must.weight_at(keys[same]))
            more_cannot = from_keys(keys[~same], 1 + self._cannot.weight_at(keys[~same]))
            must = combine([must, more_must], weight_name=WEIGHT_NAME[True])
            cannot = combine([cannot, more_cannot], weight_name=WEIGHT_NAME[False])
        return self._with(must, cannot)

    def conflicts(self) -> Conflicts:
        """The contradictions among the constraints, direct and through chains of must-links.

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
        return find_conflicts(self._must, self._cannot, self._codes, self._n_rows)

    def closure(self) -> Self:
        """All that follows: friends of friends are friends, and their enemies are enemies of all of them.

        Every two rows that a chain of must-links joins are must-linked, and every two rows are cannot-linked whose
        groups have a cannot-link between them. Given pairs keep their weight, new ones weigh 1. Cannot-links that
        a chain contradicts are left out with a :class:`~pairlens.exceptions.ConflictWarning`.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints([(0, 1), (1, 2)], [(2, 3)], n_samples=4).closure().to_lists()
        ([(0, 1), (0, 2), (1, 2)], [(0, 3), (1, 3), (2, 3)])
        """
        if not self._must.size and not self._cannot.size and self._codes is not None:
            return self
        part = self._components()
        cannot, contradicted = close_cannot(self._table(must=False), part)
        if contradicted:
            warn_user(
                f"{counted(contradicted, 'cannot-link')} left out of the closure, being contradicted by a chain of "
                "must-links",
                ConflictWarning,
            )
        return self._with(close_must(self._table(must=True), part), cannot)

    def merge(self, *others: Constraints, on_conflict: OnConflict = None) -> Self:
        """All constraints together; the weights of a pair in several of them add up.

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
        n_samples = self._merged_n_samples(Constraints, others)
        everyone: list[Constraints] = [self, *others]
        # One set of labels can stay implicit: the one that would be longest as a list.
        keeper = max(everyone, key=lambda each: sum(each._implied_counts()))
        codes = keeper._codes
        parts = [each.explicit if each is keeper else each._written_out() for each in everyone]
        return self._checked(
            combine([part._must for part in parts], weight_name=WEIGHT_NAME[True]),
            combine([part._cannot for part in parts], weight_name=WEIGHT_NAME[False]),
            codes,
            n_samples,
            on_conflict,
        )

    def _checked(
        self,
        must: PairTable,
        cannot: PairTable,
        codes: IntArray | None,
        n_samples: int | None,
        on_conflict: OnConflict = None,
    ) -> Self:
        n_rows = max(must.n_rows, cannot.n_rows) if n_samples is None else n_samples
        check_fits(must.pairs, n_samples, name="must_link")
        check_fits(cannot.pairs, n_samples, name="cannot_link")
        must, cannot = settle(must, cannot, codes, n_rows, on_conflict)
        return self._derived(_must=must, _cannot=cannot, _codes=codes, _n_samples=n_samples)

    def _agree(self, other: Constraints) -> int | None:
        n_samples = common_n_samples(self._n_samples, other._n_samples)
        for each in (self, other):
            each._check_fits(n_samples)
        return n_samples

    def _labels_differ(self, other: Constraints) -> bool:
        return self._codes is not None and other._codes is not None and not same_codes(self._codes, other._codes)

    def __or__(self, other: object) -> Self:
        """Pairs of either side, with the larger weight; checked like those of :meth:`merge`."""
        if not isinstance(other, Constraints):
            return NotImplemented
        if self._labels_differ(other):
            return self._written_out() | other._written_out()
        n_samples = self._agree(other)
        labelled = other if self._codes is None else self
        must, cannot = (self._joint(other, np.maximum, labelled, must=must) for must in (True, False))
        return self._checked(must, cannot, labelled._codes, n_samples)

    def __and__(self, other: object) -> Self:
        """Pairs that both sides have in the same kind, with the smaller weight."""
        if not isinstance(other, Constraints):
            return NotImplemented
        if self._labels_differ(other):
            return self._written_out() & other._written_out()
        n_samples = self._agree(other)
        labelled = self if same_codes(self._codes, other._codes) else None
        must, cannot = (self._joint(other, np.minimum, labelled, must=must) for must in (True, False))
        codes = None if labelled is None else labelled._codes
        return self._derived(_must=must, _cannot=cannot, _codes=codes, _n_samples=n_samples)

    def _joint(self, other: Constraints, choose: np.ufunc, implied: Constraints | None, *, must: bool) -> PairTable:
        """The explicit pairs of either side with the chosen weight, less what `implied` says by labels."""
        keys = np.union1d(*(each._explicit_table(must=must).keys for each in (self, other)))
        pairs = decode(keys)
        known = 0.0 if implied is None else implied._implied_at(pairs, must=must)
        # Ones cancel before the weights come in, so that weights stay exact.
        weights = (
            each._explicit_table(must=must).weight_at(keys) + (each._implied_at(pairs, must=must) - known)
            for each in (self, other)
        )
        return check_sums(from_keys(keys, choose(*weights)), weight_name=WEIGHT_NAME[must])

    def __sub__(self, other: object) -> Self:
        """Pairs of the left side that the right side does not have in the same kind."""
        if not isinstance(other, Constraints):
            return NotImplemented
        n_samples = self._agree(other)
        left = self.explicit if same_codes(self._codes, other._codes) else self._written_out()
        must, cannot = (
            table.select(other._weight_at(table.keys, must=must) == 0)
            for table, must in ((left._must, True), (left._cannot, False))
        )
        return self._derived(_must=must, _cannot=cannot, _codes=None, _n_samples=n_samples)
