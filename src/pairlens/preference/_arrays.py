"""The few array operations that NumPy and torch spell differently, chosen by the type of the array."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import is_tensor


def namespace(array: Any) -> ModuleType:
    """Return NumPy, or torch for a tensor."""
    return import_module("torch") if is_tensor(array) else np


def like(rows: Any, values: NDArray[Any]) -> Any:
    """Return values as an array of the kind of `rows`, on its device."""
    if not is_tensor(rows):
        return values
    array = np.ascontiguousarray(values)
    tensor = import_module("torch").from_numpy(array if array.flags.writeable else array.copy()).to(rows.device)
    return tensor.to(rows.dtype) if tensor.is_floating_point() else tensor


def as_numpy(array: Any) -> NDArray[Any]:
    """Return the array in the memory of this process."""
    return array.cpu().numpy() if is_tensor(array) else np.asarray(array)
