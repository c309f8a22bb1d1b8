r"""The few eigenproblems that turn scatters into directions.

All of them take symmetric float64 matrices of the size of the coordinates and return ``(values, vectors)`` with the
vectors in columns, best first, at most as many as were asked for. Directions in which nothing varies are cut by one
relative tolerance, so rank-deficient problems give fewer columns, never NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

__all__ = ["RELATIVE_TOLERANCE", "fix_signs", "generalized", "leading", "range_basis", "symmetric"]

RELATIVE_TOLERANCE = 1e-9
"""Eigenvalues up to this share of the largest one count as zero."""

Matrix = NDArray[np.float64]
Pencil = tuple[NDArray[np.float64], NDArray[np.float64]]


def symmetric(A: Matrix) -> Pencil:
    """All eigenvalues, largest first, with orthonormal eigenvectors."""
    values, vectors = linalg.eigh(A, check_finite=False)
    return values[::-1], vectors[:, ::-1]


def range_basis(A: Matrix, tol: float = RELATIVE_TOLERANCE) -> Pencil:
    """Eigenvalues and eigenvectors of a positive semi-definite matrix without its null space."""
    values, vectors = symmetric(A)
    keep = values > tol * max(values[0], 0.0)
    return values[keep], vectors[:, keep]


def leading(A: Matrix, k: int, *, support: Matrix) -> Pencil:
    """The k leading eigenvectors of A among the directions in which `support` varies.

    A difference of scatters has negative eigenvalues, above which the zeros of the null space would rank: a constant
    feature would win. `support` is a scatter that vanishes just there.
    """
    _, basis = range_basis(support)
    values, vectors = symmetric(basis.T @ A @ basis)
    return values[:k], basis @ vectors[:, :k]


def generalized(A: Matrix, B: Matrix, k: int, *, largest: bool = True, tol: float = RELATIVE_TOLERANCE) -> Pencil:
    r"""Extreme generalised eigenvectors of :math:`A w = \lambda B w` with :math:`w' B w = 1`.

    Simultaneous diagonalisation: B's null space is dropped, B is whitened, and A is diagonalised there.
    """
    scale, basis = range_basis(B, tol)
    whiten = basis / np.sqrt(scale)
    values, vectors = symmetric(whiten.T @ A @ whiten)
    if not largest:
        values, vectors = values[::-1], vectors[:, ::-1]
    return values[:k], whiten @ vectors[:, :k]


def fix_signs(components: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows with their largest entry positive; of entries that tie within rounding, the first decides."""
    size = np.abs(components)
    decisive = np.argmax(size >= (1 - 1e-6) * size.max(axis=1, keepdims=True), axis=1)
    return components * np.where(components[np.arange(len(components)), decisive] < 0, -1.0, 1.0)[:, None]
