r"""Placing rows among others on the map: new rows, and in a map of many rows all but the landmarks.

A new row looks at its 15 nearest training rows in the local metric, with weights w of perplexity 3. It starts at the
neighbour most agreed upon, the one with the largest :math:`\sum_j w_j c_j`, and takes 20 steps

.. math::
    z \leftarrow \frac{\sum_i w_i c_i z_i}{\sum_i w_i c_i}, \qquad c_i = \frac{1}{1 + |z - z_i|^2 / h^2},

h the median distance to the 10th neighbour in the map. So a row between two islands lands on the one that most of its
neighbours are on, and not in the water. A row that coincides with a training row takes its place.

A finished map stays as it is. Of many rows, landmarks are laid out, all others placed among them, and the whole
polished (:func:`with_placed`). :func:`plain_map` is the map of the rows alone, to see what answers add to it.
"""

from __future__ import annotations

import hashlib
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from pairlens._sklearn import as_generator
from pairlens.engines import Float64, IntArray, Rows, row_blocks
from pairlens.graphs.nearest import SAME_ROW, nearest_among, prepare_search
from pairlens.learning.spaces import RawSpace, chosen_landmarks
from pairlens.methods.pairmap.attraction import perplexity_weights, tsne_affinities
from pairlens.methods.pairmap.layout import EARLY_ITER, MAX_ITER, Phase, lay_out, phases_of, principal_start
from pairlens.spectral.rowspace import Standardiser

NEIGHBORS = 15
PERPLEXITY = 3.0
STEPS = 20
SCALE_NEIGHBOR = 10
BLOCK_BYTES = 1 << 21
POLISH: Phase = (10, 1.0, 0.5)
"""The phase in which all rows move; more iterations change neither groups nor neighbours."""
MOST_KEPT = 2
_KEPT: dict[Any, Float64] = {}
"""The last maps that :func:`plain_map` drew, by their rows and parameters."""


def local_scale(embedding: Float64) -> float:
    """Return h, the median distance to the 10th neighbour in the map."""
    from scipy.spatial import cKDTree

    k = min(SCALE_NEIGHBOR, len(embedding) - 1)
    # In one or two dimensions a tree finds neighbours in n log n, and exactly. The row itself comes first.
    return float(np.median(cKDTree(embedding).query(embedding, [k + 1])[0]))


def nearest_known(
    V: Float64, known: Float64, *, search: str = "auto", n_queries: int | None = None
) -> tuple[IntArray, Float64]:
    """Return the 15 nearest training rows of each new row, nearest first, and weights of perplexity 3.

    The weight of a training row that coincides with the new one is 1, and that of all others 0. They are found as by
    :func:`~pairlens.graphs.nearest.nearest_among`.
    """
    k = min(NEIGHBORS, len(known))
    found, distance = nearest_among(known, V, k, search=search, n_queries=n_queries)
    squared = distance**2
    weights = perplexity_weights(squared, PERPLEXITY)
    centred = known - known.mean(axis=0)
    same = squared[:, 0] <= SAME_ROW * np.einsum("ij,ij->", centred, centred) / len(known)
    weights[same] = np.eye(1, k)
    return found, weights


def ready_to_place(known: Float64, *, search: str = "auto") -> None:
    """Make the index that :func:`nearest_known` needs of many training rows, so that the first new rows do not wait."""
    prepare_search(known, min(NEIGHBORS, len(known)), search=search)


def place(found: IntArray, weights: Float64, embedding: Float64, scale: float) -> Float64:
    """Return places of new rows from their nearest training rows on a map, whose :func:`local_scale` is h."""
    result = np.empty((len(found), embedding.shape[1]))
    # The rows come last, so that every operation runs along many of them.
    columns = np.ascontiguousarray(embedding.T)
    steep = 1 / scale**2 if scale > 0 else 1.0
    for block in row_blocks(len(found), 8 * found.shape[1] ** 2, BLOCK_BYTES):
        near, w = columns[:, found[block].T], np.ascontiguousarray(weights[block].T)
        agreed = np.stack([np.einsum("jn,jn->n", w, _closeness(near, place, steep)) for place in near.swapaxes(0, 1)])
        z = np.take_along_axis(near, np.argmax(agreed, axis=0)[None, None, :], axis=1)[:, 0]
        for _ in range(STEPS):
            pull = w * _closeness(near, z, steep)
            z = np.einsum("jn,djn->dn", pull, near) / pull.sum(axis=0)
        result[block] = z.T
    return result


def _closeness(near: Float64, place: Float64, steep: float) -> Float64:
    """Return c = 1 / (1 + steep d²) of places, whose axes are columns, neighbours and rows, to one place a row."""
    squared = np.ones(near.shape[1:])
    for column, centre in zip(near, place):
        offset = column - centre
        offset *= offset
        offset *= steep
        squared += offset
    return np.reciprocal(squared, out=squared)


def with_placed(
    V: Float64,
    landmarks: IntArray,
    drawn: Float64,
    affinities: sparse.csr_matrix,
    *,
    n_jobs: int | None,
    search: str = "auto",
) -> Float64:
    """Return the map of all rows: each takes a place among the landmarks, and then all move a little.

    V are all rows in the local metric, `drawn` the places of the landmarks. In the polish, a placed row attracts its
    nearest landmarks, and these attract each other as before. All rows repel each other.
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
    return lay_out(everyone, start, [POLISH], n_jobs=n_jobs)


def plain_map(
    X: Rows,
    n_components: int = 2,
    *,
    perplexity: float = 30.0,
    standardize: bool = True,
    n_jobs: int | None = 1,
    random_state: Any = 0,
    reuse: bool = False,
) -> Float64:
    """Draw a t-SNE of the rows alone, scaled and laid out as by PairMap; constant columns do not count.

    Parameters are those of :class:`~pairlens.PairMap`. `reuse` returns a map that this process has drawn of the same
    rows, with the same parameters and an integer as seed; the last two are kept.

    >>> from sklearn.datasets import load_iris
    >>> plain_map(load_iris().data).shape
    (150, 2)
    """
    rng = as_generator(random_state)
    rows = X.astype(np.float64)
    V = RawSpace.of(rows, Standardiser.of(rows, standardize=standardize))(rows)
    seed = int(random_state) if isinstance(random_state, Integral) else None
    key = hashlib.blake2b(np.ascontiguousarray(V).data).digest(), V.shape, n_components, float(perplexity), seed
    if reuse and seed is not None and (kept := _KEPT.get(key)) is not None:
        return kept.copy()
    landmarks = chosen_landmarks(len(V), np.empty(0, dtype=np.int64), rng)
    laid = V if landmarks is None else V[landmarks]
    affinities = tsne_affinities(laid, perplexity)
    start = principal_start(laid, n_components, rng)
    drawn = lay_out(affinities, start, phases_of(EARLY_ITER, MAX_ITER), n_jobs=n_jobs)
    if landmarks is not None:
        drawn = with_placed(V, landmarks, drawn, affinities, n_jobs=n_jobs)
    if seed is not None:
        _KEPT[key] = drawn.copy()
        for oldest in list(_KEPT)[:-MOST_KEPT]:
            _KEPT.pop(oldest, None)
    return drawn
