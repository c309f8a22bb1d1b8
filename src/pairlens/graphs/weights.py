"""Weights for edges: how near is near."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines import IntArray, Rows, mean_norm, pair_squared_distances, rebuilding_weights
from pairlens.graphs.nearest import nearest_rows


def default_theta(X: Rows) -> float:
    """The squared mean norm of the centred rows: the width of the heat kernel unless another is given."""
    return mean_norm(X) ** 2


def heat(X: Rows, edges: IntArray, theta: float | None = None) -> NDArray[np.float64]:
    r"""Heat weights :math:`\exp(-\|x_i - x_j\|^2 / \theta)` of edges.

    `theta` is :func:`default_theta` unless given; if that is 0, all rows are equal and all weights 1.
    """
    if theta is None:
        theta = default_theta(X)
    squared = pair_squared_distances(X, edges)
    return np.exp(-squared / theta) if theta > 0 else np.ones(len(edges))


def reconstruction_weights(X: Rows, n_neighbors: int, reg: float = 1e-3, *, search: str = "auto") -> sparse.csr_matrix:
    r"""Weights that rebuild each row from its neighbours, as in locally linear embedding.

    Each row of the result sums to 1 and minimises :math:`\|x_i - \sum_j R_{ij} x_j\|^2`, with the local Gram matrix
    regularised by ``reg`` times its trace.

    References
    ----------
    .. [1] S. Roweis, L. Saul, "Nonlinear dimensionality reduction by locally linear embedding", Science 290, 2000.
    """
    n = X.shape[0]
    k = min(n_neighbors, n - 1)
    indices, _ = nearest_rows(X, k, search=search)
    weight = rebuilding_weights(X, indices, reg)
    return sparse.csr_matrix((weight.ravel(), indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
