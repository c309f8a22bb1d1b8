"""The operations on rows that are a dask array: each a pass over the chunks, or over those pairs of chunks that matter.

What pairs name is fetched where it is little: at most half of the rows of X, and ``gather_bytes``. More than that stays
where it is, and two chunks at a time meet on a worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens._warnings import warn_user
from pairlens.engines import interface
from pairlens.engines.config import settings
from pairlens.engines.dask.neighbors import CHUNK_ROWS
from pairlens.engines.dask.rows import Block, DaskRows, check_finite, compute, take_chunk, task, tree
from pairlens.engines.local import rows as local_rows
from pairlens.engines.local.neighbors import near_walk
from pairlens.engines.local.rows import evenly_spaced, rebuilding_graph, row_blocks, solve_local
from pairlens.engines.types import Float64, FloatArray, Graph, IntArray, KernelMap, Placement, Rows
from pairlens.exceptions import ApproximationWarning

MOST_MEETINGS = 20_000
"""Pairs of chunks that may meet in one operation; more would keep a scheduler busier than the workers."""
MOST_GROUP_BYTES = 1 << 27
"""Largest table of group means that each worker gets."""


@interface.read_ahead.register(DaskRows)
def read_ahead(X: DaskRows, rows: IntArray, *, scatter: bool) -> None:
    # With fewer rows than features the rows themselves are fetched, and a matrix of features x features never needed.
    X.read(rows, scatter=scatter and X.shape[1] <= X.shape[0])


@interface.take_rows.register(DaskRows)
def take_rows(X: DaskRows, rows: IntArray | slice) -> Float64:
    return X[rows].astype(np.float64, copy=False)


@interface.rows_in_memory.register(DaskRows)
def rows_in_memory(X: DaskRows, rows: IntArray | None = None) -> Block:
    return X.gather(np.arange(X.shape[0]) if rows is None else rows)


@interface.rows_to_learn_from.register(DaskRows)
def rows_to_learn_from(
    X: DaskRows, placement: Placement, *, needed: IntArray, who: str
) -> tuple[Rows, IntArray | None]:
    n = X.shape[0]
    searched = placement is Placement.ANYWHERE_SEARCHED and n <= settings().exact_rows
    if placement is Placement.ANYWHERE or searched:
        return X, None
    if n <= settings().landmark_rows:
        chosen = np.arange(n)
    else:
        chosen = np.union1d(needed, evenly_spaced(n, settings().landmark_rows))
        warn_user(
            f"{who} learns from {len(chosen):,} of the {n:,} rows of the dask array: those in pairs and evenly "
            "spaced ones. pairlens.config_context(exact_rows=..., landmark_rows=...) sets the numbers.",
            ApproximationWarning,
        )
    if not X.fits(chosen):
        raise ValueError(
            f"{who} needs {len(chosen):,} rows of the dask array in memory, more than the "
            f"{settings().gather_bytes / 2**20:,.0f} MiB of gather_bytes. Lower landmark_rows, or raise gather_bytes, "
            "by pairlens.config_context(...)."
        )
    # The same pass finds bad values and the mean of all rows.
    X.read(chosen, scatter=False)
    return X[chosen], None if len(chosen) == n else chosen


@interface.column_means.register(DaskRows)
def column_means(X: DaskRows) -> Float64:
    return X.moments().mean


@interface.varying_columns.register(DaskRows)
def varying_columns(X: DaskRows) -> NDArray[np.bool_]:
    return X.moments().varies


@interface.column_deviations.register(DaskRows)
def column_deviations(X: DaskRows, mean: Float64) -> Float64:
    return np.asarray(np.sqrt(np.diag(X.moments(scatter=True).about(mean)) / X.shape[0]))


@interface.absolute_deviations.register(DaskRows)
def absolute_deviations(X: DaskRows, mean: Float64) -> Float64:
    sums = X.array.map_blocks(_absolute_sums, mean, chunks=((1,) * X.array.numblocks[0], X.array.chunks[1]))
    return np.asarray(sums.sum(axis=0).compute()) / X.shape[0]


def _absolute_sums(block: Block, mean: Float64) -> Float64:
    return (local_rows.absolute_deviations(block, mean) * block.shape[0])[None, :]


@interface.project.register(DaskRows)
def project(X: DaskRows, mean: FloatArray, components: FloatArray) -> Any:
    """Lazy: a dask array with the chunks of X."""
    return _mapped(X, project_chunk, len(components), mean, components, dtype=np.result_type(X.dtype, components))


def _mapped(X: DaskRows, function: Callable[..., Any], width: int, *args: Any, dtype: Any, **kwargs: Any) -> Any:
    """``function(chunk, ...)`` of each chunk: a dask array that is not computed yet."""
    chunks = (X.array.chunks[0], (width,))
    return X.array.map_blocks(function, *args, chunks=chunks, meta=np.empty((0, 0), dtype), **kwargs)


@interface.map_rows.register(DaskRows)
def map_rows(X: DaskRows, embed: Callable[[Rows], Any], n_columns: int) -> Any:
    """Lazy, too."""
    return _mapped(X, embed_chunk, n_columns, embed, dtype=X.dtype)


def embed_chunk(block: Block, embed: Callable[[Rows], Any]) -> FloatArray:
    check_finite(block, None)
    return local_rows.map_rows(block, embed, 0)


@interface.along.register(DaskRows)
def along(X: DaskRows, directions: Float64, *, origin: Float64 | None = None) -> DaskRows:
    return DaskRows(
        _mapped(X, local_rows.along, directions.shape[1], directions, dtype=np.dtype(np.float64), origin=origin)
    )


@interface.rescaled.register(DaskRows)
def rescaled(X: DaskRows, *, offset: Float64 | None = None, scale: Float64 | float) -> DaskRows:
    return DaskRows(_mapped(X, local_rows.rescaled, X.shape[1], dtype=np.dtype(np.float64), offset=offset, scale=scale))


@interface.kernel_product.register(DaskRows)
def kernel_product(X: DaskRows, features: KernelMap) -> DaskRows:
    width = features.combination.shape[1]
    return DaskRows(_mapped(X, local_rows.kernel_product, width, features, dtype=np.dtype(np.float64)))


@interface.unit_variance.register(DaskRows)
def unit_variance(X: DaskRows) -> tuple[DaskRows, Float64, float]:
    mean = column_means(X)
    size = float(np.linalg.norm(column_deviations(X, mean))) or 1.0
    return rescaled(X, offset=mean, scale=size), mean, size


def project_chunk(block: Block, mean: FloatArray, components: FloatArray) -> FloatArray:
    projected = local_rows.project(block, mean, components)
    if not np.isfinite(projected).all():
        check_finite(block, None)
    return projected


@interface.mean_norm.register(DaskRows)
def mean_norm(X: DaskRows) -> float:
    return float(X.map(norm_chunk, sum, "lengths of the rows", column_means(X))) / X.shape[0]


def norm_chunk(block: Block, _start: int, offset: Float64) -> float:
    centred = block - offset
    return float(np.sqrt(np.einsum("ij,ij->i", centred, centred)).sum())


@interface.weighted_scatter.register(DaskRows)
def weighted_scatter(
    X: DaskRows,
    *,
    weight: FloatArray | None = None,
    offset: FloatArray,
    is_mean: bool = False,  # noqa: ARG001 - nothing is saved by it here
) -> Float64:
    if weight is None:
        return X.moments(scatter=True).about(offset)
    parts = [task(weighted_chunk, chunk, weight[start:stop], offset) for start, stop, chunk in X.chunks()]
    return np.asarray(compute(tree(parts, sum), "weighted scatter"))


def weighted_chunk(block: Block, weight: FloatArray, offset: FloatArray) -> Float64:
    with np.errstate(over="ignore", invalid="ignore"):
        return local_rows.weighted_scatter(block, weight=weight, offset=offset)


@interface.group_means.register(DaskRows)
def group_means(X: DaskRows, codes: IntArray) -> Float64:
    member = np.flatnonzero(codes >= 0)
    if _few(X, member):
        return local_rows.group_means(X.gather(member), codes[member])
    size = np.bincount(codes[member])
    _check_groups(X, len(size))
    parts = [task(sum_chunk, chunk, codes[start:stop], len(size)) for start, stop, chunk in X.chunks()]
    return np.asarray(compute(tree(parts, sum), "means of groups")) / np.maximum(size, 1)[:, None]


def sum_chunk(block: Block, codes: IntArray, n_groups: int) -> Float64:
    present = int(codes.max(initial=-1)) + 1
    sums = np.zeros((n_groups, block.shape[1]))
    if present:
        size = np.bincount(codes[codes >= 0])
        sums[:present] = local_rows.group_means(block, codes) * size[:, None]
    return sums


@interface.group_scatter.register(DaskRows)
def group_scatter(X: DaskRows, codes: IntArray, *, weight: FloatArray | None = None) -> Float64:
    member = np.flatnonzero(codes >= 0)
    if len(member) == 0:
        return np.zeros((X.shape[1], X.shape[1]))
    if _few(X, member):
        return local_rows.group_scatter(X.gather(member), codes[member], weight=weight)
    means = group_means(X, codes)
    per_group = np.ones(len(means)) if weight is None else np.asarray(weight, dtype=np.float64)
    parts = [task(group_chunk, chunk, codes[start:stop], means, per_group) for start, stop, chunk in X.chunks()]
    return np.asarray(compute(tree(parts, sum), "scatter inside groups"))


def group_chunk(block: Block, codes: IntArray, means: Float64, weight: Float64) -> Float64:
    rows = np.flatnonzero(codes >= 0)
    code = codes[rows]
    centred = block[rows] - means.astype(block.dtype)[code]
    with np.errstate(over="ignore", invalid="ignore"):
        return local_rows.weighted_scatter(centred, weight=weight[code], offset=np.zeros(block.shape[1]))


@interface.pair_scatter.register(DaskRows)
def pair_scatter(X: DaskRows, pairs: IntArray, weight: FloatArray | None = None) -> Float64:
    """The weights may be negative."""
    if len(pairs) == 0:
        return np.zeros((X.shape[1], X.shape[1]))
    value = np.ones(len(pairs)) if weight is None else np.asarray(weight, dtype=np.float64)
    rows = np.unique(pairs)
    if _few(X, rows):
        return signed_scatter(X.gather(rows), np.searchsorted(rows, pairs), value)
    parts = [found for found, _ in _meetings(X, pairs, scatter_meeting, value)]
    return np.asarray(compute(tree(parts, sum), f"scatter of {len(pairs):,} pairs"))


def scatter_meeting(left: Block, right: Block, pairs: IntArray, weight: Float64) -> Float64:
    rows, local = np.unique(pairs, return_inverse=True)
    found = np.concatenate([left[rows[rows < len(left)]], right[rows[rows >= len(left)] - len(left)]])
    with np.errstate(over="ignore", invalid="ignore"):
        return signed_scatter(found, local.reshape(pairs.shape), weight)


def signed_scatter(X: Block, pairs: IntArray, weight: Float64) -> Float64:
    positive = weight >= 0
    total = local_rows.pair_scatter(X, pairs[positive], weight[positive])
    return total if positive.all() else total - local_rows.pair_scatter(X, pairs[~positive], -weight[~positive])


@interface.graph_scatter.register(DaskRows)
def graph_scatter(X: DaskRows, graph: Graph) -> Float64:
    upper = sparse.triu(graph, 1).tocoo()
    return pair_scatter(X, np.column_stack([upper.row, upper.col]).astype(np.int64), upper.data)


@interface.residual_scatter.register(DaskRows)
def residual_scatter(X: DaskRows, rebuild: sparse.csr_matrix) -> Float64:
    return graph_scatter(X, rebuilding_graph(rebuild))


@interface.pair_squared_distances.register(DaskRows)
def pair_squared_distances(X: DaskRows, pairs: IntArray) -> Float64:
    """Of fetched rows if they are few, else where chunks meet."""
    result = np.empty(len(pairs))
    if len(pairs) == 0:
        return result
    rows = np.unique(pairs)
    if _few(X, rows):
        return local_rows.pair_squared_distances(X.gather(rows), np.searchsorted(rows, pairs))
    parts, places = zip(*_meetings(X, pairs, pair_meeting))
    for found, place in zip(compute(list(parts), f"lengths of {len(pairs):,} pairs"), places):
        result[place] = found
    return result


def pair_meeting(left: Block, right: Block, pairs: IntArray) -> Float64:
    return local_rows.pair_squared_distances(np.concatenate([left, right]), pairs)


@interface.centred_product.register(DaskRows)
def centred_product(left: DaskRows, right: DaskRows, centre: Float64) -> Float64:
    """For fewer rows than features, which are few rows: they are fetched."""
    rows = left.gather(np.arange(left.shape[0]))
    return local_rows.centred_product(rows, rows if right is left else right.gather(np.arange(right.shape[0])), centre)


@interface.combine_rows.register(DaskRows)
def combine_rows(X: DaskRows, coefficients: FloatArray) -> Float64:
    return local_rows.combine_rows(X.gather(np.arange(X.shape[0])), coefficients)


@interface.symmetric_eigen.register(DaskRows)
def symmetric_eigen(_X: DaskRows, A: Float64) -> tuple[Float64, Float64]:
    """In this process."""
    return local_rows.symmetric_eigen(A, A)


# Both ask other operations for the little that they need of the rows: some of them, and lengths of pairs.
interface.median_gamma.register(DaskRows)(local_rows.median_gamma)
interface.near_walk.register(DaskRows)(near_walk)


@interface.rebuilding_weights.register(DaskRows)
def rebuilding_weights(X: DaskRows, indices: IntArray, reg: float) -> Float64:
    coarse = X.coarse(CHUNK_ROWS)
    chunks = list(coarse.chunks())
    _check_meetings(len(chunks) ** 2)
    parts = []
    for start, stop, chunk in chunks:
        rows, local = np.unique(indices[start:stop], return_inverse=True)
        cuts = np.searchsorted(rows, [other for other, _, _ in chunks] + [coarse.shape[0]])
        near = [
            task(take_chunk, other, rows[low:high] - first)
            for (first, _, other), low, high in zip(chunks, cuts, cuts[1:])
            if high > low
        ]
        parts.append(task(rebuild_chunk, chunk, tree(near, np.concatenate), local.reshape(stop - start, -1), reg))
    return np.concatenate(compute(parts, "rebuilding rows from their neighbours"))


def rebuild_chunk(block: Block, near: Block, local: IntArray, reg: float) -> Float64:
    weight = np.empty(local.shape)
    for rows in row_blocks(len(block), 8 * block.shape[1] * local.shape[1]):
        here = block[rows].astype(np.float64)
        weight[rows] = solve_local(near[local[rows]].astype(np.float64) - here[:, None, :], reg)
    return weight


def _few(X: DaskRows, rows: IntArray) -> bool:
    return 2 * len(rows) <= X.shape[0] and X.fits(rows)


def _check_groups(X: DaskRows, n_groups: int) -> None:
    if 8 * n_groups * X.shape[1] > MOST_GROUP_BYTES:
        raise ValueError(
            f"{n_groups:,} groups of rows of a dask array with {X.shape[1]} features are too many to send their means "
            "to all workers. Give fewer must-links, or raise pairlens.config_context(gather_bytes=...) so that the "
            "rows can be fetched."
        )


def _meetings(
    X: DaskRows, pairs: IntArray, function: Callable[..., Any], *per_pair: NDArray[Any]
) -> list[tuple[Any, IntArray]]:
    """``function(left, right, local, *values)`` for each two chunks that pairs join, and the places of these pairs.

    The local numbers count through the rows of `left`, then of `right`.
    """
    coarse = X.coarse()
    chunks = list(coarse.chunks())
    starts = np.array([start for start, _, _ in chunks])
    ordered = np.sort(pairs, axis=1)
    home = np.searchsorted(starts, ordered, side="right") - 1
    key = home[:, 0] * len(chunks) + home[:, 1]
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    _check_meetings(len(cuts) + 1)
    found: list[tuple[Any, IntArray]] = []
    for places in np.split(order, cuts):
        (a, b), local = home[places[0]], ordered[places]
        size = chunks[a][1] - chunks[a][0]
        numbers = np.column_stack([local[:, 0] - starts[a], local[:, 1] - starts[b] + size]).astype(np.int32)
        values = (values[places] for values in per_pair)
        found.append((task(function, chunks[a][2], chunks[b][2], numbers, *values), places))
    return found


def _check_meetings(n_meetings: int) -> None:
    if n_meetings > MOST_MEETINGS:
        raise ValueError(
            f"the pairs join {n_meetings:,} pairs of chunks of the dask array, more than {MOST_MEETINGS:,}. Give "
            "fewer pairs (Constraints.sample), larger chunks (X.rechunk), or raise "
            "pairlens.config_context(gather_bytes=...) so that their rows can be fetched."
        )
