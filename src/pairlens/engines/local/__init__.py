"""Rows that are NumPy arrays or CSR matrices in the memory of this process.

Importing this package registers its implementations of the operations of :mod:`pairlens.engines.interface`.
"""

from pairlens.engines.local import neighbors, scatter
from pairlens.engines.local.moments import Moments, merge_moments
from pairlens.engines.local.projected import LocalProjectedRows, ProjectedScreen
from pairlens.engines.local.rows import evenly_spaced, row_blocks

__all__ = [
    "LocalProjectedRows",
    "Moments",
    "ProjectedScreen",
    "evenly_spaced",
    "merge_moments",
    "neighbors",
    "row_blocks",
    "scatter",
]
