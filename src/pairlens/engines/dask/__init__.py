"""Rows in the chunks of a dask array, which are never brought to one place.

Each operation of :mod:`pairlens.engines.interface` is a pass over the chunks, or over pairs of chunks.
"""

from pairlens.engines.dask import neighbors, operations  # noqa: F401 - registers the operations
from pairlens.engines.dask.rows import DaskRows

__all__ = ["DaskRows"]
