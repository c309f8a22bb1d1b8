"""Oriented pairs of rows on torch tensors: :class:`pairlens.preference.pairs.Pairs` for a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairlens.engines.torch import chunks, row_step

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch import torch


@dataclass(frozen=True)
class TorchPairs:
    """Pairs (better, worse) of `n_rows` rows with weights that sum to 1, in float64.

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
        """Pairs from a tensor of shape (n_pairs, 2) of row numbers, better first."""
        return cls(rows, weight / weight.sum(), n_rows, rows[:, 0].contiguous(), rows[:, 1].contiguous())

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.rows)

    def select(self, chosen: NDArray[np.bool_]) -> TorchPairs:
        """Some of the pairs, of the same rows; weights again sum to 1."""
        kept = torch.from_numpy(np.flatnonzero(chosen)).to(self.rows.device)
        return TorchPairs.of(self.rows[kept], self.n_rows, self.weight[kept])

    def differences(self, Z: Tensor) -> Tensor:
        """``Z[better] - Z[worse]`` for values of the rows, of shape (n_rows,) or (n_rows, d)."""
        return Z.index_select(0, self.better) - Z.index_select(0, self.worse)

    def gather(self, values: Tensor, coefficient: Tensor | None = None) -> Tensor:
        """For each row, `values` times `coefficient` summed over its pairs: minus where it is the worse one."""
        if coefficient is not None:
            values = values * (coefficient if values.ndim == 1 else coefficient[:, None])
        total = values.new_zeros((self.n_rows, *values.shape[1:]))
        return total.index_add_(0, self.better, values).index_add_(0, self.worse, values, alpha=-1)


def largest_differences(X: Tensor, rows: Tensor) -> Tensor:
    r"""Largest coordinate :math:`\|x_i - x_j\|_\infty` of the difference of each pair of rows, in float64."""
    result = torch.empty(len(rows), dtype=torch.float64, device=X.device)
    for part in chunks(len(rows), row_step(X, X.shape[1])):
        difference = X[rows[part, 0]]
        difference -= X[rows[part, 1]]
        result[part] = difference.abs_().amax(dim=1)
    return result
