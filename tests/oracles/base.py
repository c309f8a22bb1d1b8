"""What every oracle needs: pair sums, dense graphs and the two kinds of eigenproblem, written out slowly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, subspace_angles

Array = NDArray[np.float64]
Pairs = Sequence[tuple[int, int]]

NULL_TOLERANCE = 1e-9
"""Eigenvalues up to this share of the largest one belong to the null space."""
DIVISION_FLOOR = 1e-12
"""Share of the largest eigenvalue below which none goes before it is divided by."""


@dataclass(frozen=True)
class Solution:
    """One method's matrices and directions.

    attract is made small and repel large: the directions are those of ``max repel / attract``,
    ``min attract / repel`` or ``top of repel - attract``. Rows of components are directions, best first, one
    eigenvalue each. dual (kernel methods only) holds the coefficients over the training rows, one row each.
    """

    attract: Array
    repel: Array
    components: Array
    eigenvalues: Array
    dual: Array | None = None


def subspace_angle(P: ArrayLike, Q: ArrayLike) -> float:
    """Largest principal angle, in radians, between the row spaces of two components matrices."""
    return float(np.max(subspace_angles(np.asarray(P, float).T, np.asarray(Q, float).T), initial=0.0))


def relative_difference(A: ArrayLike, B: ArrayLike) -> float:
    """``|A - B| / max(|A|, |B|)`` in the Frobenius norm; 0 when both are zero."""
    A, B = np.asarray(A, float), np.asarray(B, float)
    scale = max(float(np.linalg.norm(A)), float(np.linalg.norm(B)))
    return float(np.linalg.norm(A - B)) / scale if scale > 0 else 0.0


def centre(X: ArrayLike) -> Array:
    """X minus its column means."""
    rows: Array = np.asarray(X, dtype=np.float64)
    means: Array = rows.mean(axis=0)
    return rows - means


def covariance(X: ArrayLike) -> Array:
    """``cov(X) = Xc' Xc / n``."""
    Xc = centre(X)
    return Xc.T @ Xc / len(Xc)


def unit_weights(pairs: Pairs, weights: ArrayLike | None) -> Array:
    """The weights of the pairs, ones by default."""
    return np.ones(len(pairs)) if weights is None else np.asarray(weights, dtype=np.float64)


def pair_scatter(X: ArrayLike, pairs: Pairs, weights: ArrayLike | None = None) -> Array:
    """``sum_ij w_ij (x_i - x_j)(x_i - x_j)'`` over unordered pairs, one pair at a time."""
    X = np.asarray(X, dtype=np.float64)
    S = np.zeros((X.shape[1], X.shape[1]))
    for (i, j), w in zip(pairs, unit_weights(pairs, weights)):
        difference = X[i] - X[j]
        S += w * np.outer(difference, difference)
    return S


def mean_pair_scatter(X: ArrayLike, pairs: Pairs, weights: ArrayLike | None = None) -> Array:
    """The pair scatter over the total weight of the pairs; zero when there are none."""
    total = unit_weights(pairs, weights).sum()
    S = pair_scatter(X, pairs, weights)
    return S / total if total > 0 else S


def squared_distances(X: ArrayLike) -> Array:
    """Dense ``|x_i - x_j|^2`` from plain differences of the rows as they are given (not centred)."""
    X = np.asarray(X, dtype=np.float64)
    return np.array([((X - row) ** 2).sum(axis=1) for row in X]).reshape(len(X), len(X))


def neighbour_lists(X: ArrayLike, n_neighbors: int) -> list[list[int]]:
    """For each row its nearest other rows, nearest first, ties to the smaller index."""
    D2 = squared_distances(X)
    lists = []
    for i in range(len(D2)):
        order = [int(j) for j in np.argsort(D2[i], kind="stable") if j != i]
        lists.append(order[:n_neighbors])
    return lists


def rows_with_tied_neighbours(X: ArrayLike, n_neighbors: int, tolerance: float = 1e-9) -> list[int]:
    """Rows whose k-th and (k+1)-th neighbour are equally far: there the kNN graph is a matter of rounding."""
    tied = []
    for i, row in enumerate(squared_distances(X)):
        others = np.sort(np.delete(row, i))
        if len(others) > n_neighbors:
            inside, outside = others[n_neighbors - 1], others[n_neighbors]
            if outside - inside <= tolerance * outside:
                tied.append(i)
    return tied


def knn_edges(X: ArrayLike, n_neighbors: int) -> NDArray[np.bool_]:
    """Dense n x n kNN graph symmetrised with *or*: an edge where either row is a neighbour of the other."""
    lists = neighbour_lists(X, n_neighbors)
    edges = np.zeros((len(lists), len(lists)), dtype=bool)
    for i, neighbours in enumerate(lists):
        for j in neighbours:
            edges[i, j] = edges[j, i] = True
    return edges


def default_theta(X: ArrayLike) -> float:
    """``(mean over rows of |x_c|)^2``: the squared mean norm of the centred rows."""
    return float(np.mean([np.linalg.norm(row) for row in centre(X)]) ** 2)


def heat(X: ArrayLike, theta: float | None = None) -> Array:
    """Dense ``exp(-|x_i - x_j|^2 / theta)``."""
    return np.exp(-squared_distances(X) / (default_theta(X) if theta is None else theta))


def laplacian(A: Array) -> Array:
    """``Lap(A) = diag(A 1) - A``."""
    return np.diag(A.sum(axis=1)) - A


def symmetric(A: Array) -> Array:
    """The symmetric part: takes away the rounding of a product that is symmetric in theory."""
    return (A + A.T) / 2


def largest_eigenvectors(A: Array, n_components: int) -> tuple[Array, Array]:
    """Orthonormal leading eigenvectors of A as rows, and their eigenvalues, largest first."""
    values, vectors = eigh(symmetric(A))
    return vectors.T[::-1][:n_components], values[::-1][:n_components]


def all_ratio_directions(A: Array, B: Array) -> tuple[Array, Array]:
    """Every solution of ``A w = mu B w`` off B's null space, by ascending mu, as rows with ``w'Bw = 1``."""
    values, vectors = eigh(symmetric(B))
    keep = values > NULL_TOLERANCE * max(values[-1], 0.0)
    whitener = vectors[:, keep] / np.sqrt(values[keep])
    if whitener.shape[1] == 0:
        return np.zeros((0, len(A))), np.zeros(0)
    mu, U = eigh(symmetric(whitener.T @ A @ whitener))
    return (whitener @ U).T, mu


def max_ratio(A: Array, B: Array, n_components: int) -> tuple[Array, Array]:
    """``max w'Aw / w'Bw``, largest first, rows with ``w'Bw = 1``; fewer rows when rank(B) is smaller."""
    W, mu = all_ratio_directions(A, B)
    return W[::-1][:n_components], mu[::-1][:n_components]


def min_ratio(A: Array, B: Array, n_components: int) -> tuple[Array, Array]:
    """``min w'Aw / w'Bw``, smallest first, rows with ``w'Bw = 1``; fewer rows when rank(B) is smaller."""
    W, mu = all_ratio_directions(A, B)
    return W[:n_components], mu[:n_components]
