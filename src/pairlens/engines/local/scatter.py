r"""Scatters: a pair graph over n rows, turned into a small f x f matrix.

Every function returns float64, never builds anything of size n x n, and walks over the rows in blocks. The rows may be
a dense float32 or float64 array or a CSR matrix; float32 blocks are multiplied in float32 and summed in float64.

Differences of rows do not feel a translation, but sums of squares far from the origin lose digits: dense rows are
centred block by block before they are multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from pairlens.engines import interface
from pairlens.engines.local.rows import BLOCK_BYTES, row_blocks, take_rows
from pairlens.engines.types import Float64, FloatArray, Graph, IntArray, Rows

PORTION_BYTES = 1 << 24
"""Bytes of neighbours that are solved for together."""
FLOAT32_ROWS = 1 << 14
"""Rows whose products are summed in float32 before they are added in float64: an error of about 1e-7 on any BLAS."""


def _product_blocks(n: int, f: int, dtype: DTypeLike) -> Iterator[slice]:
    """Blocks of n rows whose product with themselves keeps the digits of its dtype."""
    row_bytes = np.dtype(dtype).itemsize * f
    single = np.dtype(dtype) == np.float32
    return row_blocks(n, row_bytes, min(BLOCK_BYTES, FLOAT32_ROWS * row_bytes) if single else BLOCK_BYTES)


@interface.weighted_scatter.register(object)
def weighted_scatter(
    X: Rows, *, weight: FloatArray | None = None, offset: FloatArray, is_mean: bool = False
) -> Float64:
    n, f = X.shape
    if sparse.issparse(X):
        return _sparse_weighted_scatter(X, weight, offset)
    if weight is None:
        return _plain_scatter(X, offset, is_mean)
    total = np.zeros((f, f))
    centre = offset.astype(X.dtype)
    root, unit = _roots(weight, X.dtype)
    for block in _product_blocks(n, f, X.dtype):
        rows = X[block] - centre
        rows *= root[block, None]
        total += rows.T @ rows
    return unit * total


def _roots(weight: FloatArray, dtype: DTypeLike) -> tuple[FloatArray, float]:
    """Square roots of weights in units of the largest, which keeps them in the range of float32, and that unit."""
    unit = float(np.max(weight, initial=0.0)) or 1.0
    return np.sqrt(weight / unit).astype(dtype), unit


def _plain_scatter(X: FloatArray, offset: FloatArray, is_mean: bool) -> Float64:
    """The scatter of all rows about a point near their mean.

    Centring copies every block, a third of the whole cost. It is needed only where columns lie far from zero: about one
    decimal digit is lost where the squared mean is nine tenths of the mean square.
    """
    n, f = X.shape
    squares, sums = np.zeros((f, f)), np.zeros(f)
    for block in _product_blocks(n, f, X.dtype):
        rows = X[block]
        squares += rows.T @ rows
        seen = block.stop
        sums = seen * offset if is_mean else sums + np.ones(len(rows), dtype=X.dtype) @ rows
        if np.any(sums**2 > 0.9 * seen * squares.diagonal()):
            break
    else:
        cross = np.outer(sums, offset)
        return squares - cross - cross.T + n * np.outer(offset, offset)
    total = np.zeros((f, f))
    centre = offset.astype(X.dtype)
    for block in _product_blocks(n, f, X.dtype):
        rows = X[block] - centre
        total += rows.T @ rows
    return total


def _sparse_weighted_scatter(X: sparse.csr_matrix, weight: FloatArray | None, offset: FloatArray) -> Float64:
    n = X.shape[0]
    d = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    weighted = X.multiply(d[:, None]).tocsr()
    cross = np.outer(offset, np.asarray(weighted.sum(axis=0)).ravel())
    product = np.asarray((X.T @ weighted).toarray(), dtype=np.float64)
    return product - cross - cross.T + d.sum() * np.outer(offset, offset)


@interface.group_scatter.register(object)
def group_scatter(X: Rows, codes: IntArray, *, weight: FloatArray | None = None) -> Float64:
    f = X.shape[1]
    member = np.flatnonzero(codes >= 0)
    total = np.zeros((f, f))
    if len(member) == 0:
        return total
    code = codes[member]
    means = group_means(X, codes)
    scale = np.ones(len(means)) if weight is None else np.asarray(weight, dtype=np.float64)
    if sparse.issparse(X):
        rows = X[member]
        per_group = scale * np.bincount(code)
        product = (rows.T @ rows.multiply(scale[code][:, None])).toarray()
        return np.asarray(product - (means.T * per_group) @ means, dtype=np.float64)
    means = means.astype(X.dtype)
    root, unit = _roots(scale, X.dtype)
    for block in _product_blocks(len(member), f, X.dtype):
        rows = X[member[block]] - means[code[block]]
        rows *= root[code[block], None]
        total += rows.T @ rows
    return unit * total


@interface.group_means.register(object)
def group_means(X: Rows, codes: IntArray) -> Float64:
    member = np.flatnonzero(codes >= 0)
    code = codes[member]
    size = np.bincount(code)
    sums = np.zeros((len(size), X.shape[1]))
    for block in row_blocks(len(member), 8 * X.shape[1]):
        rows = member[block]
        indicator = sparse.csr_matrix(
            (np.ones(len(rows)), (code[block], np.arange(len(rows)))), shape=(len(size), len(rows))
        )
        product = indicator @ X[rows]
        sums += product.toarray() if sparse.issparse(product) else product
    return sums / np.maximum(size, 1)[:, None]


@interface.pair_scatter.register(object)
def pair_scatter(X: Rows, pairs: IntArray, weight: FloatArray | None = None) -> Float64:
    """Only the rows that occur in a pair are read. They are summed as blocks of differences, O(m f^2) in BLAS, or, when
    there are many pairs per row, as the Laplacian form of the r rows involved, O(m f + r f^2).
    """
    f = X.shape[1]
    if len(pairs) == 0:
        return np.zeros((f, f))
    # Measured: the sparse product of the Laplacian form takes as long for one entry as BLAS for about 150.
    n_rows = min(X.shape[0], 2 * len(pairs))
    if not sparse.issparse(X) and len(pairs) * f <= 2 * n_rows * f + 150 * len(pairs):
        return _difference_scatter(X, pairs, weight)
    rows, local = np.unique(pairs, return_inverse=True)
    local = local.reshape(pairs.shape)
    w = np.ones(len(pairs)) if weight is None else weight
    graph = sparse.csr_matrix((w, (local[:, 0], local[:, 1])), shape=(len(rows), len(rows)))
    return graph_scatter(X[rows] if sparse.issparse(X) else take_rows(X, rows), graph + graph.T)


def _difference_scatter(X: FloatArray, pairs: IntArray, weight: FloatArray | None) -> Float64:
    f = X.shape[1]
    root, unit = (None, 1.0) if weight is None else _roots(weight, X.dtype)
    total = np.zeros((f, f))
    for block in _product_blocks(len(pairs), f, X.dtype):
        difference = np.take(X, pairs[block, 0], axis=0)
        difference -= np.take(X, pairs[block, 1], axis=0)
        if root is not None:
            difference *= root[block, None]
        total += difference.T @ difference
    return unit * total


@interface.graph_scatter.register(object)
def graph_scatter(X: Rows, graph: Graph) -> Float64:
    degree = np.asarray(graph.sum(axis=1)).ravel()
    if sparse.issparse(X):
        laplacian = sparse.diags(degree) - graph
        product = np.asarray((X.T @ (laplacian @ X)).toarray(), dtype=np.float64)
        return (product + product.T) / 2
    n, f = X.shape
    centred = X - X.mean(axis=0, dtype=np.float64)
    total = np.zeros((f, f))
    for block in row_blocks(n, 8 * f):
        rows = centred[block]
        total += rows.T @ (degree[block, None] * rows - graph[block] @ centred)
    return (total + total.T) / 2


@interface.residual_scatter.register(object)
def residual_scatter(X: Rows, rebuild: sparse.csr_matrix) -> Float64:
    residual = X - rebuild @ X
    product = residual.T @ residual
    return product.toarray() if sparse.issparse(product) else product


def rebuilding_graph(rebuild: sparse.csr_matrix) -> sparse.csr_matrix:
    """The symmetric graph whose Laplacian is ``(I - R)' (I - R)``, for weights R of which each row sums to 1."""
    graph = rebuild + rebuild.T - rebuild.T @ rebuild
    return (graph - sparse.diags(graph.diagonal())).tocsr()


@interface.rebuilding_weights.register(object)
def rebuilding_weights(X: Rows, indices: IntArray, reg: float) -> Float64:
    n, k = indices.shape
    weight = np.empty((n, k))
    step = max(1, PORTION_BYTES // (8 * k * X.shape[1]))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        chosen = indices[rows]
        near = take_rows(X, chosen.ravel()).reshape(*chosen.shape, -1)
        weight[rows] = solve_local(near - take_rows(X, rows)[:, None, :], reg)
    return weight


def solve_local(local: Float64, reg: float) -> Float64:
    """The weights from the neighbours of each row less the row, of shape (n, k, n_features)."""
    k = local.shape[1]
    gram = local @ local.transpose(0, 2, 1)
    trace = np.trace(gram, axis1=1, axis2=2)
    gram[:, np.arange(k), np.arange(k)] += np.where(trace > 0, reg * trace, reg)[:, None]
    weight = np.linalg.solve(gram, np.ones((len(gram), k, 1)))[..., 0]
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
