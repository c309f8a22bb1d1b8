"""The nearest rows of each row: one setting, `neighbors`, decides how they are found for every method with a graph.

"exact" compares all rows with all, in time n² f. "approx" looks into an index (:mod:`pairlens.graphs.index`, faiss),
which finds at least 95 % of the true neighbours in a fraction of the time. "auto" is exact up to :data:`EXACT_ROWS`
rows, for sparse rows, and on a GPU or a cluster, whose engines have their own search.

Near rows make a graph, and a random walk over it *diffusion coordinates* (:func:`diffusion`), with a map for new rows.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from pairlens._warnings import warn_user
from pairlens.engines import (
    EXACT_SPREAD,
    ROUGH_SPREAD,
    EngineRows,
    Float64,
    IntArray,
    NearGraph,
    Rows,
    listed_pairs,
    near_walk,
    neighbors,
    one_blas_thread,
    pair_squared_distances,
    row_blocks,
    rows_in_memory,
)
from pairlens.exceptions import ApproximationWarning, MissingExtraError
from pairlens.graphs.index import RowIndex
from pairlens.spectral.rowspace import symmetric

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
DIFFUSION_RANK = 15
DIFFUSION_TIME = 4
NEW_ROW_NEIGHBORS = 10
DENSE_LIMIT = 500
"""Rows up to which the eigenvectors of the random walk come from a dense solver."""
SAME_ROW = 1e-14
"""Share of the total variance up to which the squared distance of two rows is rounding."""
LANCZOS = 100
"""Vectors of the sparse solver: behind the clusters, eigenvalues lie close together."""
LANCZOS_TOLERANCE = 1e-8
LEAST_EIGENVALUE = 1e-8
"""Eigenvalues up to which nothing is left after the steps of the walk but rounding."""


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


@dataclass(frozen=True)
class Diffusion:
    """Diffusion coordinates of training rows; a new row takes the weighted mean of its nearest training rows."""

    rows: NDArray[np.float64]
    values: NDArray[np.float64]
    search: str = "auto"
    n_queries: int = 0
    """How the nearest are found, and how many rows look: see :func:`nearest_among`."""

    def __call__(self, Z: Rows) -> NDArray[np.float64]:
        """Return coordinates of rows, in memory."""
        return self._mean(*self._nearest(Z, NEW_ROW_NEIGHBORS))

    def as_new(self, Z: Rows) -> NDArray[np.float64]:
        """Return coordinates of rows to which one training row each is unknown, if it coincides with them.

        So a training row is treated as a new one: it takes the mean of the others.
        """
        index, distance = self._nearest(Z, NEW_ROW_NEIGHBORS + 1)
        itself = distance[:, :1] ** 2 <= self._rounding
        return self._mean(*(np.where(itself, found[:, 1:], found[:, :-1]) for found in (index, distance)))

    def of_others(self, neighbors: IntArray) -> NDArray[np.float64]:
        """Return coordinates of the training rows as new ones, from the nearest others of each."""
        near = neighbors[:, :NEW_ROW_NEIGHBORS]
        squared = pair_squared_distances(self.rows, listed_pairs(near))
        return self._mean(near, np.sqrt(squared).reshape(near.shape))

    def _nearest(self, Z: Rows, k: int) -> tuple[IntArray, NDArray[np.float64]]:
        k = min(k, len(self.rows))
        return nearest_among(self.rows, rows_in_memory(Z), k, search=self.search, n_queries=self.n_queries)

    @property
    def _rounding(self) -> float:
        """Squared distance up to which two rows coincide."""
        return SAME_ROW * float(np.einsum("ij,ij->", self.rows, self.rows)) / len(self.rows)

    def _mean(self, index: IntArray, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weighted mean of training rows at these distances."""
        squared = distance**2
        width = np.median(squared, axis=1, keepdims=True)
        weight = np.exp(-squared / np.where(width > 0, width, 1.0))
        # A training row takes its own place, and so does whatever coincides with it up to rounding.
        same = squared <= self._rounding
        weight = np.where(same.any(axis=1, keepdims=True), same, weight)
        weight = weight / weight.sum(axis=1, keepdims=True)
        return np.einsum("ij,ijk->ik", weight, self.values[index])


def diffusion(rows: NDArray[np.float64], graph: NearGraph, *, search: str = "auto", n_queries: int = 0) -> Diffusion:
    r"""Return leading eigenvectors of the random walk after the constant one, column j times :math:`\lambda_j^4`."""
    n = len(rows)
    # The walk D^-1 A has the eigenvalues of the symmetric D^-1/2 A D^-1/2, and its eigenvectors times D^-1/2.
    weights = graph.weights
    assert weights is not None
    degree = np.asarray(weights.sum(axis=1)).ravel()
    root = sparse.diags(1 / np.sqrt(degree))
    normalised = (root @ weights @ root).tocsr()
    # The constant one is known and taken out: in a graph of several parts its eigenvalue is not simple.
    constant = np.sqrt(degree / degree.sum())
    k = min(DIFFUSION_RANK, n - 1)
    if n <= DENSE_LIMIT:
        values, vectors = symmetric(normalised.toarray() - np.outer(constant, constant), k)
    else:
        deflated = LinearOperator((n, n), matvec=lambda x: normalised @ x - constant * (constant @ x.ravel()))
        # Thousands of tiny products, each of which would wait for the other threads of a busy machine.
        with one_blas_thread():
            values, vectors = eigsh(
                deflated, k, which="LA", v0=np.cos(np.arange(n)), ncv=LANCZOS, tol=LANCZOS_TOLERANCE
            )
        values, vectors = values[::-1], vectors[:, ::-1]
    vectors = (root @ vectors) * np.sqrt(degree.sum())
    # Of a handful of rows, where each is near all others, no eigenvalue is positive.
    left = np.where(values > LEAST_EIGENVALUE, values, 0.0) ** DIFFUSION_TIME
    return Diffusion(rows, vectors * left, search, n_queries)
