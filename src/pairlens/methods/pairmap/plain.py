"""The map of the rows alone: a plain t-SNE, to see what answers add to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._sklearn import as_generator
from pairlens.engines import Rows
from pairlens.learning.spaces import RawSpace, chosen_landmarks
from pairlens.methods.pairmap.affinities import tsne_affinities
from pairlens.methods.pairmap.layout import EARLY_ITER, N_ITER, lay_out, phases_of, principal_start
from pairlens.methods.pairmap.placement import with_placed
from pairlens.spectral.rowspace import Standardiser

__all__ = ["plain_map"]


def plain_map(
    X: Rows,
    n_components: int = 2,
    *,
    perplexity: float = 30.0,
    standardize: bool = True,
    n_jobs: int | None = 1,
    random_state: Any = 0,
) -> NDArray[np.float64]:
    """t-SNE of the rows, with columns scaled and rows laid out as by PairMap; constant columns do not count.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        At least three rows.
    n_components : {1, 2}
    perplexity, standardize, n_jobs, random_state
        As for :class:`~pairlens.PairMap`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> plain_map(load_iris().data).shape
    (150, 2)
    """
    rng = as_generator(random_state)
    rows = X.astype(np.float64)
    V = RawSpace.of(rows, Standardiser.of(rows, standardize=standardize))(rows)
    landmarks = chosen_landmarks(len(V), np.empty(0, dtype=np.int64), rng)
    laid = V if landmarks is None else V[landmarks]
    affinities = tsne_affinities(laid, perplexity)
    start = principal_start(laid, n_components, rng)
    drawn = lay_out(affinities, start, phases_of(EARLY_ITER, N_ITER), n_jobs=n_jobs)
    return drawn if landmarks is None else with_placed(V, landmarks, drawn, affinities, n_jobs=n_jobs)
