"""Rows of every kind: their types, the settings of the engines, and what users pass as X, checked and converted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.exceptions import DTypePromotionError
from numpy.typing import NDArray
from scipy import sparse

from pairlens._sklearn import DTYPES, validate_data
from pairlens.exceptions import ArgumentError, InputError

FloatArray: TypeAlias = NDArray[np.floating[Any]]
Float64: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.integer[Any]]
Index: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = Any
"""A dense array or a CSR matrix of rows, or :class:`EngineRows`."""
Kernel: TypeAlias = str | Callable[..., Any]
"""A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`."""
Graph: TypeAlias = Any
"""Weights of pairs of rows: a symmetric CSR matrix, or :class:`~pairlens.engines.Edges`."""

CHECKED_VALUES = 1 << 20
"""Of more values, those of evenly spaced rows are looked at to know their size."""


class Placement(Enum):
    """Say where the rows may be that a method learns from."""

    COLLECTED = "collected"
    """In the memory of this process, all of them: dask arrays are collected, up to the setting `gather_bytes`."""
    MEMORY = "memory"
    """In the memory of this process; landmarks represent the rows of a large dask array."""
    DEVICE = "device"
    """On one machine: as `MEMORY`, or in a tensor on any device."""
    ANYWHERE = "anywhere"
    """On any number of machines: the method touches its rows by the operations of the engines only."""


class EngineRows:
    """Hold rows in float32 or float64 that are not an array of this process, with the part of its interface in use."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def header(self) -> Any:
        """An object with the same columns that scikit-learn can check: number and names of the features."""
        return np.broadcast_to(np.zeros(1), (1, self.shape[1]))


@dataclass(frozen=True)
class Settings:
    """Hold what :func:`config_context` can change.

    Attributes
    ----------
    tf32 : bool
        Whether float32 products on a GPU may round their factors to 10 bits (TF32). Off by default, whatever PyTorch is
        set to elsewhere.
    progress : bool
        Whether passes over dask arrays report to standard error.
    gather_bytes : int
        Most bytes of single rows, those that pairs name, that are fetched from a dask array into this process.
    landmark_rows : int
        Rows that represent all others where a method needs more of them in memory.
    """

    tf32: bool = False
    progress: bool = False
    gather_bytes: int = 1 << 29
    landmark_rows: int = 50_000


DEFAULT = Settings()
_current: ContextVar[Settings] = ContextVar("pairlens_settings", default=DEFAULT)


def settings() -> Settings:
    """Return the settings in force here."""
    return _current.get()


@contextmanager
def config_context(**changes: Any) -> Iterator[Settings]:
    """Change settings of the engines inside a ``with`` block.

    Parameters
    ----------
    **changes
        Fields of :class:`Settings`: `tf32`, `progress`, `gather_bytes`, `landmark_rows`.

    Examples
    --------
    >>> from pairlens.engines import config_context, settings
    >>> with config_context(tf32=True):
    ...     settings().tf32
    True
    """
    known = {field.name: field.type for field in fields(Settings)}
    for name, value in changes.items():
        if name not in known:
            raise ArgumentError(name, value, f"must be one of the settings {', '.join(known)}")
        if known[name] == "int" and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ArgumentError(name, value, "must be an integer of at least 1")
        if known[name] == "bool" and not isinstance(value, bool):
            raise ArgumentError(name, value, "must be True or False")
    token = _current.set(replace(_current.get(), **changes))
    try:
        yield _current.get()
    finally:
        _current.reset(token)


def checked_rows(
    estimator: Any,
    X: Any,
    *,
    fitting: bool,
    least: int = 2,
    accept_sparse: bool = True,
    in_memory: bool = True,
    power: int = 2,
) -> Rows:
    """Check X as scikit-learn does, where an estimator takes it from a user.

    When fitting, X needs the `least` rows, and the number and names of its features are kept; otherwise they are
    compared. Sparse rows become CSR. `in_memory` collects dask arrays, up to the setting `gather_bytes`, and turns
    tensors into arrays. `power` is the highest power of the values that fitting sums, 1 if it rescales them first:
    values too large or too small for that are refused.
    """
    if getattr(X, "is_meta", False) is True:
        raise InputError("X is a tensor on the device 'meta', which has a shape but no numbers", argument="X")
    rows = None if in_memory else engine_rows(X, fitting=fitting)
    least = least if fitting else 1
    if rows is None:
        with words_named():
            given = validate_data(
                estimator,
                collected(X, type(estimator).__name__),
                dtype=DTYPES,
                accept_sparse="csr" if accept_sparse else False,
                reset=fitting,
                ensure_min_samples=least,
            )
        rows = canonical(given)
        if fitting:
            _check_range(rows, power)
        return rows
    if fitting and rows.shape[0] < least:
        raise InputError(
            f"{type(estimator).__name__} needs at least {least} rows. Found array with {rows.shape[0]} sample(s) "
            f"(shape={rows.shape}) while a minimum of {least} is required.",
            argument="X",
            value=rows.shape,
        )
    validate_data(estimator, rows.header, reset=fitting, skip_check_array=True)
    return rows


def canonical(rows: Any) -> Any:
    """Return rows of which no entry is stored in parts, so that squares of stored entries are those of the values.

    Dense rows, and CSR matrices that are so already, are returned as they are. The given matrix is not changed.
    """
    if sparse.issparse(rows) and not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


@contextmanager
def words_named() -> Iterator[None]:
    """Say what to do with columns of words and dates, which scikit-learn leaves to the reader."""
    try:
        yield
    except OverflowError as error:  # a whole number of Python's that no other has room for
        raise out_of_range() from error
    except (ValueError, TypeError) as error:
        if not (isinstance(error, DTypePromotionError) or str(error).startswith("could not convert string to float")):
            raise
        what = "it has dates beside them" if isinstance(error, DTypePromotionError) else str(error)
        raise InputError(
            f"X must hold numbers, but {what}",
            argument="X",
            remedy="pairlens.TableEncoder turns columns of words, dates and texts into numbers: "
            "make_pipeline(TableEncoder(), ...).",
        ) from error


def out_of_range() -> InputError:
    """Return the error for values that are too large or too small to compute with."""
    return InputError(
        "the values of X are so large or so small that what is computed from them leaves the range of floating-point "
        "numbers",
        argument="X",
        remedy="Rescale X, for example by sklearn.preprocessing.StandardScaler.",
    )


def _check_range(rows: Rows, power: int) -> None:
    """Raise an InputError if sums of powers overflow, powers of differences lose digits, or inverses overflow."""
    n, f = rows.shape
    part = rows[:: max(1, n * f // CHECKED_VALUES)]
    highest, lowest = float(part.max()), float(part.min())
    # float32 is summed in float64, where the powers of all its values are.
    limits = np.finfo(np.float64)
    largest = float(limits.max / (n * f)) ** (1 / power)
    smallest = max(float(limits.tiny / limits.eps) ** (1 / power), float(np.finfo(rows.dtype).tiny))
    if max(highest, -lowest) > largest or 0 < highest - lowest < smallest:
        raise out_of_range()


def engine_rows(X: Any, *, fitting: bool) -> EngineRows | None:
    """Return X as rows of its engine, or None for what NumPy and SciPy handle.

    The kind is told by the name of the package that X comes from, so that no package is imported for it. When fitting,
    the number of rows must be known, and a bad value is an error now; otherwise both may wait.
    """
    if is_tensor(X):
        from pairlens.engines.torch import TensorRows

        return TensorRows.of(X)
    if is_dask(X):
        from pairlens.engines.dask import DaskRows

        return DaskRows.of(X, fitting=fitting)
    return None


def _package(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def is_tensor(X: Any) -> bool:
    """Return whether X is a torch tensor, without importing torch."""
    return _package(X) == "torch"


def as_numpy(array: Any) -> NDArray[Any]:
    """Return the array, or a tensor as one, in the memory of this process."""
    return np.asarray(array.cpu().numpy() if is_tensor(array) else array)


def is_dask(X: Any) -> bool:
    """Return whether X is a dask array or data frame, without importing dask."""
    return _package(X) in ("dask", "dask_expr")


def collected(X: Any, who: str) -> Any:
    """Return X in memory: lazy tables are computed, tensors lose their graph, masked entries are refused.

    The error for what exceeds the setting `gather_bytes` names the estimator, `who`.
    """
    if np.ma.is_masked(X):
        raise InputError(
            f"X has {np.ma.count_masked(X)} masked entries, and {who} would see what is behind the mask",
            argument="X",
            remedy="Fill them in, for example by sklearn.impute.SimpleImputer on X.filled(numpy.nan).",
        )
    if is_tensor(X):
        return X.detach()
    if _package(X) == "polars" and hasattr(X, "collect"):
        return X.collect()
    if not is_dask(X):
        return X
    sized = X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X
    if np.isnan(sized.shape).any():
        sized = sized.copy()
        sized.compute_chunk_sizes()
    if sized.nbytes > settings().gather_bytes:
        raise InputError(
            f"{who} needs its rows in memory, and this dask collection would take {sized.nbytes / 2**20:,.0f} MiB; "
            f"gather_bytes allows {settings().gather_bytes / 2**20:,.0f} MiB",
            argument="X",
            value=sized.shape,
            remedy="Give X.compute() if it fits, a sample of its rows, or raise "
            "pairlens.config_context(gather_bytes=...).",
        )
    return X.compute()
