r"""The operations on rows that are a torch tensor, on whatever device it is.

Large arrays stay on the device; what comes back is small (f x f, or one number per row or edge) and a NumPy array of
float64. Blocks of float32 are multiplied in float32 and summed in float64, as for NumPy. TF32 is off unless
``config_context(tf32=True)`` says otherwise.

Plain PyTorch throughout: sums by group, blocks of gathered rows and the selection of neighbours are beyond the array
API standard.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens._optional import require
from pairlens.engines.config import settings
from pairlens.engines.dispatch import EngineRows
from pairlens.engines.local.neighbors import Neighbors
from pairlens.engines.local.reconstruction import PORTION_BYTES
from pairlens.engines.local.rows import FloatArray, IntArray, row_blocks
from pairlens.engines.local.scatter import rebuilding_graph

__all__ = ["TensorRows"]

Tensor = Any
Float64 = NDArray[np.float64]

BLOCK_BYTES = {"cpu": 1 << 23, "cuda": 1 << 26}
"""Bytes of one block of rows, by device: enough for its matrix product to run at speed."""


def _torch() -> Any:
    return require("torch", extra="gpu", purpose="working with tensors")


class TensorRows(EngineRows):
    """Rows in a tensor.

    Attributes
    ----------
    tensor : torch.Tensor of shape (n, n_features)
        float32 or float64, without gradient.
    """

    engine: ClassVar[str] = __name__

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.shape = tuple(tensor.shape)
        self.dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))

    @classmethod
    def of(cls, X: Tensor) -> TensorRows:
        """A user's tensor, checked."""
        torch = _torch()
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
        return TensorRows(self.tensor.to(getattr(_torch(), np.dtype(dtype).name)))

    def place(self, values: Any) -> Tensor:
        """Values on the device of the rows, and in their dtype unless they are integers."""
        array = np.ascontiguousarray(values)
        tensor = _torch().from_numpy(array if array.flags.writeable else array.copy()).to(self.tensor.device)
        return tensor if array.dtype.kind in "iub" else tensor.to(self.tensor.dtype)

    def blocks(self, n: int | None = None) -> Iterator[slice]:
        """Slices of n items of the size of a row."""
        size = BLOCK_BYTES.get(self.tensor.device.type, BLOCK_BYTES["cuda"])
        return row_blocks(self.shape[0] if n is None else n, self.itemsize * self.shape[1], size)

    def zeros(self, *shape: int) -> Tensor:
        """Sums start here: float64 on the device."""
        torch = _torch()
        return torch.zeros(shape, dtype=torch.float64, device=self.tensor.device)


def _index(X: TensorRows, key: Any) -> Any:
    return X.place(key) if isinstance(key, np.ndarray) else key


def _check_finite(X: Tensor) -> None:
    torch = _torch()
    # A sum is enough where it is finite, and takes no memory.
    if X.numel() == 0 or bool(torch.isfinite(X.sum(dtype=torch.float64))):
        return
    bad = torch.nonzero(~torch.isfinite(X))
    if len(bad):
        row, column = (int(place) for place in bad[0])
        what = "NaN" if bool(torch.isnan(X[row, column])) else "infinity"
        raise ValueError(f"Input X contains {what}, for example in row {row}, column {column}.")


@contextmanager
def product_precision() -> Iterator[None]:
    """float32 products in full precision, or in TF32 where the settings allow it."""
    torch = _torch()
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if settings().tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _numpy(tensor: Tensor) -> Float64:
    return np.asarray(tensor.cpu().numpy(), dtype=np.float64)


def _square(rows: Tensor) -> Tensor:
    with product_precision():
        return rows.T @ rows


def read_ahead(X: TensorRows, rows: IntArray, *, scatter: bool) -> None:
    """Nothing: the rows are at hand."""


def take_rows(X: TensorRows, rows: IntArray | slice) -> Float64:
    return _numpy(X[rows].tensor)


def column_means(X: TensorRows) -> Float64:
    return _numpy(X.tensor.mean(dim=0, dtype=_torch().float64))


def varying_columns(X: TensorRows) -> NDArray[np.bool_]:
    varies = np.zeros(X.shape[1], dtype=bool)
    for block in X.blocks():
        varies |= (X.tensor[block] != X.tensor[:1]).any(dim=0).cpu().numpy()
        if varies.all():
            break
    return varies


def project(X: TensorRows, mean: FloatArray, components: FloatArray) -> Tensor:
    torch = _torch()
    mean, directions = (X.place(values) for values in (mean, components))
    result = torch.empty((X.shape[0], len(components)), dtype=X.tensor.dtype, device=X.tensor.device)
    with product_precision():
        for block in X.blocks():
            torch.matmul(X.tensor[block] - mean, directions.T, out=result[block])
    return result


def combine_rows(X: TensorRows, coefficients: FloatArray) -> Float64:
    torch = _torch()
    weights = torch.from_numpy(np.ascontiguousarray(coefficients)).to(X.tensor.device)
    total = X.zeros(len(coefficients), X.shape[1])
    for block in X.blocks():
        total += weights[:, block] @ X.tensor[block].to(torch.float64)
    return _numpy(total)


def mean_norm(X: TensorRows) -> float:
    torch = _torch()
    offset = X.tensor.mean(dim=0, dtype=torch.float64)
    total = 0.0
    for block in X.blocks():
        total += float(torch.linalg.vector_norm(X.tensor[block] - offset, dim=1, dtype=torch.float64).sum())
    return total / X.shape[0]


def weighted_scatter(X: TensorRows, *, weight: FloatArray | None = None, offset: FloatArray) -> Float64:
    centre = X.place(offset)
    root, unit = (None, 1.0) if weight is None else _roots(X, weight)
    total = X.zeros(X.shape[1], X.shape[1])
    for block in X.blocks():
        rows = X.tensor[block] - centre
        total += _square(rows if root is None else rows * root[block, None])
    return unit * _numpy(total)


def _roots(X: TensorRows, weight: FloatArray) -> tuple[Tensor, float]:
    """Square roots of weights in units of the largest, and that unit."""
    unit = float(np.max(weight, initial=0.0)) or 1.0
    return X.place(np.sqrt(weight / unit)), unit


def group_means(X: TensorRows, codes: IntArray) -> Float64:
    torch = _torch()
    member = np.flatnonzero(codes >= 0)
    size = np.bincount(codes[member])
    sums = X.zeros(len(size), X.shape[1])
    rows, code = X.place(member), X.place(codes[member])
    for block in X.blocks(len(member)):
        sums.index_add_(0, code[block], X.tensor[rows[block]].to(torch.float64))
    return _numpy(sums) / np.maximum(size, 1)[:, None]


def group_scatter(X: TensorRows, codes: IntArray, *, weight: FloatArray | None = None) -> Float64:
    total = X.zeros(X.shape[1], X.shape[1])
    member = np.flatnonzero(codes >= 0)
    if len(member) == 0:
        return _numpy(total)
    means = X.place(group_means(X, codes))
    root, unit = (None, 1.0) if weight is None else _roots(X, weight)
    rows, code = X.place(member), X.place(codes[member])
    for block in X.blocks(len(member)):
        centred = X.tensor[rows[block]] - means[code[block]]
        total += _square(centred if root is None else centred * root[code[block], None])
    return unit * _numpy(total)


def pair_scatter(X: TensorRows, pairs: IntArray, weight: FloatArray | None = None) -> Float64:
    """Blocks of differences; the weights may be negative."""
    total = X.zeros(X.shape[1], X.shape[1])
    if len(pairs) == 0:
        return _numpy(total)
    unit = 1.0 if weight is None else float(np.max(np.abs(weight))) or 1.0
    left, right = X.place(pairs[:, 0].astype(np.int64)), X.place(pairs[:, 1].astype(np.int64))
    factor = None if weight is None else X.place(np.asarray(weight) / unit)
    for block in X.blocks(len(pairs)):
        difference = X.tensor[left[block]] - X.tensor[right[block]]
        weighted = difference if factor is None else difference * factor[block, None]
        with product_precision():
            total += weighted.T @ difference
    result = unit * _numpy(total)
    return (result + result.T) / 2


def graph_scatter(X: TensorRows, graph: sparse.csr_matrix) -> Float64:
    """Edge by edge: more products than the Laplacian form, but nothing cancels, and products are cheap here."""
    upper = sparse.triu(graph, 1).tocoo()
    return pair_scatter(X, np.column_stack([upper.row, upper.col]), upper.data)


def residual_scatter(X: TensorRows, rebuild: sparse.csr_matrix) -> Float64:
    return graph_scatter(X, rebuilding_graph(rebuild))


def pair_squared_distances(X: TensorRows, pairs: IntArray) -> Float64:
    torch = _torch()
    result = np.empty(len(pairs))
    left, right = X.place(pairs[:, 0].astype(np.int64)), X.place(pairs[:, 1].astype(np.int64))
    for block in X.blocks(len(pairs)):
        difference = X.tensor[left[block]].to(torch.float64) - X.tensor[right[block]].to(torch.float64)
        result[block] = _numpy((difference * difference).sum(dim=1))
    return result


def centred_product(left: TensorRows, right: TensorRows, centre: Float64) -> Float64:
    torch = _torch()
    product = left.zeros(left.shape[0], right.shape[0])
    shift = torch.from_numpy(np.ascontiguousarray(centre)).to(left.tensor.device)
    for block in row_blocks(left.shape[1], 8 * max(left.shape[0], right.shape[0]), 1 << 25):
        product += (left.tensor[:, block] - shift[block]) @ (right.tensor[:, block] - shift[block]).T
    return _numpy(product)


def rebuilding_weights(X: TensorRows, indices: IntArray, reg: float) -> Float64:
    torch = _torch()
    n, k = indices.shape
    weight = np.empty((n, k))
    listed = X.place(indices.astype(np.int64))
    rows = X.tensor
    step = max(1, 4 * PORTION_BYTES // (8 * k * X.shape[1]))
    for block in (slice(start, start + step) for start in range(0, n, step)):
        local = rows[listed[block]].to(torch.float64) - rows[block].to(torch.float64)[:, None, :]
        gram = local @ local.transpose(1, 2)
        trace = gram.diagonal(dim1=1, dim2=2).sum(dim=1)
        gram.diagonal(dim1=1, dim2=2).add_(torch.where(trace > 0, reg * trace, reg)[:, None])
        found = torch.linalg.solve(gram, torch.ones_like(gram[:, :, :1]))[..., 0]
        weight[block] = _numpy(found / found.sum(dim=1, keepdim=True))
    return weight


def neighbors(X: TensorRows, *, n_nearest: int = 0, n_farthest: int = 0, block_bytes: int | None = None) -> Neighbors:
    from pairlens.engines.torch.neighbors import torch_neighbors

    with product_precision():
        found = torch_neighbors(X.tensor, n_nearest=n_nearest, n_farthest=n_farthest, block_bytes=block_bytes)
    sides = (found.nearest, found.nearest_distance, found.farthest, found.farthest_distance)
    return Neighbors(*(None if side is None else side.cpu().numpy() for side in sides))
