"""Rows of a dask array: checked, read in as few passes as possible, and never brought to one place.

Each pass turns every chunk into something small where the chunk is, and merges these in a tree. All tasks are functions
of the chunks alone, so that a scheduler which loses a worker can repeat them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.engines.config import settings
from pairlens.engines.local.moments import Moments, merge_moments
from pairlens.engines.types import EngineRows, IntArray

FAN_IN = 8
"""Partial results that one task merges."""
COARSE_BYTES = 1 << 26
"""Chunks are joined or cut to about this size before they meet in pairs: fewer tasks, and two still fit a worker."""
MOST_FEATURES = 5000
"""Features up to which matrices of features x features are summed over the chunks."""
Block = NDArray[Any]


def task(function: Callable[..., Any], *args: Any, n_out: int | None = None) -> Any:
    """One call that the scheduler may do anywhere and repeat."""
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
    """Rows in the chunks of a dask array, which are whole rows each.

    Parameters
    ----------
    array : dask.array.Array of shape (n, n_features)
        With one chunk of columns, in float32 or float64.
    moments : Moments, optional
        Those of all rows, where they are known already.
    names : object, optional
        Header of the data frame it came from.
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
        """A user's dask array or data frame, checked as far as that is possible without reading it.

        Columns that are split over chunks are joined, which moves all of X over the network once. Where the number of
        rows is needed and the chunks do not know theirs, one pass counts them.
        """
        names = None
        if hasattr(X, "to_dask_array"):
            names = X._meta
            X = X.to_dask_array()
        if X.ndim != 2:
            raise ValueError(
                f"X must have two dimensions, rows and features; this dask array has shape {X.shape}. Use "
                "X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row."
            )
        if np.isnan(X.shape[1]):
            raise ValueError("the number of features of X is unknown: call X.compute_chunk_sizes() first.")
        if not isinstance(X._meta, np.ndarray):
            raise TypeError(
                f"the chunks of X must be NumPy arrays, not {type(X._meta).__name__}: use "
                "X.map_blocks(lambda block: block.toarray()), or fit on a SciPy CSR matrix."
            )
        if X.dtype.kind == "c":
            raise ValueError("Complex data not supported: X must hold real numbers.")
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        if fitting and np.isnan(X.shape[0]):
            X = X.copy()
            X.compute_chunk_sizes()
        if fitting and min(X.shape) > MOST_FEATURES:
            raise ValueError(
                f"X has {X.shape[1]:,} features; of a dask array with more rows than that at most {MOST_FEATURES:,} "
                "are taken, because every chunk is summed up in a matrix of features x features. Reduce them "
                "beforehand, for example by the components_ of sklearn.random_projection."
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
        """Start, stop and array, as a task, of each chunk that has rows."""
        parts = self.array.to_delayed().ravel()
        for start, length, part in zip(self.starts.tolist(), self.lengths.tolist(), parts):
            if length:
                yield start, start + length, part

    def map(self, function: Callable[..., Any], merge: Callable[[Any], Any], what: str, *args: Any) -> Any:
        """``function(chunk, start, *args)`` of each chunk, merged in a tree."""
        parts = [task(function, chunk, start, *args) for start, _, chunk in self.chunks()]
        return compute(tree(parts, merge), what)

    def coarse(self, most_rows: int | None = None) -> DaskRows:
        """The same rows in chunks of :data:`COARSE_BYTES`, or of `most_rows` rows if that is less."""
        most = max(1, COARSE_BYTES // max(1, self.itemsize * self.shape[1]))
        if most_rows is not None:
            most = min(most, most_rows)
        joined: list[int] = []
        for length in self.lengths.tolist():
            if joined and joined[-1] + length <= most:
                joined[-1] += length
            else:
                joined.extend(min(most, length - at) for at in range(0, length, most))
        return DaskRows(self.array.rechunk({0: tuple(joined)}), self._moments)

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
        self._moments, found = compute([tree(parts, merge_moments), taken], what)
        if len(fetched):
            self._held = fetched, np.concatenate(found)

    def moments(self, *, scatter: bool = False) -> Moments:
        self.read(self._held[0], scatter=scatter)
        assert self._moments is not None
        return self._moments

    def fits(self, rows: IntArray) -> bool:
        """Whether the setting `gather_bytes` lets the given rows be fetched."""
        return len(rows) * self.shape[1] * self.itemsize <= settings().gather_bytes

    def gather(self, rows: IntArray) -> Block:
        """Rows by number, in memory."""
        wanted, inverse = np.unique(rows, return_inverse=True)
        if not self.fits(wanted):
            needed = len(wanted) * self.shape[1] * self.itemsize
            raise ValueError(
                f"{len(wanted):,} rows of the dask array are needed in memory, {needed / 2**20:,.0f} MiB, and "
                f"gather_bytes allows {settings().gather_bytes / 2**20:,.0f} MiB. Give fewer pairs "
                "(Constraints.sample, or from_labels(y, n_pairs=...)), or raise it by "
                "pairlens.config_context(gather_bytes=...)."
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


def read_chunk(block: Block, start: int, scatter: bool, local: IntArray) -> tuple[Moments, Block]:
    """Moments and some rows of a chunk."""
    # The caller checks the result for squares that overflowed.
    with np.errstate(over="ignore", invalid="ignore"):
        moments = Moments.of(block, scatter=scatter)
    if not np.isfinite(moments.mean).all():
        check_finite(block, start)
    return moments, block[local]


def take_chunk(block: Block, local: IntArray) -> Block:
    """Some rows of a chunk."""
    return block[local]


def check_finite(block: Block, start: int | None) -> None:
    """Name the first value of a chunk that is not a number."""
    bad = np.argwhere(~np.isfinite(block))
    if len(bad):
        row, column = bad[0]
        what = "NaN" if np.isnan(block[row, column]) else "infinity"
        where = f"row {row} of a chunk" if start is None else f"row {start + row}"
        raise ValueError(f"Input X contains {what}, for example in {where}, column {column}.")
