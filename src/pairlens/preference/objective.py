r"""Compute the large-margin objective of an embedding under preferences, and its gradient.

For pairs m = (i better than j) of weight :math:`w_m` (they sum to 1), with :math:`q_m = z_i - z_j`,
:math:`r_m = \|q_m\|` and :math:`p_m = q_m / r_m`,

.. math::
    J(Z) = \sum_m w_m\, h(\gamma_1 - r_m) + C \sum_{m, m'} w_m w_{m'}\, h(\gamma_2 - p_m \cdot p_{m'}) ,
    \qquad h(t) = \max(t, 0) .

The first term pushes the two rows of a pair apart, the second turns all pairs into one direction. Both learners
minimise it: WSDR over linear maps, GBWSDR over sums of trees. The hinge is smoothed as in eq. (13)-(15) of the paper.

The second term runs over all combinations of two pairs. There are two ways to sum it, neither of which stores them:

- :math:`\gamma_2 \ge 1`: no hinge is ever cut, the sum is :math:`\gamma_2 - \|\sum_m w_m p_m\|^2`, and costs O(M d);
- :math:`\gamma_2 < 1`: blocks of the upper triangle as matrix products, O(M^2 d).

Where the two rows of a pair coincide (r below :data:`COINCIDENT`) the pair has no direction: p is 0, and so is the
subgradient.

Pairs are a linear map from an embedding to its differences, and back. The same code serves NumPy arrays and torch
tensors: it follows the embedding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from pairlens.engines import Float64, IntArray, Rows, is_tensor, row_blocks
from pairlens.engines.torch import chunks, row_step

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch import torch

COINCIDENT = 1e-9
"""Length of a pair difference below which it has no direction."""

SMALLEST_WIDTH = 1e-200

TILE = 256
"""Pairs in one block of combinations: cosines, hinges and slopes of a block stay in the cache together."""

BLOCK_BYTES = 1 << 24
"""Bytes of one block of the distances between rows."""

Term = tuple[float, Float64]


def namespace(array: Any) -> ModuleType:
    """Return NumPy, or torch for a tensor."""
    return import_module("torch") if is_tensor(array) else np


def like(rows: Any, values: NDArray[Any]) -> Any:
    """Return values as an array of the kind of `rows`, on its device."""
    if not is_tensor(rows):
        return values
    array = np.ascontiguousarray(values)
    tensor = import_module("torch").from_numpy(array if array.flags.writeable else array.copy()).to(rows.device)
    return tensor.to(rows.dtype) if tensor.is_floating_point() else tensor


def squared_lengths(Q: Float64) -> Float64:
    """Return the squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", Q, Q))


@dataclass(frozen=True)
class Pairs:
    """Hold pairs (better, worse) of `n_rows` rows with weights that sum to 1, as arrays or as tensors on one device.

    The incidence matrix has one +1 and one -1 for each pair. For arrays it is stored once: its transpose is read from
    the same arrays, and coefficients of the pairs go into its entries, so no array of differences is copied. Sums of
    tensors over the pairs of a row are taken in the order in which the device gets to them, so the last digits of a
    gradient may differ from run to run.
    """

    rows: Any
    weight: Any
    n_rows: int

    @classmethod
    def of(cls, rows: Any, n_rows: int, weight: Any = None) -> Self:
        """Return pairs from an array or tensor of shape (n_pairs, 2) of row numbers, better first."""
        share = np.full(len(rows), 1.0 / max(len(rows), 1)) if weight is None else weight / weight.sum()
        return cls(rows, share, n_rows)

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.rows)

    def select(self, chosen: NDArray[np.bool_]) -> Pairs:
        """Return some of the pairs, of the same rows; weights again sum to 1."""
        kept = like(self.rows, np.flatnonzero(chosen))
        return Pairs.of(self.rows[kept], self.n_rows, self.weight[kept])

    def differences(self, Z: Any) -> Any:
        """Return ``Z[better] - Z[worse]`` for values of the rows, of shape (n_rows,) or (n_rows, d)."""
        if is_tensor(Z):
            return Z.index_select(0, self.rows[:, 0]) - Z.index_select(0, self.rows[:, 1])
        return np.asarray(self._incidence(np.ones(self.count)) @ Z)

    def gather(self, values: Any, coefficient: Any = None) -> Any:
        """Return, for each row, `values` times `coefficient` summed over its pairs: minus where it is the worse one."""
        if is_tensor(values):
            if coefficient is not None:
                values = values * (coefficient if values.ndim == 1 else coefficient[:, None])
            total = values.new_zeros((self.n_rows, *values.shape[1:]))
            return total.index_add_(0, self.rows[:, 0], values).index_add_(0, self.rows[:, 1], values, alpha=-1)
        scale = np.ones(self.count) if coefficient is None else coefficient
        return np.asarray(self._incidence(scale).T @ values)

    @cached_property
    def _layout(self) -> tuple[IntArray, IntArray]:
        """The column of each entry of the incidence matrix, and where its rows start."""
        index: DTypeLike = np.int32 if 2 * self.count < np.iinfo(np.int32).max else np.int64
        ends: IntArray = np.ascontiguousarray(self.rows, dtype=index).ravel()
        return ends, np.arange(0, 2 * self.count + 1, 2, dtype=index)

    def _incidence(self, coefficient: Float64) -> sparse.csr_array:
        signed = np.empty((self.count, 2))
        signed[:, 0] = coefficient
        np.negative(coefficient, out=signed[:, 1])
        return sparse.csr_array((signed.ravel(), *self._layout), shape=(self.count, self.n_rows))


def largest_differences(X: Rows, rows: IntArray) -> Float64:
    r"""Return the largest coordinate :math:`\|x_i - x_j\|_\infty` of the difference of each pair of rows."""
    result = np.empty(len(rows))
    for block in row_blocks(len(rows), 8 * X.shape[1]):
        difference = abs(X[rows[block, 0]] - X[rows[block, 1]])
        largest = difference.max(axis=1)
        result[block] = largest.toarray().ravel() if sparse.issparse(largest) else largest
    return result


def largest_differences_on_device(X: Tensor, rows: Tensor) -> Tensor:
    r"""Return the largest coordinate :math:`\|x_i - x_j\|_\infty` of each difference of rows, in float64."""
    result = torch.empty(len(rows), dtype=torch.float64, device=X.device)
    for part in chunks(len(rows), row_step(X, X.shape[1])):
        difference = X[rows[part, 0]]
        difference -= X[rows[part, 1]]
        result[part] = difference.abs_().amax(dim=1)
    return result


def smoothed_hinge(t: Float64, width: Float64 | float) -> tuple[Float64, Float64]:
    r"""Return the hinge with a rounded corner, and its slope.

    0 for :math:`t \le 0`, :math:`t^2 / 2w` up to the width w, and :math:`t - w / 2` beyond. Width 0 is the plain hinge.
    """
    xp = namespace(t)
    # A width far below any t is the plain hinge: its slope is 0 or 1.
    floor = max(width, SMALLEST_WIDTH) if isinstance(width, float) else xp.clip(width, SMALLEST_WIDTH, None)
    slope = xp.clip(t / floor, 0.0, 1.0)
    return slope * (t - 0.5 * width * slope), slope


def angle_squared(P: Float64, weight: Float64, gamma2: float) -> Term:
    """Return the angle term with the squared hinge for gamma2 >= 1: it needs only the sums of p and of p p'."""
    total = weight @ P
    second = (P * weight[:, None]).T @ P
    value = gamma2**2 - 2 * gamma2 * float(total @ total) + float((second * second).sum())
    return value, 4 * weight[:, None] * (P @ second - gamma2 * total)


def angle_tiled(P: Float64, weight: Float64, gamma2: float, sigma: float, tile: int = TILE) -> Term:
    """Return the angle term for any gamma2, over tiles of the upper triangle of all combinations."""
    value, gradient = 0.0, namespace(P).zeros_like(P)
    for start in range(0, len(P), tile):
        left, left_weight = P[start : start + tile], weight[start : start + tile]
        for other in range(start, len(P), tile):
            right, right_weight = P[other : other + tile], weight[other : other + tile]
            loss, slope = smoothed_hinge(gamma2 - left @ right.T, sigma)
            both = 1.0 if other == start else 2.0
            value += both * float(left_weight @ (loss @ right_weight))
            slope *= both * left_weight[:, None]
            slope *= right_weight
            gradient[start : start + tile] -= slope @ right
            gradient[other : other + tile] -= slope.T @ left
    return value, gradient


@dataclass(frozen=True)
class Objective:
    """Compute the objective of given pairs: calling it with an embedding gives the value and the gradient.

    The margins are gamma1 of the distances and gamma2 of the angles, whose term has the weight C and, if `squared`,
    squared hinges. `width` is that of the rounded corner of each distance hinge, `sigma` that of the angle hinges where
    gamma2 < 1.
    """

    pairs: Pairs
    width: Float64
    gamma1: float = 1.0
    gamma2: float = 1.0
    C: float = 1.0
    sigma: float = 0.1
    squared: bool = False

    def select(self, chosen: NDArray[np.bool_]) -> Objective:
        """Return the objective of some of the pairs."""
        return replace(self, pairs=self.pairs.select(chosen), width=self.width[chosen])

    def __call__(self, Z: Float64, *, distance: bool = True, angle: bool = True) -> Term:
        """Return one of the terms, or both, at the embedding Z of shape (n_rows, d)."""
        xp = namespace(Z)
        weight = self.pairs.weight
        Q = self.pairs.differences(Z)
        length = xp.sqrt(xp.einsum("ij,ij->i", Q, Q))
        inverse = xp.where(length >= COINCIDENT, 1.0 / xp.clip(length, COINCIDENT, None), 0.0)
        value, along = 0.0, xp.zeros_like(length)
        if distance:
            loss, slope = smoothed_hinge(self.gamma1 - length, self.width)
            value = float(weight @ loss)
            along = -weight * slope * inverse
        if not angle:
            return value, self.pairs.gather(Q, along)
        if self.gamma2 >= 1 and not self.squared:
            # The sum in closed form, without forming the unit vectors.
            scaled = weight * inverse
            total = scaled @ Q
            value += self.C * (self.gamma2 - float(total @ total))
            scaled *= 2 * self.C
            along += scaled * inverse**2 * (Q @ total)
            return value, self.pairs.gather(Q, along) - xp.outer(self.pairs.gather(scaled), total)
        P = Q * inverse[:, None]
        if self.squared:
            loss_angle, turn = angle_squared(P, weight, self.gamma2)
        else:
            loss_angle, turn = angle_tiled(P, weight, self.gamma2, self.sigma)
        turn -= xp.einsum("ij,ij->i", P, turn)[:, None] * P
        turn *= self.C * inverse[:, None]
        turn += along[:, None] * Q
        return value + self.C * loss_angle, self.pairs.gather(turn)
