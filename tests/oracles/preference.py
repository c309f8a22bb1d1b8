"""The preference objectives, one pair and one combination at a time, straight from their definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pairs = Sequence[tuple[int, int]]


def hinge(t: float, width: float = 0.0) -> float:
    """The paper's eq. (15), by cases; width 0 is the plain hinge."""
    if t <= 0:
        return 0.0
    if t < width:
        return t**2 / (2 * width)
    return t - width / 2


def smoothed_by_maximum(t: float, width: float, steps: int = 200_001) -> float:
    """The paper's eq. (13): the largest ``z t - width z^2 / 2`` over z in [0, 1], on a grid."""
    z = np.linspace(0, 1, steps)
    return float(np.max(z * t - width * z**2 / 2))


def unit(v: Array, coincident: float = 1e-9) -> Array:
    length = float(np.sqrt(np.sum(v**2)))
    return np.zeros_like(v) if length < coincident else v / length


def objective(
    X: Array,
    Z: Array,
    pairs: Pairs,
    weights: Sequence[float] | None = None,
    *,
    gamma1: float = 1.0,
    gamma2: float = 1.0,
    C: float = 1.0,
    sigma: float = 0.1,
    squared: bool = False,
) -> float:
    """J of an embedding Z of X: every pair, and every combination of two pairs, both ways round."""
    share = np.ones(len(pairs)) if weights is None else np.asarray(weights, dtype=float)
    share = share / share.sum()
    distance = 0.0
    for (i, j), w in zip(pairs, share):
        width = sigma * float(np.max(np.abs(X[i] - X[j])))
        distance += w * hinge(gamma1 - float(np.sqrt(np.sum((Z[i] - Z[j]) ** 2))), width)
    angle = 0.0
    for (i, j), w in zip(pairs, share):
        for (k, m), v in zip(pairs, share):
            cosine = float(unit(Z[i] - Z[j]) @ unit(Z[k] - Z[m]))
            if squared:
                angle += w * v * (gamma2 - cosine) ** 2
            else:
                # For gamma2 >= 1 the hinge is never cut, and is not smoothed.
                angle += w * v * hinge(gamma2 - cosine, 0.0 if gamma2 >= 1 else sigma)
    return distance + C * angle


def paper_objective(Z: Array, pairs: Pairs, gamma1: float, gamma2: float, C: float) -> float:
    """Eq. (5) as printed: plain sums over ordered (i, j), every preference in both orders."""
    n = len(Z)
    eta, y = np.zeros((n, n)), np.zeros((n, n))
    for i, j in pairs:
        eta[i, j] = eta[j, i] = 1
        y[i, j], y[j, i] = 1, -1
    ordered = [(i, j) for i in range(n) for j in range(n) if eta[i, j]]
    total = sum(hinge(gamma1 - float(np.linalg.norm(Z[i] - Z[j]))) for i, j in ordered)
    for i, j in ordered:
        for k, m in ordered:
            cosine = float(unit(Z[i] - Z[j]) @ unit(Z[k] - Z[m]))
            total += C * hinge(gamma2 - y[i, j] * y[k, m] * cosine)
    return total


def numerical_gradient(function: Callable[[Array], float], at: Array, step: float = 1e-6) -> Array:
    """Central differences, one entry at a time."""
    gradient = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        forward, backward = at.copy(), at.copy()
        forward[index] += step
        backward[index] -= step
        gradient[index] = (function(forward) - function(backward)) / (2 * step)
    return gradient


def rank_svm_objective(X: Array, w: Array, pairs: Pairs, C: float, weights: Sequence[float] | None = None) -> float:
    """``|w|^2 / 2 + C mean max(0, 1 - w . (x_i - x_j))^2``."""
    share = np.ones(len(pairs)) if weights is None else np.asarray(weights, dtype=float)
    share = share / share.sum()
    total = float(w @ w) / 2
    for (i, j), s in zip(pairs, share):
        total += C * s * max(0.0, 1.0 - float(w @ (X[i] - X[j]))) ** 2
    return total


def pairwise_accuracy(scores: Array, pairs: Pairs) -> float:
    """Eq. (21), ties half."""
    hits = 0.0
    for i, j in pairs:
        hits += 1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0
    return hits / len(pairs)


def target_neighbours(X: Array, classes: Sequence[int], k: int) -> list[tuple[int, int]]:
    """Every labelled row with its k nearest rows of its own class (fewer where there are fewer)."""
    found = []
    for i, own in enumerate(classes):
        others = [j for j, c in enumerate(classes) if j != i and c == own >= 0]
        others.sort(key=lambda j: (float(np.sum((X[i] - X[j]) ** 2)), j))
        found += [(i, j) for j in others[:k]]
    return found


def lmca_objective(
    Z: Array, targets: Pairs, classes: Sequence[int], *, c: float = 1.0, sigma: float = 0.0, reg: float = 0.0, L: Array
) -> float:
    """Pull of the targets plus push of the impostors inside their margin, per target pair."""
    total = 0.0
    for i, j in targets:
        near = float(np.sum((Z[i] - Z[j]) ** 2))
        total += near
        for other_row, other in enumerate(classes):
            if other >= 0 and other != classes[i]:
                total += c * hinge(1 + near - float(np.sum((Z[i] - Z[other_row]) ** 2)), sigma)
    return total / len(targets) + reg * float(np.sum(L**2)) / 2
