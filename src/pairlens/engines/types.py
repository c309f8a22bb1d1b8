"""What the operations of the engines take and give: kinds of rows, where they may be, neighbours, graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FloatArray: TypeAlias = NDArray[np.floating[Any]]
Float64: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.integer[Any]]
Index: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = Any
"""A dense array or a CSR matrix of rows, or :class:`EngineRows`."""
Kernel: TypeAlias = str | Callable[..., Any]
"""A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`."""
Graph: TypeAlias = Any
"""Weights of pairs of rows: a symmetric CSR matrix, or :class:`~pairlens.engines.torch.TensorGraph` of a tensor."""


class Placement(Enum):
    """Where the rows may be that a method learns from."""

    COLLECTED = "collected"
    """In the memory of this process, all of them: dask arrays are collected, up to the setting `gather_bytes`."""
    MEMORY = "memory"
    """In the memory of this process; landmarks represent the rows of a large dask array."""
    DEVICE = "device"
    """On one machine: in memory, or in a tensor on any device."""
    ANYWHERE = "anywhere"
    """On any number of machines: the method touches its rows by the operations of the engines only."""
    ANYWHERE_SEARCHED = "anywhere, searched"
    """The same, and all rows are compared with all: above the setting `exact_rows`, landmarks represent the rows of a
    dask array."""


class EngineRows:
    """Rows that are not an array in this process's memory, with as much of an array's interface as methods use.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
        float32 or float64.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def header(self) -> Any:
        """Something with the same columns that scikit-learn can check: number and names of the features."""
        return np.broadcast_to(np.zeros(1), (1, self.shape[1]))


@dataclass(frozen=True)
class Neighbors:
    """Nearest rows of each row, nearest first.

    Attributes
    ----------
    nearest : int array of shape (n, n_nearest)
        Indices of the nearest rows, in ascending order of distance.
    nearest_distance : float64 array of shape (n, n_nearest)
        Their Euclidean distances.
    """

    nearest: Index
    nearest_distance: Float64


@dataclass(frozen=True)
class ProjectedNeighbors:
    """Who is near in the projected kernel distance and who is far in the input.

    Attributes
    ----------
    nearest : int array or tensor of shape (n, k)
        The nearest rows of each row in projected distance, nearest first.
    farthest : int array or tensor of shape (n, k)
        The farthest rows of each row in input distance, farthest first.
    largest_projected, largest_input : float
        The largest of all projected and of all input distances.
    """

    nearest: Any
    farthest: Any
    largest_projected: float
    largest_input: float


class Span(Protocol):
    r"""The span of must-link differences in the feature space of a kernel.

    :class:`~pairlens.kernels.nullspace.NullSpace` is one. The coordinates of rows X are
    ``K(X - shift, points) @ combination`` with the kernel :math:`K(x, y) = \exp(-\gamma \|x - y\|^2)`.
    """

    @property
    def points(self) -> Rows: ...

    @property
    def combination(self) -> Float64: ...

    @property
    def shift(self) -> Float64 | None: ...

    @property
    def gamma(self) -> float | None: ...

    @property
    def rank(self) -> int: ...

    def coordinates(self, X: Rows) -> Float64:
        """Coordinates F, of shape (n, rank), of rows in memory."""


class KernelMap(Protocol):
    """Features of rows that are combinations of a kernel at few rows: ``K(X, anchors) @ combination - offset``.

    :class:`~pairlens.kernels.features.KernelFeatures` is one. The kernel is one of
    :func:`sklearn.metrics.pairwise.pairwise_kernels`; of rows in a tensor "rbf" alone.
    """

    @property
    def anchors(self) -> Rows: ...

    @property
    def combination(self) -> Float64: ...

    @property
    def offset(self) -> Float64: ...

    @property
    def kernel(self) -> Kernel: ...

    @property
    def gamma(self) -> float | None: ...


class ProjectedRows(Protocol):
    r"""Rows with the input distance d and the distance :math:`\hat d` that is left outside of a :class:`Span`."""

    @property
    def X(self) -> Rows: ...

    @property
    def n(self) -> int: ...

    @property
    def remaining(self) -> Float64:
        r"""The projected kernel of each row with itself, :math:`\hat K(x, x)`."""

    def squared_distances(self, rows: Any, cols: Any) -> Any:
        r"""Squared projected distances :math:`\hat d^2` of pairs of rows; 0 for must-linked and for identical rows.

        Row numbers and distances are NumPy arrays, or tensors on the device of a tensor.
        """

    def neighbors(self, k: int, *, block_bytes: int | None = None) -> ProjectedNeighbors:
        """For every row the k nearest in projected distance and the k farthest in input distance, exactly.

        Rows whose squared projected distances agree to about 1e-9 (less, if all are small because the kernel is wide)
        come in the order of their input distance, then of their index; input distances are compared as in
        :func:`~pairlens.engines.neighbors`. `block_bytes` bounds the working memory; the result does not depend on it.
        """


class NearGraph(Protocol):
    """Near rows of each row and the random walk P over them, kept where the rows are."""

    @property
    def indices(self) -> IntArray:
        """The near rows that each row lists, of shape (n, k)."""

    @property
    def weights(self) -> sparse.csr_matrix | None:
        """The symmetric weights of near rows; None where they are only on a device."""

    @property
    def walk(self) -> Any:
        """P, a sparse matrix of shape (n, n)."""

    @property
    def accuracy(self) -> float:
        """To which relative accuracy it is worth while to follow the walk."""

    def listed_scatter(self, rows: Rows) -> Float64:
        """Scatter of the differences between each row and those that it lists."""

    def spread(self, rows: Rows, a: float) -> Rows:
        r"""The rows, spread over the walk: :math:`(1 - a)(I - a P)^{-1} X`."""

    def spread_back(self, weights: Float64, a: float) -> Float64:
        """Weights of the rows, spread over the transpose of the walk."""
