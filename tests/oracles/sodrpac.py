"""Oracle of SODRPaC: Algorithm 1 as nested loops over sets, and the criterion with dense n x n matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tests.oracles.base import (
    Array,
    Pairs,
    Solution,
    centre,
    default_theta,
    heat,
    knn_edges,
    laplacian,
    largest_eigenvectors,
    neighbour_lists,
)


def mutual_pairs(X: ArrayLike, n_neighbors: int) -> set[tuple[int, int]]:
    """Pairs i < j of which each is among the nearest rows of the other."""
    lists = neighbour_lists(X, n_neighbors)
    return {(i, j) for i, own in enumerate(lists) for j in own if i < j and i in lists[j]}


def must_link_component(must_link: Pairs, start: int) -> set[int]:
    """The rows that must-links join to a row, itself among them."""
    found, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        for i, j in must_link:
            for one, other in ((i, j), (j, i)):
                if one == here and other not in found:
                    found.add(other)
                    waiting.append(other)
    return found


def reliabilities(
    X: ArrayLike, must_link: Pairs, cannot_link: Pairs, *, n_neighbors: int = 3, theta: float | None = None
) -> Array:
    """The symmetric matrix L of Algorithm 1."""
    n = len(np.asarray(X))
    kappa = heat(X, theta)
    enemies: list[set[int]] = [set() for _ in range(n)]
    friends: list[set[int]] = [set() for _ in range(n)]
    close: list[set[int]] = [set() for _ in range(n)]
    for pairs, relation in ((cannot_link, enemies), (must_link, friends), (mutual_pairs(X, n_neighbors), close)):
        for i, j in pairs:
            relation[i].add(j)
            relation[j].add(i)
    component = [must_link_component(must_link, i) if friends[i] else {i} for i in range(n)]
    L = np.zeros((n, n))
    for i, j in cannot_link:
        L[i, j] = L[j, i] = 1.0

    def add(i: int, j: int, r: float) -> None:
        if i != j and j not in component[i]:
            L[i, j] = L[j, i] = max(L[i, j], r)

    for p, q in must_link:
        for a, e in ((p, q), (q, p)):
            if enemies[a]:
                for c in enemies[a]:
                    add(e, c, 1.0)
                    for d in friends[c]:
                        add(a, d, 1.0)
                        add(e, d, 1.0)
            else:
                for b in close[a]:
                    for c in enemies[b]:
                        add(a, c, kappa[a, b])
                        add(e, c, kappa[a, b])
                        for d in friends[c]:
                            add(a, d, kappa[a, b])
                            add(e, d, kappa[a, b])
    return L


def shared_neighbour_weights(X: ArrayLike, n_neighbors: int = 3) -> Array:
    """H: on mutual pairs the number of neighbours in common."""
    lists = [set(own) for own in neighbour_lists(X, n_neighbors)]
    H = np.zeros((len(lists), len(lists)))
    for i, j in mutual_pairs(X, n_neighbors):
        H[i, j] = H[j, i] = len(lists[i] & lists[j])
    return H


def normalised_laplacian(U: Array) -> Array:
    """``I - K^(-1/2) U K^(-1/2)``, with 0 for the root of a row without neighbours."""
    root = np.array([1 / np.sqrt(k) if k > 0 else 0.0 for k in U.sum(axis=1)])
    return np.eye(len(U)) - root[:, None] * U * root[None, :]


def sodrpac(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    *,
    n_neighbors: int = 3,
    n_graph_neighbors: int = 5,
    lam: float = 8.0,
    theta: float | None = None,
) -> Solution:
    """Top of ``X' (P - Q - lam M / n) X``. attract = Q and M, repel = P."""
    Xc = centre(X)
    theta = default_theta(X) if theta is None else theta
    L = reliabilities(X, must_link, cannot_link, n_neighbors=n_neighbors, theta=theta)
    H = shared_neighbour_weights(X, n_neighbors)
    M = normalised_laplacian(heat(X, theta) * knn_edges(X, n_graph_neighbors))
    P = laplacian(L) / max(1, np.count_nonzero(np.triu(L)))
    Q = laplacian(H) / max(1, len(mutual_pairs(X, n_neighbors)))
    attract = Xc.T @ (Q + lam * M / len(Xc)) @ Xc
    repel = Xc.T @ P @ Xc
    return Solution(attract, repel, *largest_eigenvectors(repel - attract, n_components))
