"""Distances of given pairs of rows, and products of all pairs of few rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines.dispatch import dispatched
from pairlens.engines.local.rows import IntArray, Rows, row_blocks

__all__ = ["centred_product", "pair_squared_distances"]


@dispatched
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


@dispatched
def centred_product(left: Rows, right: Rows, centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """(left - centre)(right - centre)' in float64, over blocks of columns so that no float64 copy is made."""
    if sparse.issparse(left):
        product = np.asarray((left.astype(np.float64) @ right.T).toarray())
        product -= (left @ centre)[:, None] + (right @ centre)[None, :]
        return product + centre @ centre
    product = np.zeros((left.shape[0], right.shape[0]))
    for block in row_blocks(left.shape[1], 8 * max(left.shape[0], right.shape[0]), 1 << 25):
        shift = centre[block]
        product += (left[:, block] - shift) @ (right[:, block] - shift).T
    return product
