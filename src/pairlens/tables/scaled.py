"""Rows whose scale an encoder has set, so that the methods behind it need not be told."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["Scaled", "ScaledCSR", "ScaledRows"]


class Scaled:
    """Rows whose columns have their scale from an encoder."""


class ScaledRows(Scaled, np.ndarray):
    """An array whose columns already have the scale that they should count with.

    The mark belongs to these very features: it stays with rows that are picked or copied, and with a pickle. Whatever
    is computed from them is a plain array, so a scaler or PCA behind an encoder takes it off.

    Examples
    --------
    >>> import numpy as np
    >>> from pairlens.tables.scaled import Scaled, ScaledRows
    >>> rows = np.eye(3).view(ScaledRows)
    >>> [isinstance(found, Scaled) for found in (rows, rows[:2], 2 * rows, np.hstack([rows, rows]))]
    [True, True, False, False]
    """

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = np.asarray(array)
        # Before version 2, numpy does not say that it wants a scalar.
        return plain[()] if return_scalar or plain.ndim == 0 else plain

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        result = super().__array_function__(func, types, args, kwargs)
        return np.asarray(result) if isinstance(result, ScaledRows) else result


class ScaledCSR(Scaled, sparse.csr_array):
    """The same for a CSR array; here the mark stays with what is computed, too."""
