"""The graph of near rows with local scales, the random walk over it, and what spreads along that walk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines import IntArray, pair_squared_distances
from pairlens.graphs.nearest import nearest_rows

SCALE_NEIGHBOR = 7
"""The neighbour whose distance is the local scale of the weights."""
NEGLIGIBLE = 1e-150
"""Weights below it are none: a row with no others has a degree whose inverse overflows."""
ACCURACY = 1e-12
"""Relative size at which the iteration of the spreading ends."""


@dataclass(frozen=True)
class NearGraph:
    """The nearest rows of each row, their symmetric weights, and the random walk over them."""

    indices: IntArray
    weights: sparse.csr_matrix
    walk: sparse.csr_matrix


def near_graph(rows: NDArray[np.float64], n_neighbors: int, *, search: str = "auto") -> NearGraph:
    r"""Nearest neighbours with weights :math:`\exp(-d_{ij}^2 / (s_i s_j))`, :math:`s_i` the distance to the 7th."""
    n = len(rows)
    k = min(n_neighbors, n - 1)
    nearest, distance = nearest_rows(rows, max(k, min(SCALE_NEIGHBOR, n - 1)), search=search)
    return walked(rows, nearest[:, :k], distance[:, min(SCALE_NEIGHBOR, n - 1) - 1])


def walked(rows: NDArray[np.float64], nearest: IntArray, scale: NDArray[np.float64]) -> NearGraph:
    """The graph of known neighbours.

    Parameters
    ----------
    rows : array of shape (n, p)
    nearest : int array of shape (n, k)
        Neighbours of each row.
    scale : array of shape (n,)
        The s.
    """
    n, k = nearest.shape
    source, target = np.repeat(np.arange(n), k), nearest.ravel()
    squared = pair_squared_distances(rows, np.column_stack([source, target]))
    local = scale[source] * scale[target]
    # Rows that repeat seven times have scale 0: full weight to each other, none to all others.
    weight = np.where(local > 0, np.exp(-squared / np.where(local > 0, local, 1.0)), squared == 0)
    weight[weight < NEGLIGIBLE] = 0.0
    listed = sparse.csr_matrix((weight, (source, target)), shape=(n, n))
    graph = listed.maximum(listed.T)
    degree = np.asarray(graph.sum(axis=1)).ravel()
    # A row whose weights all vanish walks to itself.
    graph = graph + sparse.diags(np.where(degree > 0, 0.0, 1.0))
    walk = sparse.diags(1 / np.where(degree > 0, degree, 1.0)) @ graph
    return NearGraph(nearest, graph.tocsr(), walk.tocsr())


def spread_over(walk: sparse.csr_matrix, start: NDArray[np.float64], a: float) -> NDArray[np.float64]:
    r""":math:`(1 - a)(I - a P)^{-1} x` to a relative accuracy of about 1e-12.

    The eigenvalues of a P are real and lie in [-a, a], so Chebyshev's iteration gains
    :math:`a / (1 + \sqrt{1 - a^2})` a step where the power series gains a: half as many steps at a = 0.5.
    """
    if a == 0:
        return start
    most_steps = int(np.ceil(np.log(ACCURACY) / np.log(a)))
    small = ACCURACY * np.abs(start).max(initial=0.0)
    before, result, omega = np.zeros_like(start), (1 - a) * start, 1.0
    for step in range(most_steps):
        omega = 2 / (2 - a**2) if step == 0 else 1 / (1 - a**2 * omega / 4)
        change = walk @ result
        change *= a
        change += (1 - a) * start
        change -= before
        change *= omega
        change += before
        before, result = result, change
        if np.abs(result - before).max(initial=0.0) <= small:
            break
    return result
