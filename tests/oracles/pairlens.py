"""Oracle of PairLens: the definition of ``LinearPairLens`` and ``PairLens`` written out, dense and slow.

Every n x n matrix is formed, pairs are visited one at a time, and nothing is shared with the library. Readings of
what the definition leaves open: the pairs of the local prior are the directed neighbour lists, each of weight 1
(two rows in each other's list count twice); the graph of stage 1 is built in the coordinates of its pair problem;
diffusion coordinates are the right eigenvectors of the random walk, of length 1 in the weights of its stationary
distribution; the median in the weights of a new row is that of its own ten squared distances; the guard's AUC is one
over the held-out distances of all its folds, each scaled by the total variance of its view, with the strength of the
prior that all pairs give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from tests.oracles.base import Array, Pairs, centre, neighbour_lists, pair_scatter, squared_distances, symmetric
from tests.oracles.linear import bwdr

N_NEIGHBORS = 10
SCALE_NEIGHBOR = 7
SPREAD = 0.5
STAGE1_COLUMNS = 15
PRIOR_IDENTITY = {"stage 1": 0.2, "rbf": 0.8, "diffusion": 0.5}
RIDGE = 1e-9

Fold = tuple[Sequence[int], Sequence[int]]
"""Places of the held-out must-links and of the held-out cannot-links."""


def z_scores(X: ArrayLike) -> tuple[Array, Array, Array]:
    """Rows minus mean over standard deviation, with both; a constant column is only centred."""
    rows = np.asarray(X, dtype=np.float64)
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(deviation > 1e-12 * (1 + np.abs(mean)), deviation, 1.0)
    return (rows - mean) / scale, mean, scale


def principal_directions(Z: Array, at_least: int = 10) -> Array:
    """Columns: the fewest principal directions that hold 99 % of the variance, but at least min(10, f)."""
    values, vectors = eigh(symmetric(Z.T @ Z))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    rank = int(np.sum(values > 1e-12 * values[0]))
    count = 0
    while count < rank and (count < min(at_least, Z.shape[1]) or values[:count].sum() < 0.99 * values.sum()):
        count += 1
    return vectors[:, :count]


def neighbour_graph(Z: Array, n_neighbors: int = N_NEIGHBORS) -> Array:
    """Dense weights ``exp(-d_ij^2 / (s_i s_j))`` on the neighbour lists, the larger of the two directions."""
    D2 = squared_distances(Z)
    lists = neighbour_lists(Z, n_neighbors)
    s = [np.sqrt(D2[i, near[-1]]) for i, near in enumerate(neighbour_lists(Z, SCALE_NEIGHBOR))]
    A = np.zeros_like(D2)
    for i, near in enumerate(lists):
        for j in near:
            A[i, j] = max(A[i, j], np.exp(-D2[i, j] / (s[i] * s[j])))
    return np.maximum(A, A.T)


def random_walk(A: Array) -> Array:
    """``P``: the rows of the graph scaled to sum 1."""
    return A / A.sum(axis=1, keepdims=True)


def spreading(A: Array, spread: float = SPREAD) -> Array:
    """``G = (1-a)(I - a P')^-1``: column i is what row i becomes."""
    return (1 - spread) * np.linalg.inv(np.eye(len(A)) - spread * random_walk(A).T)


def spread_scatter(Y: Array, G: Array, pairs: Pairs, weights: Sequence[float] | None = None) -> Array:
    """``sum_pairs w sum_uv g_i(u) g_j(v) (y_u - y_v)(y_u - y_v)'``, one pair at a time."""
    S = np.zeros((Y.shape[1], Y.shape[1]))
    for place, (i, j) in enumerate(pairs):
        w = 1.0 if weights is None else weights[place]
        g, h = G[:, i], G[:, j]
        mu, nu = Y.T @ g, Y.T @ h
        S += w * (Y.T @ np.diag(g + h) @ Y - np.outer(mu, nu) - np.outer(nu, mu))
    return S


def trace_to_p(S: Array) -> Array:
    """``[S]``; zero stays zero."""
    trace = np.trace(S)
    return S * len(S) / trace if trace > 0 else S


def unit_variance(Y: Array) -> tuple[Array, Array, float]:
    """Y centred and of total variance 1, the mean and the divisor."""
    mean = Y.mean(axis=0)
    size = float(np.sqrt(((Y - mean) ** 2).sum() / len(Y)))
    return (Y - mean) / size, mean, size


@dataclass(frozen=True)
class PairProblem:
    """The matrices of a pair problem in prepared coordinates, and its columns, best first."""

    within: Array
    between: Array
    columns: Array
    eigenvalues: Array


def pair_problem(
    Y: Array,
    A: Array,
    lists: Sequence[Sequence[int]],
    must_link: Pairs,
    cannot_link: Pairs,
    *,
    prior: float,
    identity: float,
    spread: float = SPREAD,
) -> PairProblem:
    """Steps 2 to 5 in centred coordinates Y of total variance 1, given the graph A and its neighbour lists."""
    p = Y.shape[1]
    G = spreading(A, spread)
    local = pair_scatter(Y, [(i, j) for i, near in enumerate(lists) for j in near])
    W0 = identity * np.eye(p) + (1 - identity) * trace_to_p(local)
    T = trace_to_p(Y.T @ Y)
    n_must, n_cannot = len(must_link), len(cannot_link)
    within = (n_must * trace_to_p(spread_scatter(Y, G, must_link)) + prior * p * W0) / (n_must + prior * p)
    between = (n_cannot * trace_to_p(spread_scatter(Y, G, cannot_link)) + p * T) / (n_cannot + p)
    values, vectors = eigh(symmetric(between), symmetric(within) + RIDGE * np.eye(p))
    return PairProblem(within, between, vectors[:, ::-1], values[::-1])


@dataclass(frozen=True)
class LinearSolution:
    """components (rows, in the original features), what they do to the rows, and the pair problem behind."""

    components: Array
    embedding: Array
    problem: PairProblem
    mean: Array

    def transform(self, X: ArrayLike) -> Array:
        return (np.asarray(X, dtype=np.float64) - self.mean) @ self.components.T


def linear(
    X: ArrayLike,
    must_link: Pairs,
    cannot_link: Pairs,
    n_components: int,
    *,
    prior: float,
    n_neighbors: int = N_NEIGHBORS,
    spread: float = SPREAD,
) -> LinearSolution:
    """LinearPairLens for a given strength of the prior."""
    Z, mean, scale = z_scores(X)
    V = principal_directions(Z)
    Y, _, size = unit_variance(Z @ V)
    problem = pair_problem(
        Y,
        neighbour_graph(Y, n_neighbors),
        neighbour_lists(Y, n_neighbors),
        must_link,
        cannot_link,
        prior=prior,
        identity=PRIOR_IDENTITY["stage 1"],
        spread=spread,
    )
    B = (V / size) @ problem.columns[:, :n_components]
    return LinearSolution(B.T / scale, Z @ B, problem, mean)


def pair_distances(Z: Array, pairs: Pairs) -> Array:
    """Squared distances of the pairs over twice the total variance of the rows."""
    twice = 2 * ((Z - Z.mean(axis=0)) ** 2).sum() / len(Z)
    return np.array([((Z[i] - Z[j]) ** 2).sum() / twice for i, j in pairs])


def purity_of(must_distances: Array, cannot_distances: Array) -> float:
    """``1 - min_t share(ML > t) / share(CL > t)`` over 13 quantiles of the CL distances, 20 % to 80 %."""
    ratios = []
    for q in np.linspace(0.2, 0.8, 13):
        t = np.quantile(cannot_distances, q)
        far_must = (np.sum(must_distances > t) + 1) / (len(must_distances) + 2)
        far_cannot = (np.sum(cannot_distances > t) + 1) / (len(cannot_distances) + 2)
        ratios.append(far_must / far_cannot)
    return float(1 - min(ratios))


def _without(pairs: Pairs, places: Sequence[int]) -> list[tuple[int, int]]:
    left_out = {int(place) for place in places}
    return [pair for place, pair in enumerate(pairs) if place not in left_out]


def held_out_distances(
    X: ArrayLike, must_link: Pairs, cannot_link: Pairs, folds: Sequence[Fold]
) -> tuple[Array, Array]:
    """What stage 1 with c = 3 and 10 columns says about each pair when it has not seen it, pair by pair."""
    must, cannot = np.full(len(must_link), np.nan), np.full(len(cannot_link), np.nan)
    for must_places, cannot_places in folds:
        model = linear(X, _without(must_link, must_places), _without(cannot_link, cannot_places), 10, prior=3.0)
        for pairs, places, distances in ((must_link, must_places, must), (cannot_link, cannot_places, cannot)):
            distances[np.asarray(places, dtype=int)] = pair_distances(model.embedding, [pairs[p] for p in places])
    return must, cannot


def purity(X: ArrayLike, must_link: Pairs, cannot_link: Pairs, folds: Sequence[Fold]) -> float:
    """The purity rule on given folds."""
    if min(len(must_link), len(cannot_link)) < 8:
        return 0.6
    return purity_of(*held_out_distances(X, must_link, cannot_link, folds))


def prior_strength(purity: float) -> float:
    """``c = 2 / max(purity, 0.1)``."""
    return 2 / max(purity, 0.1)


def diffusion_coordinates(A: Array, n_coordinates: int = 15, power: int = 4) -> Array:
    """Right eigenvectors of the random walk after the constant one, column j times ``lambda_j^power``."""
    degrees = A.sum(axis=1)
    N = A / np.sqrt(np.outer(degrees, degrees))
    constant = np.sqrt(degrees / degrees.sum())
    # The constant vector is taken out by itself: in a graph of several pieces others share its eigenvalue 1.
    values, vectors = eigh(symmetric(N - 2 * np.outer(constant, constant)))
    values, vectors = values[::-1][:n_coordinates], vectors[:, ::-1][:, :n_coordinates]
    return vectors / np.sqrt(degrees / degrees.sum())[:, None] * values**power


@dataclass(frozen=True)
class KernelPCA:
    """RBF kernel PCA: rows, 1 / median squared distance, and the centred kernel's leading eigenvectors."""

    rows: Array
    gamma: float
    kernel: Array
    coefficients: Array

    def transform(self, new: Array) -> Array:
        D2 = np.array([((self.rows - row) ** 2).sum(axis=1) for row in new])
        K = np.exp(-self.gamma * D2)
        means = self.kernel.mean(axis=0)
        return (K - K.mean(axis=1, keepdims=True) - means + means.mean()) @ self.coefficients


def kernel_pca(Z: Array, rank: int) -> KernelPCA:
    """Coordinates ``sqrt(l_j) v_j`` of the training rows, as coefficients ``v_j / sqrt(l_j)`` of their kernel."""
    D2 = squared_distances(Z)
    gamma = 1 / float(np.median(D2[np.triu_indices(len(Z), 1)]))
    K = np.exp(-gamma * D2)
    H = np.eye(len(Z)) - 1 / len(Z)
    values, vectors = eigh(symmetric(H @ K @ H))
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    keep = values > 1e-10 * values[0]
    return KernelPCA(Z, gamma, K, vectors[:, keep] / np.sqrt(values[keep]))


@dataclass(frozen=True)
class StagedSolution:
    """PairLens without the guard: the embedding of the rows and what new rows become."""

    first: LinearSolution
    embedding: Array
    problem: PairProblem
    kernel: KernelPCA | None
    shift: Array
    turn: Array

    def transform(self, X: ArrayLike) -> Array:
        """New rows: kernel PCA coordinates, or the weighted mean of the ten nearest training rows of Z."""
        Z = self.first.transform(X)
        if self.kernel is not None:
            return (self.kernel.transform(Z) - self.shift) @ self.turn
        out = []
        for row in Z:
            D2 = ((self.first.embedding - row) ** 2).sum(axis=1)
            near = np.argsort(D2, kind="stable")[:N_NEIGHBORS]
            w = np.exp(-D2[near] / np.median(D2[near]))
            out.append(w @ self.embedding[near] / w.sum())
        return np.array(out)


def staged(X: ArrayLike, must_link: Pairs, cannot_link: Pairs, n_components: int, *, prior: float) -> StagedSolution:
    """Both stages of PairLens for a given strength of the prior, the guard left aside."""
    first = linear(X, must_link, cannot_link, STAGE1_COLUMNS, prior=prior)
    Z = first.embedding
    A, lists = neighbour_graph(Z), neighbour_lists(Z, N_NEIGHBORS)
    kernel = None if n_components == 2 else kernel_pca(Z, rank=50)
    raw = diffusion_coordinates(A) if kernel is None else kernel.transform(Z)
    Y, mean, size = unit_variance(raw)
    identity = PRIOR_IDENTITY["diffusion" if kernel is None else "rbf"]
    problem = pair_problem(Y, A, lists, must_link, cannot_link, prior=prior, identity=identity)
    turn = problem.columns[:, :n_components]
    return StagedSolution(first, Y @ turn, problem, kernel, mean, turn / size)


def kernel_bwdr_embedding(X: ArrayLike, must_link: Pairs, cannot_link: Pairs, n_components: int) -> Array:
    """The guard's other choice: shrunk BWDR (c = 1, t0 = .95) in 150 kernel principal coordinates of the z-scores."""
    Z, _, _ = z_scores(X)
    coordinates = kernel_pca(Z, rank=150).transform(Z)
    solution = bwdr(coordinates, must_link, cannot_link, n_components, threshold=0.95, shrinkage="auto")
    return centre(coordinates) @ solution.components.T


def pair_auc(must_distances: Array, cannot_distances: Array) -> float:
    """Share of (must-link, cannot-link) pairs in which the cannot-link is the farther one, ties half."""
    wins = [float(c > m) + 0.5 * float(c == m) for m in must_distances for c in cannot_distances]
    return float(np.mean(wins))


def guard_aucs(
    X: ArrayLike, must_link: Pairs, cannot_link: Pairs, n_components: int, folds: Sequence[Fold], *, prior: float
) -> tuple[float, float]:
    """AUC of the held-out distances of all folds, for the two stages and for shrunk kernel BWDR."""
    distances: list[tuple[list[float], list[float]]] = [([], []), ([], [])]
    for must_places, cannot_places in folds:
        must, cannot = _without(must_link, must_places), _without(cannot_link, cannot_places)
        asked_must = [must_link[place] for place in must_places]
        asked_cannot = [cannot_link[place] for place in cannot_places]
        views = (
            staged(X, must, cannot, n_components, prior=prior).embedding,
            kernel_bwdr_embedding(X, must, cannot, n_components),
        )
        for Z, (of_must, of_cannot) in zip(views, distances):
            of_must.extend(pair_distances(Z, asked_must))
            of_cannot.extend(pair_distances(Z, asked_cannot))
    ours, other = (pair_auc(np.array(of_must), np.array(of_cannot)) for of_must, of_cannot in distances)
    return ours, other


def guard_takes_kernel_bwdr(ours: float, other: float, n_must: int, n_cannot: int) -> bool:
    """The guard's rule: higher by more than ``sqrt(1/(12 n_ML) + 1/(12 n_CL))``, at least 5 pairs of each kind."""
    if min(n_must, n_cannot) < 5:
        return False
    return other - ours > float(np.sqrt(1 / (12 * n_must) + 1 / (12 * n_cannot)))
