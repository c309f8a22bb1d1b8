"""Who is near and who is far, as lists of edges, and as sparse symmetric weight matrices."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines import FloatArray, IntArray, Rows
from pairlens.graphs.nearest import nearest_rows

Join = Literal["or", "and"]


def edges_of(indices: IntArray, *, join: Join = "or") -> NDArray[np.int64]:
    """Unordered edges (i < j) of a table of neighbours.

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
    """Edges between each row and its nearest rows; with fewer than n_neighbors + 1 rows, between all."""
    k = min(n_neighbors, X.shape[0] - 1)
    return edges_of(nearest_rows(X, k, search=search)[0], join=join)


def weight_matrix(
    edges: IntArray, weight: FloatArray | float, n_samples: int, *, self_loops: float = 0.0
) -> sparse.csr_matrix:
    """The symmetric n x n matrix with the given weights on the edges and `self_loops` on the diagonal."""
    value = np.broadcast_to(np.asarray(weight, dtype=np.float64), len(edges))
    half = sparse.csr_matrix((value, (edges[:, 0], edges[:, 1])), shape=(n_samples, n_samples))
    graph = half + half.T
    return graph if self_loops == 0 else graph + self_loops * sparse.identity(n_samples, format="csr")


def shared_neighbors(indices: IntArray) -> sparse.csr_matrix:
    """How many neighbours two rows have in common, for rows of which one lists the other.

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
