"""Oracles of the methods on neighbour graphs: LPP, SLPP, LPPSI (linear and kernel) and CLPP."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tests.oracles.base import (
    DIVISION_FLOOR,
    Array,
    Pairs,
    Solution,
    all_ratio_directions,
    centre,
    heat,
    knn_edges,
    laplacian,
    min_ratio,
    squared_distances,
    unit_weights,
)


def lpp(X: ArrayLike, n_components: int, *, n_neighbors: int = 5, theta: float | None = None) -> Solution:
    """``min w'Xc' Lap(A) Xc w / w'Xc' D Xc w``, A = heat on the kNN graph, D its degrees."""
    Xc = centre(X)
    A = heat(X, theta) * knn_edges(X, n_neighbors)
    attract = Xc.T @ laplacian(A) @ Xc
    repel = Xc.T @ np.diag(A.sum(axis=1)) @ Xc
    return Solution(attract, repel, *min_ratio(attract, repel, n_components))


def slpp(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    *,
    w_must: ArrayLike | None = None,
) -> Solution:
    """LPP on the must-linked rows with A = must-links + I, columns scaled to ``Z'(Xm' Lap Xm)Z = I``.

    Xm is centred with the mean of all rows. The self loops count in the degrees D and cancel in Lap.
    Dividing uses ``max(mu, 1e-12 mu_max)``, mu_max over all the solutions.
    """
    rows = sorted({int(i) for pair in must_link for i in pair})
    place = {row: r for r, row in enumerate(rows)}
    Xm = centre(X)[rows]
    A = np.eye(len(rows))
    for (i, j), w in zip(must_link, unit_weights(must_link, w_must)):
        A[place[int(i)], place[int(j)]] = A[place[int(j)], place[int(i)]] = w
    attract = Xm.T @ laplacian(A) @ Xm
    repel = Xm.T @ np.diag(A.sum(axis=1)) @ Xm
    W, mu = all_ratio_directions(attract, repel)
    floor = DIVISION_FLOOR * mu[-1] if len(mu) and mu[-1] > 0 else 1.0
    W = W / np.sqrt(np.maximum(mu, floor))[:, None]
    return Solution(attract, repel, W[:n_components], mu[:n_components])


def lppsi_graphs(
    X: ArrayLike, must_link: Pairs, cannot_link: Pairs, n_neighbors: int = 5, theta: float | None = None
) -> tuple[Array, Array]:
    """Ss: heat on must-links and on kNN edges that are not constrained pairs. Sd: heat on cannot-links."""
    H = heat(X, theta)
    similar: NDArray[np.bool_] = knn_edges(X, n_neighbors)
    different = np.zeros_like(similar)
    for i, j in cannot_link:
        similar[i, j] = similar[j, i] = False
        different[i, j] = different[j, i] = True
    for i, j in must_link:
        similar[i, j] = similar[j, i] = True
    return H * similar, H * different


def lppsi(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    *,
    n_neighbors: int = 5,
    beta: float = 1.0,
    theta: float | None = None,
) -> Solution:
    """``min w'Xc'(Lap(Ss) - beta Lap(Sd))Xc w / w'Xc' D^s Xc w``, D^s the degrees of Ss."""
    Xc = centre(X)
    Ss, Sd = lppsi_graphs(X, must_link, cannot_link, n_neighbors, theta)
    attract = Xc.T @ (laplacian(Ss) - beta * laplacian(Sd)) @ Xc
    repel = Xc.T @ np.diag(Ss.sum(axis=1)) @ Xc
    return Solution(attract, repel, *min_ratio(attract, repel, n_components))


def rbf(X: ArrayLike, delta: float) -> Array:
    """``K_ij = exp(-|x_i - x_j|^2 / (2 delta^2))``."""
    return np.exp(-squared_distances(X) / (2 * delta**2))


def kernel_lppsi(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    *,
    delta: float,
    n_neighbors: int = 5,
    beta: float = 1.0,
    theta: float | None = None,
) -> Solution:
    """``min a'K(Lap(Ss) - beta Lap(Sd))K a / a'K D^s K a``, K the RBF kernel, centred as X is.

    Graphs and heat as in lppsi, in the input space. attract and repel are n x n; components is dual.
    """
    K = rbf(X, delta)
    H = np.eye(len(K)) - 1 / len(K)
    K = H @ K @ H
    Ss, Sd = lppsi_graphs(X, must_link, cannot_link, n_neighbors, theta)
    attract = K @ (laplacian(Ss) - beta * laplacian(Sd)) @ K
    repel = K @ np.diag(Ss.sum(axis=1)) @ K
    dual, mu = min_ratio(attract, repel, n_components)
    return Solution(attract, repel, dual, mu, dual)


def clpp_affinity(
    X: ArrayLike, must_link: Pairs, cannot_link: Pairs, n_neighbors: int = 5, theta: float | None = None
) -> tuple[Array, Array]:
    """The heat kNN affinity A0, and A with +1/-1 on constrained pairs, passed on to the ends' neighbours.

    Pair (i, j) of value v adds ``v heat(u, i)`` to {u, j} for every edge (u, i), and ``v heat(j, w)`` to
    {i, w} for every edge (j, w), except where that pair is constrained, an edge or a point with itself.
    """
    H, edges = heat(X, theta), knn_edges(X, n_neighbors)
    A0 = H * edges
    values = {(int(i), int(j)): 1.0 for i, j in must_link} | {(int(i), int(j)): -1.0 for i, j in cannot_link}
    taken = edges | np.eye(len(H), dtype=bool)
    for i, j in values:
        taken[i, j] = taken[j, i] = True
    A = A0.copy()
    for (i, j), v in values.items():
        A[i, j] = A[j, i] = v
        for near, far in ((i, j), (j, i)):
            for u in np.flatnonzero(edges[near]):
                if not taken[u, far]:
                    A[u, far] += v * H[u, near]
                    A[far, u] += v * H[u, near]
    return A0, A


def clpp(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    *,
    n_neighbors: int = 5,
    theta: float | None = None,
) -> Solution:
    """``min w'Xc' Lap(A) Xc w / w'Xc' D0 Xc w``, A the affinity with constraints, D0 the degrees without."""
    Xc = centre(X)
    A0, A = clpp_affinity(X, must_link, cannot_link, n_neighbors, theta)
    attract = Xc.T @ laplacian(A) @ Xc
    repel = Xc.T @ np.diag(A0.sum(axis=1)) @ Xc
    return Solution(attract, repel, *min_ratio(attract, repel, n_components))
