r"""Places for new rows in a finished map, which stays as it is.

A new row looks at its 15 nearest training rows in the local metric, with weights w of perplexity 3. It starts at the
neighbour most agreed upon, the one with the largest :math:`\sum_j w_j c_j`, and takes 20 steps

.. math::
    z \leftarrow \frac{\sum_i w_i c_i z_i}{\sum_i w_i c_i}, \qquad c_i = \frac{1}{1 + |z - z_i|^2 / h^2},

h the median distance to the 10th neighbour in the map. So a row between two islands lands on the one that most of its
neighbours are on, and not in the water. A row that coincides with a training row takes its place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import IntArray, row_blocks
from pairlens.graphs.nearest import nearest_among, prepare_search
from pairlens.methods.pairmap.affinities import perplexity_weights

__all__ = ["local_scale", "nearest_known", "place", "ready_to_place"]

Float64 = NDArray[np.float64]

NEIGHBORS = 15
PERPLEXITY = 3.0
STEPS = 20
SCALE_NEIGHBOR = 10
SAME_ROW = 1e-14
"""Share of the total variance up to which the squared distance of two rows is rounding."""


def local_scale(embedding: Float64) -> float:
    """h: the median distance to the 10th neighbour in the map."""
    from scipy.spatial import cKDTree

    k = min(SCALE_NEIGHBOR, len(embedding) - 1)
    # In one or two dimensions a tree finds neighbours in n log n, and exactly. The row itself comes first.
    return float(np.median(cKDTree(embedding).query(embedding, [k + 1])[0]))


def nearest_known(
    V: Float64, known: Float64, *, search: str = "auto", at_once: bool = False
) -> tuple[IntArray, Float64]:
    """The 15 nearest training rows of each new row, nearest first, and weights of perplexity 3.

    The weight of a training row that coincides with the new one is 1, and that of all others 0.

    Parameters
    ----------
    V, known : arrays of shape (n_new, n_columns) and (n_rows, n_columns)
    search, at_once
        How they are found: see :func:`~pairlens.graphs.nearest.nearest_among`.
    """
    k = min(NEIGHBORS, len(known))
    found, distance = nearest_among(known, V, k, search=search, at_once=at_once)
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
    """Places of new rows from their nearest training rows.

    Parameters
    ----------
    found, weights : arrays of shape (n_new, n_neighbors)
        From :func:`nearest_known`.
    embedding : array of shape (n_rows, n_components)
        The map.
    scale : float
        h, see :func:`local_scale`.
    """
    result = np.empty((len(found), embedding.shape[1]))
    narrow = scale**2 if scale > 0 else 1.0
    for block in row_blocks(len(found), 8 * found.shape[1] ** 2 * embedding.shape[1]):
        near, w = embedding[found[block]], weights[block]
        between = near[:, :, None, :] - near[:, None, :, :]
        agreed = np.einsum("ij,ikj->ik", w, 1 / (1 + np.einsum("ikjd,ikjd->ikj", between, between) / narrow))
        z = near[np.arange(len(near)), np.argmax(agreed, axis=1)]
        for _ in range(STEPS):
            offset = near - z[:, None, :]
            pull = w / (1 + np.einsum("ijd,ijd->ij", offset, offset) / narrow)
            z = np.einsum("ij,ijd->id", pull, near) / pull.sum(axis=1)[:, None]
        result[block] = z
    return result
