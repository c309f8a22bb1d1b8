r"""The nearest rows of each row: one setting, `neighbors`, decides how they are found for every method with a graph.

"exact" compares all rows with all, in time n² f. "approx" looks into an index (faiss), which finds at least 95 % of the
true neighbours in a fraction of the time. "auto" is exact up to :data:`EXACT_ROWS` rows, for sparse rows, and on a GPU,
whose engine has its own search.

In the index, rows are put into :math:`\sqrt n` cells by k-means, and each is kept there as a code of four bits a
column. A search compares the codes of the cells nearest to a row, in registers, and then measures the best few times k
of them exactly. Two numbers say how hard it tries: how many cells are looked into, and how many candidates are
measured. Both come from a sample of rows whose true neighbours are computed: the least effort that finds
:data:`WANTED_RECALL` of them.

Near rows make a graph, and a random walk over it *diffusion coordinates* (:func:`diffusion`), with a map for new rows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from pairlens import engines
from pairlens._optional import require
from pairlens._warnings import warn_user
from pairlens.engines import EngineRows, Float64, Index, IntArray, NearGraph, Rows
from pairlens.exceptions import ApproximationWarning, ArgumentError, MissingExtraError
from pairlens.spectral.rowspace import symmetric

Float32 = NDArray[np.float32]

WANTED_RECALL = 0.96
"""Share of the true neighbours of a sample of rows that is to be found."""
RECALL_SAMPLE, RECALL_NEIGHBORS = 256, 1000
"""Rows of that sample, and true neighbours: where a row has few, more rows are drawn."""
CODED_COLUMNS = 64
"""Columns of a code; of more columns that rows have, their leading principal components are coded."""
TRAINING_ROWS = 64
"""Rows that k-means sees for each cell."""
KMEANS_ITER = 5
PROBED = 2.0 ** np.arange(-7, 0.25, 0.5)
"""Shares of the cells that may be looked into."""
DEPTHS = (2, 3, 4, 6, 8, 12, 16, 24)
"""How many times k candidates may be measured."""
ROW_BY_ROW = 11
"""faiss' number for a search that takes one row after another and keeps candidates in a reservoir. What it does by
default, all rows of a call together, takes a quarter longer here."""
SEARCHED_ROWS = 1 << 15
"""Rows of one call, which bounds its memory."""
SAME = 1e-5
"""Relative difference of squared distances that float32 does not tell apart."""
EXACT_ROWS = 25_000
"""Rows in memory up to which neighbors="auto" means "exact"."""
FEWEST_INDEXED = 1000
"""Rows below which an index costs more than it saves: even "approx" compares them all."""
SCALE_NEIGHBOR = 7
"""The neighbour whose distance is the local scale of the weights of near rows."""
SEARCHES = ("auto", "exact", "approx")
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
    """Return whether to index these rows; `n_queries` is the number of rows that look for them, if not they."""
    if isinstance(X, EngineRows):
        if search == "approx":
            raise ArgumentError(
                "neighbors",
                search,
                'must be "auto" or "exact" for rows that are not in memory',
                "Or give the tensor as X.cpu().numpy()",
            )
        return False
    if search == "approx":
        return bool(X.shape[0] >= FEWEST_INDEXED)
    if search == "exact" or sparse.issparse(X) or X.shape[0] < FEWEST_INDEXED:
        return False
    return bool(X.shape[0] > EXACT_ROWS or (n_queries or 0) * X.shape[0] > EXACT_ROWS**2)


def nearest_rows(X: Rows, k: int, *, search: str = "auto") -> tuple[IntArray, Float64]:
    """Return the k nearest other rows of each row, nearest first, and their distances.

    `search` is the parameter `neighbors` of the methods; "auto" is exact, with a warning, where faiss is not installed.
    """
    if searches_approximately(X, search):
        rows = X.toarray() if sparse.issparse(X) else X
        index = _index_of(rows, k, search)
        if index is not None:
            return _others(rows, index, k)
    found = engines.neighbors(X, n_nearest=k)
    return found.nearest, found.nearest_distance


def near_graph(
    rows: Rows,
    n_neighbors: int,
    *,
    search: str = "auto",
    found: tuple[IntArray, Float64] | None = None,
) -> NearGraph:
    r"""Join nearest rows with weights :math:`\exp(-d_{ij}^2 / (s_i s_j))`, :math:`s_i` the distance to the 7th.

    `found` is what :func:`nearest_rows` has found by that search, if at least `n_neighbors` and 7 rows were looked for.
    """
    n = rows.shape[0]
    k = min(n_neighbors, n - 1)
    scaling = min(SCALE_NEIGHBOR, n - 1)
    approximate = searches_approximately(rows, search)
    if found is None and approximate:
        found = nearest_rows(rows, max(k, scaling), search=search)
    accuracy = engines.ROUGH_SPREAD if approximate else engines.EXACT_SPREAD
    return engines.near_walk(rows, k, scale_neighbor=scaling, accuracy=accuracy, found=found)


def _index_of(rows: NDArray[Any], k: int, search: str) -> RowIndex | None:
    """Return an index that finds enough, or None with a warning that says what the exact search will cost."""
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
    """Return what the index finds for its own rows, without the row itself, measured in float64."""
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
    """Return neighbours in order of their distances, which come from differences in float64, then of their numbers."""
    index, squared = np.empty_like(found), np.empty(found.shape)
    # Blocks that stay in the cache of a core.
    for part in engines.row_blocks(len(queries), 8 * found.shape[1] * rows.shape[1], CACHED_BYTES):
        difference = queries[part, None, :].astype(np.float64) - rows[found[part]]
        distance = np.einsum("ijk,ijk->ij", difference, difference)
        order = np.lexsort((found[part], distance), axis=1)
        index[part] = np.take_along_axis(found[part], order, axis=1)
        squared[part] = np.take_along_axis(distance, order, axis=1)
    return index, np.sqrt(squared)


def nearest_among(
    rows: NDArray[Any], queries: NDArray[Any], k: int, *, search: str = "auto", n_queries: int | None = None
) -> tuple[IntArray, Float64]:
    """Return the k nearest training rows of each new row, nearest first, and their distances in float64.

    Products with all rows find them, or an index of many rows, which is made when it is first needed and kept as long
    as the rows are. `n_queries` is how many rows will look, today and later, if that is known: "auto" takes an index of
    fewer rows too, if many look. It is a property of the training rows: what a row finds must not depend on others that
    come with it.
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


@dataclass(frozen=True)
class RowIndex:
    """Index rows, centred and scaled by one number, that others look for.

    A search looks into `n_probe` cells, measures `depth` times k candidates, and finds the share `recall` of the true
    neighbours of a sample.
    """

    rows: Float32
    centre: Float64
    size: float
    n_probe: int
    depth: int
    recall: float
    _search: Callable[[Float32, int, int, int], tuple[Float32, Index]]

    @classmethod
    def of(cls, X: NDArray[np.floating[Any]], k: int, *, wanted: float = WANTED_RECALL) -> RowIndex:
        """Index rows so that the wanted share of the k nearest is found, or as many as the largest effort finds."""
        centre = np.asarray(X.mean(axis=0, dtype=np.float64))
        # Squares of float32 stay far inside its range, and columns far from zero keep their digits.
        size = float(
            np.sqrt(np.mean([np.mean((X[part] - centre) ** 2) for part in engines.row_blocks(len(X), X[:1].nbytes)]))
        )
        size = size if size > 0 else 1.0
        rows = _scaled(X, centre, size)
        search, n_cells = _coded(rows)
        sample = engines.evenly_spaced(len(rows), max(RECALL_SAMPLE, RECALL_NEIGHBORS // k))
        effort = _least_effort(rows, sample, k, search, n_cells, wanted)
        return cls(rows, centre, size, *effort, search)

    def __call__(self, X: NDArray[np.floating[Any]], k: int) -> tuple[Index, Float32]:
        """Return the k nearest rows of each row of X, -1 where none was found, and distances in units of :attr:`size`.

        A row of the index finds itself.
        """
        found, squared = np.empty((len(X), k), dtype=np.int64), np.empty((len(X), k), dtype=np.float32)
        for start in range(0, len(X), SEARCHED_ROWS):
            part = slice(start, start + SEARCHED_ROWS)
            queries = _scaled(X[part], self.centre, self.size)
            squared[part], found[part] = self._search(queries, k, self.n_probe, self.depth)
        return found, squared


def _scaled(X: NDArray[np.floating[Any]], centre: Float64, size: float) -> Float32:
    result = np.empty(X.shape, dtype=np.float32)
    for part in engines.row_blocks(len(X), 8 * X.shape[1]):
        result[part] = (X[part] - centre) / size
    return result


def _coded(rows: Float32) -> tuple[Callable[[Float32, int, int, int], tuple[Float32, Index]], int]:
    """Return codes of the rows, as a function that searches them, and the number of cells."""
    faiss = require("faiss", extra="ann", purpose='neighbors="approx" (neighbors="exact" does without)')
    n, f = rows.shape
    n_cells = max(1, int(np.sqrt(n)))
    width = min(f, CODED_COLUMNS)
    codes = faiss.IndexIVFPQFastScan(faiss.IndexFlatL2(width), width, n_cells, width, 4)
    codes.cp.niter, codes.cp.min_points_per_centroid = KMEANS_ITER, 1
    codes.cp.max_points_per_centroid = TRAINING_ROWS
    codes.implem = ROW_BY_ROW
    index = codes if width == f else faiss.IndexPreTransform(faiss.PCAMatrix(f, width), codes)
    index.train(rows[engines.evenly_spaced(n, TRAINING_ROWS * n_cells)])
    index.add(rows)
    refined = faiss.IndexRefineFlat(index, faiss.swig_ptr(rows))

    def search(queries: Float32, k: int, n_probe: int, depth: int) -> tuple[Float32, Index]:
        probing = faiss.IVFSearchParameters(nprobe=n_probe)
        if width < f:
            probing = faiss.SearchParametersPreTransform(index_params=probing)
        effort = faiss.IndexRefineSearchParameters(k_factor=float(depth), base_index_params=probing)
        squared, found = refined.search(queries, k, params=effort)
        return squared, found

    return search, n_cells


def _least_effort(
    rows: Float32,
    sample: Index,
    k: int,
    search: Callable[[Float32, int, int, int], tuple[Float32, Index]],
    n_cells: int,
    wanted: float,
) -> tuple[int, int, float]:
    """Return cells to look into, candidates to measure, and the recall that this gives."""
    faiss = require("faiss", extra="ann", purpose="an index of rows")
    queries = rows[sample]
    # Rows as near as the farthest true neighbour are as good as it.
    farthest = faiss.knn(queries, rows, k + 1)[0][:, -1:] * (1 + SAME) + np.finfo(np.float32).tiny

    def recall(n_probe: int, depth: int) -> float:
        squared, found = search(queries, k + 1, n_probe, depth)
        others = (found != sample[:, None]) & (found >= 0)
        return float(np.minimum((others & (squared <= farthest)).sum(axis=1), k).mean() / k)

    probed = np.unique(np.maximum(1, np.ceil(PROBED * n_cells).astype(int)))
    for n_probe in map(int, probed):
        reached = recall(n_probe, DEPTHS[-1])
        if reached >= wanted:
            break
    for depth in DEPTHS:
        with_less = recall(n_probe, depth)
        if with_less >= min(wanted, reached):
            return n_probe, depth, with_less
    return n_probe, DEPTHS[-1], reached


_kept: dict[tuple[int, int], tuple[weakref.ref[NDArray[Any]], RowIndex | None]] = {}


def _kept_index(rows: NDArray[Any], k: int, search: str) -> RowIndex | None:
    """Return the index of these rows. It is not part of a model, whose files and pickles hold the rows alone."""
    key = id(rows), k
    if key not in _kept or _kept[key][0]() is not rows:
        index = _index_of(rows, k, search)
        _kept[key] = weakref.ref(rows, lambda _: _kept.pop(key, None)), index
    return _kept[key][1]


@dataclass(frozen=True)
class Diffusion:
    """Hold diffusion coordinates of training rows; a new row takes the weighted mean of its nearest training rows."""

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
        squared = engines.pair_squared_distances(self.rows, engines.listed_pairs(near))
        return self._mean(near, np.sqrt(squared).reshape(near.shape))

    def _nearest(self, Z: Rows, k: int) -> tuple[IntArray, NDArray[np.float64]]:
        k = min(k, len(self.rows))
        return nearest_among(self.rows, engines.rows_in_memory(Z), k, search=self.search, n_queries=self.n_queries)

    @property
    def _rounding(self) -> float:
        """Squared distance up to which two rows coincide."""
        return SAME_ROW * float(np.einsum("ij,ij->", self.rows, self.rows)) / len(self.rows)

    def _mean(self, index: IntArray, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted mean of training rows at these distances."""
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
    k = min(DIFFUSION_RANK, n - 1)
    # The walk D^-1 A has the eigenvalues of the symmetric D^-1/2 A D^-1/2, and its eigenvectors times D^-1/2.
    weights = graph.symmetric_weights()
    degree = np.asarray(weights.sum(axis=1)).ravel()
    root = sparse.diags(1 / np.sqrt(degree))
    normalised = (root @ weights @ root).tocsr()
    # The constant one is known and taken out: in a graph of several parts its eigenvalue is not simple.
    constant = np.sqrt(degree / degree.sum())
    if n <= DENSE_LIMIT:
        values, vectors = symmetric(normalised.toarray() - np.outer(constant, constant), k)
    elif getattr(graph.walk, "is_cuda", False):
        on_device: Any = graph
        values, vectors = on_device.leading_vectors(k, LANCZOS_TOLERANCE)
    else:
        deflated = LinearOperator((n, n), matvec=lambda x: normalised @ x - constant * (constant @ x.ravel()))
        # Thousands of tiny products, each of which would wait for the other threads of a busy machine.
        with engines.one_blas_thread():
            values, vectors = eigsh(
                deflated, k, which="LA", v0=np.cos(np.arange(n)), ncv=LANCZOS, tol=LANCZOS_TOLERANCE
            )
        values, vectors = values[::-1], vectors[:, ::-1]
    vectors = (root @ vectors) * np.sqrt(degree.sum())
    # Of a handful of rows, where each is near all others, no eigenvalue is positive.
    left = np.where(values > LEAST_EIGENVALUE, values, 0.0) ** DIFFUSION_TIME
    return Diffusion(rows, vectors * left, search, n_queries)
