"""Rows in the chunks of a dask array, which are never brought to one place, and the operations on them.

Each pass turns every chunk into something small where the chunk is, and merges these in a tree. All tasks are functions
of the chunks alone, so that a scheduler which loses a worker can repeat them. The rows that pairs name are fetched, up
to ``gather_bytes``; labels are summed by group in each chunk.

The operations are those of the methods that sum over rows and pairs; all others learn from landmarks in memory.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.engines import operations
from pairlens.engines.operations import Moments, landmarks
from pairlens.engines.rows import EngineRows, Float64, FloatArray, IntArray, Placement, Rows, settings
from pairlens.exceptions import ArgumentError, InputError

FAN_IN = 8
"""Partial results that one task merges."""
MOST_FEATURES = 5000
"""Features up to which matrices of features x features are summed over the chunks."""
MOST_GROUP_BYTES = 1 << 27
"""Largest table of group means that each worker gets."""
Block = NDArray[Any]


def task(function: Callable[..., Any], *args: Any, n_out: int | None = None) -> Any:
    """Return one call that the scheduler may do anywhere and repeat."""
    delayed = require("dask", extra="dask", purpose="working with dask arrays").delayed
    return delayed(function, pure=False, nout=n_out, traverse=False)(*args)


def tree(parts: Sequence[Any], merge: Callable[[Any], Any]) -> Any:
    """Merge partial results a few at a time, so that no task ever needs many of them."""
    level = list(parts)
    while len(level) > 1:
        level = [_merged(level[i : i + FAN_IN], merge) for i in range(0, len(level), FAN_IN)]
    return level[0]


def _merged(parts: list[Any], merge: Callable[[Any], Any]) -> Any:
    delayed = require("dask", extra="dask", purpose="working with dask arrays").delayed
    return parts[0] if len(parts) == 1 else delayed(merge, pure=False)(parts)


def compute(tasks: Any, what: str) -> Any:
    """Run tasks on the active scheduler and fetch what they return."""
    dask = require("dask", extra="dask", purpose="working with dask arrays")
    with warnings.catch_warnings():
        # Row numbers travel with the tasks: there is nowhere else that survives the loss of a worker.
        warnings.filterwarnings("ignore", message=r"(?s).*Sending large graph", category=UserWarning)
        if not settings().progress:
            return dask.compute(tasks)[0]
        print(f"pairlens: {what}", file=sys.stderr, flush=True)
        client = getattr(dask.base.get_scheduler(), "__self__", None)
        if client is None:
            progress = require("dask.diagnostics", extra="dask", purpose="showing progress").ProgressBar
            with progress(out=sys.stderr):
                return dask.compute(tasks)[0]
        distributed = require("distributed", extra="dask", purpose="showing progress")
        # Futures keep the results alive until they are fetched.
        futures = client.compute(dask.delayed(tasks, pure=False))
        with redirect_stdout(sys.stderr):
            distributed.progress(futures, notebook=False)
        return futures.result()


class DaskRows(EngineRows):
    """Hold rows in the chunks of a dask array, which are whole rows each, in float32 or float64.

    `moments` are those of all rows where they are known, `names` the header of the data frame that the array came from.
    """

    def __init__(self, array: Any, moments: Moments | None = None, names: Any = None) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = np.dtype(array.dtype)
        self._moments = moments
        self._names = names
        self._held: tuple[IntArray, Block] = (np.empty(0, dtype=np.int64), np.empty((0, self.shape[1]), self.dtype))

    @classmethod
    def of(cls, X: Any, *, fitting: bool) -> DaskRows:
        """Check a user's dask array or data frame, as far as that is possible without reading it.

        Columns that are split over chunks are joined, which moves all of X over the network once. Where the number of
        rows is needed and the chunks do not know theirs, one pass counts them.
        """
        names = None
        if hasattr(X, "to_dask_array"):
            names = X._meta
            X = X.to_dask_array()
        if X.ndim != 2:
            raise ArgumentError(
                "X",
                X.shape,
                "must have two dimensions, rows and features",
                "Use X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row",
            )
        if np.isnan(X.shape[1]):
            raise InputError(
                "the number of features of X is unknown", argument="X", remedy="Call X.compute_chunk_sizes() first."
            )
        if not isinstance(X._meta, np.ndarray):
            raise TypeError(
                f"the chunks of X must be NumPy arrays, not {type(X._meta).__name__}: use "
                "X.map_blocks(lambda block: block.toarray()), or fit on a SciPy CSR matrix."
            )
        if X.dtype.kind == "c":
            raise InputError("Complex data not supported: X must hold real numbers", argument="X")
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        if fitting and np.isnan(X.shape[0]):
            X = X.copy()
            X.compute_chunk_sizes()
        if fitting and min(X.shape) > MOST_FEATURES:
            raise InputError(
                f"X has {X.shape[1]:,} features; of a dask array with more rows than that at most {MOST_FEATURES:,} "
                "are taken, because every chunk is summed up in a matrix of features x features",
                argument="X",
                value=X.shape,
                remedy="Reduce them beforehand, for example by the components_ of sklearn.random_projection.",
            )
        return cls(X, names=names)

    @property
    def header(self) -> Any:
        return super().header if self._names is None else self._names

    @property
    def lengths(self) -> IntArray:
        """Rows of each chunk."""
        return np.asarray(self.array.chunks[0], dtype=np.int64)

    @property
    def starts(self) -> IntArray:
        """First row of each chunk."""
        return np.cumsum(self.lengths) - self.lengths

    def chunks(self) -> Iterator[tuple[int, int, Any]]:
        """Yield start, stop and array, as a task, of each chunk that has rows."""
        parts = self.array.to_delayed().ravel()
        for start, length, part in zip(self.starts.tolist(), self.lengths.tolist(), parts):
            if length:
                yield start, start + length, part

    def read(self, rows: IntArray, *, scatter: bool) -> None:
        """Read X once: count, check, mean, the scatter if asked for, and the given rows unless they are too many."""
        known = self._moments is not None and not (scatter and self._moments.scatter is None)
        fetched = rows if self.fits(rows) else np.empty(0, dtype=np.int64)
        if known and self._holds(fetched):
            return
        parts, taken = [], []
        for start, stop, chunk in self.chunks():
            local = fetched[np.searchsorted(fetched, start) : np.searchsorted(fetched, stop)] - start
            part, found = task(read_chunk, chunk, start, scatter, local, n_out=2)
            parts.append(part)
            if len(local):
                taken.append(found)
        if not parts:
            return
        what = f"one pass over {self.shape[0]:,} rows: {'total scatter' if scatter else 'mean'}"
        what += f" and {len(fetched):,} rows of pairs" if len(fetched) else ""
        self._moments, found = compute([tree(parts, _merged_moments), taken], what)
        if len(fetched):
            self._held = fetched, np.concatenate(found)

    def moments(self, *, scatter: bool = False) -> Moments:
        self.read(self._held[0], scatter=scatter)
        assert self._moments is not None
        return self._moments

    def fits(self, rows: IntArray) -> bool:
        """Return whether the setting `gather_bytes` lets the given rows be fetched."""
        return len(rows) * self.shape[1] * self.itemsize <= settings().gather_bytes

    def gather(self, rows: IntArray) -> Block:
        """Return rows by number, in memory."""
        wanted, inverse = np.unique(rows, return_inverse=True)
        if not self.fits(wanted):
            needed = len(wanted) * self.shape[1] * self.itemsize
            raise InputError(
                f"{len(wanted):,} rows of the dask array are needed in memory, {needed / 2**20:,.0f} MiB, and "
                f"gather_bytes allows {settings().gather_bytes / 2**20:,.0f} MiB",
                argument="constraints",
                remedy="Give fewer pairs (Constraints.sample, or from_labels(y, n_pairs=...)), or raise it by "
                "pairlens.config_context(gather_bytes=...).",
            )
        if not self._holds(wanted):
            missing = np.setdiff1d(wanted, self._held[0], assume_unique=True)
            parts = []
            for start, stop, chunk in self.chunks():
                local = missing[np.searchsorted(missing, start) : np.searchsorted(missing, stop)] - start
                if len(local):
                    parts.append(task(take_chunk, chunk, local))
            found = np.concatenate(compute(parts, f"fetching {len(missing):,} rows"))
            at, order = np.unique(np.concatenate([self._held[0], missing]), return_index=True)
            rows = np.concatenate([self._held[1], found])[order]
            kept = slice(None) if self.fits(at) else np.isin(at, wanted, assume_unique=True)
            self._held = at[kept], rows[kept]
        at, held = self._held
        return held[np.searchsorted(at, wanted)][inverse]

    def _holds(self, rows: IntArray) -> bool:
        return bool(np.isin(rows, self._held[0], assume_unique=True).all())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            rows, columns = key
            if not isinstance(rows, slice) or rows != slice(None):
                return self[rows][:, columns]
            moments = None if self._moments is None else self._moments.columns(columns)
            part = DaskRows(self.array[:, columns], moments)
            part._held = self._held[0], self._held[1][:, columns]
            return part
        return self.gather(np.arange(self.shape[0])[key] if isinstance(key, slice) else np.asarray(key))

    def astype(self, dtype: Any) -> DaskRows:
        return DaskRows(self.array.astype(dtype))


def _merged_moments(parts: list[Moments]) -> Moments:
    return reduce(Moments.merge, parts)


def read_chunk(block: Block, start: int, scatter: bool, local: IntArray) -> tuple[Moments, Block]:
    """Return moments and some rows of a chunk."""
    # The caller checks the result for squares that overflowed.
    with np.errstate(over="ignore", invalid="ignore"):
        moments = Moments.of(block, scatter=scatter)
    if not np.isfinite(moments.mean).all():
        check_finite(block, start)
    return moments, block[local]


def take_chunk(block: Block, local: IntArray) -> Block:
    """Return some rows of a chunk."""
    return block[local]


def check_finite(block: Block, start: int | None) -> None:
    """Raise an InputError that names the first value of a chunk that is not a number."""
    bad = np.argwhere(~np.isfinite(block))
    if len(bad):
        row, column = bad[0]
        what = "NaN" if np.isnan(block[row, column]) else "infinity"
        where = f"row {row} of a chunk" if start is None else f"row {start + row}"
        raise InputError(f"Input X contains {what}, for example in {where}, column {column}", argument="X")


@operations.read_ahead.register(DaskRows)
def read_ahead(X: DaskRows, rows: IntArray, *, scatter: bool) -> None:
    # With fewer rows than features the rows themselves are fetched, and a matrix of features x features never needed.
    X.read(rows, scatter=scatter and X.shape[1] <= X.shape[0])


@operations.take_rows.register(DaskRows)
def take_rows(X: DaskRows, rows: IntArray | slice) -> Float64:
    return X[rows].astype(np.float64, copy=False)


@operations.rows_in_memory.register(DaskRows)
def rows_in_memory(X: DaskRows, rows: IntArray | None = None) -> Block:
    return X.gather(np.arange(X.shape[0]) if rows is None else rows)


@operations.rows_to_learn_from.register(DaskRows)
def rows_to_learn_from(
    X: DaskRows, placement: Placement, *, needed: IntArray, who: str
) -> tuple[Rows, IntArray | None]:
    if placement is Placement.ANYWHERE:
        return X, None
    n = X.shape[0]
    chosen = np.arange(n) if n <= settings().landmark_rows else landmarks(n, needed, who)
    if not X.fits(chosen):
        raise InputError(
            f"{who} needs {len(chosen):,} rows of the dask array in memory, more than the "
            f"{settings().gather_bytes / 2**20:,.0f} MiB of gather_bytes",
            argument="X",
            value=X.shape,
            remedy="Lower landmark_rows, or raise gather_bytes, by pairlens.config_context(...).",
        )
    # The same pass finds bad values and the mean of all rows.
    X.read(chosen, scatter=False)
    return X[chosen], None if len(chosen) == n else chosen


@operations.column_means.register(DaskRows)
def column_means(X: DaskRows) -> Float64:
    return X.moments().mean


@operations.varying_columns.register(DaskRows)
def varying_columns(X: DaskRows) -> NDArray[np.bool_]:
    return X.moments().varies


@operations.project.register(DaskRows)
def project(X: DaskRows, mean: FloatArray, components: FloatArray) -> Any:
    """Return a dask array with the chunks of X, not computed yet."""
    return _mapped(X, project_chunk, len(components), mean, components, dtype=np.result_type(X.dtype, components))


@operations.map_rows.register(DaskRows)
def map_rows(X: DaskRows, embed: Callable[[Rows], Any], n_columns: int) -> Any:
    """Return a dask array with the chunks of X, not computed yet."""
    return _mapped(X, embed_chunk, n_columns, embed, dtype=X.dtype)


def _mapped(X: DaskRows, function: Callable[..., Any], width: int, *args: Any, dtype: Any) -> Any:
    """Return ``function(chunk, *args)`` of each chunk as a dask array that is not computed yet."""
    return X.array.map_blocks(function, *args, chunks=(X.array.chunks[0], (width,)), meta=np.empty((0, 0), dtype))


def embed_chunk(block: Block, embed: Callable[[Rows], Any]) -> FloatArray:
    check_finite(block, None)
    return np.asarray(operations.map_rows(block, embed, 0))


def project_chunk(block: Block, mean: FloatArray, components: FloatArray) -> FloatArray:
    projected = operations.project(block, mean, components)
    if not np.isfinite(projected).all():
        check_finite(block, None)
    return np.asarray(projected)


@operations.weighted_scatter.register(DaskRows)
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
        return operations.weighted_scatter(block, weight=weight, offset=offset)


@operations.group_means.register(DaskRows)
def group_means(X: DaskRows, codes: IntArray) -> Float64:
    member = np.flatnonzero(codes >= 0)
    if _few(X, member):
        return operations.group_means(X.gather(member), codes[member])
    size = np.bincount(codes[member])
    _check_groups(X, len(size))
    parts = [task(sum_chunk, chunk, codes[start:stop], len(size)) for start, stop, chunk in X.chunks()]
    return np.asarray(compute(tree(parts, sum), "means of groups")) / np.maximum(size, 1)[:, None]


def sum_chunk(block: Block, codes: IntArray, n_groups: int) -> Float64:
    present = int(codes.max(initial=-1)) + 1
    sums = np.zeros((n_groups, block.shape[1]))
    if present:
        size = np.bincount(codes[codes >= 0])
        sums[:present] = operations.group_means(block, codes) * size[:, None]
    return sums


@operations.group_scatter.register(DaskRows)
def group_scatter(X: DaskRows, codes: IntArray, *, weight: FloatArray | None = None) -> Float64:
    member = np.flatnonzero(codes >= 0)
    if len(member) == 0:
        return np.zeros((X.shape[1], X.shape[1]))
    if _few(X, member):
        return operations.group_scatter(X.gather(member), codes[member], weight=weight)
    means = group_means(X, codes)
    per_group = np.ones(len(means)) if weight is None else np.asarray(weight, dtype=np.float64)
    parts = [task(group_chunk, chunk, codes[start:stop], means, per_group) for start, stop, chunk in X.chunks()]
    return np.asarray(compute(tree(parts, sum), "scatter inside groups"))


def group_chunk(block: Block, codes: IntArray, means: Float64, weight: Float64) -> Float64:
    rows = np.flatnonzero(codes >= 0)
    code = codes[rows]
    centred = block[rows] - means.astype(block.dtype)[code]
    with np.errstate(over="ignore", invalid="ignore"):
        return operations.weighted_scatter(centred, weight=weight[code], offset=np.zeros(block.shape[1]))


@operations.pair_scatter.register(DaskRows)
def pair_scatter(X: DaskRows, pairs: IntArray, weight: FloatArray | None = None) -> Float64:
    rows = np.unique(pairs)
    return operations.pair_scatter(X.gather(rows), np.searchsorted(rows, pairs), weight)


@operations.pair_squared_distances.register(DaskRows)
def pair_squared_distances(X: DaskRows, pairs: IntArray) -> Float64:
    rows = np.unique(pairs)
    return operations.pair_squared_distances(X.gather(rows), np.searchsorted(rows, pairs))


def _few(X: DaskRows, rows: IntArray) -> bool:
    return 2 * len(rows) <= X.shape[0] and X.fits(rows)


def _check_groups(X: DaskRows, n_groups: int) -> None:
    if 8 * n_groups * X.shape[1] > MOST_GROUP_BYTES:
        raise InputError(
            f"{n_groups:,} groups of rows of a dask array with {X.shape[1]} features are too many to send their means "
            "to all workers",
            argument="constraints",
            remedy="Give fewer must-links, or raise pairlens.config_context(gather_bytes=...) so that the rows can be "
            "fetched.",
        )
