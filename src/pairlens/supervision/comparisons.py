"""Triplets and Quadruplets: which of two pairs of rows is more alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pairlens._sklearn import as_generator
from pairlens.supervision._comparisons import Comparisons
from pairlens.supervision._conflicts import OnConflict
from pairlens.supervision._drawing import (
    answered,
    draw_quadruplets,
    draw_triplets,
    quadruplets_of_labels,
    triplets_of_labels,
)
from pairlens.supervision._inputs import PairsLike
from pairlens.supervision._pairs import (
    IntArray,
    canonical,
    check_count,
)
from pairlens.supervision._tuples import (
    tuple_table,
)
from pairlens.supervision.labels import encode_labels

__all__ = ["Quadruplets", "Triplets"]


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
        return cls._derived(_table=tuple_table(members, None, what=cls._WHAT), _n_samples=len(codes))

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
        table = tuple_table(members, self._table.weight, what=Quadruplets._WHAT)
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
