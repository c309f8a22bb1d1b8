"""The few operations that touch all n rows, blocked and never of size n x n.

:mod:`pairlens.engines.operations` has them for rows in memory, a NumPy array or CSR matrix;
:mod:`pairlens.engines.dask` and :mod:`pairlens.engines.torch` for the chunks of a dask array and for a tensor. Other
packages import from here, and from the latter two what is particular to these.
"""

# ruff: noqa: F401 - these are the names of the package

from pairlens.engines.operations import (
    Edges,
    Moments,
    absolute_deviations,
    along,
    blas_threads,
    column_deviations,
    column_means,
    evenly_spaced,
    fitting_threads,
    graph_scatter,
    group_means,
    group_scatter,
    in_threads,
    kernel_matrix,
    kernel_product,
    landmarks,
    map_rows,
    mean_norm,
    median_gamma,
    one_blas_thread,
    one_thread,
    pair_scatter,
    pair_squared_distances,
    project,
    read_ahead,
    rescaled,
    row_blocks,
    rows_in_memory,
    rows_to_learn_from,
    symmetric_eigen,
    take_rows,
    threads_for,
    varying_columns,
    weight_matrix,
    weighted_scatter,
)
from pairlens.engines.projected import ProjectedNeighbors, ProjectedRows, projected_rows
from pairlens.engines.rows import (
    EngineRows,
    Float64,
    FloatArray,
    Graph,
    Index,
    IntArray,
    Kernel,
    Placement,
    Rows,
    Settings,
    as_numpy,
    canonical,
    checked_rows,
    collected,
    config_context,
    engine_rows,
    is_dask,
    is_tensor,
    out_of_range,
    settings,
    words_named,
)
from pairlens.engines.search import (
    EXACT_SPREAD,
    ROUGH_SPREAD,
    NearGraph,
    Neighbors,
    listed_pairs,
    near_walk,
    neighbors,
    spread_over,
)
