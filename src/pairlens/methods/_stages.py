"""The stages of PairLens: coordinates with a map for new rows, and a pair problem in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from pairlens._threads import one_blas_thread
from pairlens.engines import Rows, column_means
from pairlens.judging.folds import PairFolds
from pairlens.judging.held_out import DEFAULT_PURITY, FEWEST_FOR_PURITY, HeldOutDistances, held_out_distances
from pairlens.kernels.features import KernelFeatures, kernel_features
from pairlens.spectral.eigen import Pencil, fix_signs, symmetric
from pairlens.spectral.pairproblem import NearGraph, PairField, near_graph, pair_field, solve_pairs
from pairlens.spectral.rowspace import RowSpace, row_space
from pairlens.supervision import Constraints

__all__ = [
    "Diffusion",
    "FirstStage",
    "SecondStage",
    "Standardised",
    "Standardiser",
    "diffusion",
    "exact_means",
    "first_stage",
    "principal_rows",
    "second_stage",
]

LINEAR_IOTA, KERNEL_IOTA, DIFFUSION_IOTA = 0.2, 0.8, 0.5
KEPT_VARIANCE = 0.99
FOLDS = 5
FEWEST_FOR_FOLDS = 2
"""Pairs of a kind below which nothing is held out."""
PURITY_STRENGTH = 3.0
PURITY_COLUMNS = 10
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
class Standardised:
    """Leading principal components of z-scored rows, scaled by one number, as a basis of a row space."""

    space: RowSpace
    scale: NDArray[np.float64]
    vectors: NDArray[np.float64]
    size: float

    def lift(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Directions in principal components as components in the raw features."""
        return self.space.lift(self.vectors @ (directions / self.size)) / self.scale


@dataclass(frozen=True)
class Standardiser:
    """z-scores by the mean and the deviations of training rows; sparse rows keep their zeros and are only scaled.

    That is enough for what depends on differences of rows, which all the uses here do.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, X: Rows, mean: NDArray[np.float64]) -> Standardiser:
        return cls(mean, column_deviations(X, mean))

    def __call__(self, X: Rows) -> Rows:
        if sparse.issparse(X):
            return (X @ sparse.diags(1 / self.scale)).tocsr()
        return (X - self.mean) / self.scale


def exact_means(X: Rows) -> NDArray[np.float64]:
    """Means of the columns to the accuracy of float64; those of float32 rows are accurate to 1e-6 at first."""
    mean = column_means(X)
    if not sparse.issparse(X) and X.dtype == np.float32:
        mean = mean + column_means(X - mean)
    return mean


def column_deviations(X: Rows, mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations of the columns; infinite for constant ones, which makes them zero instead of noise."""
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
        # In units of the largest, squares neither overflow nor vanish.
        unit = np.maximum(difference.max(axis=0), -difference.min(axis=0))
        unit[unit == 0] = 1.0
        difference /= unit
        square = column_means(np.square(difference, out=difference))
    deviation = unit * np.sqrt(square)
    return np.where(deviation > 1e-10 * np.maximum(np.abs(mean), 1e-300), deviation, np.inf)


def principal_rows(X: Rows, mean: NDArray[np.float64], at_least: int, anchors: NDArray[np.int64]) -> RowSpace:
    """z-scored rows in the principal components that hold 99 % of their variance, and at least so many.

    They are scaled to total variance 1, as a pair problem wants them.
    """
    scale = column_deviations(X, mean)
    scaled = (X @ sparse.diags(1 / scale)).tocsr() if sparse.issparse(X) else X / scale
    space = row_space(scaled, mean / scale, anchors=anchors)
    values, vectors = symmetric(space.total_scatter())
    values = np.maximum(values, 0.0)
    share = np.cumsum(values) / max(values.sum(), np.finfo(float).tiny)
    enough = int(np.searchsorted(share, KEPT_VARIANCE - 1e-12)) + 1
    usable = int(np.count_nonzero(values > 1e-12 * values.max(initial=0.0)))
    kept = min(max(enough, at_least), usable)
    basis = vectors[:, :kept]
    rows = np.asarray(space.rows @ basis) - space.offset @ basis
    size = float(np.sqrt(values[:kept].sum() / len(rows))) if kept else 1.0
    return RowSpace(rows / size, np.zeros(kept), _basis=Standardised(space, scale, basis, size))


@dataclass(frozen=True)
class FirstStage:
    """A linear pair problem whose prior was fitted to how held-out must-links behave."""

    field: PairField
    folds: PairFolds | None
    purity: float
    strength: float

    def solve(self, known: Constraints, k: int) -> Pencil:
        """The k leading directions for these pairs."""
        return solve_pairs(self.field, known, self.strength, k)

    def held_out(self, k: int) -> HeldOutDistances | None:
        """Distances of held-out pairs in the k leading directions; None with fewer than two pairs of a kind."""
        return None if self.folds is None else _held_out(self.field, self.folds, self.strength, k)


def first_stage(
    rows: NDArray[np.float64],
    known: Constraints,
    *,
    n_neighbors: int,
    spread: float,
    prior: float | str,
    random_state: Any,
) -> FirstStage:
    """Prepare the rows, and choose the strength of the prior: 2 / purity unless given."""
    field = pair_field(rows, near_graph(rows, n_neighbors), spread=spread, iota=LINEAR_IOTA)
    fewest = min(known.n_must_link, known.n_cannot_link)
    folds = PairFolds.draw(known, FOLDS, random_state) if fewest >= FEWEST_FOR_FOLDS else None
    purity = DEFAULT_PURITY
    if folds is not None and fewest >= FEWEST_FOR_PURITY:
        purity = _held_out(field, folds, PURITY_STRENGTH, PURITY_COLUMNS).purity()
    return FirstStage(field, folds, purity, 2.0 / max(purity, 0.1) if prior == "auto" else float(prior))


def _held_out(field: PairField, folds: PairFolds, strength: float, k: int) -> HeldOutDistances:
    return held_out_distances(lambda train: field.rows @ solve_pairs(field, train, strength, k)[1], folds)


@dataclass(frozen=True)
class Diffusion:
    """Diffusion coordinates of training rows; a new row takes the weighted mean of its nearest training rows."""

    rows: NDArray[np.float64]
    values: NDArray[np.float64]

    def __call__(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        from sklearn.neighbors import NearestNeighbors

        k = min(NEW_ROW_NEIGHBORS, len(self.rows))
        # Trees do not pay in so many dimensions; products of rows find the neighbours, differences their distances.
        finder = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(self.rows)
        index = finder.kneighbors(Z, return_distance=False)
        squared = np.stack([np.einsum("ij,ij->i", Z - near, Z - near) for near in (self.rows[i] for i in index.T)], 1)
        width = np.median(squared, axis=1, keepdims=True)
        weight = np.exp(-squared / np.where(width > 0, width, 1.0))
        # A training row takes its own place, and so does whatever coincides with it up to rounding.
        same = squared <= SAME_ROW * np.einsum("ij,ij->", self.rows, self.rows) / len(self.rows)
        weight = np.where(same.any(axis=1, keepdims=True), same, weight)
        weight = weight / weight.sum(axis=1, keepdims=True)
        return np.einsum("ij,ijk->ik", weight, self.values[index])


def diffusion(rows: NDArray[np.float64], graph: NearGraph) -> Diffusion:
    r"""Leading eigenvectors of the random walk after the constant one, column j times :math:`\lambda_j^4`."""
    n = len(rows)
    # The walk D^-1 A has the eigenvalues of the symmetric D^-1/2 A D^-1/2, and its eigenvectors times D^-1/2.
    weights = graph.weights
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
    return Diffusion(rows, vectors * np.maximum(values, 0.0) ** DIFFUSION_TIME)


@dataclass(frozen=True)
class SecondStage:
    """A solved second stage: the map into its coordinates, their centre, and the directions there."""

    coordinates: Diffusion | KernelFeatures
    mean: NDArray[np.float64]
    directions: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]

    def embed(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows of the first stage in the view."""
        return (self.coordinates(Z) - self.mean) @ self.directions


def second_stage(
    Z: NDArray[np.float64], known: Constraints, *, n_components: int, n_neighbors: int, spread: float, strength: float
) -> tuple[SecondStage, NDArray[np.float64]]:
    """The second stage on the rows Z of the first, and the embedded training rows.

    Two directions come from diffusion coordinates, other numbers from kernel principal components.
    """
    graph = near_graph(Z, n_neighbors)
    coordinates: Diffusion | KernelFeatures
    if n_components == 2:
        coordinates = diffusion(Z, graph)
        values, iota = coordinates.values, DIFFUSION_IOTA
    else:
        coordinates = kernel_features(Z, kernel="rbf", gamma="median", rank=KERNEL_RANK, center=True)
        values, iota = coordinates(Z), KERNEL_IOTA
    field = pair_field(values, graph, spread=spread, iota=iota)
    eigenvalues, directions = solve_pairs(field, known, strength, n_components)
    # Coordinates have signs of their own, so it is the embedded rows that decide.
    plain = field.rows @ directions
    embedded = fix_signs(plain.T).T
    directions = np.where(np.einsum("ij,ij->j", plain, embedded) < 0, -directions, directions)
    mean = values.mean(axis=0)
    # The pair problem scales its rows to total variance 1; the directions take that scale along.
    variance = float(np.einsum("ij,ij->", values - mean, values - mean)) / len(values)
    return SecondStage(
        coordinates, mean, directions / np.sqrt(variance if variance > 0 else 1.0), eigenvalues
    ), embedded
