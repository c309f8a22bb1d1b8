"""Diffusion coordinates of a neighbour graph, with a map for new rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from pairlens.engines import (
    IntArray,
    NearGraph,
    Rows,
    listed_pairs,
    one_blas_thread,
    pair_squared_distances,
    rows_in_memory,
)
from pairlens.graphs.nearest import nearest_among
from pairlens.spectral.eigen import symmetric

__all__ = ["SAME_ROW", "Diffusion", "diffusion"]

DIFFUSION_RANK = 15
DIFFUSION_TIME = 4
NEW_ROW_NEIGHBORS = 10
DENSE_LIMIT = 500
"""Rows up to which the eigenvectors of the random walk come from a dense solver."""
SAME_ROW = 1e-14
"""Share of the total variance up to which the squared distance of two rows is rounding."""
LANCZOS = 100
"""Vectors of the sparse solver: behind the clusters, eigenvalues lie close together."""
LANCZOS_TOLERANCE = 1e-8
LEAST_EIGENVALUE = 1e-8
"""Eigenvalues up to which nothing is left after the steps of the walk but rounding."""


@dataclass(frozen=True)
class Diffusion:
    """Diffusion coordinates of training rows; a new row takes the weighted mean of its nearest training rows."""

    rows: NDArray[np.float64]
    values: NDArray[np.float64]
    search: str = "auto"
    n_queries: int = 0
    """How the nearest are found, and how many rows look: see :func:`~pairlens.graphs.nearest.nearest_among`."""

    def __call__(self, Z: Rows) -> NDArray[np.float64]:
        """Return coordinates of rows, in memory."""
        return self._mean(*self._nearest(Z, NEW_ROW_NEIGHBORS))

    def as_new(self, Z: Rows) -> NDArray[np.float64]:
        """Return coordinates of rows to which one training row each is unknown, if it coincides with them.

        So a training row is treated as a new one: it takes the mean of the others.
        """
        index, distance = self._nearest(Z, NEW_ROW_NEIGHBORS + 1)
        itself = distance[:, :1] ** 2 <= self._rounding
        return self._mean(*(np.where(itself, found[:, 1:], found[:, :-1]) for found in (index, distance)))

    def of_others(self, neighbors: IntArray) -> NDArray[np.float64]:
        """Return coordinates of the training rows as new ones, from the nearest others of each."""
        near = neighbors[:, :NEW_ROW_NEIGHBORS]
        squared = pair_squared_distances(self.rows, listed_pairs(near))
        return self._mean(near, np.sqrt(squared).reshape(near.shape))

    def _nearest(self, Z: Rows, k: int) -> tuple[IntArray, NDArray[np.float64]]:
        k = min(k, len(self.rows))
        return nearest_among(self.rows, rows_in_memory(Z), k, search=self.search, n_queries=self.n_queries)

    @property
    def _rounding(self) -> float:
        """Squared distance up to which two rows coincide."""
        return SAME_ROW * float(np.einsum("ij,ij->", self.rows, self.rows)) / len(self.rows)

    def _mean(self, index: IntArray, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weighted mean of training rows at these distances."""
        squared = distance**2
        width = np.median(squared, axis=1, keepdims=True)
        weight = np.exp(-squared / np.where(width > 0, width, 1.0))
        # A training row takes its own place, and so does whatever coincides with it up to rounding.
        same = squared <= self._rounding
        weight = np.where(same.any(axis=1, keepdims=True), same, weight)
        weight = weight / weight.sum(axis=1, keepdims=True)
        return np.einsum("ij,ijk->ik", weight, self.values[index])


def diffusion(rows: NDArray[np.float64], graph: NearGraph, *, search: str = "auto", n_queries: int = 0) -> Diffusion:
    r"""Return leading eigenvectors of the random walk after the constant one, column j times :math:`\lambda_j^4`."""
    n = len(rows)
    # The walk D^-1 A has the eigenvalues of the symmetric D^-1/2 A D^-1/2, and its eigenvectors times D^-1/2.
    weights = graph.weights
    assert weights is not None
    degree = np.asarray(weights.sum(axis=1)).ravel()
    root = sparse.diags(1 / np.sqrt(degree))
    normalised = (root @ weights @ root).tocsr()
    # The constant one is known and taken out: in a graph of several parts its eigenvalue is not simple.
    constant = np.sqrt(degree / degree.sum())
    k = min(DIFFUSION_RANK, n - 1)
    if n <= DENSE_LIMIT:
        values, vectors = symmetric(normalised.toarray() - np.outer(constant, constant), k)
    else:
        deflated = LinearOperator((n, n), matvec=lambda x: normalised @ x - constant * (constant @ x.ravel()))
        # Thousands of tiny products, each of which would wait for the other threads of a busy machine.
        with one_blas_thread():
            values, vectors = eigsh(
                deflated, k, which="LA", v0=np.cos(np.arange(n)), ncv=LANCZOS, tol=LANCZOS_TOLERANCE
            )
        values, vectors = values[::-1], vectors[:, ::-1]
    vectors = (root @ vectors) * np.sqrt(degree.sum())
    # Of a handful of rows, where each is near all others, no eigenvalue is positive.
    left = np.where(values > LEAST_EIGENVALUE, values, 0.0) ** DIFFUSION_TIME
    return Diffusion(rows, vectors * left, search, n_queries)
