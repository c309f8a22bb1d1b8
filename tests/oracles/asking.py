"""The definitions of the asking room, one row, one group and one answer at a time."""

from __future__ import annotations

import math
from itertools import combinations


def log_normal(z, mean, variance):
    return sum(-0.5 * math.log(2 * math.pi * v) - (a - m) ** 2 / (2 * v) for a, m, v in zip(z, mean, variance))


def log_student(z, mean, variance, freedom):
    d = len(z)
    distance = sum((a - m) ** 2 / v for a, m, v in zip(z, mean, variance))
    constant = math.lgamma((freedom + d) / 2) - math.lgamma(freedom / 2) - d / 2 * math.log(freedom * math.pi)
    return constant - sum(map(math.log, variance)) / 2 - (freedom + d) / 2 * math.log(1 + distance / freedom)


def mean_of(rows):
    return [sum(column) / len(rows) for column in zip(*rows)]


def variance_of(rows):
    middle = mean_of(rows)
    return [sum((a - m) ** 2 for a in column) / len(rows) for column, m in zip(zip(*rows), middle)]


def within(Z, groups):
    """Variance within groups, with its prior."""
    var = variance_of(Z)
    prior = sum(var) / len(var) / 2
    squares = [0.0] * len(var)
    freedom = 0
    for rows in groups:
        middle = mean_of([Z[i] for i in rows])
        for i in rows:
            squares = [s + (a - m) ** 2 for s, a, m in zip(squares, Z[i], middle)]
        freedom += len(rows) - 1
    return [(10 * prior + s) / (10 + freedom) for s in squares]


def width(Z, rows, v):
    """How wide a group is, as a factor of the variance within groups, with its prior, and its degrees of freedom."""
    squares = [len(rows) * a for a in variance_of([Z[i] for i in rows])]
    freedom = 40 + len(v) * (len(rows) - 1)
    return (40 + sum(a / b for a, b in zip(squares, v))) / freedom, freedom


def posterior(i, Z, groups, confidence, answers, error):
    """Probabilities of row i over the groups and "new", i itself left out; a group that it leaves empty has 0."""
    others = [[j for j in rows if j != i] for rows in groups]
    v = within(Z, [rows for rows in others if rows])
    z = Z[i]
    log_p = []
    for rows in others:
        if not rows:
            log_p.append(-math.inf)
            continue
        middle = mean_of([Z[j] for j in rows])
        wide, freedom = width(Z, rows, v)
        scale = [wide * a * (1 + 1 / len(rows)) for a in v]
        log_p.append(math.log(len(rows)) + 0.25 * log_student(z, middle, scale, freedom))
    log_p.append(0.25 * log_normal(z, mean_of(Z), [a + b for a, b in zip(variance_of(Z), v)]))
    top = max(log_p)
    p = [math.exp(a - top) for a in log_p]
    possible = sum(a > -math.inf for a in log_p)
    p = [0.9 * a / sum(p) + 0.1 / possible if b > -math.inf else 0.0 for a, b in zip(p, log_p)]
    for a, b, same in answers:
        if i not in (a, b):
            continue
        j = b if a == i else a
        at = [number for number, rows in enumerate(groups) if j in rows]
        if not at:
            continue
        for h in range(len(p)):
            agrees = (h == at[0]) == same
            # "New" is not the group of j, wherever j belongs.
            sure = 1.0 if h == len(groups) else confidence[j]
            p[h] *= sure * (1 - error if agrees else error) + (1 - sure) / 2
    return [a / sum(p) for a in p]


def place_again(Z, groups, confidence, answers, error, order):
    """Take one row after the other out and put it where it most likely belongs; an empty group vanishes."""
    groups, confidence = [list(rows) for rows in groups], dict(confidence)
    for i in order:
        p = posterior(i, Z, groups, confidence, answers, error)
        best = p.index(max(p))
        confidence[i] = p[best]
        now = next(number for number, rows in enumerate(groups) if i in rows)
        if best == now or (best == len(groups) and groups[now] == [i]):
            continue
        if best == len(groups):
            groups.append([])
        groups[best].append(i)
        groups[now].remove(i)
        groups = [rows for rows in groups if rows]
    return groups, confidence


def log_odds(a, b, Z, groups, confidence, answers, error):
    """Log odds that groups a and b are one."""
    v, var = within(Z, groups), variance_of(Z)
    total = 0.0
    for i, j, same in answers:
        if (i in groups[a] and j in groups[b]) or (i in groups[b] and j in groups[a]):
            total += (1 if same else -1) * confidence[i] * confidence[j] * math.log((1 - error) / error)
    difference = [x - y for x, y in zip(mean_of([Z[i] for i in groups[a]]), mean_of([Z[i] for i in groups[b]]))]
    zero = [0.0] * len(difference)
    wide = (width(Z, groups[a], v)[0] + width(Z, groups[b], v)[0]) / 2
    one = log_normal(difference, zero, [2 * wide * x for x in v])
    two = log_normal(difference, zero, [2 * max(x, 1.1 * wide * y) for x, y in zip(var, v)])
    return total + min(max((one - two) / 4, -4), 2)


def contradicted(answers, believed):
    """Positions of the answers that are not believed and that a path of believed ones speaks against."""
    found = []
    for at, (i, j, same) in enumerate(answers):
        if believed[at]:
            continue
        # Rows that are reached from i by "same" alone, and with one "different" on the way.
        reached = {(i, 0)}
        while True:
            more = {
                (end, n + (not answer))
                for (a, b, answer), true in zip(answers, believed)
                if true
                for start, end in ((a, b), (b, a))
                for n in (0, 1)
                if (start, n) in reached and n + (not answer) < 2
            }
            if more <= reached:
                break
            reached |= more
        if (j, int(same)) in reached:
            found.append(at)
    return found


def pairs(Z, groups, confidence, answers, error):
    """Must-links and cannot-links with their weights, as dictionaries."""
    must, cannot = {}, {}
    for rows in groups:
        for i, j in combinations(sorted(rows), 2):
            must[i, j] = confidence[i] * confidence[j] / len(rows)
    for a, b in combinations(range(len(groups)), 2):
        different = 1 / (1 + math.exp(log_odds(a, b, Z, groups, confidence, answers, error)))
        if different > 0.8:
            for i in groups[a]:
                for j in groups[b]:
                    cannot[min(i, j), max(i, j)] = confidence[i] * confidence[j] * different
    where = {i: number for number, rows in enumerate(groups) for i in rows}
    asked = {(min(i, j), max(i, j)) for i, j, _ in answers if i in where and j in where and where[i] != where[j]}
    freedom = sum(len(rows) - 1 for rows in groups)
    return _scaled(must, math.sqrt(freedom * len(must))), _scaled(cannot, math.sqrt(len(asked) * len(cannot)))


def _scaled(weights, total):
    if not total:
        return {}
    return {pair: weight * total / sum(weights.values()) for pair, weight in weights.items()}
