"""The graph of near rows with local scales, the random walk over it, and what spreads along that walk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines import Float64, IntArray, Rows, pair_scatter, pair_squared_distances
from pairlens.engines.torch import TensorRows, torch
from pairlens.graphs.device import device_nearest, device_walks, listed_scatter
from pairlens.graphs.nearest import nearest_rows, searches_approximately

SCALE_NEIGHBOR = 7
"""The neighbour whose distance is the local scale of the weights."""
NEGLIGIBLE = 1e-150
"""Weights below it are none: a row with no others has a degree whose inverse overflows."""
ACCURACY = 1e-12
"""Relative size at which the iteration of the spreading ends."""
ROUGHLY = 1e-6
"""The same on a graph whose neighbours are found roughly."""


@dataclass(frozen=True)
class NearGraph:
    """The nearest rows of each row, their symmetric weights, and the random walk over them.

    Attributes
    ----------
    indices : int array of shape (n, k)
        A tensor for rows of a tensor, as all that follows.
    weights : CSR matrix of shape (n, n) or None
        None for rows of a tensor.
    walk, back : CSR matrices of shape (n, n)
        P and its transpose.
    accuracy : float
        To which relative accuracy it is worth while to follow the walk.
    """

    indices: Any
    weights: sparse.csr_matrix | None
    walk: Any
    back: Any
    accuracy: float = ACCURACY

    def listed_scatter(self, rows: Rows) -> Float64:
        """Scatter of the differences between each row and those it lists."""
        n, k = self.indices.shape
        return pair_scatter(rows, np.column_stack([np.repeat(np.arange(n), k), self.indices.ravel()]))

    def spread(self, rows: Rows, a: float) -> Rows:
        r"""The rows, spread over the walk: :math:`(1 - a)(I - a P)^{-1} X`."""
        return spread_over(self.walk, rows, a, accuracy=self.accuracy)

    def spread_back(self, weights: Float64, a: float) -> Float64:
        r"""Weights of the rows, spread over the transpose of the walk."""
        return np.asarray(spread_over(self.back, weights, a, accuracy=self.accuracy))


class DeviceNearGraph(NearGraph):
    """The same of the rows of a tensor, on their device."""

    def listed_scatter(self, rows: TensorRows) -> Float64:
        return listed_scatter(rows, self.indices)

    def spread(self, rows: TensorRows, a: float) -> TensorRows:
        return TensorRows(spread_over(self.walk, rows.tensor, a, accuracy=self.accuracy))


def near_graph(
    rows: Rows,
    n_neighbors: int,
    *,
    search: str = "auto",
    found: tuple[IntArray, NDArray[np.float64]] | None = None,
) -> NearGraph:
    r"""Nearest neighbours with weights :math:`\exp(-d_{ij}^2 / (s_i s_j))`, :math:`s_i` the distance to the 7th.

    Parameters
    ----------
    rows : array of shape (n, p), or TensorRows
    n_neighbors : int
    search : {"auto", "exact", "approx"}
        As the parameter `neighbors` of the methods.
    found : tuple of arrays, optional
        What :func:`~pairlens.graphs.nearest.nearest_rows` has found by that search, if somebody looked for at least
        `n_neighbors` and 7 of them.
    """
    n = rows.shape[0]
    k = min(n_neighbors, n - 1)
    scaling = min(SCALE_NEIGHBOR, n - 1)
    if isinstance(rows, TensorRows):
        searches_approximately(rows, search)
        nearest, distance = device_nearest(rows, max(k, scaling))
        nearest = nearest[:, :k].contiguous()
        return DeviceNearGraph(nearest, None, *device_walks(rows, nearest, distance[:, scaling - 1], NEGLIGIBLE))
    nearest, distance = nearest_rows(rows, max(k, scaling), search=search) if found is None else found
    graph = _walked(rows, nearest[:, :k], distance[:, scaling - 1])
    return replace(graph, accuracy=ROUGHLY) if searches_approximately(rows, search) else graph


def _walked(rows: NDArray[np.float64], nearest: IntArray, scale: NDArray[np.float64]) -> NearGraph:
    """The graph of known neighbours, with the local scales s."""
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
    walk = (sparse.diags(1 / np.where(degree > 0, degree, 1.0)) @ graph).tocsr()
    return NearGraph(nearest, graph.tocsr(), walk, walk.T.tocsr())


def spread_over(walk: Any, start: Any, a: float, *, accuracy: float = ACCURACY) -> Any:
    r""":math:`(1 - a)(I - a P)^{-1} x` to a relative accuracy, of about 1e-12 unless given.

    The eigenvalues of a P are real and lie in [-a, a], so Chebyshev's iteration gains
    :math:`a / (1 + \sqrt{1 - a^2})` a step where the power series gains a: half as many steps at a = 0.5. Where float32
    is accurate enough, it halves what has to be moved.

    Parameters
    ----------
    walk : CSR matrix of shape (n, n)
        P, or its transpose; a tensor if it is on a device.
    start : array of shape (n,) or (n, p)
        The x. For a walk on a device an array, or a tensor, which gives a tensor.
    a : float in [0, 1)
    accuracy : float
    """
    if not isinstance(walk, sparse.spmatrix) and isinstance(start, np.ndarray):
        moved = torch.from_numpy(start).to(walk.device)
        return spread_over(walk, moved, a, accuracy=accuracy).cpu().numpy()
    if isinstance(walk, sparse.spmatrix) and accuracy >= ROUGHLY and walk.dtype != np.float32:
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
