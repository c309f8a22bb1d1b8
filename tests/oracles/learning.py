"""Oracle of the pair learner, its spaces and their stack: the definition written out, dense and slow.

Every n x n matrix is formed, pairs are visited one at a time, and nothing is shared with the library. Readings of what
the definition leaves open: the pairs of the local shape are the directed neighbour lists, each of weight 1 (two rows in
each other's list count twice); neighbours are those of the rows before they are whitened; diffusion coordinates are the
right eigenvectors of the random walk, of length 1 in the weights of its stationary distribution; the median in the
weights of a new row is that of its own ten squared distances; the AUC of a prior is one over the held-out distances of
all folds, each scaled by the total variance of its view, and the mean where folds are drawn more than once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from tests.oracles.base import Array, Pairs, neighbour_lists, pair_scatter, squared_distances, symmetric

N_NEIGHBORS = 10
SCALE_NEIGHBOR = 7
N_COLUMNS = 15
LEAST_WEIGHT = 0.01
PRIORS = [
    ("near", 0.5, 2.0),
    ("local", 0.5, 3.0),
    ("iso", 0.5, 3.0),
    ("local", 0.0, 3.0),
    ("iso", 0.0, 3.0),
    ("local", 0.5, 1.0),
    ("iso", 0.5, 1.0),
    ("local", 0.0, 1.0),
    ("iso", 0.0, 1.0),
]
"""Shape, spread and strength; the first has a lead where must-links cannot be trusted."""

Fold = tuple[Sequence[int], Sequence[int]]
"""Places of the held-out must-links and of the held-out cannot-links."""


def scaled(X: ArrayLike) -> Array:
    """Z-scores, divided once more where few rows differ in a column; constant columns are zero."""
    columns = []
    for column in np.asarray(X, dtype=np.float64).T:
        apart = column - column.mean()
        deviation, absolute = np.sqrt((apart**2).mean()), np.abs(apart).mean()
        varies = deviation > 1e-10 * abs(column.mean())
        few = 2 * absolute < deviation
        columns.append(apart / deviation * (2 * absolute / deviation if few else 1) if varies else 0 * apart)
    return np.column_stack(columns)


@dataclass(frozen=True)
class Whitened:
    """Principal components with unit variance, their variances before that, and the way there from centred rows."""

    rows: Array
    values: Array
    basis: Array


def whitened(Z: ArrayLike, at_most: int = 100, floor: float = 1e-7) -> Whitened:
    """Rule 1: every component above rounding, by a singular value decomposition."""
    rows = np.asarray(Z, dtype=np.float64)
    centred = rows - rows.mean(axis=0)
    _, s, Vt = np.linalg.svd(centred, full_matrices=False)
    kept = [k for k in range(len(s)) if s[k] ** 2 > floor * s[0] ** 2][:at_most]
    values = s[kept] ** 2 / len(rows)
    basis = Vt[kept].T / np.sqrt(values)
    return Whitened(centred @ basis, values, basis)


def unit_variance(Y: Array) -> tuple[Array, Array, float]:
    """Y centred and of total variance 1, the mean and the divisor."""
    mean = Y.mean(axis=0)
    size = float(np.sqrt(((Y - mean) ** 2).sum() / len(Y)))
    return (Y - mean) / size, mean, size


def neighbour_graph(Z: Array, n_neighbors: int = N_NEIGHBORS) -> Array:
    """Dense weights ``exp(-d_ij^2 / (s_i s_j))`` on the neighbour lists, the larger of the two directions.

    Rows that repeat seven times have scale 0: full weight to each other, none to all others.
    """
    D2 = squared_distances(Z)
    lists = neighbour_lists(Z, n_neighbors)
    s = [np.sqrt(D2[i, near[-1]]) for i, near in enumerate(neighbour_lists(Z, SCALE_NEIGHBOR))]
    A = np.zeros_like(D2)
    for i, near in enumerate(lists):
        for j in near:
            A[i, j] = np.exp(-D2[i, j] / (s[i] * s[j])) if s[i] * s[j] > 0 else float(D2[i, j] == 0)
    return np.maximum(A, A.T)


def random_walk(A: Array) -> Array:
    """``P``: the rows of the graph scaled to sum 1."""
    return A / A.sum(axis=1, keepdims=True)


def spreading(A: Array, spread: float) -> Array:
    """``G = (1-a)(I - a P')^-1``: column i is what row i becomes."""
    return (1 - spread) * np.linalg.inv(np.eye(len(A)) - spread * random_walk(A).T)


def mean_scatter(Y: Array, G: Array, pairs: Pairs, weights: Sequence[float] | None = None) -> tuple[Array, float]:
    """``sum_pairs w sum_uv g_i(u) g_j(v) (y_u - y_v)(y_u - y_v)'`` over twice the sum of w, and that sum."""
    S, total = np.zeros((Y.shape[1], Y.shape[1])), 0.0
    for place, (i, j) in enumerate(pairs):
        w = 1.0 if weights is None else float(weights[place])
        g, h = G[:, i], G[:, j]
        mu, nu = Y.T @ g, Y.T @ h
        S += w * (Y.T @ np.diag(g + h) @ Y - np.outer(mu, nu) - np.outer(nu, mu))
        total += w
    return (S / (2 * total) if total > 0 else S), total


def to_trace(S: Array) -> Array:
    """Scaled to the trace p; zero stays zero."""
    trace = np.trace(S)
    return S * len(S) / trace if trace > 0 else S


def shape(found: Whitened, name: str, among: Array | None = None) -> Array:
    """Rule 2: what differs inside a group, in whitened coordinates; near rows are near in `among`."""
    p = len(found.values)
    iso = to_trace(np.diag(1 / found.values))
    if name in ("local", "near"):
        lists = neighbour_lists(found.rows * np.sqrt(found.values) if among is None else among, N_NEIGHBORS)
        near = pair_scatter(found.rows, [(i, j) for i, js in enumerate(lists) for j in js])
        if name == "local":
            return 0.8 * to_trace(near) + 0.2 * iso
        # The same with traces along the rows.
        return 0.8 * near * p / np.trace(np.diag(found.values) @ near) + 0.2 * np.diag(1 / found.values)
    return {"iso": iso, "rows": np.diag(1 / found.values), "white": np.eye(p)}[name]


def matrices(
    found: Whitened,
    must_link: Pairs,
    cannot_link: Pairs,
    prior: tuple[str, float, float],
    weights: tuple[Sequence[float] | None, Sequence[float] | None] = (None, None),
    among: Array | None = None,
) -> tuple[Array, Array]:
    """Rule 2: W, which attracts, and B, which repels."""
    name, spread, strength = prior
    Y, p = found.rows, len(found.values)
    near = Y * np.sqrt(found.values) if among is None else among
    G = spreading(neighbour_graph(near), spread) if spread else np.eye(len(Y))
    within, between = shape(found, name, among), np.eye(p)
    S, n = mean_scatter(Y, G, must_link, weights[0])
    if n > 0 and np.trace(S) > 0:
        if name in ("rows", "near"):
            # The size is compared along the rows, where both shapes have the trace p.
            within = np.trace(np.diag(found.values) @ S) / p * within
        else:
            within = np.trace(S) / p * within
        within = (n * S + strength * p * within) / (n + strength * p)
    S, n = mean_scatter(Y, G, cannot_link, weights[1])
    if n > 0 and np.trace(S) > 0:
        between = (n * S + np.trace(S) * np.eye(p)) / (n + p)
    return within, between


def directions(within: Array, between: Array, k: int = N_COLUMNS) -> tuple[Array, Array]:
    """The leading mu of ``B v = mu W v``, and v with ``v'Wv = 1`` times ``sqrt(max(1 - 1/mu, 0.01))``, in columns."""
    mu, V = eigh(symmetric(between), symmetric(within))
    mu, V = mu[::-1][:k], V[:, ::-1][:, :k]
    return mu, np.column_stack([v * np.sqrt(max(1 - 1 / m, LEAST_WEIGHT)) for m, v in zip(mu, V.T)])


def pair_distances(Z: Array, pairs: Pairs) -> Array:
    """Squared distances of the pairs over twice the total variance of the rows."""
    twice = 2 * ((Z - Z.mean(axis=0)) ** 2).sum() / len(Z)
    return np.array([((Z[i] - Z[j]) ** 2).sum() / twice for i, j in pairs])


def pair_auc(must_distances: Sequence[float], cannot_distances: Sequence[float]) -> float:
    """Share of (must-link, cannot-link) pairs in which the cannot-link is the farther one, ties half."""
    wins = [float(c > m) + 0.5 * float(c == m) for m in must_distances for c in cannot_distances]
    return float(np.mean(wins))


def _without(pairs: Pairs, places: Sequence[int]) -> list[tuple[int, int]]:
    left_out = {int(place) for place in places}
    return [pair for place, pair in enumerate(pairs) if place not in left_out]


def held_out_auc(
    found: Whitened,
    must_link: Pairs,
    cannot_link: Pairs,
    prior: tuple[str, float, float],
    folds: Sequence[Fold],
    k: int = N_COLUMNS,
) -> float:
    """AUC of pairs in views that did not see them, each pair held out once."""
    return pair_auc(*held_out_distances(found, must_link, cannot_link, prior, folds, k))


def held_out_distances(
    found: Whitened,
    must_link: Pairs,
    cannot_link: Pairs,
    prior: tuple[str, float, float],
    folds: Sequence[Fold],
    k: int = N_COLUMNS,
) -> tuple[list[float], list[float]]:
    """Distances of must-links and of cannot-links in views that did not see them."""
    must: list[float] = []
    cannot: list[float] = []
    for must_places, cannot_places in folds:
        kept = _without(must_link, must_places), _without(cannot_link, cannot_places)
        Z = found.rows @ directions(*matrices(found, *kept, prior), k)[1]
        must.extend(pair_distances(Z, [must_link[place] for place in must_places]))
        cannot.extend(pair_distances(Z, [cannot_link[place] for place in cannot_places]))
    return must, cannot


def purity(must: Sequence[float], cannot: Sequence[float]) -> float:
    """The share of must-links that behave like must-links, by the 20 to 80 % quantiles of the cannot-links."""
    ratios = []
    for level in np.linspace(0.2, 0.8, 13):
        t = np.quantile(cannot, level)
        beyond = [(sum(d > t for d in kind) + 1) / (len(kind) + 2) for kind in (must, cannot)]
        ratios.append(beyond[0] / beyond[1])
    return 1 - min(ratios)


def chosen_prior(
    found: Whitened, must_link: Pairs, cannot_link: Pairs, draws: Sequence[Sequence[Fold]]
) -> tuple[tuple[str, float, float], list[float]]:
    """The prior with the highest mean AUC over several draws of folds, and all of these.

    The first prior leads by 2 (1 - purity) standard errors of an AUC at chance; the strength is over the purity.
    """
    aucs = [
        float(np.mean([held_out_auc(found, must_link, cannot_link, prior, folds) for folds in draws]))
        for prior in PRIORS
    ]
    n, m = len(must_link), len(cannot_link)

    # A pairs belong together and B differ, if a fifth of the answers is wrong: n = .8 A + .2 B, m = .2 A + .8 B.
    _, differ = np.linalg.solve([[0.8, 0.2], [0.2, 0.8]], [n, m])

    def trust(prior: tuple[str, float, float]) -> float:
        distances = (held_out_distances(found, must_link, cannot_link, prior, folds, 10) for folds in draws)
        measured = 0.6 if min(n, m) < 8 else float(np.mean([purity(*each) for each in distances]))
        return max(measured, min(1, 1 - 0.2 * differ / n))

    rounded = [round(auc, 9) for auc in aucs]
    best = PRIORS[rounded.index(max(rounded))]
    if max(rounded) <= rounded[0] + 2 * (1 - trust(best)) * np.sqrt((n + m + 1) / (12 * n * m)):
        best = PRIORS[0]
    return (best[0], best[1], best[2] / max(trust(best), 0.1)), aucs


def kernel_components(Z: Array, rank: int = 150) -> tuple[Array, float]:
    """Kernel principal components, one over the median squared distance for gamma."""
    D2 = squared_distances(Z)
    gamma = 1 / float(np.median([D2[i, j] for i in range(len(Z)) for j in range(i)]))
    K = np.exp(-gamma * D2)
    H = np.eye(len(Z)) - 1 / len(Z)
    values, vectors = eigh(symmetric(H @ K @ H))
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    keep = values > 1e-12 * values[0]
    return vectors[:, keep] * np.sqrt(values[keep]), gamma


def diffusion_coordinates(A: Array, n_coordinates: int = 15, power: int = 4) -> Array:
    """Right eigenvectors of the random walk after the constant one, column j times ``lambda_j^power``."""
    degrees = A.sum(axis=1)
    N = A / np.sqrt(np.outer(degrees, degrees))
    constant = np.sqrt(degrees / degrees.sum())
    # The constant vector is taken out by itself: in a graph of several pieces others share its eigenvalue 1.
    values, vectors = eigh(symmetric(N - 2 * np.outer(constant, constant)))
    values, vectors = values[::-1][:n_coordinates], vectors[:, ::-1][:, :n_coordinates]
    return vectors / np.sqrt(degrees / degrees.sum())[:, None] * np.where(values > 1e-8, values, 0) ** power


def mean_of_nearest(rows: Array, values: Array, row: Array, *, leave_out: int | None = None) -> Array:
    """Where a new row goes: the mean of its ten nearest training rows, weighted by ``exp(-d^2 / median d^2)``."""
    D2 = ((rows - row) ** 2).sum(axis=1)
    near = [int(j) for j in np.argsort(D2, kind="stable") if j != leave_out][:N_NEIGHBORS]
    w = np.exp(-D2[near] / np.median(D2[near]))
    return w @ values[near] / w.sum()


def taught_spaces(
    Z: Array,
    must_link: Pairs,
    cannot_link: Pairs,
    priors: Sequence[tuple[str, float, float]],
    kernel_columns: int = 2,
) -> tuple[Array, Array, Array]:
    """The linear, the kernel and the diffusion space of scaled rows, each centred and of total variance 1."""
    found = whitened(Z)
    linear = unit_variance(found.rows @ directions(*matrices(found, must_link, cannot_link, priors[0]))[1])[0]
    others = []
    for coordinates, prior, k in (
        (kernel_components(Z)[0], priors[1], kernel_columns),
        (diffusion_coordinates(neighbour_graph(linear)), priors[2], 2),
    ):
        inside = whitened(coordinates, at_most=1000)
        V = directions(*matrices(inside, must_link, cannot_link, prior, among=linear), k)[1]
        others.append(unit_variance(inside.rows @ V)[0])
    return linear, others[0], others[1]


def shares(slopes: Array, deviations: Array, answers: float) -> Array:
    """Total variances of the spaces: slopes per standard deviation, shrunk to the default as by 30 answers."""
    default = np.array([0.5, 0.3, 0.0, 0.2])
    strength = slopes * deviations
    told = strength / strength.sum() if strength.sum() > 0 else default
    return (30 * default + answers * told) / (30 + answers)


def side_by_side(spaces: Sequence[Array], variances: Array) -> Array:
    """Spaces of total variance 1 with these variances instead."""
    return np.hstack([np.sqrt(v) * space for v, space in zip(variances, spaces)])
