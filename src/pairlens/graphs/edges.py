r"""Edges between rows that are near or far, their weights, and the symmetric weight matrices they make.

Edges of near rows have heat weights, weights that rebuild rows from their neighbours, or the number of neighbours that
two rows share. The two graphs of DSP join a row with the rows that are nearest in the null space of the must-links and
with those that are farthest in the input, with weights that fall from 1 at distance 0 to 0 at the largest distance.
Rows in memory give CSR matrices; these two graphs of rows in a tensor stay on its device.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config

from pairlens.engines import (
    Float64,
    FloatArray,
    Graph,
    IntArray,
    LocalProjectedRows,
    ProjectedNeighbors,
    ProjectedRows,
    Rows,
    mean_norm,
    pair_squared_distances,
    rebuilding_weights,
)
from pairlens.engines.torch import TensorGraph, TorchProjectedRows, torch
from pairlens.graphs.approximate import approximate_neighbors
from pairlens.graphs.nearest import NO_INDEX, nearest_rows

Join = Literal["or", "and"]

EXACT_ROWS = 100_000
"""Rows in memory up to which :func:`projected_neighbors` takes search="auto" for "exact"."""


def edges_of(indices: IntArray, *, join: Join = "or") -> NDArray[np.int64]:
    """Return unordered edges (i < j) of a table of neighbours.

    Parameters
    ----------
    indices : int array of shape (n, k)
        Row i lists the neighbours of i.
    join : {"or", "and"}
        Whether one of the two rows must list the other, or both ("mutual neighbours").
    """
    n, k = indices.shape
    source = np.repeat(np.arange(n, dtype=np.int64), k)
    target = indices.ravel().astype(np.int64)
    key = np.minimum(source, target) * n + np.maximum(source, target)
    key, count = np.unique(key, return_counts=True)
    if join == "and":
        key = key[count == 2]
    return np.column_stack([key // n, key % n])


def nearest_edges(X: Rows, n_neighbors: int, *, join: Join = "or", search: str = "auto") -> NDArray[np.int64]:
    """Return edges between each row and its nearest rows; with fewer than n_neighbors + 1 rows, between all."""
    k = min(n_neighbors, X.shape[0] - 1)
    return edges_of(nearest_rows(X, k, search=search)[0], join=join)


def weight_matrix(edges: IntArray, weight: FloatArray | float, n_samples: int) -> sparse.csr_matrix:
    """Return the symmetric n x n matrix with the given weights on the edges."""
    value = np.broadcast_to(np.asarray(weight, dtype=np.float64), len(edges))
    half = sparse.csr_matrix((value, (edges[:, 0], edges[:, 1])), shape=(n_samples, n_samples))
    return half + half.T


def shared_neighbors(indices: IntArray) -> sparse.csr_matrix:
    """Return how many neighbours two rows have in common, for rows of which one lists the other.

    Parameters
    ----------
    indices : int array of shape (n, k)
        Row i lists the neighbours of i.
    """
    n, k = indices.shape
    lists = sparse.csr_matrix((np.ones(n * k), indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n), copy=True)
    edges = edges_of(indices)
    # The full product lists @ lists.T is dense around hubs; only the entries on edges are wanted.
    common = np.asarray(lists[edges[:, 0]].multiply(lists[edges[:, 1]]).sum(axis=1)).ravel()
    return weight_matrix(edges, common, n)


def default_gamma(X: Rows) -> float:
    """Return the gamma of heat weights unless another is given: one over the squared mean norm of the centred rows.

    Of rows that are all equal it is infinite.
    """
    squared = mean_norm(X) ** 2
    return 1.0 / squared if squared > 0 else float("inf")


def heat(X: Rows, edges: IntArray, gamma: float | str = "auto") -> Float64:
    r"""Return heat weights :math:`\exp(-\gamma \|x_i - x_j\|^2)` of edges; "auto" is :func:`default_gamma`."""
    width = default_gamma(X) if isinstance(gamma, str) else gamma
    return heat_weights(pair_squared_distances(X, edges), width)


def heat_weights(squared: Float64, gamma: float) -> Float64:
    r"""Return :math:`\exp(-\gamma d^2)` of squared distances, and 1 for the infinite gamma of rows that are equal."""
    return np.exp(-gamma * squared) if np.isfinite(gamma) else np.ones(len(squared))


def reconstruction_weights(X: Rows, n_neighbors: int, reg: float = 1e-3, *, search: str = "auto") -> sparse.csr_matrix:
    r"""Return weights that rebuild each row from its neighbours, as in locally linear embedding.

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


def projected_neighbors(
    rows: ProjectedRows, k: int, *, search: str = "auto", random_state: Any = None
) -> ProjectedNeighbors:
    """Return, for every row, the k nearest in projected distance and the k farthest in input distance.

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
        raise ValueError(NO_INDEX)
    if isinstance(rows, LocalProjectedRows) and (search == "approx" or (search == "auto" and rows.n > EXACT_ROWS)):
        return approximate_neighbors(rows, k, random_state=random_state)
    # scikit-learn's setting is about the memory of the host.
    on_device = isinstance(rows, TorchProjectedRows)
    return rows.neighbors(k, block_bytes=None if on_device else int(get_config()["working_memory"] * 2**20))


@singledispatch
def projected_near_graph(rows: ProjectedRows, found: ProjectedNeighbors) -> Graph:
    r"""Return the S of DSP: joins nearest rows, with weights :math:`1 - \hat d / \max \hat d`."""
    edges = edges_of(found.nearest)
    distance = np.sqrt(rows.squared_distances(edges[:, 0], edges[:, 1]))
    return weight_matrix(edges, _falling(distance, found.largest_projected), rows.n)


@singledispatch
def projected_far_graph(
    rows: ProjectedRows, found: ProjectedNeighbors, cannot_link: IntArray, factor: Float64
) -> Graph:
    r"""Return the R of DSP: joins farthest and cannot-linked rows, with weights :math:`1 - d / \max d`.

    Those of cannot-links are multiplied by their factor.
    """
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


@projected_near_graph.register(TorchProjectedRows)
def _near_on_device(rows: TorchProjectedRows, found: ProjectedNeighbors) -> TensorGraph:
    left, right = _ends(_edge_keys(found.nearest), rows.n)
    distance = rows.squared_distances(left, right).sqrt_()
    return TensorGraph(left, right, _falling_on_device(distance, found.largest_projected))


@projected_far_graph.register(TorchProjectedRows)
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
    """Return unordered edges of a table of neighbours, each once, as the number ``smaller * n + larger``."""
    n, k = indices.shape
    source = torch.arange(n, device=indices.device).repeat_interleave(k)
    target = indices.reshape(-1)
    return torch.unique(torch.minimum(source, target) * n + torch.maximum(source, target))


def _ends(keys: Any, n: int) -> tuple[Any, Any]:
    return keys // n, keys % n


def _falling_on_device(distance: Any, largest: float) -> Any:
    return (1 - distance / largest).clamp_(min=0.0) if largest > 0 else torch.ones_like(distance)
