r"""The two-step eigenproblems of BWDR and WBDR: make one scatter the same in every direction, then rank by the other.

See :class:`pairlens.BWDR` and :class:`pairlens.WBDR` for the paper (its Algorithms 1 and 2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairlens.spectral.eigen import Matrix, Pencil, range_basis, symmetric

__all__ = ["SPECTRUM_FLOOR", "compress_within", "shrink", "stretch_between", "threshold_index"]

SPECTRUM_FLOOR = 1e-8
"""Smallest within-scatter eigenvalue, relative to the largest: with zeros the printed algorithm divides 0 by 0."""


def threshold_index(values: NDArray[np.float64], threshold: float, at_least: int) -> int:
    r"""How many leading eigenvalues to treat: the largest i with :math:`\sum_{j \le i} \lambda_j / \sum_j \lambda_j
    \le t_0`, but at least `at_least` and at most all."""
    share = np.cumsum(values) / values.sum()
    i = int(np.count_nonzero(share <= threshold + 1e-12))
    return min(max(i, at_least), len(values))


def stretch_between(S_W: Matrix, S_B: Matrix, k: int, threshold: float) -> tuple[Pencil, int]:
    r"""BWDR: stretch the leading eigenvectors of S_B until the between-scatter is :math:`\lambda_1` in each, then take
    the k directions of smallest within-scatter.

    Returns ``(values, vectors)`` and the number i of stretched directions; with i <= k the second step only rotates.
    """
    values, vectors = range_basis(S_B)
    i = threshold_index(values, threshold, k)
    stretched = vectors[:, :i] * np.sqrt(values[0] / values[:i])
    within, rotation = symmetric(stretched.T @ S_W @ stretched)
    return (within[::-1][:k], stretched @ rotation[:, ::-1][:, :k]), i


def compress_within(S_W: Matrix, S_B: Matrix, k: int, threshold: float) -> Pencil:
    r"""WBDR: compress the leading eigenvectors of S_W until the within-scatter is at most :math:`\lambda_i` in each,
    then take the k directions of largest between-scatter."""
    values, vectors = symmetric(S_W)
    i = threshold_index(np.maximum(values, 0.0), threshold, k)
    floored = np.maximum(values, SPECTRUM_FLOOR * values[0])
    scale = np.ones(len(values))
    scale[:i] = np.sqrt(floored[i - 1] / floored[:i])
    compressed = vectors * scale
    between, rotation = symmetric(compressed.T @ S_B @ compressed)
    return between[:k], compressed @ rotation[:, :k]


def shrink(S: Matrix, target: Matrix, weight: float) -> Matrix:
    r"""Move a scatter towards a target, :math:`(1 - \rho) [S] + \rho [T]`, both scaled to trace p."""
    p = len(S)
    trace = np.trace(S)
    own = S * (p / trace) if trace > 0 else np.zeros_like(S)
    return (1 - weight) * own + weight * target * (p / np.trace(target))
