r"""To which group a row belongs, whether two groups are one, and what follows from the groups: arrays in, arrays out.

A row z belongs to group h with probability proportional to

.. math::
    |h| \; t_{\nu_h}\!\left(z; \bar z_h, w_h v (1 + 1/|h|)\right)^{1/4}

and to none of them (it founds a new one) with probability proportional to
:math:`N(z; \bar Z, \mathrm{var} Z + v)^{1/4}`, mixed with 10 % of the uniform distribution. All groups share the
variances v of the columns, but each has a width :math:`w_h` of its own, whose prior is that all are equally wide. Its
uncertainty makes the normal distribution Student's t: of a group of few rows nobody knows yet how wide it is. The power
1/4 is there because the view is overconfident: its columns were chosen to separate the groups. Each answer then
multiplies by how likely it is, given the error rate and how sure the other row of the answer is of its own group. A row
that founds a group is not in that of the other row, whichever it is, so this does not depend on how sure that row is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from pairlens.engines import Float64

Ints = NDArray[np.int64]

CAUTION = 0.25
"""Power of the densities: the view is overconfident."""
UNIFORM = 0.1
"""Share of the uniform distribution in a prior: how often a view misleads. A few answers that contradict no other must
be able to overrule it."""
PRIOR_ROWS = 10.0
"""Rows that the prior of the variance within groups counts for."""
WIDTH_FREEDOM = 40.0
"""Degrees of freedom of the prior of a group's width, of which a row brings as many as the view has columns. With
fewer, a group of a few rows that do not belong together is soon wide enough for any other row."""
SURELY_DIFFERENT = 0.8
"""Probability above which two groups give cannot-links."""
MOST_PAIRS = 50_000
"""Pairs of a kind that go to the learner; a view does not change with more of them, but takes longer."""
SHAPE_LIMITS = (-4.0, 2.0)
"""The most that the places of two groups say about whether they are one."""


def logistic(x: Float64) -> Float64:
    """Return the logistic function, with arguments held to where it is neither 0 nor 1."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -30, 30))))


@dataclass
class GroupSums:
    """Number of rows, sum and sum of squares of each group, a group per line; or a stack of such tables."""

    count: Float64
    total: Float64
    square: Float64

    @classmethod
    def of(cls, Z: Float64, members: Sequence[Sequence[int]]) -> GroupSums:
        """Return the sums of groups of rows."""
        sums = cls(*(np.zeros((len(members), *shape)) for shape in ((), Z.shape[1:], Z.shape[1:])))
        for group, rows in enumerate(members):
            sums.count[group], sums.total[group] = len(rows), Z[rows].sum(axis=0)
            sums.square[group] = (Z[rows] ** 2).sum(axis=0)
        return sums

    def copy(self) -> GroupSums:
        """Return the same numbers in arrays of their own."""
        return GroupSums(self.count.copy(), self.total.copy(), self.square.copy())

    def found(self) -> None:
        """Add an empty group."""
        self.count = np.append(self.count, 0.0)
        self.total = np.vstack([self.total, np.zeros(self.total.shape[1])])
        self.square = np.vstack([self.square, np.zeros(self.square.shape[1])])

    def drop(self, group: int) -> None:
        """Remove a group."""
        self.count = np.delete(self.count, group)
        self.total = np.delete(self.total, group, axis=0)
        self.square = np.delete(self.square, group, axis=0)

    def add(self, group: int, z: Float64, sign: float = 1.0) -> None:
        """Add a row to a group, or take it out with sign -1."""
        self.count[group] += sign
        self.total[group] += sign * z
        self.square[group] += sign * z**2

    def without(self, Z: Float64, group: Ints) -> GroupSums:
        """Return a table for each row of Z, without that row in the group that it is in."""
        out = group[:, None] == np.arange(len(self.count))
        rows = np.where(out[..., None], Z[:, None, :], 0.0)
        return GroupSums(self.count - out, self.total - rows, self.square - rows**2)

    def mean(self) -> Float64:
        """Return means of the groups."""
        return self.total / np.maximum(self.count, 1.0)[..., None]

    def squares(self) -> Float64:
        """Return sums of squares about the means of the groups."""
        return np.asarray(np.maximum(self.square - self.total**2 / np.maximum(self.count, 1.0)[..., None], 0.0))

    def within(self, var: Float64) -> Float64:
        """Return the variance within groups, a column each: its prior is half the mean variance of the columns."""
        freedom = np.maximum(self.count - 1, 0.0).sum(axis=-1, keepdims=True)
        return np.asarray((PRIOR_ROWS * var.mean() / 2 + self.squares().sum(axis=-2)) / (PRIOR_ROWS + freedom))

    def width(self, within: Float64) -> tuple[Float64, Float64]:
        """Return the width of each group, as a factor of the variance within groups, and its degrees of freedom."""
        freedom = WIDTH_FREEDOM + self.total.shape[-1] * np.maximum(self.count - 1, 0.0)
        return (WIDTH_FREEDOM + (self.squares() / within[..., None, :]).sum(axis=-1)) / freedom, freedom


def _log_normal(difference: Float64, variance: Float64) -> Float64:
    """Return the log density of independent normal columns, summed over the last axis."""
    return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + difference**2 / variance).sum(axis=-1))


def _log_student(difference: Float64, variance: Float64, freedom: Float64) -> Float64:
    """Return the log density of Student's t in as many dimensions as the last axis has, with diagonal scale."""
    dim = difference.shape[-1]
    distance = (difference**2 / variance).sum(axis=-1)
    constant = gammaln((freedom + dim) / 2) - gammaln(freedom / 2) - dim / 2 * np.log(freedom * np.pi)
    spread = np.log(variance).sum(axis=-1) / 2
    return np.asarray(constant - spread - (freedom + dim) / 2 * np.log1p(distance / freedom))


def log_prior(Z: Float64, sums: GroupSums, mean: Float64, var: Float64) -> Float64:
    """Return unnormalised log probabilities of each row: the groups, empty ones impossible, and last "new".

    None of the rows is in a group. `sums` is one table, or one for each row; `mean` and `var` are those of all rows.
    """
    v = sums.within(var)
    width, freedom = sums.width(v)
    factor = width * (1 + 1 / np.maximum(sums.count, 1.0))
    difference = Z[:, None, :] - sums.mean()
    with np.errstate(divide="ignore"):
        size = np.log(sums.count)
    of_groups = size + CAUTION * _log_student(difference, v[..., None, :] * factor[..., None], freedom)
    of_new = CAUTION * _log_normal(Z - mean, var + v)
    return np.column_stack([of_groups, of_new])


def mixed(log_p: Float64) -> Float64:
    """Return probabilities from their unnormalised logarithms, 10 % of them uniform over what is possible."""
    p = np.exp(log_p - log_p.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    possible = np.isfinite(log_p)
    return np.asarray((1 - UNIFORM) * p + UNIFORM * possible / possible.sum(axis=-1, keepdims=True))


def weigh(p: Float64, row: Ints, group: Ints, same: NDArray[np.bool_], confidence: Float64, error: Float64) -> Float64:
    """Multiply probabilities of rows over the groups and "new" by what their answers say, and normalise.

    For each answer, `row` is which of the rows it is about, `group` and `confidence` are the group of the other row and
    how sure it is of it, and `error` is how probable it is that such an answer is wrong, if as many pairs are the same
    as are different.
    """
    agrees = (np.arange(p.shape[1]) == group[:, None]) == same[:, None]
    wrong = error[:, None]
    sure = np.repeat(confidence[:, None], p.shape[1], axis=1)
    sure[:, -1] = 1.0
    factor = sure * np.where(agrees, 1 - wrong, wrong) + (1 - sure) / 2
    evidence = np.zeros_like(p)
    np.add.at(evidence, row, np.log(factor))
    with np.errstate(divide="ignore"):
        log_p = np.log(p) + evidence
    weighed = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return np.asarray(weighed / weighed.sum(axis=1, keepdims=True))


def choice_value(p: Float64) -> Float64:
    """Return what placing a row tells for a question: entropy over groups by the expected number of questions."""
    known = p[:, :-1] / p[:, :-1].sum(axis=1, keepdims=True)
    entropy = -(known * np.log(np.where(known > 0, known, 1.0))).sum(axis=1)
    ordered = -np.sort(-known, axis=1)
    return np.asarray(entropy / (ordered * np.arange(1, known.shape[1] + 1)).sum(axis=1))


def answer_log_odds(
    k: int, first: Ints, second: Ints, same: NDArray[np.bool_], confidence: Float64, error: Float64
) -> tuple[Float64, Ints]:
    """Return what answers between `k` groups say for "these two are one", and how many of them say "same".

    `first` and `second` are the groups of the two rows of each answer, `confidence` is the product of how sure the rows
    are of them, and `error` is as for :func:`weigh`. Both results are symmetric arrays of shape (k, k).
    """
    evidence = np.zeros((k, k))
    n_same = np.zeros((k, k), dtype=np.int64)
    value = np.where(same, 1.0, -1.0) * confidence * np.log((1 - error) / error)
    np.add.at(evidence, (first, second), value)
    np.add.at(n_same, (first, second), same.astype(np.int64))
    return evidence + evidence.T, n_same + n_same.T


def merge_log_odds(sums: GroupSums, var: Float64, evidence: Float64) -> Float64:
    """Return the log odds that two groups are one, for all of them: the answers between them and where they lie."""
    v = sums.within(var)
    width, _ = sums.width(v)
    both = v * (width[:, None, None] + width[:, None])
    mean = sums.mean()
    difference = mean[:, None, :] - mean[None]
    one = _log_normal(difference, both)
    two = _log_normal(difference, np.maximum(2 * var, 1.1 * both))
    odds = evidence + np.clip(CAUTION * (one - two), *SHAPE_LIMITS)
    np.fill_diagonal(odds, -np.inf)
    return np.asarray(odds)


def joined_by(n: int, first: Ints, second: Ints) -> Ints:
    """Return the part of each of n rows, where chains of these pairs join rows to parts."""
    graph = sparse.coo_matrix((np.ones(len(first)), (first, second)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def cross_examined(
    n: int, first: Ints, second: Ints, same: NDArray[np.bool_], believed: NDArray[np.bool_]
) -> tuple[Ints, int]:
    """Return the answers that believed ones speak against, and the number of believed ones that no other can speak
    against.

    A chain of "same" speaks against a "different" between its ends. A "different" between two chains speaks against a
    "same" between them. No other answer can speak against a "same" that joins two chains, and the first "different"
    between two of them. The first result are positions of answers, none of them believed.
    """
    chain = joined_by(n, first[believed & same], second[believed & same])
    ends = np.sort(np.column_stack([chain[first], chain[second]]), axis=1) @ np.array([n, 1])
    apart = np.unique(ends[believed & ~same])
    against = np.where(same, np.isin(ends, apart), chain[first] == chain[second])
    return np.flatnonzero(~believed & against), n - len(np.unique(chain)) + len(apart)


@dataclass(frozen=True)
class WeightedPairs:
    """Weighted must-links and cannot-links."""

    must: Ints
    must_weight: Float64
    cannot: Ints
    cannot_weight: Float64


def pair_weights(
    members: list[Ints],
    confidence: list[Float64],
    odds: Float64,
    asked: float,
    *,
    worth: float = 1.0,
    most: int = MOST_PAIRS,
) -> WeightedPairs:
    r"""Return all pairs that follow from the groups, weighed between what was answered and what follows from it.

    Must-links weigh :math:`c_i c_j / |h|` inside a group, cannot-links :math:`c_i c_j P(\text{different})` between
    groups that are different with more than 80 %. The sum of the weights is the geometric mean of two counts: the
    independent answers (:math:`\sum (|h| - 1)` must-links, `asked` cannot-links) and all that follow from them.

    `odds` are log odds that two groups are one. `asked` counts the distinct pairs of rows of different groups that were
    asked about, each by what its answers are worth; `worth` is what an answer that joins rows is worth on average, 1
    for those of people. Of more than `most` pairs of a kind this many are drawn, with the total weight of all.
    """
    inside = [(a, a, 1 / max(len(rows), 1)) for a, rows in enumerate(members)]
    different = 1 / (1 + np.exp(odds))
    between = [(a, b, different[a, b]) for a in range(len(members)) for b in range(a)]
    between = [block for block in between if block[2] > SURELY_DIFFERENT]
    must, must_weight, n_must = _pairs_of(inside, members, confidence, most)
    cannot, cannot_weight, n_cannot = _pairs_of(between, members, confidence, most)
    freedom = worth * sum(max(len(rows) - 1, 0) for rows in members)
    return WeightedPairs(
        must,
        _to_sum(must_weight, np.sqrt(freedom * n_must)),
        cannot,
        _to_sum(cannot_weight, np.sqrt(asked * n_cannot)),
    )


def _pairs_of(
    blocks: list[tuple[int, int, float]], members: list[Ints], confidence: list[Float64], most: int
) -> tuple[Ints, Float64, int]:
    """Return pairs of groups, or inside of one, with weights and their number; if there are too many, some of them."""
    size = [
        len(members[a]) * len(members[b]) if a != b else len(members[a]) * (len(members[a]) - 1) // 2
        for a, b, _ in blocks
    ]
    total = sum(size)
    chosen = np.arange(total)
    if total > most:
        chosen = np.sort(np.random.default_rng(total).choice(total, most, replace=False))
    ends = np.cumsum([0, *size])
    pairs, weights = [np.zeros((0, 2), dtype=np.int64)], [np.zeros(0)]
    for (a, b, weight), start, end in zip(blocks, ends[:-1], ends[1:]):
        at = chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, end)] - start
        if a == b:
            # The t-th pair (i, j), j < i, in the order (1, 0), (2, 0), (2, 1), (3, 0), ...
            i = np.floor((1 + np.sqrt(1 + 8 * at)) / 2).astype(np.int64)
            j = at - i * (i - 1) // 2
        else:
            i, j = np.divmod(at, len(members[b]))
        pairs.append(np.column_stack([members[a][i], members[b][j]]))
        weights.append(confidence[a][i] * confidence[b][j] * weight)
    return np.concatenate(pairs).astype(np.int64), np.concatenate(weights), total


def _to_sum(weight: Float64, total: float) -> Float64:
    now = weight.sum()
    return weight * (total / now) if now > 0 else weight
