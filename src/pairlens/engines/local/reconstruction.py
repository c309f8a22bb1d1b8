"""Weights that rebuild each row from its neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairlens.engines.dispatch import dispatched
from pairlens.engines.local.rows import IntArray, Rows, take_rows

__all__ = ["rebuilding_weights", "solve_local"]

PORTION_BYTES = 1 << 24


@dispatched
def rebuilding_weights(X: Rows, indices: IntArray, reg: float) -> NDArray[np.float64]:
    r"""Weights, of shape (n, k), with which the listed rows rebuild each row: they minimise
    :math:`\|x_i - \sum_j r_j x_j\|^2` and sum to 1.

    Parameters
    ----------
    X : array, CSR matrix or EngineRows of shape (n, n_features)
    indices : int array of shape (n, k)
        Row i lists the neighbours of i.
    reg : float
        Regularisation of the local Gram matrix, relative to its trace.
    """
    n, k = indices.shape
    weight = np.empty((n, k))
    step = max(1, PORTION_BYTES // (8 * k * X.shape[1]))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        chosen = indices[rows]
        near = take_rows(X, chosen.ravel()).reshape(*chosen.shape, -1)
        weight[rows] = solve_local(near - take_rows(X, rows)[:, None, :], reg)
    return weight


def solve_local(local: NDArray[np.float64], reg: float) -> NDArray[np.float64]:
    """The weights from the neighbours of each row less the row, of shape (n, k, n_features)."""
    k = local.shape[1]
    gram = local @ local.transpose(0, 2, 1)
    trace = np.trace(gram, axis1=1, axis2=2)
    gram[:, np.arange(k), np.arange(k)] += np.where(trace > 0, reg * trace, reg)[:, None]
    weight = np.linalg.solve(gram, np.ones((len(gram), k, 1)))[..., 0]
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
