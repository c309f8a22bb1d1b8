"""What users pass as X, checked and turned into the rows of an engine; nothing is imported to find out which."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairlens._sklearn import DTYPES, validate_data
from pairlens.engines.config import settings
from pairlens.engines.types import EngineRows, Rows


def checked_rows(
    estimator: Any, X: Any, *, fitting: bool, least: int = 2, accept_sparse: bool = True, in_memory: bool = True
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
    """
    rows = None if in_memory else engine_rows(X, fitting=fitting)
    least = least if fitting else 1
    if rows is None:
        return validate_data(
            estimator,
            collected(X, type(estimator).__name__),
            dtype=DTYPES,
            accept_sparse="csr" if accept_sparse else False,
            reset=fitting,
            ensure_min_samples=least,
        )
    if fitting and rows.shape[0] < least:
        raise ValueError(
            f"{type(estimator).__name__} needs at least {least} rows. Found array with {rows.shape[0]} sample(s) "
            f"(shape={rows.shape}) while a minimum of {least} is required."
        )
    validate_data(estimator, rows.header, reset=fitting, skip_check_array=True)
    return rows


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
    """What an estimator that needs its rows in memory makes of X: dask arrays and data frames are computed.

    Parameters
    ----------
    X : any
        What a user passed; all but dask collections are returned as they are.
    who : str
        Name of the estimator, for the error if X exceeds the setting `gather_bytes`.
    """
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
