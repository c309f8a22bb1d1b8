r"""The random walk over near rows in memory, and what spreads along it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pairlens.engines import interface
from pairlens.engines.types import Float64, IntArray, Rows

NEGLIGIBLE = 1e-150
"""Weights below it are none: a row with no others has a degree whose inverse overflows."""
EXACT_SPREAD = 1e-12
"""Relative size at which the iteration of the spreading ends."""
ROUGH_SPREAD = 1e-6
"""The same on a graph whose neighbours are found roughly."""


@dataclass(frozen=True)
class LocalNearGraph:
    """See :class:`pairlens.engines.types.NearGraph`; `back` is the transpose of the walk, all are CSR matrices."""

    indices: IntArray
    weights: sparse.csr_matrix
    walk: sparse.csr_matrix
    back: sparse.csr_matrix
    accuracy: float

    def listed_scatter(self, rows: Rows) -> Float64:
        return interface.pair_scatter(rows, listed_pairs(self.indices))

    def spread(self, rows: Rows, a: float) -> Rows:
        return spread_over(self.walk, interface.rows_in_memory(rows), a, accuracy=self.accuracy)

    def spread_back(self, weights: Float64, a: float) -> Float64:
        return np.asarray(spread_over(self.back, weights, a, accuracy=self.accuracy))


def listed_pairs(nearest: IntArray) -> IntArray:
    """Each row with every row that it lists, of shape (n * k, 2); `nearest` has the lists, of shape (n, k)."""
    n, k = nearest.shape
    return np.column_stack([np.repeat(np.arange(n), k), nearest.ravel()])


@interface.near_walk.register(object)
def near_walk(
    X: Rows, k: int, *, scale_neighbor: int, accuracy: float, found: tuple[IntArray, Float64] | None = None
) -> LocalNearGraph:
    """Of rows that are elsewhere the distances alone are asked for."""
    if found is None:
        searched = interface.neighbors(X, n_nearest=max(k, scale_neighbor))
        found = searched.nearest, searched.nearest_distance
    nearest, scale = found[0][:, :k], found[1][:, scale_neighbor - 1]
    n = len(nearest)
    pairs = listed_pairs(nearest)
    source, target = pairs.T
    squared = interface.pair_squared_distances(X, pairs)
    local = scale[source] * scale[target]
    # Rows that repeat seven times have scale 0: full weight to each other, none to all others.
    weight = np.where(local > 0, np.exp(-squared / np.where(local > 0, local, 1.0)), squared == 0)
    weight[weight < NEGLIGIBLE] = 0.0
    listed = sparse.csr_matrix((weight, (source, target)), shape=(n, n))
    graph = listed.maximum(listed.T)
    degree = np.asarray(graph.sum(axis=1)).ravel()
    # A row whose weights all vanish walks to itself.
    graph = graph + sparse.diags(np.where(degree > 0, 0.0, 1.0))
    walk = (sparse.diags(1 / np.where(degree > 0, degree, 1.0)) @ graph).tocsr()
    return LocalNearGraph(nearest, graph.tocsr(), walk, walk.T.tocsr(), accuracy)


def spread_over(walk: Any, start: Any, a: float, *, accuracy: float = EXACT_SPREAD) -> Any:
    r""":math:`(1 - a)(I - a P)^{-1} x` to a relative accuracy, of about 1e-12 unless given.

    The eigenvalues of a P are real and lie in [-a, a], so Chebyshev's iteration gains
    :math:`a / (1 + \sqrt{1 - a^2})` a step where the power series gains a: half as many steps at a = 0.5. Where float32
    is accurate enough, it halves what has to be moved.

    Parameters
    ----------
    walk : CSR matrix of shape (n, n)
        P, or its transpose; a sparse tensor on a device.
    start : array of shape (n,) or (n, p)
        The x; a tensor on the device of the walk.
    a : float in [0, 1)
    accuracy : float
    """
    if isinstance(walk, sparse.spmatrix) and accuracy >= ROUGH_SPREAD and walk.dtype != np.float32:
        rough = spread_over(walk.astype(np.float32), start.astype(np.float32), a, accuracy=accuracy)
        return rough.astype(np.float64)
    if a == 0:
        return start
    most_steps = int(np.ceil(np.log(accuracy) / np.log(a)))
    small = accuracy * _largest(start)
    before, result, omega = 0 * start, (1 - a) * start, 1.0
    for step in range(most_steps):
        omega = 2 / (2 - a**2) if step == 0 else 1 / (1 - a**2 * omega / 4)
        change = walk @ result
        change *= a
        change += (1 - a) * start
        change -= before
        change *= omega
        change += before
        before, result = result, change
        if _largest(result - before) <= small:
            break
    return result


def _largest(values: Any) -> float:
    return float(abs(values).max()) if min(values.shape) else 0.0
