"""Rows in the chunks of a dask array, which are never brought to one place.

Each operation of :mod:`pairlens.engines.interface` is a pass over the chunks, or over pairs of chunks.
"""

from pairlens.engines.dask.operations import equal_pairs, of_pairs
from pairlens.engines.dask.projected import DaskProjectedRows
from pairlens.engines.dask.rows import Block, DaskRows, compute, take_chunk, task, tree

__all__ = [
    "Block",
    "DaskProjectedRows",
    "DaskRows",
    "compute",
    "equal_pairs",
    "of_pairs",
    "take_chunk",
    "task",
    "tree",
]
