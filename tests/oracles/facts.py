"""What the checks of the oracles share: pairs of labels, directions of LDA, and what solves a ratio."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.linalg import eigh
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tests.oracles import Solution
from tests.oracles.base import Array

ANGLE = 1e-6


def all_pairs(y: Array) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Every must-link and every cannot-link that full labels imply."""
    must, cannot = [], []
    for i, j in itertools.combinations(range(len(y)), 2):
        (must if y[i] == y[j] else cannot).append((i, j))
    return must, cannot


def some_pairs(y: Array, count: int, seed: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """A random sample of the pairs of each kind."""
    rng = np.random.default_rng(seed)
    must, cannot = all_pairs(y)
    return tuple([side[k] for k in sorted(rng.choice(len(side), count, False))] for side in (must, cannot))


def lda_directions(X: Array, y: Array) -> Array:
    """The discriminant directions of scikit-learn's LDA."""
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    return lda.scalings_[:, : len(np.unique(y)) - 1].T


def assert_solves_ratio(solution: Solution, *, maximum: bool) -> None:
    """``A w = mu B w`` for the named order, ``w'Bw = 1``, and mu at the right end of the spectrum."""
    A, B = (solution.repel, solution.attract) if maximum else (solution.attract, solution.repel)
    W, mu = solution.components, solution.eigenvalues
    residual = A @ W.T - (B @ W.T) * mu
    assert np.abs(residual).max() <= 1e-7 * np.abs(A @ W.T).max(initial=1e-300) + 1e-7 * np.abs(B @ W.T).max()
    np.testing.assert_allclose(W @ B @ W.T, np.eye(len(W)), atol=1e-7)
    reference = eigh(A, B, eigvals_only=True)
    reference = reference[::-1] if maximum else reference
    np.testing.assert_allclose(mu, reference[: len(mu)], rtol=1e-6, atol=1e-9)
