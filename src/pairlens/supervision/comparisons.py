"""Triplets and Quadruplets: which of two pairs of rows is more alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pairlens._sklearn import as_generator
from pairlens.supervision._conflicts import OnConflict
from pairlens.supervision._drawing import (
    answered,
    draw_quadruplets,
    draw_triplets,
    quadruplets_of_labels,
    triplets_of_labels,
)
from pairlens.supervision._inputs import PairsLike
from pairlens.supervision._ordered import OrderedAnswers
from pairlens.supervision._pairs import IntArray, canonical, check_count, decode, from_keys
from pairlens.supervision.constraints import Constraints
from pairlens.supervision.labels import encode_labels

__all__ = ["Comparisons", "Quadruplets", "Triplets"]


class Comparisons(OrderedAnswers):
    """What :class:`Triplets` and :class:`Quadruplets` share: each says that one pair of rows is closer than another."""

    __slots__ = ()

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
    def _named(cls, ends: IntArray) -> list[tuple[int, int]]:
        return [(first, second) for first, second in decode(ends).tolist()]

    @property
    def closer(self) -> IntArray:
        """The pair of each comparison that is said to be more alike, shape (n, 2), smaller row first."""
        return decode(self._ends(self._table.members)[0])

    @property
    def farther(self) -> IntArray:
        """The pair of each comparison that is said to be less alike, shape (n, 2), smaller row first."""
        return decode(self._ends(self._table.members)[1])

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
        table = self._table.select(other._table.positions(self._table.members) < 0)
        return self._derived(_table=table, _n_samples=n_samples)

    def _joint(self, other: Self, choose: np.ufunc) -> Self:
        n_samples = self._merged_n_samples(type(self), (other,))
        everything = self._joined([self._table, other._table]).members
        weights = []
        for table in (self._table, other._table):
            position = table.positions(everything)
            weights.append(np.where(position >= 0, np.append(table.weights, 0.0)[position], 0.0))
        return self._derived_for(n_samples, self._tabled(everything, choose(*weights)))

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


class Triplets(Comparisons):
    """Statements "a is more like near than like far".

    Immutable. The order of the triplets does not matter; one that is given more than once is kept once, and its weights
    add up. Like :class:`Constraints`, the object is aligned with the rows of X: ``len(t)`` is the number of rows and
    ``t[rows]`` are the triplets among those rows, renumbered, so that scikit-learn's metadata routing cuts it along
    with X.

    Parameters
    ----------
    triplets : array-like of shape (n_triplets, 3) or iterable of triplets, default=None
        Row numbers (a, near, far), none if None.
    n_samples : int, default=None
        Number of rows of X. Unknown if None, and then the object cannot be cut along with X.
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
    _COLUMNS: ClassVar[tuple[str, ...]] = ("a", "near", "far")
    _TABLES: ClassVar[tuple[str, ...]] = ("triplets",)
    _EXAMPLE: ClassVar[str] = "Triplets([(a, near, far), ...], n_samples=len(X))"
    _WHAT: ClassVar[str] = "triplet"
    _DISTINCT: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (0, 2), (1, 2))

    def __init__(
        self,
        triplets: PairsLike | None = None,
        n_samples: int | None = None,
        *,
        weight: ArrayLike | None = None,
        on_conflict: OnConflict = None,
    ) -> None:
        super().__init__(triplets, n_samples, weight=weight, on_conflict=on_conflict)

    @classmethod
    def _ends(cls, members: IntArray) -> tuple[IntArray, IntArray]:
        a, near, far = members.T
        return canonical(a, near), canonical(a, far)

    @classmethod
    def _opposite(cls, members: IntArray) -> IntArray:
        return members[:, [0, 2, 1]]

    @property
    def triplets(self) -> IntArray:
        """Triplets (a, near, far) in lexicographic order; shape (n_triplets, 3)."""
        return self._table.members

    @property
    def n_triplets(self) -> int:
        """Number of distinct triplets."""
        return self._table.size

    @classmethod
    def from_labels(cls, y: ArrayLike, *, n_triplets: int | None = None, random_state: Any = None) -> Self:
        """Triplets that labels imply: near has the label of a, far has another one.

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
        codes = encode_labels(y)
        members = triplets_of_labels(codes, n_triplets, as_generator(random_state))
        return cls._derived(_table=cls._tabled(members, None), _n_samples=len(codes))

    @classmethod
    def from_distances(
        cls,
        X: ArrayLike,
        n_triplets: int,
        *,
        metric: str | Callable[..., float] = "euclidean",
        random_state: Any = None,
    ) -> Self:
        """Random triplets, answered by a distance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or of shape (n_samples, n_samples)
            Rows, or the distances between them for ``metric="precomputed"``.
        n_triplets : int
            Number of triplets to draw; those with two equal distances say nothing and are left out.
        metric : str or callable, default="euclidean"
            "precomputed", or what :func:`sklearn.metrics.pairwise.paired_distances` takes.
        random_state : int, RandomState, Generator or None, default=None
            Makes the draw repeatable.

        Examples
        --------
        >>> from pairlens.supervision import Triplets
        >>> Triplets.from_distances([[0.0], [1.0], [5.0]], 1, random_state=0).n_triplets
        1
        """
        count, rng = check_count(n_triplets, name="n_triplets", least=0), as_generator(random_state)
        return cls(*answered(X, metric, lambda n: draw_triplets(n, count, rng), cls._ends, cls._opposite))

    def to_quadruplets(self) -> Quadruplets:
        """The same statements about two pairs: a and near are more alike than a and far.

        Examples
        --------
        >>> from pairlens.supervision import Triplets
        >>> Triplets([(3, 1, 2)], n_samples=4).to_quadruplets().quadruplets
        array([[1, 3, 2, 3]])
        """
        members = np.column_stack([self.closer, self.farther])
        table = Quadruplets._tabled(members, self._table.weight)
        return Quadruplets._derived(_table=table, _n_samples=self._n_samples)


class Quadruplets(Comparisons):
    """Statements "a and b are more alike than c and d".

    A kind of its own beside :class:`Triplets`: a triplet is a quadruplet with a row in common, but most quadruplets are
    no triplets, so they could not be stored as such without losing answers. The two share all of their code.
    :meth:`Triplets.to_quadruplets` goes the way that is always possible.

    Immutable and aligned with the rows of X as Triplets are. The order of the rows inside a pair does not matter.

    Parameters
    ----------
    quadruplets : array-like of shape (n_quadruplets, 4) or iterable of quadruplets, default=None
        Row numbers (a, b, c, d), none if None.
    n_samples : int, default=None
        Number of rows of X. Unknown if None, and then the object cannot be cut along with X.
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
    _COLUMNS: ClassVar[tuple[str, ...]] = ("a", "b", "c", "d")
    _TABLES: ClassVar[tuple[str, ...]] = ("quadruplets",)
    _EXAMPLE: ClassVar[str] = "Quadruplets([(a, b, c, d), ...], n_samples=len(X))"
    _WHAT: ClassVar[str] = "quadruplet"
    _DISTINCT: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (2, 3))

    def __init__(
        self,
        quadruplets: PairsLike | None = None,
        n_samples: int | None = None,
        *,
        weight: ArrayLike | None = None,
        on_conflict: OnConflict = None,
    ) -> None:
        super().__init__(quadruplets, n_samples, weight=weight, on_conflict=on_conflict)

    @classmethod
    def _check(cls, members: IntArray) -> None:
        super()._check(members)
        near, far = cls._ends(members)
        same = near == far
        if same.any():
            position = int(same.argmax())
            raise ValueError(
                f"quadruplets[{position}] is {tuple(members[position].tolist())}: both pairs are the same, so it "
                "compares nothing; leave it out"
            )

    @classmethod
    def _canonical(cls, members: IntArray) -> IntArray:
        return np.column_stack([np.sort(members[:, :2], axis=1), np.sort(members[:, 2:], axis=1)])

    @classmethod
    def _ends(cls, members: IntArray) -> tuple[IntArray, IntArray]:
        a, b, c, d = members.T
        return canonical(a, b), canonical(c, d)

    @classmethod
    def _opposite(cls, members: IntArray) -> IntArray:
        return members[:, [2, 3, 0, 1]]

    @property
    def quadruplets(self) -> IntArray:
        """Quadruplets (a, b, c, d), a < b and c < d, in lexicographic order; shape (n_quadruplets, 4)."""
        return self._table.members

    @property
    def n_quadruplets(self) -> int:
        """Number of distinct quadruplets."""
        return self._table.size

    @classmethod
    def from_labels(cls, y: ArrayLike, n_quadruplets: int, *, random_state: Any = None) -> Self:
        """Quadruplets that labels imply: a and b have one label, c and d have two.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels of any kind; -1, NaN, None, ``pandas.NA``, NaT and masked entries mean unlabelled.
        n_quadruplets : int
            Number of quadruplets to draw; equal ones are kept once.
        random_state : int, RandomState, Generator or None, default=None
            Makes the draw repeatable.

        Examples
        --------
        >>> from pairlens.supervision import Quadruplets
        >>> Quadruplets.from_labels([0, 0, 1], 1, random_state=0).quadruplets[0, :2]
        array([0, 1])
        """
        codes = encode_labels(y)
        count = check_count(n_quadruplets, name="n_quadruplets", least=0)
        return cls(quadruplets_of_labels(codes, count, as_generator(random_state)), len(codes))

    @classmethod
    def from_distances(
        cls,
        X: ArrayLike,
        n_quadruplets: int,
        *,
        metric: str | Callable[..., float] = "euclidean",
        random_state: Any = None,
    ) -> Self:
        """Random quadruplets, answered by a distance.

        Parameters
        ----------
        X, metric, random_state
            See :meth:`Triplets.from_distances`.
        n_quadruplets : int
            Number of quadruplets to draw; those with two equal distances say nothing and are left out.

        Examples
        --------
        >>> from pairlens.supervision import Quadruplets
        >>> Quadruplets.from_distances([[0.0], [1.0], [5.0], [6.5]], 2, random_state=0).n_samples
        4
        """
        count, rng = check_count(n_quadruplets, name="n_quadruplets", least=0), as_generator(random_state)
        return cls(*answered(X, metric, lambda n: draw_quadruplets(n, count, rng), cls._ends, cls._opposite))
