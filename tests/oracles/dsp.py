"""DSP with every n x n matrix written out, from the specification alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from tests.oracles.base import Array, Pairs, laplacian, squared_distances, symmetric

ROUNDING = 1e-9


@dataclass(frozen=True)
class DSPSolution:
    """K-hat, the two graphs, their forms, and the directions in rows with their eigenvalues."""

    kernel: Array
    near: Array
    far: Array
    A: Array
    B: Array
    components: Array
    eigenvalues: Array


def gaussian(X: ArrayLike, delta: float) -> Array:
    return np.exp(-squared_distances(X) / (2 * delta**2))


def components_of(pairs: Pairs, n: int) -> list[int]:
    """For each row the smallest row that a chain of must-links leads to."""
    label = list(range(n))
    for _ in pairs:
        for i, j in pairs:
            label[i] = label[j] = min(label[i], label[j])
    return label


def must_link_matrix(K: Array, must_link: Pairs) -> Array:
    """``W``: the inner products of the must-link differences."""
    a, b = np.array(must_link).T
    return K[np.ix_(a, a)] - K[np.ix_(a, b)] - K[np.ix_(b, a)] + K[np.ix_(b, b)]


def must_link_spectrum(K: Array, must_link: Pairs) -> Array:
    """The eigenvalues of W as shares of the largest."""
    if len(must_link) == 0:
        return np.zeros(0)
    values = np.linalg.eigvalsh(must_link_matrix(K, must_link))
    return values / max(values[-1], 1e-300)


def projected_kernel(K: Array, must_link: Pairs, tol_w: float = 1e-10) -> Array:
    """``K - G pinv(W) G'`` with one column of G for each must-link as it was given."""
    if len(must_link) == 0:
        return K
    a, b = np.array(must_link).T
    W = must_link_matrix(K, must_link)
    G = K[:, a] - K[:, b]
    values, vectors = eigh(symmetric(W))
    keep = values > tol_w * values[-1]
    F = G @ (vectors[:, keep] / np.sqrt(values[keep]))
    return K - F @ F.T


def projected_squared_distances(X: ArrayLike, must_link: Pairs, delta: float) -> Array:
    """``K^(x,x) + K^(y,y) - 2 K^(x,y)``, clipped at 0.

    Rows of one component are one point, whose place is that of its first row: only rounding says otherwise.
    """
    K = projected_kernel(gaussian(X, delta), must_link)
    point = components_of(must_link, len(K))
    K = K[np.ix_(point, point)]
    diagonal = np.diag(K)
    squared = np.maximum(diagonal[:, None] + diagonal[None, :] - 2 * K, 0)
    squared[np.equal.outer(point, point)] = 0
    return squared


def neighbour_graph(order: list[list[int]], n: int) -> Array:
    graph = np.zeros((n, n))
    for i, chosen in enumerate(order):
        for j in chosen:
            graph[i, j] = graph[j, i] = 1
    return graph


def dsp(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    delta: float,
    *,
    n_neighbors: int = 5,
    scaling: str = "A",
    tol: float = 1e-9,
) -> DSPSolution:
    """Steps 1 to 6 of section 0; ties by section 7."""
    X = np.asarray(X, dtype=np.float64)
    n = len(X)
    D2 = squared_distances(X)
    P2 = projected_squared_distances(X, must_link, delta)
    scale = ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()
    rounded_P, rounded_D = np.rint(P2 / ROUNDING), np.rint(D2 / scale / ROUNDING)
    nearest, farthest = [], []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        nearest.append(sorted(others, key=lambda j: (rounded_P[i, j], rounded_D[i, j], j))[:n_neighbors])
        farthest.append(sorted(others, key=lambda j: (-rounded_D[i, j], j))[:n_neighbors])
    S, R = neighbour_graph(nearest, n), neighbour_graph(farthest, n)
    for i, j in cannot_link:
        R[i, j] = R[j, i] = 1
    if P2.max() > 0:
        S *= 1 - np.sqrt(P2 / P2.max())
    R *= 1 - np.sqrt(D2 / D2.max())
    A, B = symmetric(X.T @ laplacian(S) @ X), symmetric(X.T @ laplacian(R) @ X)
    values, vectors = eigh(B)
    keep = values > tol * values[-1]
    whiten = vectors[:, keep] / np.sqrt(values[keep])
    inner = symmetric(whiten.T @ A @ whiten)
    lam, U = eigh(inner) if keep.any() else (np.empty(0), inner)  # scipy before 1.14 refuses an empty matrix
    Z = whiten @ U
    if scaling == "A" and lam.max(initial=0.0) > 0:
        Z = Z / np.sqrt(np.maximum(lam, 1e-12 * lam.max()))
    elif scaling == "unit":
        Z = Z / np.linalg.norm(Z, axis=0)
    kernel = projected_kernel(gaussian(X, delta), must_link)
    return DSPSolution(kernel, S, R, A, B, Z.T[:n_components], lam[:n_components])


def kernel_kmeans_cost(K: Array, labels: ArrayLike) -> float:
    """Sum over the rows of the squared distance to the mean of their cluster in the feature space of K."""
    labels = np.asarray(labels)
    cost = 0.0
    for cluster in np.unique(labels):
        rows = np.flatnonzero(labels == cluster)
        cost += float(np.trace(K[np.ix_(rows, rows)]) - K[np.ix_(rows, rows)].sum() / len(rows))
    return cost
