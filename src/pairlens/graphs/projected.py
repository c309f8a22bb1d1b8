r"""The two graphs of DSP: who is near in the null space of the must-links, and who is far in the input.

Both join a row with its k nearest or farthest rows, with weights that fall from 1 at distance 0 to 0 at the largest
distance. Rows in memory and in dask arrays give CSR matrices; graphs of rows in a tensor stay on its device.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from pairlens.engines import (
    Graph,
    IntArray,
    LocalProjectedRows,
    ProjectedNeighbors,
    ProjectedRows,
    pair_squared_distances,
)
from pairlens.engines.torch import TensorGraph, TorchProjectedRows, torch
from pairlens.graphs.approximate import approximate_neighbors
from pairlens.graphs.edges import edges_of, weight_matrix

EXACT_ROWS = 100_000
"""Rows in memory up to which search="auto" means "exact"."""

Float64 = NDArray[np.float64]


def projected_neighbors(
    rows: ProjectedRows, k: int, *, search: str = "auto", random_state: Any = None
) -> ProjectedNeighbors:
    """For every row the k nearest in projected distance and the k farthest in input distance.

    Parameters
    ----------
    rows : ProjectedRows
    k : int
        Between 1 and n - 1.
    search : {"auto", "exact", "approx"}
        "approx" takes time that grows nearly as n, for rows in memory; "auto" uses it for more than
        :data:`EXACT_ROWS` of these.
    random_state : int, RandomState, Generator or None
        Seed of the approximate search.
    """
    if search == "approx" and not isinstance(rows, LocalProjectedRows):
        raise ValueError(
            'neighbors="approx" works on NumPy arrays. Give neighbors="exact", or the tensor as X.cpu().numpy().'
        )
    if isinstance(rows, LocalProjectedRows) and (search == "approx" or (search == "auto" and rows.n > EXACT_ROWS)):
        return approximate_neighbors(rows, k, random_state=random_state)
    # scikit-learn's setting is about the memory of the host.
    on_device = isinstance(rows, TorchProjectedRows)
    return rows.neighbors(k, block_bytes=None if on_device else int(get_config()["working_memory"] * 2**20))


@singledispatch
def near_graph(rows: ProjectedRows, found: ProjectedNeighbors) -> Graph:
    r"""S: joins nearest rows, with weights :math:`1 - \hat d / \max \hat d`."""
    edges = edges_of(found.nearest)
    distance = np.sqrt(rows.squared_distances(edges[:, 0], edges[:, 1]))
    return weight_matrix(edges, _falling(distance, found.largest_projected), rows.n)


@singledispatch
def far_graph(rows: ProjectedRows, found: ProjectedNeighbors, cannot_link: IntArray, factor: Float64) -> Graph:
    r"""R: joins farthest and cannot-linked rows, with weights :math:`1 - d / \max d`, times factor for the latter."""
    farthest = edges_of(found.farthest)
    # Farthest first: of an edge given twice the first counts, and one that is known needs no factor.
    edges = np.concatenate([farthest, cannot_link])
    factor = np.concatenate([np.ones(len(farthest)), factor])
    _, chosen = np.unique(edges[:, 0] * rows.n + edges[:, 1], return_index=True)
    edges, factor = edges[chosen], factor[chosen]
    distance = np.sqrt(pair_squared_distances(rows.X, edges))
    return weight_matrix(edges, factor * _falling(distance, found.largest_input), rows.n)


def _falling(distance: Float64, largest: float) -> Float64:
    return np.maximum(1 - distance / largest, 0.0) if largest > 0 else np.ones(len(distance))


@near_graph.register(TorchProjectedRows)
def _near_on_device(rows: TorchProjectedRows, found: ProjectedNeighbors) -> TensorGraph:
    left, right = _ends(_edge_keys(found.nearest), rows.n)
    distance = rows.squared_distances(left, right).sqrt_()
    return TensorGraph(left, right, _falling_on_device(distance, found.largest_projected))


@far_graph.register(TorchProjectedRows)
def _far_on_device(
    rows: TorchProjectedRows, found: ProjectedNeighbors, cannot_link: IntArray, factor: Float64
) -> TensorGraph:
    keys = _edge_keys(found.farthest)
    pairs, first = np.unique(cannot_link.astype(np.int64) @ np.array([rows.n, 1]), return_index=True)
    linked = torch.from_numpy(pairs).to(keys.device)
    # An edge that is both far and cannot-linked counts once, as a far one.
    new = ~torch.isin(linked, keys)
    left, right = _ends(torch.cat([keys, linked[new]]), rows.n)
    share = torch.cat([torch.ones(len(keys), dtype=torch.float64), torch.from_numpy(factor[first])[new.cpu()]])
    distance = rows.rows.scale * rows.rows.squared_distances(left, right).sqrt_()
    return TensorGraph(left, right, share.to(keys.device) * _falling_on_device(distance, found.largest_input))


def _edge_keys(indices: Any) -> Any:
    """Unordered edges of a table of neighbours, each once, as the number ``smaller * n + larger``."""
    n, k = indices.shape
    source = torch.arange(n, device=indices.device).repeat_interleave(k)
    target = indices.reshape(-1)
    return torch.unique(torch.minimum(source, target) * n + torch.maximum(source, target))


def _ends(keys: Any, n: int) -> tuple[Any, Any]:
    return keys // n, keys % n


def _falling_on_device(distance: Any, largest: float) -> Any:
    return (1 - distance / largest).clamp_(min=0.0) if largest > 0 else torch.ones_like(distance)
