"""Weighted graphs of neighbours, of pairs and of both: the affinities that the methods attract or repel by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines import IntArray, Rows
from pairlens.graphs.edges import default_gamma, edges_of, heat, nearest_edges, shared_neighbors, weight_matrix
from pairlens.graphs.nearest import nearest_rows
from pairlens.supervision import Constraints
from pairlens.supervision.combined import written_pairs


def nearest_graph(X: Rows, n_neighbors: int, *, search: str = "auto") -> sparse.csr_matrix:
    """Return weight 1 between two rows of which one is among the nearest of the other."""
    return weight_matrix(nearest_edges(X, n_neighbors, search=search), 1.0, X.shape[0])


def heat_graph(X: Rows, n_neighbors: int, gamma: float | str = "auto", *, search: str = "auto") -> sparse.csr_matrix:
    """Return heat weights between two rows of which one is among the nearest of the other."""
    edges = nearest_edges(X, n_neighbors, search=search)
    return weight_matrix(edges, heat(X, edges, gamma), X.shape[0])


def degrees(graph: sparse.csr_matrix) -> NDArray[np.float64]:
    """Sum of the weights at each row."""
    return np.asarray(graph.sum(axis=1)).ravel()


def normalized_graph(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    r"""Return :math:`K^{-1/2} U K^{-1/2}` of a graph U with the degrees K; rows without neighbours keep none."""
    degree = degrees(graph)
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return (sparse.diags(root) @ graph @ sparse.diags(root)).tocsr()


def side_information_graphs(
    X: Rows, known: Constraints, n_neighbors: int, gamma: float | str, *, search: str = "auto"
) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Return heat weights on must-links and on neighbours that are in no pair with each other; heat on cannot-links."""
    n = X.shape[0]
    width = default_gamma(X) if isinstance(gamma, str) else gamma
    known = written_pairs(known)
    must, cannot = known.must_link, known.cannot_link
    near = nearest_edges(X, n_neighbors, search=search)
    paired = np.concatenate([must, cannot])
    free = near[~np.isin(near @ [n, 1], paired @ [n, 1])]
    similar = weight_matrix(must, known.must_link_weight * heat(X, must, width), n)
    similar = similar + weight_matrix(free, heat(X, free, width), n)
    return similar, weight_matrix(cannot, known.cannot_link_weight * heat(X, cannot, width), n)


def pass_on(neighbours: sparse.csr_matrix, pairs: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the affinity of neighbours, changed by pairs and by what they pass on.

    Parameters
    ----------
    neighbours : csr matrix of shape (n, n)
        Symmetric weights of neighbours.
    pairs : csr matrix of shape (n, n)
        Symmetric, positive for must-links and negative for cannot-links.
    """
    passed = neighbours @ pairs
    passed = passed + passed.T
    occupied = _pattern(neighbours) + _pattern(pairs) + sparse.identity(pairs.shape[0], format="csr")
    return _outside(neighbours, _pattern(pairs)) + pairs + _outside(passed, occupied)


def _pattern(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return ones where the matrix has entries."""
    return sparse.csr_matrix((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)


def _outside(matrix: sparse.csr_matrix, pattern: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the entries of the matrix at which the pattern has none."""
    return matrix - matrix.multiply(pattern > 0)


def mutual_and_graph_edges(
    X: Rows, n_neighbors: int, n_graph_neighbors: int, *, include_self: bool = False, search: str = "auto"
) -> tuple[IntArray, NDArray[np.float64], IntArray]:
    """Return the two graphs of SODRPaC from one search: mutual neighbours with what they share, and the edges of M.

    Parameters
    ----------
    X : array, CSR matrix or rows of an engine
    n_neighbors : int
        Two rows are mutual neighbours if each is among this many nearest of the other.
    n_graph_neighbors : int
        Neighbours of each row in the graph of the manifold.
    include_self : bool
        Count a row among its own neighbours when counting shared ones.
    search : {"auto", "exact", "approx"}
        As for :func:`~pairlens.graphs.nearest.nearest_rows`.

    Returns
    -------
    mutual : int array of shape (n_mutual, 2)
    shared : array of shape (n_mutual,)
        Number of neighbours that the rows of each pair have in common.
    graph : int array of shape (n_edges, 2)
    """
    most = X.shape[0] - 1
    k, g = min(n_neighbors, most), min(n_graph_neighbors, most)
    nearest, _ = nearest_rows(X, max(k, g), search=search)
    mutual = edges_of(nearest[:, :k], join="and")
    common = np.asarray(shared_neighbors(nearest[:, :k])[mutual[:, 0], mutual[:, 1]]).ravel()
    # Counted in their own lists, two rows that list each other have each other in common too.
    return mutual, common + 2.0 if include_self else common, edges_of(nearest[:, :g])
