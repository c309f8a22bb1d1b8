"""The one place that decides, by the kind of X, which engine does an operation that touches all rows.

NumPy arrays and CSR matrices are handled by the functions in :mod:`~pairlens.engines.local.rows`,
:mod:`~pairlens.engines.local.scatter` and so on. Those that are marked :func:`dispatched` hand rows of another kind to
the function of the same name in the module of their engine. So a method calls ``weighted_scatter(X, ...)`` and does
not know where the rows are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

import numpy as np

from pairlens.engines.config import settings

__all__ = ["EngineRows", "collected", "dispatched", "engine_rows", "is_dask"]

P = ParamSpec("P")
R = TypeVar("R")


class EngineRows:
    """Rows that are not an array in this process's memory, with as much of an array's interface as methods use.

    Attributes
    ----------
    engine : str
        The module with the operations on such rows.
    shape : tuple of int
    dtype : numpy.dtype
        float32 or float64.
    """

    engine: ClassVar[str]
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def header(self) -> Any:
        """Something with the same columns that scikit-learn can check: number and names of the features."""
        return np.broadcast_to(np.zeros(1), (1, self.shape[1]))


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
    if _package(X) == "torch":
        from pairlens.engines.torch.operations import TensorRows

        return TensorRows.of(X)
    if is_dask(X):
        from pairlens.engines.dask.rows import DaskRows

        return DaskRows.of(X, fitting=fitting)
    return None


def _package(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


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


def dispatched(operation: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Let the engine of the rows, the first argument, do an operation."""

    @wraps(operation)
    def on_any_rows(X: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if isinstance(X, EngineRows):
            result: R = getattr(import_module(X.engine), operation.__name__)(X, *args, **kwargs)
            return result
        return operation(X, *args, **kwargs)

    return on_any_rows
