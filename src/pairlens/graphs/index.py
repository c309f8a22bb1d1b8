r"""An index of rows in which near rows are found without comparing with all: faiss, with the effort that recall takes.

Rows are put into :math:`\sqrt n` cells by k-means, and each is kept there as a code of four bits a column. A search
compares the codes of the cells nearest to a row, in registers, and then measures the best few times k of them exactly.
Two numbers say how hard it tries: how many cells are looked into, and how many candidates are measured. Both come from
a sample of rows whose true neighbours are computed: the least effort that finds :data:`WANTED_RECALL` of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.engines import Float64, Index, evenly_spaced, row_blocks

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


@dataclass(frozen=True)
class RowIndex:
    """Rows that others look for.

    Attributes
    ----------
    rows : float32 array of shape (n_rows, n_columns)
        Centred, and scaled by one number.
    centre : array of shape (n_columns,)
    size : float
    n_probe : int
        Cells that a search looks into.
    depth : int
        Candidates that it measures, as a multiple of k.
    recall : float
        Share of the true neighbours of the sample that this finds.
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
        """Index rows so that most of the k nearest are found.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
        k : int
            Less than the number of rows.
        wanted : float
            The recall; where no effort reaches it, the largest is made.
        """
        centre = np.asarray(X.mean(axis=0, dtype=np.float64))
        # Squares of float32 stay far inside its range, and columns far from zero keep their digits.
        size = float(np.sqrt(np.mean([np.mean((X[part] - centre) ** 2) for part in row_blocks(len(X), X[:1].nbytes)])))
        size = size if size > 0 else 1.0
        rows = _scaled(X, centre, size)
        search, n_cells = _coded(rows)
        sample = evenly_spaced(len(rows), max(RECALL_SAMPLE, RECALL_NEIGHBORS // k))
        effort = _least_effort(rows, sample, k, search, n_cells, wanted)
        return cls(rows, centre, size, *effort, search)

    def __call__(self, X: NDArray[np.floating[Any]], k: int) -> tuple[Index, Float32]:
        """The k nearest rows of each row of X, and float32 distances in units of :attr:`size`; -1 where none was found.

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
    for part in row_blocks(len(X), 8 * X.shape[1]):
        result[part] = (X[part] - centre) / size
    return result


def _coded(rows: Float32) -> tuple[Callable[[Float32, int, int, int], tuple[Float32, Index]], int]:
    """Codes of the rows, as a function that searches them, and the number of cells."""
    faiss = require("faiss", extra="ann", purpose='neighbors="approx" (neighbors="exact" does without)')
    n, f = rows.shape
    n_cells = max(1, int(np.sqrt(n)))
    width = min(f, CODED_COLUMNS)
    codes = faiss.IndexIVFPQFastScan(faiss.IndexFlatL2(width), width, n_cells, width, 4)
    codes.cp.niter, codes.cp.min_points_per_centroid = KMEANS_ITER, 1
    codes.cp.max_points_per_centroid = TRAINING_ROWS
    codes.implem = ROW_BY_ROW
    index = codes if width == f else faiss.IndexPreTransform(faiss.PCAMatrix(f, width), codes)
    index.train(rows[evenly_spaced(n, TRAINING_ROWS * n_cells)])
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
    """Cells to look into, candidates to measure, and the recall that this gives: first the cells, then the depth."""
    faiss = require("faiss", extra="ann", purpose="an index of rows")
    queries = rows[sample]
    # Rows as near as the farthest true neighbour are as good as it: which of several equal ones is found is no matter.
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
