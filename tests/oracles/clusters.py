"""Groups from places and answers, written out row by row: slow and obvious."""

from __future__ import annotations

import math
from itertools import combinations


def probabilities_of_groups(Z, labels, k, must, cannot, mistakes, iterations, inner=3):
    """The mean-field equations of docs/clusters.md, from the first guess `labels`, so many times."""
    n, d = len(Z), len(Z[0])
    q = [[1.0 if labels[i] == c else 0.0 for c in range(k)] for i in range(n)]
    strength = math.log((1 - mistakes) / mistakes)
    partners: dict[int, list[tuple[int, float]]] = {}
    for pairs, sign in ((must, 1.0), (cannot, -1.0)):
        for i, j in pairs:
            partners.setdefault(int(i), []).append((int(j), sign * strength))
            partners.setdefault(int(j), []).append((int(i), sign * strength))
    for _ in range(iterations):
        count = [sum(q[i][c] for i in range(n)) for c in range(k)]
        mean = [[sum(q[i][c] * Z[i][a] for i in range(n)) / count[c] for a in range(d)] for c in range(k)]
        squared = [[sum((Z[i][a] - mean[c][a]) ** 2 for a in range(d)) for c in range(k)] for i in range(n)]
        variance = sum(q[i][c] * squared[i][c] for i in range(n) for c in range(k)) / (n * d)
        place = [[math.log(count[c] / n) - squared[i][c] / (2 * variance) for c in range(k)] for i in range(n)]
        old = q
        q = [_normalised(place[i]) for i in range(n)]
        now = {i: old[i] for i in partners}
        for _ in range(inner):
            said = {
                i: _normalised([place[i][c] + sum(w * now[j][c] for j, w in partners[i]) for c in range(k)])
                for i in partners
            }
            now = {i: [(a + b) / 2 for a, b in zip(now[i], said[i])] for i in partners}
        for i in partners:
            q[i] = now[i]
    return q


def _normalised(log_odds):
    largest = max(log_odds)
    weights = [math.exp(value - largest) for value in log_odds]
    return [weight / sum(weights) for weight in weights]


def expected_adjusted_rand(labels, same):
    """The index of Fritsch and Ickstadt, pair by pair."""
    pairs = list(combinations(range(len(labels)), 2))
    together = [float(labels[i] == labels[j]) for i, j in pairs]
    probable = [float(same[i][j]) for i, j in pairs]
    both = sum(t * p for t, p in zip(together, probable)) / len(pairs)
    a, b = sum(together) / len(pairs), sum(probable) / len(pairs)
    return (both - a * b) / ((a + b) / 2 - a * b)
