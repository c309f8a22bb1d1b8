"""Oracles of the chunklet methods (cFLD, RCA, DCA): a chunklet is a connected component of must-links."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from tests.oracles.base import (
    DIVISION_FLOOR,
    NULL_TOLERANCE,
    Array,
    Pairs,
    Solution,
    centre,
    covariance,
    max_ratio,
    symmetric,
)


def chunklets(must_link: Pairs) -> list[list[int]]:
    """Connected components of the must-links, each sorted; points without a must-link are in none."""
    linked: dict[int, set[int]] = {}
    for i, j in must_link:
        linked.setdefault(int(i), set()).add(int(j))
        linked.setdefault(int(j), set()).add(int(i))
    found: list[list[int]] = []
    seen: set[int] = set()
    for start in sorted(linked):
        if start in seen:
            continue
        members, waiting = {start}, [start]
        while waiting:
            for other in linked[waiting.pop()]:
                if other not in members:
                    members.add(other)
                    waiting.append(other)
        seen |= members
        found.append(sorted(members))
    return found


def chunklet_scatter(X: ArrayLike, must_link: Pairs) -> Array:
    """``C_w = (1/N) sum over chunklets, sum of (x - m)(x - m)'``, N the number of points in chunklets."""
    Xc = centre(X)
    C_w = np.zeros((Xc.shape[1], Xc.shape[1]))
    n_points = 0
    for members in chunklets(must_link):
        mean = Xc[members].mean(axis=0)
        n_points += len(members)
        for i in members:
            C_w += np.outer(Xc[i] - mean, Xc[i] - mean)
    return C_w / n_points if n_points else C_w


def cfld(X: ArrayLike, must_link: Pairs, cannot_link: Pairs, n_components: int) -> Solution:
    """``max cov(X) / C_w`` off the null space of C_w, columns of unit length. Cannot-links are not used."""
    C_w, C_t = chunklet_scatter(X, must_link), covariance(X)
    W, mu = max_ratio(C_t, C_w, n_components)
    return Solution(C_w, C_t, W / np.linalg.norm(W, axis=1, keepdims=True), mu)


def rca(X: ArrayLike, must_link: Pairs, cannot_link: Pairs, n_components: int) -> Solution:
    """Whiten the chunklet scatter C: ``C^{-1/2}`` on its range at l = f, below cFLD's span, ``W C W' = I``.

    Below l = f the rows are defined up to a rotation of the output; this gives the generalised
    eigenvectors themselves. Eigenvalues are those of C at l = f (descending), those of cFLD below.
    """
    C, C_t = chunklet_scatter(X, must_link), covariance(X)
    if n_components < len(C):
        W, mu = max_ratio(C_t, C, n_components)
        return Solution(C, C_t, W, mu)
    values, vectors = eigh(symmetric(C))
    keep = values > NULL_TOLERANCE * max(values[-1], 0.0)
    root = (vectors[:, keep] / np.sqrt(values[keep])) @ vectors[:, keep].T
    return Solution(C, C_t, root, values[::-1])


def chunklet_contrast(X: ArrayLike, must_link: Pairs, cannot_link: Pairs) -> Array:
    """``C_b``: mean of ``(m_i - m_j)(m_i - m_j)'`` over the distinct chunklet pairs joined by a cannot-link.

    A cannot-linked point in no must-link is a chunklet of one. A cannot-link inside a chunklet joins no two.
    """
    Xc = centre(X)
    groups = chunklets(must_link)
    group_of = {i: g for g, members in enumerate(groups) for i in members}
    joined: set[tuple[int, int]] = set()
    for i, j in cannot_link:
        for point in (int(i), int(j)):
            if point not in group_of:
                group_of[point] = len(groups)
                groups.append([point])
        a, b = group_of[int(i)], group_of[int(j)]
        if a != b:
            joined.add((min(a, b), max(a, b)))
    C_b = np.zeros((Xc.shape[1], Xc.shape[1]))
    for a, b in sorted(joined):
        difference = Xc[groups[a]].mean(axis=0) - Xc[groups[b]].mean(axis=0)
        C_b += np.outer(difference, difference)
    return C_b / len(joined) if joined else C_b


def dca(X: ArrayLike, must_link: Pairs, cannot_link: Pairs, n_components: int) -> Solution:
    """Whiten C_b on its range, keep the smallest eigenvalues mu of C_w there, scale to ``w'C_w w = 1``.

    At most rank(C_b) rows. Dividing uses ``max(mu, 1e-12 mu_max)``. C_w is cFLD's: chunklets of one do
    not count in its N.
    """
    C_w, C_b = chunklet_scatter(X, must_link), chunklet_contrast(X, must_link, cannot_link)
    values, vectors = eigh(symmetric(C_b))
    keep = values > NULL_TOLERANCE * max(values[-1], 0.0)
    Z = vectors[:, keep] / np.sqrt(values[keep])
    if Z.shape[1] == 0:
        return Solution(C_w, C_b, np.zeros((0, len(C_w))), np.zeros(0))
    mu, U = eigh(symmetric(Z.T @ C_w @ Z))
    floor = DIVISION_FLOOR * mu[-1] if mu[-1] > 0 else 1.0
    W = (Z @ U) / np.sqrt(np.maximum(mu, floor))
    return Solution(C_w, C_b, W.T[:n_components], mu[:n_components])
