"""Walking over many rows in blocks that fit the cache, and turning any row type into plain arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines.dispatch import dispatched

__all__ = [
    "FloatArray",
    "IntArray",
    "Rows",
    "column_means",
    "combine_rows",
    "mean_norm",
    "project",
    "read_ahead",
    "row_blocks",
    "take_rows",
    "varying_columns",
]

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
Rows: TypeAlias = Any
"""A dense array or a CSR matrix of rows, or :class:`~pairlens.engines.dispatch.EngineRows`."""

BLOCK_BYTES = 1 << 23
"""Bytes of one row block: large enough for BLAS to run at speed, small enough to stay near the cores."""


def row_blocks(n_rows: int, row_bytes: int, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Slices that cover ``range(n_rows)`` in steps of about `block_bytes`."""
    step = max(64, block_bytes // max(1, row_bytes))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


@dispatched
def read_ahead(X: Rows, rows: IntArray, *, scatter: bool) -> None:
    """Say which rows and sums will be asked for, so that an engine for which reading is dear reads once.

    Parameters
    ----------
    X : array, CSR matrix or EngineRows
    rows : int array
        Rows that will be taken.
    scatter : bool
        Whether the total scatter will be asked for, besides the mean.
    """


@dispatched
def take_rows(X: Rows, rows: IntArray | slice) -> NDArray[np.float64]:
    """The given rows as a dense float64 array."""
    taken = X[rows]
    dense = taken.toarray() if sparse.issparse(taken) else taken
    return dense.astype(np.float64, copy=False)


@dispatched
def column_means(X: Rows) -> NDArray[np.float64]:
    """Means of the columns, accumulated in float64 whatever the dtype of X.

    A product with a vector of ones runs at memory speed, several times faster than a float64 reduction
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


@dispatched
def varying_columns(X: Rows) -> NDArray[np.bool_]:
    """Which columns are not constant.

    Reads only as many rows as it takes to see every column vary, for most data those of the first block.
    """
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


@dispatched
def project(X: Rows, mean: FloatArray, components: FloatArray) -> FloatArray:
    """Rows seen from the mean, along the components: ``(X - mean) @ components.T``.

    Dense rows are centred block by block, so that columns far from zero cost no digits; sparse ones stay sparse.
    """
    if sparse.issparse(X):
        return np.asarray(X @ components.T - mean @ components.T)
    result = np.empty((X.shape[0], len(components)), dtype=np.result_type(X, components))
    for block in row_blocks(X.shape[0], X.itemsize * X.shape[1]):
        np.matmul(X[block] - mean, components.T, out=result[block])
    return result


@dispatched
def combine_rows(X: Rows, coefficients: FloatArray) -> NDArray[np.float64]:
    """Combinations of rows, ``coefficients @ X``."""
    return np.asarray((X.T @ coefficients.T).T, dtype=np.float64)


@dispatched
def mean_norm(X: Rows) -> float:
    """Mean distance of the rows from their mean."""
    offset = column_means(X)
    if sparse.issparse(X):
        squared = np.asarray(X.multiply(X).sum(axis=1)).ravel() - 2 * (X @ offset) + offset @ offset
    else:
        centred = X - offset
        squared = np.einsum("ij,ij->i", centred, centred)
    return float(np.sqrt(np.maximum(squared, 0.0)).mean())
