r"""Operations on rows in memory: reading, projecting, measuring, and scatters, which turn a pair graph into a matrix.

They run over the rows in blocks that fit the cache, with the threads that pay, and never build anything of size n x n.
The rows may be a dense float32 or float64 array or a CSR matrix; float32 blocks are multiplied in float32 and summed in
float64. Differences of rows do not feel a translation, but sums of squares far from the origin lose digits: dense rows
are centred block by block before they are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import linalg, sparse

from pairlens.engines import interface
from pairlens.engines.types import Float64, FloatArray, Graph, IntArray, Kernel, KernelMap, Placement, Rows

MEDIAN_ROWS = 1000
"""Rows that the median distance is taken of."""
BLOCK_BYTES = 1 << 23
"""Bytes of one row block: large enough for BLAS to run at speed, small enough to stay near the cores."""
SMALL_PRODUCT = 20_000_000
"""Multiplications per matrix product below which handing work to other threads costs more than it saves."""
PORTION_BYTES = 1 << 24
"""Bytes of neighbours that are solved for together."""
FLOAT32_ROWS = 1 << 14
"""Rows whose products are summed in float32 before they are added in float64: an error of about 1e-7 on any BLAS."""


def row_blocks(n_rows: int, row_bytes: int, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Slices that cover ``range(n_rows)`` in steps of about `block_bytes`."""
    step = max(64, block_bytes // max(1, row_bytes))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def evenly_spaced(n: int, at_most: int) -> NDArray[np.int64]:
    """Up to `at_most` row numbers spread evenly over n rows: no seed, and the same rows every time."""
    return np.unique(np.linspace(0, n - 1, min(n, at_most)).astype(np.int64))


@interface.read_ahead.register(object)
def read_ahead(X: Rows, rows: IntArray, *, scatter: bool) -> None:
    """Does nothing: the rows are in memory."""


def dense(X: Rows, rows: IntArray | slice) -> NDArray[Any]:
    """Some rows as a dense array in their own dtype."""
    return X[rows].toarray() if sparse.issparse(X) else X[rows]


@interface.take_rows.register(object)
def take_rows(X: Rows, rows: IntArray | slice) -> Float64:
    return dense(X, rows).astype(np.float64, copy=False)


@interface.rows_in_memory.register(object)
def rows_in_memory(X: Rows, rows: IntArray | None = None) -> Rows:
    return X if rows is None else X[rows]


@interface.rows_to_learn_from.register(object)
def rows_to_learn_from(
    X: Rows,
    placement: Placement,  # noqa: ARG001 - every method can deal with rows in memory
    *,
    needed: IntArray,  # noqa: ARG001
    who: str,  # noqa: ARG001
) -> tuple[Rows, IntArray | None]:
    return X, None


@interface.column_means.register(object)
def column_means(X: Rows) -> Float64:
    """A product with a vector of ones runs at memory speed, several times faster than a float64 reduction
    of float32 columns; short blocks keep the float32 part of the sum exact to about 1e-6.
    """
    n, f = X.shape
    if sparse.issparse(X):
        return np.asarray(X.sum(axis=0, dtype=np.float64)).ravel() / n
    total = np.zeros(f)
    for block in row_blocks(n, X.itemsize * f, 1 << 20):
        rows = X[block]
        total += np.ones(len(rows), dtype=X.dtype) @ rows
    return total / n


@interface.varying_columns.register(object)
def varying_columns(X: Rows) -> NDArray[np.bool_]:
    """Reads only as many rows as it takes to see every column vary, for most data those of the first block."""
    if sparse.issparse(X):
        filled = np.bincount(X.indices, minlength=X.shape[1])
        varies = filled > 0
        full = np.flatnonzero(filled == X.shape[0])
        varies[full] = np.any(X[:, full].toarray() != X[:1, full].toarray(), axis=0)
        return varies
    varies = np.zeros(X.shape[1], dtype=bool)
    for block in row_blocks(X.shape[0], X.itemsize * X.shape[1], 1 << 20):
        varies |= np.any(X[block] != X[0], axis=0)
        if varies.all():
            break
    return varies


@interface.column_deviations.register(object)
def column_deviations(X: Rows, mean: Float64) -> Float64:
    """Squares are taken in units of the largest, so that they neither overflow nor vanish."""
    if sparse.issparse(X):
        # The stored entries about the mean, then the zeros: the difference of two large sums would lose all digits.
        stored = X.tocsc()
        filled = np.diff(stored.indptr)
        column = np.repeat(np.arange(X.shape[1]), filled)
        difference = stored.data - mean[column]
        unit = np.abs(mean)
        np.maximum.at(unit, column, np.abs(difference))
        unit[unit == 0] = 1.0
        of_stored = np.bincount(column, (difference / unit[column]) ** 2, X.shape[1])
        square = (of_stored + (X.shape[0] - filled) * (mean / unit) ** 2) / X.shape[0]
    else:
        difference = X - mean
        unit = np.maximum(difference.max(axis=0), -difference.min(axis=0))
        unit[unit == 0] = 1.0
        difference /= unit
        square = column_means(np.square(difference, out=difference))
    return np.asarray(unit * np.sqrt(square))


@interface.absolute_deviations.register(object)
def absolute_deviations(X: Rows, mean: Float64) -> Float64:
    n, f = X.shape
    total = np.zeros(f)
    for block in row_blocks(n, 8 * f):
        rows = X[block]
        if sparse.issparse(rows):
            stored = np.bincount(rows.indices, np.abs(rows.data - mean[rows.indices]), f)
            total += stored + (rows.shape[0] - np.bincount(rows.indices, minlength=f)) * np.abs(mean)
        else:
            total += np.abs(rows - mean).sum(axis=0)
    return total / n


@interface.mean_norm.register(object)
def mean_norm(X: Rows) -> float:
    offset = column_means(X)
    if sparse.issparse(X):
        squared = np.asarray(X.multiply(X).sum(axis=1)).ravel() - 2 * (X @ offset) + offset @ offset
    else:
        centred = X - offset
        squared = np.einsum("ij,ij->i", centred, centred)
    return float(np.sqrt(np.maximum(squared, 0.0)).mean())


@interface.project.register(object)
def project(X: Rows, mean: FloatArray, components: FloatArray) -> FloatArray:
    """Dense rows are centred block by block, so that columns far from zero cost no digits; sparse ones stay sparse."""
    if sparse.issparse(X):
        return np.asarray(X @ components.T - mean @ components.T)
    result = np.empty((X.shape[0], len(components)), dtype=np.result_type(X, components))
    for block in row_blocks(X.shape[0], X.itemsize * X.shape[1]):
        np.matmul(X[block] - mean, components.T, out=result[block])
    return result


@interface.map_rows.register(object)
def map_rows(X: Rows, embed: Callable[[Rows], Any], n_columns: int) -> FloatArray:  # noqa: ARG001
    return np.asarray(embed(X)).astype(X.dtype, copy=False)


@interface.along.register(object)
def along(X: Rows, directions: Float64, *, origin: Float64 | None = None) -> Rows:
    product = np.asarray(X @ directions)
    return product if origin is None else product - origin @ directions


@interface.rescaled.register(object)
def rescaled(X: Rows, *, offset: Float64 | None = None, scale: Float64 | float) -> Rows:
    if sparse.issparse(X):
        return (X @ sparse.diags(1 / np.asarray(scale))).tocsr()
    return (X if offset is None else X - offset) / scale


@interface.unit_variance.register(object)
def unit_variance(X: Rows) -> tuple[Rows, Float64, float]:
    mean = X.mean(axis=0)
    centred = X - mean
    variance = np.einsum("ij,ij->", centred, centred) / len(X)
    size = float(np.sqrt(variance)) if variance > 0 else 1.0
    return centred / size, mean, size


@interface.combine_rows.register(object)
def combine_rows(X: Rows, coefficients: FloatArray) -> Float64:
    return np.asarray((X.T @ coefficients.T).T, dtype=np.float64)


@interface.centred_product.register(object)
def centred_product(left: Rows, right: Rows, centre: Float64) -> Float64:
    """In float64, over blocks of columns so that no float64 copy is made."""
    if sparse.issparse(left):
        product = np.asarray((left.astype(np.float64) @ right.T).toarray())
        product -= (left @ centre)[:, None] + (right @ centre)[None, :]
        return product + centre @ centre
    product = np.zeros((left.shape[0], right.shape[0]))
    for block in row_blocks(left.shape[1], 8 * max(left.shape[0], right.shape[0]), 1 << 25):
        shift = centre[block]
        product += (left[:, block] - shift) @ (right[:, block] - shift).T
    return product


@interface.symmetric_eigen.register(object)
def symmetric_eigen(_X: Rows, A: Float64) -> tuple[Float64, Float64]:
    values, vectors = linalg.eigh(A, check_finite=False)
    return values[::-1], vectors[:, ::-1]


@interface.kernel_product.register(object)
def kernel_product(X: Rows, features: KernelMap) -> Rows:
    anchors, combination = features.anchors, features.combination
    result = np.empty((X.shape[0], combination.shape[1]))
    for block in row_blocks(X.shape[0], 8 * anchors.shape[0]):
        similarity = kernel_matrix(X[block], anchors, features.kernel, features.gamma)
        result[block] = similarity @ combination - features.offset
    return result


def kernel_matrix(X: Rows, Y: Rows, kernel: Kernel, gamma: float | None) -> Float64:
    """The kernel between two sets of rows in memory, in float64."""
    from sklearn.metrics.pairwise import pairwise_kernels

    left, right = X.astype(np.float64), Y.astype(np.float64)
    if callable(kernel):
        return np.asarray(pairwise_kernels(left, right, metric=kernel), dtype=np.float64)
    return np.asarray(pairwise_kernels(left, right, metric=kernel, filter_params=True, gamma=gamma))


@interface.median_gamma.register(object)
def median_gamma(X: Rows) -> float:
    """The rows that it takes are few: they are fetched from wherever they are."""
    from sklearn.metrics.pairwise import euclidean_distances

    if X.shape[0] < 2:
        return 1.0
    rows = interface.rows_in_memory(X, evenly_spaced(X.shape[0], MEDIAN_ROWS)).astype(np.float64)
    squared = euclidean_distances(rows, squared=True)
    median = float(np.median(squared[np.triu_indices_from(squared, 1)]))
    return 1.0 / median if median > 0 else 1.0


@interface.pair_squared_distances.register(object)
def pair_squared_distances(X: Rows, pairs: IntArray) -> Float64:
    result = np.empty(len(pairs))
    for block in row_blocks(len(pairs), 8 * X.shape[1]):
        left, right = X[pairs[block, 0]], X[pairs[block, 1]]
        if sparse.issparse(X):
            difference = left - right
            result[block] = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
        else:
            difference = np.subtract(left, right, dtype=np.float64)
            result[block] = np.einsum("ij,ij->i", difference, difference)
    return result


@cache
def _controller() -> Any:
    """The BLAS libraries of this process; to look for them takes milliseconds, as long as a small fit."""
    from threadpoolctl import ThreadpoolController

    # SciPy may bring a BLAS beside NumPy's: it is imported above, and so it is found.
    return ThreadpoolController().select(user_api="blas")


def blas_threads() -> int:
    """How many threads BLAS may use at present."""
    return max((library["num_threads"] for library in _controller().info()), default=1)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Hold BLAS to one thread, as where other threads share the work."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limit


def fitting_threads(multiplications: int) -> AbstractContextManager[Any]:
    """Run with one BLAS thread if the products are small.

    A fit makes thousands of small products one after another. On a busy machine each would wait for the other threads:
    20 to 60 times the time was measured with two threads in place of one.
    """
    return one_blas_thread() if multiplications < SMALL_PRODUCT else nullcontext()


def threads_for(shape: tuple[int, int]) -> AbstractContextManager[Any]:
    """What suits a method that sums products of n rows with f features, and may look for their neighbours."""
    n, f = shape
    # A search for neighbours makes n² f multiplications, but in large products.
    return fitting_threads(n * f * max(f, n // 50))


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
