"""Maps of many rows: landmarks are laid out, all others placed among them, and the whole polished."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from pairlens.engines import Float64, IntArray
from pairlens.methods.pairmap.layout import lay_out
from pairlens.methods.pairmap.placement import local_scale, nearest_known, place

__all__ = ["LANDMARKS", "chosen_landmarks", "with_placed"]


LANDMARKS = 10_000
"""Rows that are laid out unless told otherwise."""
POLISH = 10
"""Iterations in which all rows move: more change neither groups nor neighbours."""
EXAGGERATION, MOMENTUM = 1.0, 0.5


def chosen_landmarks(
    n: int, constrained: IntArray, rng: np.random.Generator, wanted: int = LANDMARKS
) -> IntArray | None:
    """Numbers of the landmarks: the rows in pairs, or as many of them as are wanted, and others drawn evenly.

    None if all rows are laid out.
    """
    if n <= wanted:
        return None
    if len(constrained) >= wanted:
        return np.sort(rng.choice(constrained, wanted, replace=False))
    others = np.setdiff1d(np.arange(n), constrained, assume_unique=True)
    drawn = rng.choice(others, wanted - len(constrained), replace=False)
    return np.sort(np.concatenate([constrained, drawn]))


def with_placed(
    V: Float64,
    landmarks: IntArray,
    drawn: Float64,
    affinities: sparse.csr_matrix,
    *,
    n_jobs: int | None,
    search: str = "auto",
) -> Float64:
    """The map of all rows: each takes a place among the landmarks, and then all move a little.

    In the polish, a placed row attracts its nearest landmarks, and these attract each other as before. All rows repel
    each other.

    Parameters
    ----------
    V : array of shape (n_rows, n_columns)
        All rows in the local metric.
    landmarks : array of shape (n_landmarks,)
        Their numbers.
    drawn : array of shape (n_landmarks, n_components)
        Their places.
    affinities : CSR matrix of shape (n_landmarks, n_landmarks)
    n_jobs : int or None
        Threads.
    search : {"auto", "exact", "approx"}
        How the nearest landmarks of the others are found.
    """
    n, m = len(V), len(landmarks)
    others = np.setdiff1d(np.arange(n), landmarks, assume_unique=True)
    found, weights = nearest_known(V[others], V[landmarks], search=search, n_queries=len(others))
    start = np.empty((n, drawn.shape[1]))
    start[landmarks] = drawn
    start[others] = place(found, weights, drawn, local_scale(drawn))
    k = found.shape[1]
    toward = sparse.csr_matrix(
        (weights.ravel() / n, (np.repeat(others, k), landmarks[found].ravel())),
        shape=(n, n),
    )
    inner = affinities.tocoo()
    between = sparse.csr_matrix((inner.data * (m / n), (landmarks[inner.row], landmarks[inner.col])), shape=(n, n))
    everyone = (between + (toward + toward.T) / 2).tocsr()
    return lay_out(everyone, start, [(POLISH, EXAGGERATION, MOMENTUM)], n_jobs=n_jobs)
