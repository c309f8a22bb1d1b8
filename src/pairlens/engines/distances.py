"""Distances of given pairs of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines.blocks import IntArray, Rows, row_blocks

__all__ = ["pair_squared_distances"]


def pair_squared_distances(X: Rows, pairs: IntArray) -> NDArray[np.float64]:
    """Squared Euclidean distances of pairs of rows, from differences and therefore exact for close rows."""
    result = np.empty(len(pairs))
    for block in row_blocks(len(pairs), 8 * X.shape[1]):
        left, right = X[pairs[block, 0]], X[pairs[block, 1]]
        if sparse.issparse(X):
            difference = left - right
            result[block] = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
        else:
            difference = np.subtract(left, right, dtype=np.float64)
            result[block] = np.einsum("ij,ij->i", difference, difference)
    return result
