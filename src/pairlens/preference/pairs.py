"""Oriented pairs of rows as a linear map, on arrays and tensors: from an embedding to its differences, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from pairlens.engines import Float64, IntArray, Rows, row_blocks
from pairlens.engines.torch import chunks, row_step

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch import torch


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
        """Return pairs from an array of shape (n_pairs, 2) of row numbers, better first."""
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
        """Return some of the pairs, of the same rows; weights again sum to 1."""
        return Pairs.of(self.rows[chosen], self.n_rows, self.weight[chosen])

    def differences(self, Z: Float64) -> Float64:
        """Return ``Z[better] - Z[worse]`` for values of the rows, of shape (n_rows,) or (n_rows, d)."""
        return np.asarray(self._incidence(np.ones(self.count)) @ Z)

    def gather(self, values: Float64, coefficient: Float64 | None = None) -> Float64:
        """Return, for each row, `values` times `coefficient` summed over its pairs: minus where it is the worse one."""
        scale = np.ones(self.count) if coefficient is None else coefficient
        return np.asarray(self._incidence(scale).T @ values)

    def _incidence(self, coefficient: Float64) -> sparse.csr_array:
        signed = np.empty((self.count, 2))
        signed[:, 0] = coefficient
        np.negative(coefficient, out=signed[:, 1])
        return sparse.csr_array((signed.ravel(), self._ends, self._start), shape=(self.count, self.n_rows))


def largest_differences(X: Rows, rows: IntArray) -> Float64:
    r"""Return the largest coordinate :math:`\|x_i - x_j\|_\infty` of the difference of each pair of rows."""
    result = np.empty(len(rows))
    for block in row_blocks(len(rows), 8 * X.shape[1]):
        difference = abs(X[rows[block, 0]] - X[rows[block, 1]])
        largest = difference.max(axis=1)
        result[block] = largest.toarray().ravel() if sparse.issparse(largest) else largest
    return result


@dataclass(frozen=True)
class TorchPairs:
    """:class:`Pairs` of rows in a tensor, on its device, in float64.

    Sums over the pairs of a row are taken in the order in which the device gets to them, so the last digits of a
    gradient may differ from run to run.
    """

    rows: Tensor
    weight: Tensor
    n_rows: int
    better: Tensor
    worse: Tensor

    @classmethod
    def of(cls, rows: Tensor, n_rows: int, weight: Tensor) -> TorchPairs:
        """Return pairs from a tensor of shape (n_pairs, 2) of row numbers, better first."""
        return cls(rows, weight / weight.sum(), n_rows, rows[:, 0].contiguous(), rows[:, 1].contiguous())

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.rows)

    def select(self, chosen: NDArray[np.bool_]) -> TorchPairs:
        """Return some of the pairs, of the same rows; weights again sum to 1."""
        kept = torch.from_numpy(np.flatnonzero(chosen)).to(self.rows.device)
        return TorchPairs.of(self.rows[kept], self.n_rows, self.weight[kept])

    def differences(self, Z: Tensor) -> Tensor:
        """Return ``Z[better] - Z[worse]`` for values of the rows, of shape (n_rows,) or (n_rows, d)."""
        return Z.index_select(0, self.better) - Z.index_select(0, self.worse)

    def gather(self, values: Tensor, coefficient: Tensor | None = None) -> Tensor:
        """Return, for each row, `values` times `coefficient` summed over its pairs: minus where it is the worse one."""
        if coefficient is not None:
            values = values * (coefficient if values.ndim == 1 else coefficient[:, None])
        total = values.new_zeros((self.n_rows, *values.shape[1:]))
        return total.index_add_(0, self.better, values).index_add_(0, self.worse, values, alpha=-1)


def largest_differences_on_device(X: Tensor, rows: Tensor) -> Tensor:
    r"""Return the largest coordinate :math:`\|x_i - x_j\|_\infty` of each difference of rows, in float64."""
    result = torch.empty(len(rows), dtype=torch.float64, device=X.device)
    for part in chunks(len(rows), row_step(X, X.shape[1])):
        difference = X[rows[part, 0]]
        difference -= X[rows[part, 1]]
        result[part] = difference.abs_().amax(dim=1)
    return result
