"""The nearest rows of each row: one setting, `neighbors`, decides how they are found for every method with a graph.

"exact" compares all rows with all, in time n² f. "approx" looks into an index (:mod:`pairlens.graphs.index`, faiss),
which finds at least 95 % of the true neighbours in a fraction of the time. "auto" is exact up to :data:`EXACT_ROWS`
rows, for sparse rows, and on a GPU or a cluster, whose engines have their own search.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens._warnings import warn_user
from pairlens.engines import (
    EXACT_SPREAD,
    ROUGH_SPREAD,
    EngineRows,
    Float64,
    IntArray,
    NearGraph,
    Rows,
    near_walk,
    neighbors,
    row_blocks,
)
from pairlens.exceptions import ApproximationWarning, MissingExtraError
from pairlens.graphs.index import RowIndex

EXACT_ROWS = 25_000
"""Rows in memory up to which neighbors="auto" means "exact"."""
FEWEST_INDEXED = 1000
"""Rows below which an index costs more than it saves: even "approx" compares them all."""
SCALE_NEIGHBOR = 7
"""The neighbour whose distance is the local scale of the weights of near rows."""
SEARCHES = ("auto", "exact", "approx")
NO_INDEX = 'neighbors="approx" works on NumPy arrays. Give neighbors="exact", or the tensor as X.cpu().numpy().'
"""What is wrong with an index of rows that are not in memory."""
FEWEST_RECALL = 0.95
"""Recall below which an index is given up, and the search is exact."""
CACHED_BYTES = 1 << 20
COMPARED = 2e9
"""Pairs of rows that one core compares in a second, times columns: for the estimate of a warning only."""


def searches_approximately(X: Rows, search: str, *, n_queries: int | None = None) -> bool:
    """Whether the setting asks for an index of these rows; `n_queries` says how many look for them, if not they."""
    if isinstance(X, EngineRows):
        if search == "approx":
            raise ValueError(NO_INDEX)
        return False
    if search == "approx":
        return bool(X.shape[0] >= FEWEST_INDEXED)
    if search == "exact" or sparse.issparse(X) or X.shape[0] < FEWEST_INDEXED:
        return False
    return bool(X.shape[0] > EXACT_ROWS or (n_queries or 0) * X.shape[0] > EXACT_ROWS**2)


def nearest_rows(X: Rows, k: int, *, search: str = "auto") -> tuple[IntArray, Float64]:
    """The k nearest other rows of each row, nearest first, and their distances.

    Parameters
    ----------
    X : array, CSR matrix or rows of an engine, of shape (n, n_features)
    k : int
        Between 1 and n - 1.
    search : {"auto", "exact", "approx"}
        As the parameter `neighbors` of the methods; "auto" is exact, with a warning, where faiss is not installed.
    """
    if searches_approximately(X, search):
        rows = X.toarray() if sparse.issparse(X) else X
        index = _index_of(rows, k, search)
        if index is not None:
            return _others(rows, index, k)
    found = neighbors(X, n_nearest=k)
    return found.nearest, found.nearest_distance


def near_graph(
    rows: Rows,
    n_neighbors: int,
    *,
    search: str = "auto",
    found: tuple[IntArray, Float64] | None = None,
) -> NearGraph:
    r"""Nearest neighbours with weights :math:`\exp(-d_{ij}^2 / (s_i s_j))`, :math:`s_i` the distance to the 7th.

    Parameters
    ----------
    rows : array or rows of an engine, of shape (n, p)
    n_neighbors : int
    search : {"auto", "exact", "approx"}
        As the parameter `neighbors` of the methods.
    found : tuple of arrays, optional
        What :func:`nearest_rows` has found by that search, if somebody looked for at least `n_neighbors` and 7 of them.
    """
    n = rows.shape[0]
    k = min(n_neighbors, n - 1)
    scaling = min(SCALE_NEIGHBOR, n - 1)
    approximate = searches_approximately(rows, search)
    if found is None and approximate:
        found = nearest_rows(rows, max(k, scaling), search=search)
    accuracy = ROUGH_SPREAD if approximate else EXACT_SPREAD
    return near_walk(rows, k, scale_neighbor=scaling, accuracy=accuracy, found=found)


def _index_of(rows: NDArray[Any], k: int, search: str) -> RowIndex | None:
    """An index that finds enough, or None with a warning that says what the exact search will cost."""
    try:
        index = RowIndex.of(rows, k)
    except MissingExtraError:
        if search == "approx":
            raise
        warn_user(
            f"all pairs of {len(rows):,} rows are compared, which takes about {_seconds(rows):,.0f} s on one core and "
            "four times that for twice the rows. An index takes a fraction: pip install 'pairlens[ann]'. "
            'neighbors="exact" accepts the time.',
            ApproximationWarning,
        )
        return None
    if index.recall >= FEWEST_RECALL:
        return index
    warn_user(
        f"an index of the rows finds {index.recall:.0%} of their neighbours, less than {FEWEST_RECALL:.0%}; all pairs "
        f"of {len(rows):,} rows are compared instead, about {_seconds(rows):,.0f} s on one core.",
        ApproximationWarning,
    )
    return None


def _seconds(rows: NDArray[Any]) -> float:
    return len(rows) ** 2 * (16 + rows.shape[1]) / 2 / COMPARED


def _others(rows: NDArray[Any], index: RowIndex, k: int) -> tuple[IntArray, Float64]:
    """What the index finds for its own rows, without the row itself, measured in float64."""
    found, _ = index(rows, k + 1)
    own = found == np.arange(len(rows))[:, None]
    # A row with many equals may not be among what it found: the last one gives way.
    own[~own.any(axis=1), k] = True
    found = found[~own].reshape(len(rows), k)
    short = np.flatnonzero((found < 0).any(axis=1))
    if len(short):
        found[short] = _exact(rows[short], rows, k, own=short)
    return _measured(rows, rows, found)


def _exact(queries: NDArray[Any], rows: NDArray[Any], k: int, *, own: IntArray | None = None) -> IntArray:
    from sklearn.neighbors import NearestNeighbors

    # Trees do not pay in many dimensions; products of rows find the neighbours, differences measure them.
    extra = 0 if own is None else 1
    found = (
        NearestNeighbors(n_neighbors=k + extra, algorithm="brute").fit(rows).kneighbors(queries, return_distance=False)
    )
    if own is None:
        return np.asarray(found)
    itself = found == own[:, None]
    itself[~itself.any(axis=1), k] = True
    return np.asarray(found[~itself].reshape(len(queries), k))


def _measured(queries: NDArray[Any], rows: NDArray[Any], found: IntArray) -> tuple[IntArray, Float64]:
    """Neighbours in order of their distances, which come from differences in float64, then of their numbers."""
    index, squared = np.empty_like(found), np.empty(found.shape)
    # Blocks that stay in the cache of a core.
    for part in row_blocks(len(queries), 8 * found.shape[1] * rows.shape[1], CACHED_BYTES):
        difference = queries[part, None, :].astype(np.float64) - rows[found[part]]
        distance = np.einsum("ijk,ijk->ij", difference, difference)
        order = np.lexsort((found[part], distance), axis=1)
        index[part] = np.take_along_axis(found[part], order, axis=1)
        squared[part] = np.take_along_axis(distance, order, axis=1)
    return index, np.sqrt(squared)


def nearest_among(
    rows: NDArray[Any], queries: NDArray[Any], k: int, *, search: str = "auto", n_queries: int | None = None
) -> tuple[IntArray, Float64]:
    """The k nearest training rows of each new row, nearest first, and their distances from differences in float64.

    Products with all rows find them, or an index of many rows, which is made when it is first needed and kept as long
    as the rows are.

    Parameters
    ----------
    rows, queries : arrays of shape (n_rows, n_columns) and (n_new, n_columns)
    k : int
        At most the number of rows.
    search : {"auto", "exact", "approx"}
    n_queries : int, optional
        How many rows will look, today and later, if that is known: "auto" takes an index of fewer rows too, if many
        look. It is a property of the training rows: what a row finds must not depend on others that come with it.
    """
    index = _kept_index(rows, k, search) if searches_approximately(rows, search, n_queries=n_queries) else None
    if index is None:
        return _measured(queries, rows, _exact(queries, rows, k))
    found, _ = index(queries, k)
    short = np.flatnonzero((found < 0).any(axis=1))
    if len(short):
        found[short] = _exact(queries[short], rows, k)
    return _measured(queries, rows, found)


def prepare_search(rows: NDArray[Any], k: int, *, search: str = "auto") -> None:
    """Make the index that :func:`nearest_among` would make when new rows first look, if it would make one."""
    if searches_approximately(rows, search):
        _kept_index(rows, k, search)


_kept: dict[tuple[int, int], tuple[weakref.ref[NDArray[Any]], RowIndex | None]] = {}


def _kept_index(rows: NDArray[Any], k: int, search: str) -> RowIndex | None:
    """The index of these rows. It is no part of a model, whose files and pickles hold the rows alone."""
    key = id(rows), k
    if key not in _kept or _kept[key][0]() is not rows:
        index = _index_of(rows, k, search)
        _kept[key] = weakref.ref(rows, lambda _: _kept.pop(key, None)), index
    return _kept[key][1]
