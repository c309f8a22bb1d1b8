r"""Edges between rows that are near or in pairs, their weights, and the symmetric weight matrices they make.

Edges of near rows have heat weights, weights that rebuild rows from their neighbours, or the number of neighbours that
two rows share. The weight matrices are what the methods attract or repel by.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens import engines
from pairlens.engines import Float64, IntArray, Rows
from pairlens.graphs.nearest import nearest_rows
from pairlens.supervision import Constraints
from pairlens.supervision.combined import written_pairs

Join = Literal["or", "and"]

PORTION_BYTES = 1 << 24
"""Bytes of neighbours that are solved for together."""


def edges_of(indices: IntArray, *, join: Join = "or") -> NDArray[np.int64]:
    """Return unordered edges (i < j) of a table whose row i lists the neighbours of i.

    One of the two rows must list the other for `join` "or", both for "and" ("mutual neighbours").
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


def shared_neighbors(indices: IntArray) -> sparse.csr_matrix:
    """Return how many neighbours two rows have in common, for rows of which one lists the other."""
    n, k = indices.shape
    lists = sparse.csr_matrix((np.ones(n * k), indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n), copy=True)
    edges = edges_of(indices)
    # The full product lists @ lists.T is dense around hubs; only the entries on edges are wanted.
    common = np.asarray(lists[edges[:, 0]].multiply(lists[edges[:, 1]]).sum(axis=1)).ravel()
    return engines.weight_matrix(edges, common, n)


def default_gamma(X: Rows) -> float:
    """Return the gamma of heat weights unless another is given: one over the squared mean norm of the centred rows.

    Of rows that are all equal it is infinite.
    """
    squared = engines.mean_norm(X) ** 2
    return 1.0 / squared if squared > 0 else float("inf")


def heat(X: Rows, edges: IntArray, gamma: float | str = "auto") -> Float64:
    r"""Return heat weights :math:`\exp(-\gamma \|x_i - x_j\|^2)` of edges; "auto" is :func:`default_gamma`."""
    width = default_gamma(X) if isinstance(gamma, str) else gamma
    return heat_weights(engines.pair_squared_distances(X, edges), width)


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
    rows = engines.rows_in_memory(X)
    weight = np.empty((n, k))
    step = max(1, PORTION_BYTES // (8 * k * X.shape[1]))
    for start in range(0, n, step):
        part = slice(start, start + step)
        near = engines.take_rows(rows, indices[part].ravel()).reshape(-1, k, X.shape[1])
        weight[part] = _rebuilding(near - engines.take_rows(rows, part)[:, None, :], reg)
    return sparse.csr_matrix((weight.ravel(), indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))


def _rebuilding(local: Float64, reg: float) -> Float64:
    """Return weights from the neighbours of each row less the row, of shape (n, k, n_features)."""
    k = local.shape[1]
    gram = local @ local.transpose(0, 2, 1)
    trace = np.trace(gram, axis1=1, axis2=2)
    gram[:, np.arange(k), np.arange(k)] += np.where(trace > 0, reg * trace, reg)[:, None]
    weight = np.linalg.solve(gram, np.ones((len(gram), k, 1)))[..., 0]
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def heat_graph(X: Rows, n_neighbors: int, gamma: float | str = "auto", *, search: str = "auto") -> sparse.csr_matrix:
    """Return heat weights between two rows of which one is among the nearest of the other."""
    edges = nearest_edges(X, n_neighbors, search=search)
    return engines.weight_matrix(edges, heat(X, edges, gamma), X.shape[0])


def degrees(graph: sparse.csr_matrix) -> NDArray[np.float64]:
    """Return the sum of the weights at each row."""
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
    similar = engines.weight_matrix(must, known.must_link_weight * heat(X, must, width), n)
    similar = similar + engines.weight_matrix(free, heat(X, free, width), n)
    return similar, engines.weight_matrix(cannot, known.cannot_link_weight * heat(X, cannot, width), n)


def pass_on(neighbours: sparse.csr_matrix, pairs: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the affinity of neighbours, changed by signed pairs and by what they pass on; all are symmetric."""
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
    X: Rows, n_neighbors: int, n_graph_neighbors: int, *, search: str = "auto"
) -> tuple[IntArray, NDArray[np.float64], IntArray]:
    """Return the two graphs of SODRPaC from one search: mutual neighbours with what they share, and the edges of M.

    Two rows are mutual neighbours if each is among the `n_neighbors` nearest of the other; the second array says how
    many neighbours they have in common. The last one has the edges of the `n_graph_neighbors` nearest rows of each row.
    """
    most = X.shape[0] - 1
    k, g = min(n_neighbors, most), min(n_graph_neighbors, most)
    nearest, _ = nearest_rows(X, max(k, g), search=search)
    mutual = edges_of(nearest[:, :k], join="and")
    common = np.asarray(shared_neighbors(nearest[:, :k])[mutual[:, 0], mutual[:, 1]]).ravel()
    return mutual, common, edges_of(nearest[:, :g])
