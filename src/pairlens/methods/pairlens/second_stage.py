"""The second stage: a pair problem in non-linear coordinates of the first stage's rows, with a map for new rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    project,
    rows_in_memory,
)
from pairlens.graphs.nearest import near_graph, nearest_among
from pairlens.kernels.features import KernelFeatures, kernel_features
from pairlens.methods.pairlens.problem import N_NEIGHBORS, SPREAD, PairProblem
from pairlens.spectral.eigen import fix_signs, symmetric
from pairlens.supervision import Constraints

KERNEL_IOTA, DIFFUSION_IOTA = 0.8, 0.5
KERNEL_RANK = 50
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


@dataclass(frozen=True)
class Diffusion:
    """Diffusion coordinates of training rows; a new row takes the weighted mean of its nearest training rows."""

    rows: NDArray[np.float64]
    values: NDArray[np.float64]
    search: str = "auto"
    n_queries: int = 0
    """How the nearest are found, and how many rows look: see :func:`~pairlens.graphs.nearest.nearest_among`."""

    def __call__(self, Z: Rows) -> NDArray[np.float64]:
        """Coordinates of rows, in memory."""
        return self._mean(*self._nearest(Z, NEW_ROW_NEIGHBORS))

    def as_new(self, Z: Rows) -> NDArray[np.float64]:
        """Coordinates of rows to which one training row each is unknown, if it coincides with them.

        So a training row is treated as a new one: it takes the mean of the others.
        """
        index, distance = self._nearest(Z, NEW_ROW_NEIGHBORS + 1)
        itself = distance[:, :1] ** 2 <= self._rounding
        return self._mean(*(np.where(itself, found[:, 1:], found[:, :-1]) for found in (index, distance)))

    def of_others(self, neighbors: IntArray) -> NDArray[np.float64]:
        """Coordinates of the training rows as new ones, from the nearest others of each."""
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
    r"""Leading eigenvectors of the random walk after the constant one, column j times :math:`\lambda_j^4`."""
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
    return Diffusion(rows, vectors * np.maximum(values, 0.0) ** DIFFUSION_TIME, search, n_queries)


@dataclass(frozen=True)
class SecondView:
    """A solved second stage: the map into its coordinates, their centre, and the directions there."""

    coordinates: Diffusion | KernelFeatures
    mean: NDArray[np.float64]
    directions: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]

    def embed(self, Z: Rows) -> Any:
        """Rows of the first stage in the view: an array, or a tensor where the coordinates are on the device of one."""
        return project(self.coordinates(Z), self.mean, self.directions.T)

    def embed_as_new(self, Z: Rows) -> Any:
        """The same, but a training row takes the place that it would take if it were new."""
        coordinates = self.coordinates
        seen = coordinates.as_new(Z) if isinstance(coordinates, Diffusion) else coordinates(Z)
        return project(seen, self.mean, self.directions.T)


@dataclass(frozen=True)
class SecondStage:
    """What depends on the rows of the first stage alone: coordinates, neighbours and local scatter.

    Attributes
    ----------
    coordinates : Diffusion or KernelFeatures
        The map into the coordinates.
    problem : PairProblem
        The same rows, centred and scaled.
    neighbors : int array of shape (n, n_neighbors) or None
        The nearest others of each row, for diffusion coordinates.
    """

    coordinates: Diffusion | KernelFeatures
    problem: PairProblem
    neighbors: IntArray | None

    @classmethod
    def of(
        cls,
        Z: Rows,
        *,
        diffuse: bool,
        n_neighbors: int = N_NEIGHBORS,
        spread: float = SPREAD,
        search: str = "auto",
        n_queries: int = 0,
    ) -> SecondStage:
        """Prepare rows of the first stage: diffusion coordinates, or kernel principal components.

        Parameters
        ----------
        Z : array of shape (n, p), or TensorRows
        diffuse : bool
            Which of the two. The eigenvectors of the diffusion are computed in memory.
        n_neighbors, spread
            Of the graph, and how far pairs spread over it.
        search : {"auto", "exact", "approx"}
            How its neighbours are found, and those of new rows.
        n_queries : int
            How many rows the diffusion coordinates are for, if these rows stand for more.
        """
        if diffuse:
            Z = rows_in_memory(Z)
        graph = near_graph(Z, n_neighbors, search=search)
        coordinates: Diffusion | KernelFeatures
        if diffuse:
            coordinates = diffusion(Z, graph, search=search, n_queries=n_queries)
            values, iota = coordinates.values, DIFFUSION_IOTA
        else:
            coordinates = kernel_features(Z, kernel="rbf", gamma="median", rank=KERNEL_RANK, center=True)
            values, iota = coordinates(Z), KERNEL_IOTA
        problem = PairProblem.of(values, graph, spread=spread, iota=iota)
        return cls(coordinates, problem, graph.indices if diffuse else None)

    def fit(self, known: Constraints, *, strength: float, n_components: int) -> tuple[SecondView, NDArray[np.float64]]:
        """The view for these pairs, and the rows in it."""
        eigenvalues, directions = self.problem.solve(known, strength, n_components)
        # Coordinates have signs of their own, so it is the embedded rows that decide.
        plain = np.asarray(self.problem.along(directions))
        embedded = fix_signs(plain.T).T
        directions = np.where(np.einsum("ij,ij->j", plain, embedded) < 0, -directions, directions)
        # The pair problem scales its rows to total variance 1; the directions take that scale along.
        scaled = directions / self.problem.size
        return SecondView(self.coordinates, self.problem.mean, scaled, eigenvalues), embedded

    def rows_as_new(self, view: SecondView, embedded: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rows, embedded in the view, where new ones would be: training rows are seen too well."""
        if not isinstance(self.coordinates, Diffusion):
            return embedded
        assert self.neighbors is not None
        return project(self.coordinates.of_others(self.neighbors), view.mean, view.directions.T)
