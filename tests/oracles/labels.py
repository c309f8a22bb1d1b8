"""Oracles of the methods that take labels: LFDA and SDA. Label -1 means unlabelled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tests.oracles.base import Array, Solution, centre, knn_edges, laplacian, max_ratio, squared_distances


def lfda_weights(X: ArrayLike, y: ArrayLike, n_neighbors: int = 7) -> tuple[Array, Array]:
    """Dense W^w and W^b of labelled rows, with zero diagonals.

    ``A_ij = exp(-|x_i-x_j|^2 / (s_i s_j))``, s_i the distance to neighbour ``min(7, n_c - 1)`` in the class.
    In a class ``W^w = A/n_c`` and ``W^b = A (1/n - 1/n_c)``; across classes 0 and 1/n. Where ``s_i s_j = 0``
    A is the limit: 1 for equal rows, else 0.
    """
    y = np.asarray(y)
    D2 = squared_distances(X)
    n = len(y)
    within, between = np.zeros((n, n)), np.full((n, n), 1.0 / n)
    np.fill_diagonal(between, 0.0)
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        n_c = len(members)
        local = {}
        for i in members:
            others = sorted(D2[i, j] for j in members if j != i)
            local[i] = math.sqrt(others[min(n_neighbors, n_c - 1) - 1]) if others else 0.0
        for i in members:
            for j in members:
                if i == j:
                    continue
                scale = local[i] * local[j]
                affinity = math.exp(-D2[i, j] / scale) if scale > 0 else float(D2[i, j] == 0)
                within[i, j] = affinity / n_c
                between[i, j] = affinity * (1.0 / n - 1.0 / n_c)
    return within, between


def lfda(X: ArrayLike, y: ArrayLike, n_components: int, *, n_neighbors: int = 7) -> Solution:
    """``max S^b / S^w`` on the labelled rows, ``b'S^w b = 1``, then each column times sqrt(eigenvalue).

    ``S = 1/2 sum_ij W_ij (x_i-x_j)(x_i-x_j)' = X' Lap(W) X``. A negative eigenvalue counts as 0 in the root.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    labelled = y != -1
    within, between = lfda_weights(X[labelled], y[labelled], n_neighbors)
    Xl = centre(X[labelled])
    attract, repel = Xl.T @ laplacian(within) @ Xl, Xl.T @ laplacian(between) @ Xl
    W, mu = max_ratio(repel, attract, n_components)
    return Solution(attract, repel, W * np.sqrt(np.maximum(mu, 0.0))[:, None], mu)


def sda(
    X: ArrayLike,
    y: ArrayLike,
    n_components: int,
    *,
    alpha: float = 0.1,
    beta: float = 0.01,
    n_neighbors: int = 5,
) -> Solution:
    """``max S_b / (S_t + alpha Xc' Lap(binary kNN) Xc + beta I)``, the Laplacian over all rows.

    ``S_b = sum_c n_c (m_c-m)(m_c-m)'`` and ``S_t = sum (x-m)(x-m)'`` over labelled rows, m their mean.
    Directions past rank(S_b) (number of classes - 1) have eigenvalue 0 and are arbitrary.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    f = X.shape[1]
    labelled = X[y != -1]
    mean = labelled.mean(axis=0)
    S_t, S_b = np.zeros((f, f)), np.zeros((f, f))
    for row in labelled:
        S_t += np.outer(row - mean, row - mean)
    for label in np.unique(y[y != -1]):
        rows = X[y == label]
        S_b += len(rows) * np.outer(rows.mean(axis=0) - mean, rows.mean(axis=0) - mean)
    Xc = centre(X)
    smooth = Xc.T @ laplacian(knn_edges(X, n_neighbors).astype(np.float64)) @ Xc
    attract = S_t + alpha * smooth + beta * np.eye(f)
    return Solution(attract, S_b, *max_ratio(S_b, attract, n_components))
