r"""The few eigenproblems that turn scatters into directions.

All of them take symmetric float64 matrices of the size of the coordinates and return ``(values, vectors)`` with the
vectors in columns, best first, at most as many as were asked for. Directions in which nothing varies are cut by one
relative tolerance, so rank-deficient problems give fewer columns, never NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

RELATIVE_TOLERANCE = 1e-9
"""Eigenvalues up to this share of the largest one count as zero."""

NEGLIGIBLE = 1e-28
"""A denominator up to this share of the numerator is rounding: the square of what double precision resolves."""

WHITEN_FLOOR = 1e-12
"""Smallest eigenvalue that a direction is divided by, relative to the largest."""

Matrix = NDArray[np.float64]
Pencil = tuple[NDArray[np.float64], NDArray[np.float64]]


def symmetric(A: Matrix, at_most: int | None = None) -> Pencil:
    """Eigenvalues, largest first, with orthonormal eigenvectors: all, or the leading ones."""
    n = len(A)
    if n == 0:
        return np.empty(0), np.empty((0, 0))
    leading = None if at_most is None or at_most >= n else (n - at_most, n - 1)
    values, vectors = linalg.eigh(A, check_finite=False, subset_by_index=leading)
    return values[::-1], vectors[:, ::-1]


def range_basis(
    A: Matrix, tol: float = RELATIVE_TOLERANCE, *, at_most: int | None = None, rounding: float = 0.0
) -> Pencil:
    """Eigenvalues and eigenvectors of a positive semi-definite matrix without its null space, largest first.

    `rounding` is the size of the errors that A was computed with, where it may be nothing but these.
    """
    values, vectors = symmetric(A, at_most)
    keep = values > max(tol * values.max(initial=0.0), rounding)
    return values[keep], vectors[:, keep]


def difference(attract: Matrix, repel: Matrix, k: int) -> Pencil:
    """Orthonormal leading eigenvectors of ``repel - attract`` among the directions in which anything varies.

    The difference has negative eigenvalues, above which the zeros of the null space would rank: without the cut a
    constant feature would win.
    """
    _, basis = range_basis(attract + repel)
    values, vectors = symmetric(basis.T @ (repel - attract) @ basis)
    return values[:k], basis @ vectors[:, :k]


def generalized(A: Matrix, B: Matrix, k: int, *, largest: bool = True) -> Pencil:
    r"""Extreme generalised eigenvectors of :math:`A w = \lambda B w` with :math:`w' B w = 1`.

    Simultaneous diagonalisation: B's null space is dropped, B is whitened, and A is diagonalised there. Where the
    largest are asked for, directions with a zero or negative eigenvalue are dropped: they carry nothing of A.
    """
    scale, basis = range_basis(B)
    # An identity, as in PCA, is no sum of squares of the rows: it is exact, whatever their unit.
    if scale.max(initial=0.0) <= NEGLIGIBLE * np.trace(A) and not np.array_equal(B, np.eye(len(B))):
        return np.empty(0), np.empty((len(A), 0))
    whiten = basis / np.sqrt(scale)
    values, vectors = symmetric(whiten.T @ A @ whiten)
    if largest:
        keep = values > RELATIVE_TOLERANCE * values.max(initial=0.0)
        values, vectors = values[keep], vectors[:, keep]
    else:
        values, vectors = values[::-1], vectors[:, ::-1]
    return values[:k], whiten @ vectors[:, :k]


def attract_whitened(attract: Matrix, repel: Matrix, k: int) -> Pencil:
    r"""Directions of smallest :math:`w' A w / w' B w`, scaled so that :math:`w' A w = 1`.

    Eigenvalues below :data:`WHITEN_FLOOR` of the largest are raised to that before dividing; if A is zero, B is
    whitened instead.
    """
    values, directions = generalized(attract, repel, len(repel), largest=False)
    largest = values.max(initial=0.0)
    if largest > 0:
        directions = directions / np.sqrt(np.maximum(values, WHITEN_FLOOR * largest))
    return values[:k], directions[:, :k]


def fix_signs(components: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows with their largest entry positive; of entries that tie within rounding, the first decides."""
    size = np.abs(components)
    decisive = np.argmax(size >= (1 - 1e-6) * size.max(axis=1, keepdims=True), axis=1)
    return components * np.where(components[np.arange(len(components)), decisive] < 0, -1.0, 1.0)[:, None]
