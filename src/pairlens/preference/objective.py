r"""The large-margin objective of an embedding under preferences: its value and its gradient.

For pairs m = (i better than j) of weight :math:`w_m` (they sum to 1), with :math:`q_m = z_i - z_j`,
:math:`r_m = \|q_m\|` and :math:`p_m = q_m / r_m`,

.. math::
    J(Z) = \sum_m w_m\, h(\gamma_1 - r_m) + C \sum_{m, m'} w_m w_{m'}\, h(\gamma_2 - p_m \cdot p_{m'}) ,
    \qquad h(t) = \max(t, 0) .

The first term pushes the two rows of a pair apart, the second turns all pairs into one direction. Both learners
minimise it: WSDR over linear maps, GBWSDR over sums of trees. The hinge is smoothed as in eq. (13)-(15) of the paper.

The second term runs over all combinations of two pairs. There are three ways to sum it, none of which stores them:

- :math:`\gamma_2 \ge 1`: no hinge is ever cut, the sum is :math:`\gamma_2 - \|\sum_m w_m p_m\|^2`, and costs O(M d);
- :math:`\gamma_2 < 1`: blocks of the upper triangle as matrix products, O(M^2 d);
- many pairs: the pairs in random order, each combined with those a few random steps further on. All are taken
  equally often, so the value is unbiased, and memory is read in order.

Where the two rows of a pair coincide (r below :data:`COINCIDENT`) the pair has no direction: p is 0, and so is the
subgradient.

The same code serves NumPy arrays and torch tensors: it follows the embedding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import Float64, IntArray
from pairlens.preference._arrays import namespace
from pairlens.preference.pairs import Pairs

COINCIDENT = 1e-9
"""Length of a pair difference below which it has no direction."""

SMALLEST_WIDTH = 1e-200

TILE = 256
"""Pairs in one block of combinations: cosines, hinges and slopes of a block stay in the cache together."""

Term = tuple[float, Float64]


def smoothed_hinge(t: Float64, width: Float64 | float) -> tuple[Float64, Float64]:
    r"""Return the hinge with a rounded corner, and its slope.

    0 for :math:`t \le 0`, :math:`t^2 / 2w` up to the width w, and :math:`t - w / 2` beyond. Width 0 is the plain hinge.
    """
    xp = namespace(t)
    # A width far below any t is the plain hinge: its slope is 0 or 1.
    floor = max(width, SMALLEST_WIDTH) if isinstance(width, float) else xp.clip(width, SMALLEST_WIDTH, None)
    slope = xp.clip(t / floor, 0.0, 1.0)
    return slope * (t - 0.5 * width * slope), slope


def angle_squared(P: Float64, weight: Float64, gamma2: float) -> Term:
    """Return the angle term with the squared hinge for gamma2 >= 1: it needs only the sums of p and of p p'."""
    total = weight @ P
    second = (P * weight[:, None]).T @ P
    value = gamma2**2 - 2 * gamma2 * float(total @ total) + float((second * second).sum())
    return value, 4 * weight[:, None] * (P @ second - gamma2 * total)


def angle_tiled(P: Float64, weight: Float64, gamma2: float, sigma: float, tile: int = TILE) -> Term:
    """Return the angle term for any gamma2, over tiles of the upper triangle of all combinations."""
    value, gradient = 0.0, namespace(P).zeros_like(P)
    for start in range(0, len(P), tile):
        left, left_weight = P[start : start + tile], weight[start : start + tile]
        for other in range(start, len(P), tile):
            right, right_weight = P[other : other + tile], weight[other : other + tile]
            loss, slope = smoothed_hinge(gamma2 - left @ right.T, sigma)
            both = 1.0 if other == start else 2.0
            value += both * float(left_weight @ (loss @ right_weight))
            slope *= both * left_weight[:, None]
            slope *= right_weight
            gradient[start : start + tile] -= slope @ right
            gradient[other : other + tile] -= slope.T @ left
    return value, gradient


def draw_shifts(n_pairs: int, n_combinations: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return a random order of the pairs and distinct steps in it, for :func:`angle_sampled`.

    Step k combines every pair with the one k further on; steps k and n - k give the same combinations, so they go
    from 1 to n / 2.
    """
    # Twice the step n / 2 would be each of its combinations twice, so it is left out, as exact sums are not made here.
    available = (n_pairs - 1) // 2
    steps = min(available, max(1, n_combinations // n_pairs))
    return rng.permutation(n_pairs), 1 + rng.choice(available, size=steps, replace=False)


def angle_sampled(P: Float64, weight: Float64, gamma2: float, sigma: float, shifts: tuple[IntArray, IntArray]) -> Term:
    """Return an unbiased estimate of the angle term from the combinations that `shifts` names."""
    xp = namespace(P)
    order, steps = shifts
    vectors, share = P[order], weight[order]
    loss, slope = smoothed_hinge(gamma2 - xp.einsum("ij,ij->i", vectors, vectors), sigma)
    value = float(share**2 @ loss)
    ordered = -2 * (share**2 * slope)[:, None] * vectors
    scale = (len(P) - 1) / len(steps)
    for step in steps:
        # Two runs of the circle: up to the end, and from the beginning again.
        for first, second in ((slice(None, -step), slice(step, None)), (slice(-step, None), slice(None, step))):
            left, right = vectors[first], vectors[second]
            loss, slope = smoothed_hinge(gamma2 - xp.einsum("ij,ij->i", left, right), sigma)
            factor = scale * share[first] * share[second]
            value += float(factor @ loss)
            slope *= factor
            ordered[first] -= slope[:, None] * right
            ordered[second] -= slope[:, None] * left
    gradient = xp.empty_like(P)
    gradient[order] = ordered
    return value, gradient


@dataclass(frozen=True)
class Objective:
    """The objective for given pairs; calling it with an embedding gives the value and the gradient.

    Attributes
    ----------
    pairs : Pairs or TorchPairs
    width : array of shape (n_pairs,)
        Width of the rounded corner of each distance hinge.
    gamma1, gamma2 : float
        Margins of the distance and of the angle term.
    C : float
        Weight of the angle term.
    sigma : float
        Width of the rounded corner of the angle hinges, where gamma2 < 1.
    squared : bool
        Square the angle hinges.
    shifts : tuple of arrays, optional
        Combinations to sum for gamma2 < 1, from :func:`draw_shifts`; all by default.
    """

    pairs: Pairs
    width: Float64
    gamma1: float = 1.0
    gamma2: float = 1.0
    C: float = 1.0
    sigma: float = 0.1
    squared: bool = False
    shifts: tuple[IntArray, IntArray] | None = None

    def __call__(self, Z: Float64) -> Term:
        """Return both terms at the embedding Z of shape (n_rows, d)."""
        return self.terms(Z)

    def select(self, chosen: NDArray[np.bool_], shifts: tuple[IntArray, IntArray] | None) -> Objective:
        """Return the objective of some of the pairs, with combinations of their own."""
        return replace(self, pairs=self.pairs.select(chosen), width=self.width[chosen], shifts=shifts)

    def terms(self, Z: Float64, *, distance: bool = True, angle: bool = True) -> Term:
        """Return one of the terms, or both."""
        xp = namespace(Z)
        weight = self.pairs.weight
        Q = self.pairs.differences(Z)
        length = xp.sqrt(xp.einsum("ij,ij->i", Q, Q))
        inverse = xp.where(length >= COINCIDENT, 1.0 / xp.clip(length, COINCIDENT, None), 0.0)
        value, along = 0.0, xp.zeros_like(length)
        if distance:
            loss, slope = smoothed_hinge(self.gamma1 - length, self.width)
            value = float(weight @ loss)
            along = -weight * slope * inverse
        if not angle:
            return value, self.pairs.gather(Q, along)
        if self.gamma2 >= 1 and not self.squared:
            # The sum in closed form, without forming the unit vectors.
            scaled = weight * inverse
            total = scaled @ Q
            value += self.C * (self.gamma2 - float(total @ total))
            scaled *= 2 * self.C
            along += scaled * inverse**2 * (Q @ total)
            return value, self.pairs.gather(Q, along) - xp.outer(self.pairs.gather(scaled), total)
        P = Q * inverse[:, None]
        loss_angle, turn = self._angle(P)
        turn -= xp.einsum("ij,ij->i", P, turn)[:, None] * P
        turn *= self.C * inverse[:, None]
        turn += along[:, None] * Q
        return value + self.C * loss_angle, self.pairs.gather(turn)

    def _angle(self, P: Float64) -> Term:
        if self.squared:
            return angle_squared(P, self.pairs.weight, self.gamma2)
        if self.shifts is not None:
            return angle_sampled(P, self.pairs.weight, self.gamma2, self.sigma, self.shifts)
        return angle_tiled(P, self.pairs.weight, self.gamma2, self.sigma)
