"""Constraints in other forms: matrices, pairs with signs, lists, data frames, files."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pairlens.supervision._algebra import symmetric, table_of
from pairlens.supervision._conflicts import OnConflict
from pairlens.supervision._core import StoredPairs
from pairlens.supervision._entries import KIND_COLUMNS, name_rows, read_kinds, read_rows, read_weights
from pairlens.supervision._inputs import PairsLike, materialised, refuse_set, regular_array
from pairlens.supervision._pairs import IntArray, row_array
from pairlens.supervision._tables import Source
from pairlens.supervision._tabular import Reading


class ExchangedPairs(StoredPairs):
    """Conversions of constraints to and from what other tools use."""

    __slots__ = ()
    _COLUMNS: ClassVar[tuple[str, ...]] = ("a", "b", "link")

    def to_sparse(self) -> sparse.csr_array:
        """A symmetric sparse matrix with the weights of the must-links, and of the cannot-links negated.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints([(0, 1)], [(1, 2)], n_samples=3).to_sparse().toarray()
        array([[ 0.,  1.,  0.],
               [ 1.,  0., -1.],
               [ 0., -1.,  0.]])
        """
        together = symmetric(self._table(must=True), self._n_rows)
        return sparse.csr_array(together - symmetric(self._table(must=False), self._n_rows))

    @classmethod
    def from_sparse(cls, matrix: Any, *, on_conflict: OnConflict = None) -> Self:
        """Constraints from a matrix that is positive at must-links and negative at cannot-links.

        Parameters
        ----------
        matrix : sparse or dense matrix of shape (n_samples, n_samples)
            Symmetric, or one triangle of it; the size of an entry is the weight of the pair. The diagonal is 0.
        on_conflict : {"raise", "warn", "drop"}, default=None
            See :class:`Constraints`.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints.from_sparse([[0, 1, 0], [0, 0, -1], [0, 0, 0]])
        Constraints(1 must-link, 1 cannot-link over 3 rows)
        """
        must, cannot, n_samples = table_of(matrix)
        return cls(
            must.pairs,
            cannot.pairs,
            n_samples,
            must_link_weight=must.weight,
            cannot_link_weight=cannot.weight,
            on_conflict=on_conflict,
        )

    def to_pairs(self, X: ArrayLike | None = None) -> tuple[NDArray[Any], IntArray]:
        """Pairs and their signs, as metric-learn takes them; weights are left behind.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The data, to get the pairs themselves in place of row numbers.

        Returns
        -------
        pairs : ndarray of shape (n_pairs, 2) or (n_pairs, 2, n_features)
            Row numbers, or the rows of X.
        y : ndarray of shape (n_pairs,)
            +1 for a must-link, -1 for a cannot-link.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints([(0, 1)], [(1, 2)], n_samples=3).to_pairs()
        (array([[0, 1],
               [1, 2]]), array([ 1, -1]))
        """
        must, cannot = self.must_link, self.cannot_link
        pairs = np.concatenate([must, cannot])
        y = np.repeat(np.array([1, -1]), [len(must), len(cannot)])
        if X is None:
            return pairs, y
        data = regular_array(X, name="X")
        if data.ndim != 2 or len(data) < self._n_rows:
            raise ValueError(f"X must have {self._n_rows} rows and two dimensions, got the shape {data.shape}")
        return data[pairs], y

    @classmethod
    def from_pairs(
        cls, pairs: PairsLike, y: ArrayLike, n_samples: int | None = None, *, on_conflict: OnConflict = None
    ) -> Self:
        """Constraints from pairs with signs, the form of metric-learn.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2) or iterable of pairs
            Row numbers.
        y : array-like of shape (n_pairs,)
            +1 for a must-link, -1 for a cannot-link.
        n_samples : int, default=None
            Number of rows of X.
        on_conflict : {"raise", "warn", "drop"}, default=None
            See :class:`Constraints`.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints.from_pairs([(0, 1), (1, 2)], [1, -1], n_samples=3)
        Constraints(1 must-link, 1 cannot-link over 3 rows)
        """
        refuse_set(pairs, name="pairs", beside="y")
        given = regular_array(materialised(pairs), name="pairs")
        if given.ndim == 3:
            raise ValueError("pairs must hold row numbers, shape (n_pairs, 2), and not the rows of X themselves")
        rows = row_array(given, name="pairs")
        signs = regular_array(materialised(y), name="y")
        if signs.shape != (len(rows),):
            raise ValueError(f"y must hold one sign per pair: expected {len(rows)}, got the shape {signs.shape}")
        wrong = ~np.isin(signs, (1, -1))
        if wrong.any():
            position = int(wrong.argmax())
            raise ValueError(f"y[{position}] is {signs[position]}: expected +1 (must-link) or -1 (cannot-link)")
        return cls(rows[signs == 1], rows[signs == -1], n_samples, on_conflict=on_conflict)

    def to_lists(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The must-links and the cannot-links as two lists of tuples; weights are left behind.

        Examples
        --------
        >>> from pairlens.supervision import Constraints
        >>> Constraints([(1, 0)], [(1, 2)], n_samples=3).to_lists()
        ([(0, 1)], [(1, 2)])
        """
        must, cannot = self.must_link.T.tolist(), self.cannot_link.T.tolist()
        return list(zip(*must)), list(zip(*cannot))

    def _columns(self, ids: ArrayLike | None) -> dict[str, NDArray[Any]]:
        must, cannot = self._table(must=True), self._table(must=False)
        first, second = np.concatenate([must.pairs, cannot.pairs]).T
        return {
            "a": name_rows(first, ids, self._n_rows),
            "b": name_rows(second, ids, self._n_rows),
            "link": np.repeat(np.array(["must", "cannot"]), [must.size, cannot.size]),
            "weight": np.concatenate([must.weights, cannot.weights]),
        }

    @classmethod
    def _from_source(cls, source: Source, how: Reading) -> Self:
        a, b = how.name("a"), how.name("b")
        link = how.renamed.get("link") or source.find(*KIND_COLUMNS) or "link"
        table = source.table((a, b, link), how.weight)
        pairs, size = read_rows(table, (a, b), how.ids, how.n_samples)
        must = read_kinds(table, link, preferences=False) == "must-link"
        weights = read_weights(table, how.weight)
        return cls(
            pairs[must],
            pairs[~must],
            size,
            must_link_weight=None if weights is None else weights[must],
            cannot_link_weight=None if weights is None else weights[~must],
            on_conflict=how.on_conflict,
        )
