"""Reading, projecting and measuring rows in memory, in blocks that fit the cache and with the threads that pay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from pairlens.engines import interface
from pairlens.engines.types import Float64, FloatArray, IntArray, Kernel, KernelMap, Placement, Rows

MEDIAN_ROWS = 1000
"""Rows that the median distance is taken of."""
BLOCK_BYTES = 1 << 23
"""Bytes of one row block: large enough for BLAS to run at speed, small enough to stay near the cores."""
SMALL_PRODUCT = 20_000_000
"""Multiplications per matrix product below which handing work to other threads costs more than it saves."""


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
