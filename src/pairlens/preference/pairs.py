"""Oriented pairs of rows as a linear map: from an embedding to its pair differences, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from pairlens.engines import Float64, IntArray, Rows, row_blocks


@dataclass(frozen=True)
class Pairs:
    """Pairs (better, worse) of `n_rows` rows with weights that sum to 1.

    The incidence matrix has one +1 and one -1 for each pair. It is stored once: its transpose is read from the same
    arrays, and coefficients of the pairs go into its entries, so no array of differences is copied.
    """

    rows: IntArray
    weight: Float64
    n_rows: int
    _ends: IntArray
    _start: IntArray

    @classmethod
    def of(cls, rows: IntArray, n_rows: int, weight: Float64 | None = None) -> Self:
        """Pairs from an array of shape (n_pairs, 2) of row numbers, better first."""
        count = len(rows)
        share = np.full(count, 1.0 / max(count, 1)) if weight is None else weight / weight.sum()
        index: DTypeLike = np.int32 if 2 * count < np.iinfo(np.int32).max else np.int64
        ends: IntArray = np.ascontiguousarray(rows, dtype=index).ravel()
        return cls(rows, share, n_rows, ends, np.arange(0, 2 * count + 1, 2, dtype=index))

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.rows)

    def select(self, chosen: NDArray[np.bool_]) -> Pairs:
        """Some of the pairs, of the same rows; weights again sum to 1."""
        return Pairs.of(self.rows[chosen], self.n_rows, self.weight[chosen])

    def differences(self, Z: Float64) -> Float64:
        """``Z[better] - Z[worse]`` for values of the rows, of shape (n_rows,) or (n_rows, d)."""
        return np.asarray(self._incidence(np.ones(self.count)) @ Z)

    def gather(self, values: Float64, coefficient: Float64 | None = None) -> Float64:
        """For each row, `values` times `coefficient` summed over its pairs: minus where it is the worse one."""
        scale = np.ones(self.count) if coefficient is None else coefficient
        return np.asarray(self._incidence(scale).T @ values)

    def _incidence(self, coefficient: Float64) -> sparse.csr_array:
        signed = np.empty((self.count, 2))
        signed[:, 0] = coefficient
        np.negative(coefficient, out=signed[:, 1])
        return sparse.csr_array((signed.ravel(), self._ends, self._start), shape=(self.count, self.n_rows))


def largest_differences(X: Rows, rows: IntArray) -> Float64:
    r"""Largest coordinate :math:`\|x_i - x_j\|_\infty` of the difference of each pair of rows."""
    result = np.empty(len(rows))
    for block in row_blocks(len(rows), 8 * X.shape[1]):
        difference = abs(X[rows[block, 0]] - X[rows[block, 1]])
        largest = difference.max(axis=1)
        result[block] = largest.toarray().ravel() if sparse.issparse(largest) else largest
    return result
