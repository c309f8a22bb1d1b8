"""What users pass as X, checked and turned into the rows of an engine; nothing is imported to find out which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.exceptions import DTypePromotionError
from scipy import sparse

from pairlens._sklearn import DTYPES, validate_data
from pairlens.engines.config import settings
from pairlens.engines.types import EngineRows, Rows

CHECKED_VALUES = 1 << 22
"""Of more values, those of evenly spaced rows are looked at to know their size."""


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

    Parameters
    ----------
    estimator : estimator
        Its number and names of features are set when fitting, and compared otherwise.
    X : any
        What a user passed.
    fitting : bool
    least : int
        The fewest rows to fit.
    accept_sparse : bool
        Whether sparse rows are taken; they become CSR.
    in_memory : bool
        Whether dask arrays and data frames are collected first, up to the setting `gather_bytes`, and tensors become
        arrays; otherwise both stay where they are.
    power : int
        The highest power of the values as they are that the estimator sums when fitting; 0 if it rescales them first.
        Values that are too large or too small for that are refused.
    """
    if getattr(X, "is_meta", False) is True:
        raise ValueError("X is a tensor on the device 'meta', which has a shape but no numbers.")
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
        if fitting and power:
            _check_range(rows, power)
        return rows
    if fitting and rows.shape[0] < least:
        raise ValueError(
            f"{type(estimator).__name__} needs at least {least} rows. Found array with {rows.shape[0]} sample(s) "
            f"(shape={rows.shape}) while a minimum of {least} is required."
        )
    validate_data(estimator, rows.header, reset=fitting, skip_check_array=True)
    return rows


def canonical(rows: Any) -> Any:
    """Rows of which no entry is stored in parts, so that squares of stored entries are those of the values.

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
    except (ValueError, TypeError) as error:
        if not (isinstance(error, DTypePromotionError) or str(error).startswith("could not convert string to float")):
            raise
        what = "it has dates beside them" if isinstance(error, DTypePromotionError) else str(error)
        raise ValueError(
            f"X must hold numbers, but {what}. pairlens.TableEncoder turns columns of words, dates and texts into "
            "numbers: make_pipeline(TableEncoder(), ...)."
        ) from error


def out_of_range() -> ValueError:
    """The error for values that are too large or too small to compute with."""
    return ValueError(
        "the values of X are so large or so small that what is computed from them leaves the range of floating-point "
        "numbers. Rescale X, for example by sklearn.preprocessing.StandardScaler."
    )


def _check_range(rows: Rows, power: int) -> None:
    """ValueError if sums of powers overflow, if powers of differences have lost digits, or if inverses overflow."""
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
    """X as rows of its engine, or None for what NumPy and SciPy handle.

    The kind is told by the name of the package that X comes from, so that no package is imported for it.

    Parameters
    ----------
    X : any
        What a user passed.
    fitting : bool
        Whether the number of rows must be known and a bad value is an error now; otherwise both may wait.
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
    """Whether X is a torch tensor; does not import torch."""
    return _package(X) == "torch"


def is_dask(X: Any) -> bool:
    """Whether X is a dask array or data frame; does not import dask."""
    return _package(X) in ("dask", "dask_expr")


def collected(X: Any, who: str) -> Any:
    """What an estimator that needs its rows in memory makes of X: lazy tables are computed, tensors lose their graph.

    Parameters
    ----------
    X : any
        What a user passed; what is in memory is returned as it is. Masked entries are refused.
    who : str
        Name of the estimator, for the error if X exceeds the setting `gather_bytes`.
    """
    if np.ma.is_masked(X):
        raise ValueError(
            f"X has {np.ma.count_masked(X)} masked entries, and {who} would see what is behind the mask. Fill them in, "
            "for example by sklearn.impute.SimpleImputer on X.filled(numpy.nan)."
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
        raise ValueError(
            f"{who} needs its rows in memory, and this dask collection would take {sized.nbytes / 2**20:,.0f} MiB; "
            f"gather_bytes allows {settings().gather_bytes / 2**20:,.0f} MiB. Give X.compute() if it fits, a sample of "
            "its rows, or raise pairlens.config_context(gather_bytes=...)."
        )
    return X.compute()
