"""The layout: t-SNE of given affinities, from the start or from a former map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from pairlens._optional import require
from pairlens.engines import Float64
from pairlens.methods.pairmap.repulsion import repulsion

__all__ = ["EARLY_ITER", "MOMENTUM", "N_ITER", "Phase", "align", "lay_out", "parted", "phases_of", "principal_start"]


START = 1e-4
"""Standard deviation of the first column of the start: so small that all rows see each other."""
PARTED = 1e-2
"""Of rows that start in one place, how far they are parted, as a share of the spread of the start."""
EXAGGERATION = 12.0
EARLY_MOMENTUM, MOMENTUM = 0.5, 0.8
EARLY_ITER, N_ITER = 250, 500
REPORT_EVERY = 50

Phase = tuple[int, float, float]
"""Number of iterations, exaggeration and momentum."""

Progress = Callable[[int], None]


def principal_start(V: Float64, n_components: int, rng: np.random.Generator) -> Float64:
    """Leading principal components of the rows, the first with standard deviation 1e-4."""
    centred = V - V.mean(axis=0)
    if centred.shape[1] <= len(V):
        values, vectors = np.linalg.eigh(centred.T @ centred)
        leading = vectors[:, ::-1][:, :n_components]
        scores = centred @ leading
    else:
        values, vectors = np.linalg.eigh(centred @ centred.T)
        scores = vectors[:, ::-1][:, :n_components] * np.sqrt(np.maximum(values[::-1][:n_components], 0.0))
    # Eigenvectors have no sign of their own: the longest entry of each decides.
    longest = np.argmax(np.abs(scores), axis=0)
    scores = scores * np.where(scores[longest, np.arange(scores.shape[1])] < 0, -1.0, 1.0)
    start = np.zeros((len(V), n_components))
    start[:, : scores.shape[1]] = scores
    spread = float(start[:, 0].std())
    return parted(start * (START / spread) if spread > 0 else start, START, rng)


def parted(start: Float64, size: float, rng: np.random.Generator) -> Float64:
    """The start with rows that share a place moved a little apart: t-SNE could not part them."""
    _, first, count = np.unique(start, axis=0, return_inverse=True, return_counts=True)
    shared = count[first.ravel()] > 1
    result = start.copy()
    result[shared] += PARTED * size * rng.standard_normal((int(shared.sum()), start.shape[1]))
    return result


def phases_of(early_iter: int, n_iter: int) -> list[Phase]:
    """Groups form while attraction is 12 times as strong; then the map unfolds."""
    return [(early_iter, EXAGGERATION, EARLY_MOMENTUM), (n_iter, 1.0, MOMENTUM)]


def lay_out(
    affinities: sparse.csr_matrix,
    start: Float64,
    phases: Sequence[Phase],
    *,
    n_jobs: int | None,
    progress: Progress | None = None,
) -> Float64:
    """Move rows from a start to where attraction and repulsion are in balance.

    Parameters
    ----------
    affinities : CSR matrix of shape (n_rows, n_rows)
        Symmetric, with sum 1.
    start : array of shape (n_rows, n_components)
    phases : sequence of (number of iterations, exaggeration, momentum)
        The learning rate is the number of rows over the exaggeration.
    n_jobs : int or None
        Threads. With one the result is the same every time.
    progress : callable, optional
        Is told how many iterations are done, every 50.
    """
    openTSNE = require("openTSNE", extra="map", purpose="PairMap")
    n = len(start)
    matrix = sparse.csr_matrix(affinities, copy=True)
    given = openTSNE.affinity.PrecomputedAffinities(matrix, normalize=False)
    map_ = openTSNE.TSNEEmbedding(
        start.copy(), given, negative_gradient_method=_forces, n_jobs=1 if n_jobs is None else n_jobs
    )
    done = 0
    for n_iter, exaggeration, momentum in phases:
        if n_iter == 0:
            continue
        reporting: dict[str, Any] = {}
        if progress is not None:
            reporting = {
                "use_callbacks": True,
                "callbacks": [_Report(progress, done)],
                "callbacks_every_iters": REPORT_EVERY,
            }
        map_.optimize(
            n_iter,
            inplace=True,
            propagate_exception=True,
            exaggeration=exaggeration,
            momentum=momentum,
            learning_rate=n / exaggeration,
            **reporting,
        )
        done += n_iter
    return np.array(map_, dtype=np.float64)


def _forces(
    embedding: Float64, P: sparse.csr_matrix, *, dof: float, n_jobs: int, should_eval_error: bool, **_: Any
) -> tuple[float, Float64]:
    """What openTSNE asks of an objective: the KL divergence, where it is wanted, and a quarter of the gradient."""
    from openTSNE import _tsne

    places = np.asarray(embedding)
    away, total = repulsion(places, workers=n_jobs)
    gradient = away / -total
    # The one compiled sum over neighbours there is; it has no public name, and adds to the gradient.
    sum_p, error = _tsne.estimate_positive_gradient_nn(
        P.indices,
        P.indptr,
        P.data,
        places,
        places,
        gradient,
        dof,
        num_threads=n_jobs,
        should_eval_error=should_eval_error,
    )
    return (error + sum_p * np.log(total) if should_eval_error else 0.0), gradient


class _Report:
    """A callback of openTSNE that hands on the number of iterations."""

    def __init__(self, progress: Progress, done: int) -> None:
        self._progress, self._done = progress, done

    def __call__(self, iteration: int, error: float, embedding: Any) -> bool:
        self._progress(self._done + iteration)
        return False


def align(moved: Float64, former: Float64) -> Float64:
    """Turn, mirror and shift a map so that it lies on a former one as well as it can (Procrustes)."""
    to, centre = former.mean(axis=0), moved.mean(axis=0)
    U, _, Vt = np.linalg.svd((moved - centre).T @ (former - to))
    return np.asarray((moved - centre) @ (U @ Vt) + to)
