r"""Objectives of metric learners as functions of the embedded rows Z: the value, and the gradient of the shape of Z.

The squared distance of a pair is :math:`d = \|z_i - z_j\|^2`. A function of these distances has, with :math:`g_m` its
derivative by the m-th of them, the gradient :math:`2 \sum_m g_m (e_i - e_j)(z_i - z_j)'`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairlens.engines import Float64, IntArray, row_blocks
from pairlens.preference.objective import smoothed_hinge
from pairlens.preference.pairs import Pairs

BLOCK_BYTES = 1 << 24
"""Bytes of one block of the distances between rows."""


def squared_lengths(Q: Float64) -> Float64:
    """Return the squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", Q, Q))


@dataclass(frozen=True)
class ComparisonMargin:
    r"""Pulls the closer pair of each comparison and pushes the farther one, as LMCA does with impostors.

    .. math:: \sum_m w_m \big( d_m^{near} + c\, h(1 + d_m^{near} - d_m^{far}) \big) , \qquad \sum_m w_m = 1 .
    """

    closer: Pairs
    farther: Pairs
    c: float
    sigma: float

    def __call__(self, Z: Float64) -> tuple[float, Float64]:
        """Return value, and gradient of the shape of Z."""
        weight = self.closer.weight
        near, far = self.closer.differences(Z), self.farther.differences(Z)
        lengths = squared_lengths(near)
        loss, slope = smoothed_hinge(1.0 + lengths - squared_lengths(far), self.sigma)
        value = float(weight @ (lengths + self.c * loss))
        pushed = self.c * weight * slope
        return value, 2 * (self.closer.gather(near, weight + pushed) - self.farther.gather(far, pushed))


@dataclass(frozen=True)
class ComparisonResidual:
    r"""Squared residuals of the distances r in violated comparisons, :math:`\sum_m w_m h(r_m^{near} - r_m^{far})^2`."""

    closer: Pairs
    farther: Pairs

    def __call__(self, Z: Float64) -> tuple[float, Float64]:
        """Return value, and gradient of the shape of Z."""
        near, far = self.closer.differences(Z), self.farther.differences(Z)
        short, long = np.sqrt(squared_lengths(near)), np.sqrt(squared_lengths(far))
        residual = np.maximum(short - long, 0.0)
        slope = 2 * self.closer.weight * residual
        tiny = np.finfo(np.float64).tiny
        # Where the far rows coincide there is no direction to push them in.
        push = np.where(long > 0, slope / np.maximum(long, tiny), 0.0)
        value = float(self.closer.weight @ residual**2)
        return value, self.closer.gather(near, slope / np.maximum(short, tiny)) - self.farther.gather(far, push)


@dataclass(frozen=True)
class BoundedPairs:
    r"""Must-links longer than u and cannot-links shorter than l, each at the least cost of slack.

    With :math:`\varphi(t) = t - 1 - \log t`, which is the LogDet divergence of a number,
    :math:`\gamma \big( \sum_{must,\, d > u} w \varphi(d / u) + \sum_{cannot,\, d < l} w \varphi(d / l) \big)`.
    """

    pairs: Pairs
    bound: Float64
    sign: Float64
    weight: Float64
    gamma: float

    def __call__(self, Z: Float64) -> tuple[float, Float64]:
        """Return value, and gradient of the shape of Z."""
        Q = self.pairs.differences(Z)
        ratio = np.maximum(squared_lengths(Q) / self.bound, np.finfo(np.float64).tiny)
        violated = self.gamma * self.weight * (self.sign * (ratio - 1) > 0)
        value = float(violated @ (ratio - 1 - np.log(ratio)))
        return value, 2 * self.pairs.gather(Q, violated * (1 - 1 / ratio) / self.bound)


@dataclass(frozen=True)
class KernelRegression:
    r"""Squared errors of leave-one-out kernel regression.

    .. math:: \sum_i (\hat y_i - y_i)^2 , \qquad
        \hat y_i = \frac{\sum_{j \ne i} k_{ij} y_j}{\sum_{j \ne i} k_{ij}} , \qquad k_{ij} = e^{-d_{ij}} .

    Distances are taken block by block, so memory is O(n_rows * block).
    """

    y: Float64

    def __call__(self, Z: Float64) -> tuple[float, Float64]:
        """Return value, and gradient of the shape of Z."""
        n = len(Z)
        norms = squared_lengths(Z)
        value, gradient = 0.0, np.zeros_like(Z)
        for block in row_blocks(n, 8 * n, BLOCK_BYTES):
            own = np.arange(n)[block]
            share = norms - 2 * (Z[own] @ Z.T)
            share[np.arange(len(own)), own] = np.inf
            np.subtract(share.min(axis=1, keepdims=True), share, out=share)
            np.exp(share, out=share)
            both = share @ np.column_stack([np.ones(n), self.y])
            predicted = both[:, 1] / both[:, 0]
            error = predicted - self.y[own]
            value += float(error @ error)
            # The derivative by d_ij is -2 error_i share_ij (y_j - predicted_i); its sum over j is 0.
            share *= self.y - predicted[:, None]
            share *= (-2 * error / both[:, 0])[:, None]
            gradient[own] -= 2 * (share @ Z)
            gradient += 2 * (share.sum(axis=0)[:, None] * Z - share.T @ Z[own])
        return value, gradient


@dataclass(frozen=True)
class LargeMarginNeighbours:
    r"""Each row near its target neighbours, and rows of other classes a margin farther.

    .. math:: \frac 1N \sum_{i, j} \Big( d_{ij} + c \sum_{l \text{ of another class}} h(1 + d_{ij} - d_{il}) \Big)

    over N pairs of a row and a target neighbour. Distances between rows and possible impostors are taken block by
    block, so memory is O(n_rows * block); only impostors inside a margin are looked at further.
    """

    targets: IntArray
    codes: IntArray
    c: float
    sigma: float

    def __call__(self, Z: Float64) -> tuple[float, Float64]:
        """Return value, and gradient of the shape of Z."""
        pairs = Pairs.of(self.targets, len(Z))
        Q = pairs.differences(Z)
        near = squared_lengths(Q)
        pull = np.ones(len(near))
        value, gradient = float(near.sum()), np.zeros_like(Z)
        norms = squared_lengths(Z)
        first = np.searchsorted(self.targets[:, 0], np.arange(len(Z) + 1))
        count = np.diff(first)
        anchors = np.flatnonzero(count)
        radius = 1.0 + np.maximum.reduceat(near, first[anchors]) if len(anchors) else near
        for block in row_blocks(len(anchors), 8 * len(Z), BLOCK_BYTES):
            own = anchors[block]
            # Squared distances up to the norm of the row, which goes to the other side of the comparison.
            far = norms - 2 * (Z[own] @ Z.T)
            inside = far < (radius[block] - norms[own])[:, None]
            inside &= (self.codes[own][:, None] != self.codes) & (self.codes >= 0)
            row, impostor = np.nonzero(inside)
            distance = far[row, impostor] + norms[own[row]]
            push = np.zeros(len(row))
            for turn in range(int(count[own].max())):
                has = count[own[row]] > turn
                target = first[own[row]] + np.minimum(turn, count[own[row]] - 1)
                loss, slope = smoothed_hinge(np.where(has, 1.0 + near[target] - distance, -1.0), self.sigma)
                value += self.c * float(loss.sum())
                pull += self.c * np.bincount(target, slope, len(near))
                push += self.c * slope
            pushed = Pairs.of(np.column_stack([own[row], impostor]), len(Z))
            gradient -= 2 * pushed.gather(pushed.differences(Z), push)
        gradient += 2 * pairs.gather(Q, pull)
        return value / len(near), gradient / len(near)
