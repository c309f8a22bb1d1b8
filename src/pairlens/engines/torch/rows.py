"""Rows in a tensor: checked, indexed like an array, and walked over in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.engines.local.rows import row_blocks
from pairlens.engines.torch.device import torch
from pairlens.engines.types import EngineRows

Tensor = Any

BLOCK_BYTES = {"cpu": 1 << 23, "cuda": 1 << 26}
"""Bytes of one block of rows, by device: enough for its matrix product to run at speed."""


class TensorRows(EngineRows):
    """Rows in a tensor.

    Attributes
    ----------
    tensor : torch.Tensor of shape (n, n_features)
        float32 or float64, without gradient.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.shape = tuple(tensor.shape)
        self.dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))

    @classmethod
    def of(cls, X: Tensor) -> TensorRows:
        """A user's tensor, checked."""
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, rows and features; this tensor has shape {tuple(X.shape)}.")
        if X.layout is not torch.strided:
            raise TypeError(
                f"X must be a dense tensor, got layout {X.layout}. Use X.to_dense(), or a SciPy CSR matrix."
            )
        if X.is_complex():
            raise ValueError("Complex data not supported: X must hold real numbers.")
        if not X.is_floating_point():
            X = X.to(torch.float64)
        elif X.dtype not in (torch.float32, torch.float64):
            X = X.to(torch.float32)
        X = X.detach()
        _check_finite(X)
        return cls(X)

    def __getitem__(self, key: Any) -> TensorRows:
        if isinstance(key, tuple):
            rows, columns = key
            return TensorRows(self.tensor[_index(self, rows)][:, _index(self, columns)])
        return TensorRows(self.tensor[_index(self, key)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = self.tensor.cpu().numpy()
        return found if dtype is None else found.astype(dtype, copy=False)

    def astype(self, dtype: Any) -> TensorRows:
        return TensorRows(self.tensor.to(getattr(torch, np.dtype(dtype).name)))

    def place(self, values: Any) -> Tensor:
        """Values on the device of the rows, and in their dtype unless they are integers."""
        array = np.ascontiguousarray(values)
        tensor = torch.from_numpy(array if array.flags.writeable else array.copy()).to(self.tensor.device)
        return tensor if array.dtype.kind in "iub" else tensor.to(self.tensor.dtype)

    def blocks(self, n: int | None = None) -> Iterator[slice]:
        """Slices of n items of the size of a row."""
        size = BLOCK_BYTES.get(self.tensor.device.type, BLOCK_BYTES["cuda"])
        return row_blocks(self.shape[0] if n is None else n, self.itemsize * self.shape[1], size)

    def zeros(self, *shape: int) -> Tensor:
        """Sums start here: float64 on the device."""
        return torch.zeros(shape, dtype=torch.float64, device=self.tensor.device)


@dataclass(frozen=True)
class TensorGraph:
    """Edges on a device, each once, with their weights.

    Attributes
    ----------
    left, right : int64 tensor of shape (m,)
        Rows that an edge joins.
    weight : float64 tensor of shape (m,)
    """

    left: Tensor
    right: Tensor
    weight: Tensor


def _index(X: TensorRows, key: Any) -> Any:
    return X.place(key) if isinstance(key, np.ndarray) else key


def _check_finite(X: Tensor) -> None:
    # A sum is enough where it is finite, and takes no memory.
    if X.numel() == 0 or bool(torch.isfinite(X.sum(dtype=torch.float64))):
        return
    bad = torch.nonzero(~torch.isfinite(X))
    if len(bad):
        row, column = (int(place) for place in bad[0])
        what = "NaN" if bool(torch.isnan(X[row, column])) else "infinity"
        raise ValueError(f"Input X contains {what}, for example in row {row}, column {column}.")
