"""The few operations that touch all n rows, blocked and never of size n x n.

Rows are a NumPy array or CSR matrix (:mod:`pairlens.engines.local`), a dask array (:mod:`pairlens.engines.dask`) or a
torch tensor (:mod:`pairlens.engines.torch`).
"""

from pairlens.engines.config import Settings, config_context, settings
from pairlens.engines.dispatch import EngineRows, collected, engine_rows, is_dask
from pairlens.engines.local.distances import centred_product, pair_squared_distances
from pairlens.engines.local.moments import Moments, merge_moments
from pairlens.engines.local.neighbors import Neighbors, neighbors
from pairlens.engines.local.reconstruction import rebuilding_weights
from pairlens.engines.local.rows import (
    FloatArray,
    IntArray,
    Rows,
    column_means,
    combine_rows,
    mean_norm,
    project,
    read_ahead,
    row_blocks,
    take_rows,
    varying_columns,
)
from pairlens.engines.local.scatter import (
    graph_scatter,
    group_means,
    group_scatter,
    pair_scatter,
    rebuilding_graph,
    residual_scatter,
    weighted_scatter,
)

__all__ = [
    "EngineRows",
    "FloatArray",
    "IntArray",
    "Moments",
    "Neighbors",
    "Rows",
    "Settings",
    "centred_product",
    "collected",
    "column_means",
    "combine_rows",
    "config_context",
    "engine_rows",
    "graph_scatter",
    "group_means",
    "group_scatter",
    "is_dask",
    "mean_norm",
    "merge_moments",
    "neighbors",
    "pair_scatter",
    "pair_squared_distances",
    "project",
    "read_ahead",
    "rebuilding_graph",
    "rebuilding_weights",
    "residual_scatter",
    "row_blocks",
    "settings",
    "take_rows",
    "varying_columns",
    "weighted_scatter",
]
