r"""The operations on rows, which methods call without knowing where the rows are.

A function marked :func:`operation` has its body for rows in memory, a NumPy array or a CSR matrix. Other engines
register theirs for the type of their rows:

=============================  =======================================================
rows                           implementation
=============================  =======================================================
NumPy array, CSR matrix        the body here
:class:`.dask.DaskRows`        :mod:`pairlens.engines.dask`, one task for each chunk
:class:`.torch.TensorRows`     :mod:`pairlens.engines.torch`, on the device of the tensor
=============================  =======================================================

Results are NumPy arrays in float64, except that :func:`project` gives the kind and dtype of X. Rows in memory are taken
in blocks that fit the cache, with the threads that pay, and nothing of size n x n is built. Blocks of float32 are
multiplied in float32 and summed in float64. Differences of rows do not feel a translation, but sums of squares far from
the origin lose digits: dense rows are centred block by block before they are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cache, singledispatch
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import linalg, sparse

from pairlens._warnings import warn_user
from pairlens.engines.rows import Float64, FloatArray, Graph, Index, IntArray, Kernel, Placement, Rows, settings
from pairlens.exceptions import ApproximationWarning

P = ParamSpec("P")
R = TypeVar("R")
Item = TypeVar("Item")

MEDIAN_ROWS = 1000
"""Rows that the median distance is taken of."""
BLOCK_BYTES = 1 << 23
"""Bytes of one row block: large enough for BLAS to run at speed, small enough to stay near the cores."""
SMALL_PRODUCT = 20_000_000
"""Multiplications per matrix product below which handing work to other threads costs more than it saves."""
FLOAT32_ROWS = 1 << 14
"""Rows whose products are summed in float32 before they are added in float64: an error of about 1e-7 on any BLAS."""


class Operation(Protocol[P, R]):
    """Call the implementation for the type of the rows."""

    def __call__(self, X: Rows, /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def register(self, kind: type, /) -> Callable[[Callable[Concatenate[Any, P], R]], Callable[Concatenate[Any, P], R]]:
        """Decorate the implementation for rows of a type; a type checker compares the signatures."""


def operation(in_memory: Callable[Concatenate[Any, P], R]) -> Operation[P, R]:
    """Let the type of the rows, the first argument, decide which implementation runs."""
    return cast(Operation[P, R], singledispatch(in_memory))


def row_blocks(n_rows: int, row_bytes: int, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Yield slices that cover ``range(n_rows)`` in steps of about `block_bytes`."""
    step = max(64, block_bytes // max(1, row_bytes))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def evenly_spaced(n: int, at_most: int) -> Index:
    """Return up to `at_most` row numbers spread evenly over n rows: no seed, and the same rows every time."""
    return np.unique(np.linspace(0, n - 1, min(n, at_most)).astype(np.int64))


def landmarks(n: int, needed: IntArray, who: str) -> IntArray:
    """Return the numbers of rows that represent all n rows, the needed ones among them, and warn about it."""
    chosen = np.union1d(needed, evenly_spaced(n, settings().landmark_rows))
    warn_user(
        f"{who} learns from {len(chosen):,} of the {n:,} rows: those in pairs and evenly spaced ones. "
        "pairlens.config_context(landmark_rows=...) sets the number.",
        ApproximationWarning,
    )
    return chosen


# Reading rows


@operation
def read_ahead(X: Rows, rows: IntArray, *, scatter: bool) -> None:
    """Announce which rows, and whether the total scatter, will be asked for, so that costly reading is done once."""


def dense(X: Rows, rows: IntArray | slice) -> NDArray[Any]:
    """Return some rows in memory as a dense array in their own dtype."""
    return X[rows].toarray() if sparse.issparse(X) else X[rows]


@operation
def take_rows(X: Rows, rows: IntArray | slice) -> Float64:
    """Return the given rows as a dense float64 array."""
    return dense(X, rows).astype(np.float64, copy=False)


@operation
def rows_in_memory(X: Rows, rows: IntArray | None = None) -> Rows:
    """Return the given rows, by default all, in this process's memory: an array, or a CSR matrix of a CSR matrix."""
    return X if rows is None else X[rows]


@operation
def rows_to_learn_from(
    X: Rows,
    placement: Placement,  # noqa: ARG001 - every method can deal with rows in memory
    *,
    needed: IntArray,  # noqa: ARG001
    who: str,  # noqa: ARG001
) -> tuple[Rows, IntArray | None]:
    """Return rows where a method can deal with them: as they are, copied, or landmarks that represent all.

    The numbers of the landmarks, among which are the `needed` ones, come second; None if all rows are there. Warnings
    and errors name the method, `who`.
    """
    return X, None


@operation
def column_means(X: Rows) -> Float64:
    """Return means of the columns, accumulated in float64 whatever the dtype of X."""
    n, f = X.shape
    if sparse.issparse(X):
        return np.asarray(X.sum(axis=0, dtype=np.float64)).ravel() / n
    total = np.zeros(f)
    # A product with a vector of ones runs at memory speed, several times faster than a float64 reduction of float32
    # columns; short blocks keep the float32 part of the sum exact to about 1e-6.
    for block in row_blocks(n, X.itemsize * f, 1 << 20):
        rows = X[block]
        total += np.ones(len(rows), dtype=X.dtype) @ rows
    return total / n


@operation
def varying_columns(X: Rows) -> NDArray[np.bool_]:
    """Return which columns are not constant."""
    if sparse.issparse(X):
        filled = np.bincount(X.indices, minlength=X.shape[1])
        varies = filled > 0
        full = np.flatnonzero(filled == X.shape[0])
        varies[full] = np.any(X[:, full].toarray() != X[:1, full].toarray(), axis=0)
        return varies
    varies = np.zeros(X.shape[1], dtype=bool)
    # Most data show every column vary in the first block.
    for block in row_blocks(X.shape[0], X.itemsize * X.shape[1], 1 << 20):
        varies |= np.any(X[block] != X[0], axis=0)
        if varies.all():
            break
    return varies


@operation
def column_deviations(X: Rows, mean: Float64) -> Float64:
    """Return standard deviations of the columns, whose means are given; 0 for constant ones, or their rounding."""
    # Squares are taken in units of the largest, so that they neither overflow nor vanish.
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


@operation
def absolute_deviations(X: Rows, mean: Float64) -> Float64:
    """Return mean absolute deviations of the columns from their means."""
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


@operation
def mean_norm(X: Rows) -> float:
    """Return the mean distance of the rows from their mean."""
    offset = column_means(X)
    if sparse.issparse(X):
        squared = np.asarray(X.multiply(X).sum(axis=1)).ravel() - 2 * (X @ offset) + offset @ offset
    else:
        centred = X - offset
        squared = np.einsum("ij,ij->i", centred, centred)
    return float(np.sqrt(np.maximum(squared, 0.0)).mean())


# Products with rows


@operation
def project(X: Rows, mean: FloatArray, components: FloatArray) -> Any:
    """Return rows seen from the mean, along the components: ``(X - mean) @ components.T``, of the kind of X."""
    if sparse.issparse(X):
        return np.asarray(X @ components.T - mean @ components.T)
    result = np.empty((X.shape[0], len(components)), dtype=np.result_type(X, components))
    for block in row_blocks(X.shape[0], X.itemsize * X.shape[1]):
        np.matmul(X[block] - mean, components.T, out=result[block])
    return result


@operation
def map_rows(X: Rows, embed: Callable[[Rows], Any], n_columns: int) -> Any:  # noqa: ARG001 - chunks need the width
    """Return ``embed(X)``, which has `n_columns` columns, in the kind and dtype of X.

    `embed` takes rows on one machine, of a dask array one chunk after the other, and returns an array or a tensor.
    """
    return np.asarray(embed(X)).astype(X.dtype, copy=False)


@operation
def along(X: Rows, directions: Float64, *, origin: Float64 | None = None) -> Rows:
    """Return rows along directions, which are columns, from an origin: ``X @ directions - origin @ directions``.

    Unlike :func:`project` it gives rows in float64 that the other operations take.
    """
    product = np.asarray(X @ directions)
    return product if origin is None else product - origin @ directions


@operation
def rescaled(X: Rows, *, offset: Float64 | None = None, scale: Float64 | float) -> Rows:
    """Return ``(X - offset) / scale`` as rows in float64; sparse rows keep their zeros and are only scaled."""
    if sparse.issparse(X):
        return (X @ sparse.diags(1 / np.asarray(scale))).tocsr()
    return (X if offset is None else X - offset) / scale


@operation
def symmetric_eigen(
    X: Rows,  # noqa: ARG001 - says where the rows are
    A: Float64,
    at_most: int | None = None,
) -> tuple[Float64, Float64]:
    """Return eigenvalues, largest first, and orthonormal eigenvectors of a symmetric matrix, computed near the rows.

    `at_most` is the number of leading ones; None for all.
    """
    n = len(A)
    if n == 0:
        return np.empty(0), np.empty((0, 0))
    leading = None if at_most is None or at_most >= n else (n - at_most, n - 1)
    values, vectors = linalg.eigh(A, check_finite=False, subset_by_index=leading)
    return values[::-1], vectors[:, ::-1]


@operation
def kernel_product(
    X: Rows,
    anchors: Rows,
    combination: Float64,
    *,
    kernel: Kernel,
    gamma: float | None,
    shift: Float64 | None = None,
    contrasts: bool = False,
    offset: Float64 | float = 0.0,
) -> Rows:
    """Return ``K(X - shift, anchors) @ combination - offset`` as rows in float64.

    The kernel is that of :func:`kernel_matrix`; of rows in a tensor it has to be "rbf".
    """
    result = np.empty((X.shape[0], combination.shape[1]))
    if combination.shape[1]:
        for block in row_blocks(X.shape[0], 8 * anchors.shape[0]):
            rows = X[block] if shift is None else X[block] - shift
            result[block] = kernel_matrix(rows, anchors, kernel, gamma, contrasts=contrasts) @ combination - offset
    return result


def kernel_matrix(X: Rows, Y: Rows, kernel: Kernel, gamma: float | None, *, contrasts: bool = False) -> Float64:
    r"""Return a kernel of scikit-learn's ``pairwise_kernels`` between two sets of rows in memory, in float64.

    Where only `contrasts` of entries will be used, the Gaussian kernel less 1 is returned: of a kernel much wider than
    the data, all entries of which are nearly 1, :math:`\mathrm{expm1}(-\gamma d^2)` keeps the digits that tell rows
    apart.
    """
    from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels

    left, right = X.astype(np.float64), Y.astype(np.float64)
    if contrasts and kernel == "rbf" and gamma is not None:
        squared: Float64 = euclidean_distances(left, right, squared=True)
        squared *= -gamma
        return np.expm1(squared, out=squared)
    if callable(kernel):
        return np.asarray(pairwise_kernels(left, right, metric=kernel), dtype=np.float64)
    return np.asarray(pairwise_kernels(left, right, metric=kernel, filter_params=True, gamma=gamma))


def median_gamma(X: Rows) -> float:
    """Return one over the median squared distance of up to 1,000 evenly spaced rows; 1 if they are all equal."""
    from sklearn.metrics.pairwise import euclidean_distances

    if X.shape[0] < 2:
        return 1.0
    rows = rows_in_memory(X, evenly_spaced(X.shape[0], MEDIAN_ROWS)).astype(np.float64)
    squared = euclidean_distances(rows, squared=True)
    median = float(np.median(squared[np.triu_indices_from(squared, 1)]))
    return 1.0 / median if median > 0 else 1.0


@operation
def pair_squared_distances(X: Rows, pairs: IntArray) -> Float64:
    """Return squared Euclidean distances of pairs of rows, from differences and therefore exact for close rows."""
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


# Threads


@cache
def _controller() -> Any:
    """Return the libraries of this process that have threads; to look for them takes milliseconds, as a small fit."""
    from threadpoolctl import ThreadpoolController

    # SciPy may bring a BLAS beside NumPy's: it is imported above, and so it is found.
    return ThreadpoolController()


def blas_threads() -> int:
    """Return how many threads BLAS may use at present."""
    return max((library["num_threads"] for library in _controller().select(user_api="blas").info()), default=1)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Hold BLAS to one thread, as where other threads share the work."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


def one_thread() -> AbstractContextManager[Any]:
    """Hold BLAS and OpenMP to one thread, as for k-means of a few hundred rows."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limit


def in_threads(call: Callable[[Item], R], items: Iterable[Item], n_threads: int) -> list[R]:
    """Return what the call gives for each item, in their order, several at a time."""
    if n_threads == 1:
        return [call(item) for item in items]
    # Limits of BLAS hold for the whole process: only the outermost may set one, and inside all are the same.
    with one_thread(), ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda item: copy_context().run(call, item), items))


def fitting_threads(multiplications: int) -> AbstractContextManager[Any]:
    """Run with one BLAS thread if the products are small.

    A fit makes thousands of small products one after another. On a busy machine each would wait for the other threads:
    20 to 60 times the time was measured with two threads in place of one.
    """
    return one_blas_thread() if multiplications < SMALL_PRODUCT else nullcontext()


def threads_for(shape: tuple[int, int]) -> AbstractContextManager[Any]:
    """Run with the threads that suit sums of products of n rows with f features, and a search for neighbours."""
    n, f = shape
    # A search for neighbours makes n² f multiplications, but in large products.
    return fitting_threads(n * f * max(f, n // 50))


# Scatters


@operation
def weighted_scatter(
    X: Rows, *, weight: FloatArray | None = None, offset: FloatArray, is_mean: bool = False
) -> Float64:
    r"""Return the scatter about an offset, :math:`\sum_i d_i (x_i - o)(x_i - o)'`, with weights d of 1 by default.

    `is_mean` says that the offset is the mean of the rows, whose sum is then known.
    """
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


def _product_blocks(n: int, f: int, dtype: DTypeLike) -> Iterator[slice]:
    """Return blocks of n rows whose product with themselves keeps the digits of its dtype."""
    row_bytes = np.dtype(dtype).itemsize * f
    single = np.dtype(dtype) == np.float32
    return row_blocks(n, row_bytes, min(BLOCK_BYTES, FLOAT32_ROWS * row_bytes) if single else BLOCK_BYTES)


def _roots(weight: FloatArray, dtype: DTypeLike) -> tuple[FloatArray, float]:
    """Return square roots of weights in units of the largest, which fit the range of float32, and that unit."""
    unit = float(np.max(weight, initial=0.0)) or 1.0
    return np.sqrt(weight / unit).astype(dtype), unit


def _plain_scatter(X: FloatArray, offset: FloatArray, is_mean: bool) -> Float64:
    """Return the scatter of all rows about a point near their mean.

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


@operation
def group_means(X: Rows, codes: IntArray) -> Float64:
    """Return means of the rows of each group; rows with a negative code belong to none."""
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


@operation
def group_scatter(X: Rows, codes: IntArray, *, weight: FloatArray | None = None) -> Float64:
    r"""Return the scatter about the means of groups, :math:`\sum_i d_{c(i)} (x_i - m_{c(i)})(x_i - m_{c(i)})'`.

    Groups are numbered from 0; rows with a negative code count for nothing. With the group sizes as weights d it is the
    sum over all pairs inside groups: :math:`\sum_{i<j \in c} (x_i - x_j)(x_i - x_j)' = n_c \sum_{i \in c} (x_i -
    m_c)(x_i - m_c)'`.
    """
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


@operation
def pair_scatter(X: Rows, pairs: IntArray, weight: FloatArray | None = None) -> Float64:
    r"""Return the scatter of pair differences, :math:`\sum_{(i,j)} w_{ij} (x_i - x_j)(x_i - x_j)'`.

    Only the rows that occur in a pair are read. They are summed as blocks of differences, O(m f^2) in BLAS, or, when
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
    graph = weight_matrix(local, w, len(rows))
    return graph_scatter(X[rows] if sparse.issparse(X) else take_rows(X, rows), graph)


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


@dataclass(frozen=True)
class Edges:
    """Hold unordered pairs of rows, of shape (m, 2) and each once, with their weights."""

    pairs: IntArray
    weight: Float64


def weight_matrix(edges: IntArray, weight: FloatArray | float, n_samples: int) -> sparse.csr_matrix:
    """Return the symmetric n x n matrix with the given weights on the edges."""
    value = np.broadcast_to(np.asarray(weight, dtype=np.float64), len(edges))
    half = sparse.csr_matrix((value, (edges[:, 0], edges[:, 1])), shape=(n_samples, n_samples))
    return half + half.T


@operation
def graph_scatter(X: Rows, graph: Graph) -> Float64:
    r"""Return the Laplacian form :math:`X' (\mathrm{diag}(A 1) - A) X` of a symmetric weight matrix A.

    It equals :math:`\frac12 \sum_{ij} A_{ij} (x_i - x_j)(x_i - x_j)'`: each unordered pair once. Weights may be
    negative.
    """
    if isinstance(graph, Edges):
        graph = weight_matrix(graph.pairs, graph.weight, X.shape[0])
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


@dataclass(frozen=True)
class Moments:
    r"""Hold count, mean and scatter (None if not asked for) of some rows, the first of them, and which features vary.

    With :math:`d = m_b - m_a`, the scatter of two sets about their common mean is
    :math:`T = T_a + T_b + \frac{n_a n_b}{n_a + n_b} d d'`. Nothing large is subtracted, so chunks and batches may be
    merged in any order without loss of digits.
    """

    n: int
    mean: Float64
    scatter: Float64 | None
    first: Float64
    varies: NDArray[np.bool_]

    @classmethod
    def of(cls, X: Rows, *, scatter: bool = True) -> Moments:
        """Sum up at least one row."""
        mean = column_means(X)
        return cls(
            n=int(X.shape[0]),
            mean=mean,
            scatter=weighted_scatter(X, offset=mean, is_mean=True) if scatter else None,
            first=take_rows(X, np.array([0]))[0],
            varies=varying_columns(X),
        )

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows."""
        n = self.n + other.n
        step = other.mean - self.mean
        scatter = None
        if self.scatter is not None and other.scatter is not None:
            scatter = self.scatter + other.scatter + (self.n * (other.n / n)) * np.outer(step, step)
        return Moments(
            n=n,
            mean=self.mean + step * (other.n / n),
            scatter=scatter,
            first=self.first,
            varies=self.varies | other.varies | (self.first != other.first),
        )

    def about(self, offset: FloatArray) -> Float64:
        """Return the scatter about another point."""
        assert self.scatter is not None
        step = self.mean - offset
        return self.scatter + self.n * np.outer(step, step)

    def columns(self, chosen: IntArray) -> Moments:
        """Return the moments of some of the features."""
        scatter = None if self.scatter is None else self.scatter[np.ix_(chosen, chosen)]
        return replace(
            self, mean=self.mean[chosen], scatter=scatter, first=self.first[chosen], varies=self.varies[chosen]
        )
