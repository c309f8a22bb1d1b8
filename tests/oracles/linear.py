"""Oracles of the methods built on pair scatters: BWDR, WBDR, SSDR, CMM, and NPSSDR with its LLE term."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from tests.oracles.base import (
    NULL_TOLERANCE,
    Array,
    Pairs,
    Solution,
    centre,
    covariance,
    largest_eigenvectors,
    mean_pair_scatter,
    neighbour_lists,
    pair_scatter,
    symmetric,
    unit_weights,
)

WITHIN_FLOOR = 1e-8
"""No eigenvalue of S_W counts as less than this share of the largest."""
THRESHOLD_SLACK = 1e-12


def _spectrum(S: Array) -> tuple[Array, Array]:
    """Eigenvalues, largest first and none below zero, and the unit eigenvectors as columns."""
    values, vectors = eigh(symmetric(S))
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def threshold_index(eigenvalues: Array, threshold: float, n_components: int, rank: int) -> int:
    """Steps 3 and 4: the largest i with ``alpha_i <= t0``, then ``min(max(i, K), rank)``."""
    total = eigenvalues.sum()
    i = 0
    if total > 0:
        for j in range(1, len(eigenvalues) + 1):
            alpha = eigenvalues[:j].sum() / total
            if alpha <= threshold + THRESHOLD_SLACK:
                i = j
    return min(max(i, n_components), rank)


def _trace_to_f(S: Array) -> Array:
    """``[S] = S f / trace(S)``; zero stays zero."""
    trace = np.trace(S)
    return S * len(S) / trace if trace > 0 else S


def _strength(shrinkage: float | str, n_features: int, n_pairs: float) -> float:
    """rho of one kind of pair: "auto" = p / (p + pairs); 1 when there is no such pair."""
    if n_pairs == 0:
        return 1.0
    return n_features / (n_features + n_pairs) if shrinkage == "auto" else float(shrinkage)


def within_between(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    shrinkage: float | str = 0.0,
    w_must: ArrayLike | None = None,
    w_cannot: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """``S_W = S_M`` and ``S_B = S_C``; shrunk: ``(1-rho)[S_W] + rho I``, ``(1-rho)[S_B] + rho [Xc'Xc]``."""
    Xc = centre(X)
    S_W = pair_scatter(Xc, must_link, w_must)
    S_B = pair_scatter(Xc, cannot_link, w_cannot)
    if shrinkage == 0.0:
        return S_W, S_B
    f = Xc.shape[1]
    rho_W = _strength(shrinkage, f, unit_weights(must_link, w_must).sum())
    rho_B = _strength(shrinkage, f, unit_weights(cannot_link, w_cannot).sum())
    total = _trace_to_f(Xc.T @ Xc)
    S_W = (1 - rho_W) * _trace_to_f(S_W) + rho_W * np.eye(f)
    S_B = (1 - rho_B) * _trace_to_f(S_B) + rho_B * total
    return S_W, S_B


def bwdr(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    *,
    threshold: float = 0.95,
    shrinkage: float | str = 0.0,
    w_must: ArrayLike | None = None,
    w_cannot: ArrayLike | None = None,
) -> Solution:
    """Algorithm 1: ``V = (sqrt(l_1/l_j) e_j), j <= i`` of S_B, then the smallest eigenvectors of ``V'S_W V``.

    i is at most rank(S_B) (relative tolerance 1e-9), so there may be fewer columns than asked for.
    """
    S_W, S_B = within_between(X, must_link, cannot_link, shrinkage, w_must, w_cannot)
    values, vectors = _spectrum(S_B)
    rank = int(np.sum(values > NULL_TOLERANCE * values[0]))
    i = threshold_index(values, threshold, n_components, rank)
    if i == 0:
        return Solution(S_W, S_B, np.zeros((0, len(S_B))), np.zeros(0))
    V = vectors[:, :i] * np.sqrt(values[0] / values[:i])
    mu, U = eigh(symmetric(V.T @ S_W @ V))
    return Solution(S_W, S_B, (V @ U[:, :n_components]).T, mu[:n_components])


def wbdr(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    *,
    threshold: float = 1.0,
    shrinkage: float | str = 0.0,
    w_must: ArrayLike | None = None,
    w_cannot: ArrayLike | None = None,
) -> Solution:
    """Algorithm 2: ``V = (sqrt(l_i/l_j) e_j, j <= i; e_j, j > i)`` of S_W, then the largest of ``V'S_B V``.

    The spectrum of S_W is floored at 1e-8 l_1 before steps 3 to 5, after which its rank is p and no
    direction is lost. With S_W = 0 there is nothing to compress and V is orthogonal.
    """
    S_W, S_B = within_between(X, must_link, cannot_link, shrinkage, w_must, w_cannot)
    values, vectors = _spectrum(S_W)
    values = np.maximum(values, WITHIN_FLOOR * values[0])
    scales = np.ones(len(values))
    if values[0] > 0:
        i = threshold_index(values, threshold, n_components, rank=len(values))
        for j in range(i):
            scales[j] = np.sqrt(values[i - 1] / values[j])
    V = vectors * scales
    U, mu = largest_eigenvectors(V.T @ S_B @ V, n_components)
    return Solution(S_W, S_B, U @ V.T, mu)


def ssdr(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    *,
    alpha: float = 1.0,
    beta: float = 20.0,
    normalization: str = "full",
    w_must: ArrayLike | None = None,
    w_cannot: ArrayLike | None = None,
) -> Solution:
    """Top l of ``cov(X) + alpha S_C/n_C - beta S_M/n_M``; "half" takes half of both pair terms."""
    share = {"full": 1.0, "half": 0.5}[normalization]
    Xc = centre(X)
    repel = covariance(X) + share * alpha * mean_pair_scatter(Xc, cannot_link, w_cannot)
    attract = share * beta * mean_pair_scatter(Xc, must_link, w_must)
    return Solution(attract, repel, *largest_eigenvectors(repel - attract, n_components))


def cmm(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    *,
    w_must: ArrayLike | None = None,
    w_cannot: ArrayLike | None = None,
) -> Solution:
    """Top l of ``S_C/n_C - S_M/n_M``; a side without pairs is left out."""
    Xc = centre(X)
    repel = mean_pair_scatter(Xc, cannot_link, w_cannot)
    attract = mean_pair_scatter(Xc, must_link, w_must)
    return Solution(attract, repel, *largest_eigenvectors(repel - attract, n_components))


def reconstruction_weights(X: ArrayLike, n_neighbors: int = 5, reg: float = 1e-3) -> Array:
    """Dense LLE weights R: row i solves ``(G + reg trace(G) I) w = 1`` over its neighbours, scaled to sum 1.

    G holds the inner products of ``x_j - x_i`` over the neighbours j; with trace(G) = 0 the ridge is reg.
    """
    X = np.asarray(X, dtype=np.float64)
    R = np.zeros((len(X), len(X)))
    for i, neighbours in enumerate(neighbour_lists(X, n_neighbors)):
        Z = np.array([X[j] - X[i] for j in neighbours])
        G = Z @ Z.T
        trace = np.trace(G)
        ridge = reg * trace if trace > 0 else reg
        w = np.linalg.solve(G + ridge * np.eye(len(G)), np.ones(len(G)))
        R[i, neighbours] = w / w.sum()
    return R


def npssdr(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    *,
    n_neighbors: int = 5,
    reg: float = 1e-3,
    gamma: float = 0.1,
    w_must: ArrayLike | None = None,
    w_cannot: ArrayLike | None = None,
) -> Solution:
    """Top l of ``S_C/n_C - S_M/n_M - gamma Xc'(I-R)'(I-R)Xc / n``, R the LLE weights."""
    Xc = centre(X)
    residual = Xc - reconstruction_weights(X, n_neighbors, reg) @ Xc
    repel = mean_pair_scatter(Xc, cannot_link, w_cannot)
    attract = mean_pair_scatter(Xc, must_link, w_must) + gamma * residual.T @ residual / len(Xc)
    return Solution(attract, repel, *largest_eigenvectors(repel - attract, n_components))
