"""Rows that are NumPy arrays or CSR matrices in the memory of this process.

Importing this package registers its implementations of the operations of :mod:`pairlens.engines.interface`.
"""

from pairlens.engines.local import neighbors
from pairlens.engines.local.moments import Moments, merge_moments
from pairlens.engines.local.neighbors import EXACT_SPREAD, ROUGH_SPREAD, listed_pairs, spread_over
from pairlens.engines.local.projected import LocalProjectedRows, ProjectedScreen
from pairlens.engines.local.rows import (
    blas_threads,
    evenly_spaced,
    fitting_threads,
    kernel_matrix,
    one_blas_thread,
    row_blocks,
    threads_for,
)

__all__ = [
    "EXACT_SPREAD",
    "ROUGH_SPREAD",
    "LocalProjectedRows",
    "Moments",
    "ProjectedScreen",
    "blas_threads",
    "evenly_spaced",
    "fitting_threads",
    "kernel_matrix",
    "listed_pairs",
    "merge_moments",
    "neighbors",
    "one_blas_thread",
    "row_blocks",
    "spread_over",
    "threads_for",
]
