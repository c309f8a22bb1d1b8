r"""The interface of the engines: everything that is done with all n rows, whatever they are.

Each function below is an operation that three engines implement, by the type of the rows X:

=============================  =======================================================
rows                           implementation
=============================  =======================================================
NumPy array, CSR matrix        :mod:`pairlens.engines.local`
:class:`.dask.DaskRows`        :mod:`pairlens.engines.dask`, one task for each chunk
:class:`.torch.TensorRows`     :mod:`pairlens.engines.torch`, on the device of the tensor
=============================  =======================================================

So a method calls ``weighted_scatter(X, ...)`` and does not know where the rows are. An implementation is registered for
the type of its rows (:func:`functools.singledispatch`), and a type checker compares its signature with the one here.
Results are NumPy arrays in float64, except that :func:`project` gives the kind and dtype of X.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines.types import (
    Float64,
    FloatArray,
    Graph,
    IntArray,
    KernelMap,
    NearGraph,
    Neighbors,
    Placement,
    ProjectedRows,
    Rows,
    Span,
)

P = ParamSpec("P")
R = TypeVar("R")


class Operation(Protocol[P, R]):
    """A function of rows with an implementation for each type of rows."""

    def __call__(self, X: Rows, /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def register(self, kind: type, /) -> Callable[[Callable[Concatenate[Any, P], R]], Callable[Concatenate[Any, P], R]]:
        """Decorator of the implementation for rows of a type."""

    def dispatch(self, kind: type, /) -> Callable[..., R]:
        """The implementation for rows of a type."""


def operation(declared: Callable[Concatenate[Any, P], R]) -> Operation[P, R]:
    """Let the type of the rows, the first argument, decide who does an operation."""
    return cast(Operation[P, R], singledispatch(declared))


# Reading rows


@operation
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
    raise NotImplementedError


@operation
def take_rows(X: Rows, rows: IntArray | slice) -> Float64:
    """The given rows as a dense float64 array."""
    raise NotImplementedError


@operation
def rows_in_memory(X: Rows, rows: IntArray | None = None) -> Rows:
    """The given rows, by default all, in the memory of this process: an array, or a CSR matrix of a CSR matrix."""
    raise NotImplementedError


@operation
def rows_to_learn_from(X: Rows, placement: Placement, *, needed: IntArray, who: str) -> tuple[Rows, IntArray | None]:
    """Rows where a method can deal with them: as they are, copied, or landmarks that represent all.

    The numbers of the landmarks come second; None if all rows are there.

    Parameters
    ----------
    X : array, CSR matrix or EngineRows
    placement : Placement
        Where the method can deal with rows.
    needed : int array
        Rows that have to be among the landmarks.
    who : str
        Name of the method, for warnings and errors.
    """
    raise NotImplementedError


@operation
def column_means(X: Rows) -> Float64:
    """Means of the columns, accumulated in float64 whatever the dtype of X."""
    raise NotImplementedError


@operation
def varying_columns(X: Rows) -> NDArray[np.bool_]:
    """Which columns are not constant."""
    raise NotImplementedError


@operation
def column_deviations(X: Rows, mean: Float64) -> Float64:
    """Standard deviations of the columns, whose means are given, in float64; 0 for constant ones, or their rounding."""
    raise NotImplementedError


@operation
def absolute_deviations(X: Rows, mean: Float64) -> Float64:
    """Return mean absolute deviations of the columns from their means, in float64."""
    raise NotImplementedError


@operation
def mean_norm(X: Rows) -> float:
    """Mean distance of the rows from their mean."""
    raise NotImplementedError


# Products with rows


@operation
def project(X: Rows, mean: FloatArray, components: FloatArray) -> Any:
    """Rows seen from the mean, along the components: ``(X - mean) @ components.T``, of the kind of X."""
    raise NotImplementedError


@operation
def map_rows(X: Rows, embed: Callable[[Rows], Any], n_columns: int) -> Any:
    """``embed(X)``, in the kind and dtype of X.

    Parameters
    ----------
    X : array, CSR matrix or EngineRows
    embed : callable
        From rows on one machine, an array, CSR matrix or rows of a tensor, to an array or a tensor. Of a dask array
        it gets one chunk after the other.
    n_columns : int
        Columns of its result.
    """
    raise NotImplementedError


@operation
def along(X: Rows, directions: Float64, *, origin: Float64 | None = None) -> Rows:
    """Rows along directions, which are columns, seen from an origin: ``X @ directions - origin @ directions``.

    Unlike :func:`project` it gives rows in float64 that the other operations take.
    """
    raise NotImplementedError


@operation
def rescaled(X: Rows, *, offset: Float64 | None = None, scale: Float64 | float) -> Rows:
    """``(X - offset) / scale`` as rows in float64; sparse rows keep their zeros and are only scaled."""
    raise NotImplementedError


@operation
def unit_variance(X: Rows) -> tuple[Rows, Float64, float]:
    """Rows centred and scaled to total variance 1, the mean that was subtracted, and what they were divided by."""
    raise NotImplementedError


@operation
def combine_rows(X: Rows, coefficients: FloatArray) -> Float64:
    """Combinations of rows, ``coefficients @ X``."""
    raise NotImplementedError


@operation
def centred_product(left: Rows, right: Rows, centre: Float64) -> Float64:
    """``(left - centre) @ (right - centre).T``, for few rows."""
    raise NotImplementedError


@operation
def symmetric_eigen(X: Rows, A: Float64) -> tuple[Float64, Float64]:
    """Eigenvalues, largest first, and eigenvectors of a symmetric matrix of the width of the rows, near the rows."""
    raise NotImplementedError


@operation
def kernel_product(X: Rows, features: KernelMap) -> Rows:
    """The features that a kernel map gives rows, as rows in float64."""
    raise NotImplementedError


# Scatters


@operation
def weighted_scatter(
    X: Rows, *, weight: FloatArray | None = None, offset: FloatArray, is_mean: bool = False
) -> Float64:
    r"""The scatter about a point, :math:`\sum_i d_i (x_i - o)(x_i - o)'`, with d = 1 unless given.

    Parameters
    ----------
    X : array, CSR matrix or EngineRows of shape (n, f)
    weight : array of shape (n,), optional
        The d.
    offset : array of shape (f,)
        The o.
    is_mean : bool
        Whether the offset is the mean of the rows, whose sum is then known.
    """
    raise NotImplementedError


@operation
def group_means(X: Rows, codes: IntArray) -> Float64:
    """Means of the rows of each group; rows with a negative code belong to none."""
    raise NotImplementedError


@operation
def group_scatter(X: Rows, codes: IntArray, *, weight: FloatArray | None = None) -> Float64:
    r"""The scatter of rows about the mean of their group, :math:`\sum_i d_{c(i)} (x_i - m_{c(i)})(x_i - m_{c(i)})'`.

    Parameters
    ----------
    X : array, CSR matrix or EngineRows of shape (n, f)
    codes : int array of shape (n,)
        Group of each row, numbered from 0; rows with a negative code count for nothing.
    weight : array of shape (n_groups,), optional
        Weight of each group. The group sizes give the sum over all pairs inside groups, because
        :math:`\sum_{i<j \in c} (x_i - x_j)(x_i - x_j)' = n_c \sum_{i \in c} (x_i - m_c)(x_i - m_c)'`.
    """
    raise NotImplementedError


@operation
def pair_scatter(X: Rows, pairs: IntArray, weight: FloatArray | None = None) -> Float64:
    r"""The scatter of pair differences, :math:`\sum_{(i,j)} w_{ij} (x_i - x_j)(x_i - x_j)'`."""
    raise NotImplementedError


@operation
def graph_scatter(X: Rows, graph: Graph) -> Float64:
    r"""The Laplacian form :math:`X' (\mathrm{diag}(A 1) - A) X` of a symmetric weight matrix A.

    It equals :math:`\frac12 \sum_{ij} A_{ij} (x_i - x_j)(x_i - x_j)'`: each unordered pair once. Weights may be
    negative.
    """
    raise NotImplementedError


@operation
def residual_scatter(X: Rows, rebuild: sparse.csr_matrix) -> Float64:
    """What is left of rows that others rebuild, ``(X - R X)' (X - R X)``; the weights R of each row sum to 1."""
    raise NotImplementedError


# Distances and neighbours


@operation
def pair_squared_distances(X: Rows, pairs: IntArray) -> Float64:
    """Squared Euclidean distances of pairs of rows, from differences and therefore exact for close rows."""
    raise NotImplementedError


@operation
def median_gamma(X: Rows) -> float:
    """One over the median squared distance of up to 1,000 evenly spaced rows; 1 if they are all equal."""
    raise NotImplementedError


@operation
def rebuilding_weights(X: Rows, indices: IntArray, reg: float) -> Float64:
    r"""Weights, of shape (n, k), with which neighbours rebuild each row: they minimise
    :math:`\|x_i - \sum_j r_j x_j\|^2` and sum to 1.

    Parameters
    ----------
    X : array, CSR matrix or EngineRows of shape (n, n_features)
    indices : int array of shape (n, k)
        Row i lists the neighbours of i.
    reg : float
        Regularisation of the local Gram matrix, relative to its trace.
    """
    raise NotImplementedError


@operation
def neighbors(X: Rows, *, n_nearest: int, block_bytes: int | None = None) -> Neighbors:
    """Find the exact nearest rows of every row in Euclidean distance.

    Parameters
    ----------
    X : array, CSR matrix or EngineRows of shape (n, n_features)
        Finite values in float32 or float64.
    n_nearest : int
        How many rows to find for each row, from 1 to n - 1. A row is not its own neighbour, but its duplicates are.
    block_bytes : int, optional
        Working memory at worst. The result does not depend on it.

    Returns
    -------
    Neighbors
        Indices and distances, nearest first.

    Notes
    -----
    Squared distances are computed in float64 from differences of rows, and compared to a resolution of about 1e-10 of
    the mean squared distance of the rows from their mean. Rows at equal distance in this sense come in ascending order
    of index, and where only some of them find a place, those with the smallest indices do. The distances returned
    are not rounded, hence sorted only up to that resolution.

    Examples
    --------
    >>> import numpy as np
    >>> from pairlens.engines import neighbors
    >>> found = neighbors(np.array([[0.0], [1.0], [3.0], [7.0]]), n_nearest=1)
    >>> found.nearest.ravel(), found.nearest_distance.ravel()
    (array([1, 0, 1, 2]), array([1., 1., 2., 4.]))
    """
    raise NotImplementedError


@operation
def near_walk(
    X: Rows, k: int, *, scale_neighbor: int, accuracy: float, found: tuple[IntArray, Float64] | None = None
) -> NearGraph:
    r"""The graph of the k nearest rows with weights :math:`\exp(-d_{ij}^2 / (s_i s_j))`, and the random walk over it.

    Parameters
    ----------
    X : array or EngineRows of shape (n, n_features)
    k : int
    scale_neighbor : int
        The neighbour whose distance is the s of a row, counted from 1. Rows of scale 0 have full weight to their
        duplicates and none to others.
    accuracy : float
        To which relative accuracy the walk will be followed.
    found : tuple of arrays, optional
        The nearest rows of each row, nearest first, and their distances, where they are known; otherwise they are
        searched exactly.
    """
    raise NotImplementedError


@operation
def projected_rows(X: Rows, span: Span, chunklets: IntArray) -> ProjectedRows:
    """Rows with their distance in the null space of must-links.

    Parameters
    ----------
    X : array, CSR matrix or EngineRows of shape (n, n_features)
    span : Span
        Of must-link differences.
    chunklets : int array of shape (n,)
        Group of must-linked rows each row belongs to, -1 for none.
    """
    raise NotImplementedError
