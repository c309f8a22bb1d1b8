"""Oracle of PairMap: evidence, probabilities, affinities and places written out, dense and slow.

Every n x n matrix is formed, rows and pairs are visited one at a time, and nothing is shared with the library. Readings
of what the definition leaves open: the mean of the evidence is over all n x n entries, the diagonal too; standard
deviations of distances are those of the held-out pairs; a row occurs in about 40 of the drawn pairs, and the mean of L
is over the drawn pairs; the neighbour most agreed upon has the largest sum of w c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from scipy.optimize import brentq

from tests.oracles.base import Array, Pairs, squared_distances
from tests.oracles.learning import neighbour_graph, random_walk


def evidence(V: Array, must_link: Pairs, cannot_link: Pairs) -> Array:
    """Rule 2: s of all n x n pairs of rows."""
    n = len(V)
    A = 0.1 * np.linalg.inv(np.eye(n) - 0.9 * random_walk(neighbour_graph(V)))
    constrained = sorted({i for pair in [*must_link, *cannot_link] for i in pair})
    place = {row: number for number, row in enumerate(constrained)}
    A = A[:, constrained]
    S_must, S_cannot = np.eye(len(constrained)), np.zeros((len(constrained), len(constrained)))
    for S, pairs in ((S_must, must_link), (S_cannot, cannot_link)):
        for i, j in pairs:
            S[place[i], place[j]] += 1
            S[place[j], place[i]] += 1
    e_must, e_cannot = A @ S_must @ A.T, A @ S_cannot @ A.T
    return (e_must - e_cannot) / (e_must + e_cannot + 0.1 * (e_must + e_cannot).mean())


def distances(spaces: Sequence[Array], s: Array, pairs: Pairs) -> Array:
    """Rule 4: one row for each pair, distances over sqrt(2 x total variance) and 1 - s."""
    rows = []
    for i, j in pairs:
        lengths = []
        for Y in spaces:
            variance = ((Y - Y.mean(axis=0)) ** 2).sum() / len(Y)
            lengths.append(np.linalg.norm(Y[i] - Y[j]) / np.sqrt(2 * variance))
        rows.append([*lengths, 1 - s[i, j]])
    return np.array(rows)


def logistic(D: Array, same: Sequence[bool], weight: float | Array) -> tuple[float, Array]:
    """Rule 4: a and b >= 0 by Newton's method for every set of slopes that may be positive; the best feasible one.

    The weight is one number for all pairs, or one for each.
    """
    scale = D.std(axis=0)
    U, y = D / scale, np.array([1.0 if one else 0.0 for one in same])
    best = (np.inf, 0.0, np.zeros(D.shape[1]))
    for count in range(D.shape[1] + 1):
        for free in combinations(range(D.shape[1]), count):
            a, beta = _newton(U[:, free], y, weight)
            likely = np.where(y == 1, _sigma(a - U[:, free] @ beta), 1 - _sigma(a - U[:, free] @ beta))
            loss = -np.sum(weight * np.log(likely))
            loss += beta @ beta / 2
            if (beta >= 0).all() and loss < best[0]:
                slopes = np.zeros(D.shape[1])
                slopes[list(free)] = beta
                best = (loss, a, slopes / scale)
    return best[1], best[2]


def base_rate(log_odds: Array, share: float, n_answers: float) -> float:
    """Rule 4: the share of pairs that belong together among random ones, by the EM algorithm until nothing moves."""
    ratio = np.exp(log_odds) * (1 - share) / share
    rate = share
    for _ in range(100_000):
        q = rate * ratio / (rate * ratio + 1 - rate)
        former, rate = rate, (n_answers * q.mean() + 2 * share) / (n_answers + 2)
        if rate == former:
            break
    return float(rate)


def log_odds_errors(held_out: Array, weight: float, a: float, b: Array, D: Array) -> Array:
    """Rule 4: standard errors of the logarithmic odds of pairs, slopes that are zero being known, pair by pair."""
    free = [k for k in range(len(b)) if b[k] > 0]
    H = np.diag([0.0, *(held_out[:, k].var() for k in free)])
    for d in held_out:
        x = np.array([1.0, *(-d[k] for k in free)])
        p = 1 / (1 + np.exp(-(a - d @ b)))
        H += weight * p * (1 - p) * np.outer(x, x)
    errors = []
    for d in D:
        x = np.array([1.0, *(-d[k] for k in free)])
        errors.append(np.sqrt(x @ np.linalg.solve(H, x)))
    return np.array(errors)


def moderated(D: Array, same: Sequence[bool], weight: float) -> tuple[float, Array]:
    """The model with slopes lowered by the mean variance of the logarithmic odds; a by bisection."""
    a, b = logistic(D, same, weight)
    b = b / np.sqrt(1 + np.pi / 8 * (log_odds_errors(D, weight, a, b, D) ** 2).mean())
    low, high = -1000.0, 1000.0
    for _ in range(200):
        a = (low + high) / 2
        low, high = (a, high) if _sigma(a - D @ b).sum() < sum(same) else (low, a)
    return a, b


def _sigma(t: Array) -> Array:
    return 1 / (1 + np.exp(-t))


def _newton(U: Array, y: Array, weight: float | Array) -> tuple[float, Array]:
    """The logistic model without bounds on its slopes, damped so that the loss always falls."""
    M = np.column_stack([np.ones(len(U)), -U])
    ridge = np.diag([0.0] + [1.0] * U.shape[1])
    theta = np.zeros(M.shape[1])

    def loss(t: Array) -> float:
        margin = np.where(y == 1, 1, -1) * (M @ t)
        return float(np.sum(weight * np.logaddexp(0, -margin)) + t @ ridge @ t / 2)

    for _ in range(200):
        p = _sigma(M @ theta)
        gradient = M.T @ (weight * (p - y)) + ridge @ theta
        H = M.T @ (M * (weight * p * (1 - p))[:, None]) + ridge
        step, size = np.linalg.solve(H, gradient), 1.0
        while loss(theta - size * step) > loss(theta) and size > 1e-8:
            size /= 2
        theta = theta - size * step
    return float(theta[0]), theta[1:]


def conditional(squared: Array, perplexity: float) -> Array:
    """Gaussian weights of one row whose entropy is the logarithm of the perplexity."""
    shifted = squared - squared.min()

    def weights(log_beta: float) -> Array:
        p = np.exp(-np.exp(log_beta) * shifted)
        return p / p.sum()

    def entropy(log_beta: float) -> float:
        p = weights(log_beta)
        return -float(sum(q * np.log(q) for q in p if q > 0)) - np.log(perplexity)

    return weights(brentq(entropy, -50, 50, xtol=1e-14, rtol=1e-15, maxiter=1000))


def neighbour_affinities(V: Array, perplexity: float = 30.0) -> Array:
    """Rule 5: Q, dense."""
    n = len(V)
    perplexity = max(1.0, min(perplexity, (n - 1) / 3 - 1))
    D2 = squared_distances(V)
    Q = np.zeros((n, n))
    for i in range(n):
        near = [int(j) for j in np.argsort(D2[i], kind="stable") if j != i][: int(3 * perplexity)]
        Q[i, near] = conditional(D2[i, near], perplexity)
    return (Q + Q.T) / (2 * n)


def affinities(Q: Array, together: Callable[[int, int], float], drawn: Pairs, pi: float) -> tuple[Array, float]:
    """Rule 5: Q with the long-range term, and lambda."""
    L = np.zeros_like(Q)
    found = []
    for i, j in drawn:
        L[i, j] = L[j, i] = max(0.0, 2 * together(i, j) - 1)
        found.append(L[i, j])
    if L.sum() == 0:
        return Q, 0.0
    strength = 3 * min(1.0, float(np.mean(found)) / pi)
    return (Q + strength * L / L.sum()) / (1 + strength), strength


def place(v: Array, V: Array, Z: Array) -> Array:
    """Rule 7: the place of one new row."""
    h = float(np.median([np.sort(np.linalg.norm(Z - z, axis=1))[10] for z in Z]))
    near = np.argsort(((V - v) ** 2).sum(axis=1), kind="stable")[:15]
    w = conditional(((V[near] - v) ** 2).sum(axis=1), 3.0)
    agreed = [sum(w[j] / (1 + ((Z[i] - Z[near[j]]) ** 2).sum() / h**2) for j in range(15)) for i in near]
    z = Z[near[int(np.argmax(agreed))]]
    for _ in range(20):
        c = [1 / (1 + ((z - Z[i]) ** 2).sum() / h**2) for i in near]
        z = sum(w[j] * c[j] * Z[near[j]] for j in range(15)) / sum(w[j] * c[j] for j in range(15))
    return z
