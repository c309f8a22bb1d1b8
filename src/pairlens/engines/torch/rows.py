r"""Rows in a torch tensor, and the operations on them, on whatever device it is.

torch is imported when it is first used. Large arrays stay on the device; what comes back is small (f x f, or one number
per row or edge) and a NumPy array of float64. Blocks of float32 are multiplied in float32 and summed in float64, as for
NumPy. TF32 is off unless ``config_context(tf32=True)`` says otherwise.

Plain PyTorch throughout: sums by group, blocks of gathered rows and the selection of neighbours are beyond the array
API standard.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens._optional import require
from pairlens.engines import operations
from pairlens.engines.operations import Edges, row_blocks
from pairlens.engines.rows import EngineRows, Float64, FloatArray, Graph, IntArray, Kernel, Placement, Rows, settings
from pairlens.exceptions import ArgumentError, InputError

Tensor = Any

CPU_BYTES = 256 * 2**20
CUDA_BYTES = 4 * 2**30
BLOCK_BYTES = {"cpu": 1 << 23, "cuda": 1 << 26}
"""Bytes of one block of rows, by device: enough for its matrix product to run at speed."""
DEVICE_FEATURES = 256
"""Size from which matrices that come from rows on a GPU are diagonalised there."""


class _LazyTorch:
    """Stand for the module torch, so that modules that work with tensors can be imported where it is not installed."""

    def __getattr__(self, name: str) -> Any:
        # Tools that look through modules ask any object for such names, and expect to be told there is none.
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(require("torch", extra="gpu", purpose="working with tensors"), name)
        # A fit asks tens of thousands of times: from now on it is found without this method.
        setattr(self, name, found)
        return found


torch = _LazyTorch()


def working_bytes(device: Any) -> int:
    """Return the bytes a pass may take: 256 MiB on a CPU; on a GPU 4 GiB, or a quarter of what is free if less."""
    if device.type != "cuda":
        return CPU_BYTES
    return min(CUDA_BYTES, torch.cuda.mem_get_info(device)[0] // 4)


def single_products(device: Any) -> bool:
    """Return whether digits of float32 products may be traded for speed: on a GPU, if the settings allow TF32."""
    return device.type == "cuda" and settings().tf32


@contextmanager
def product_precision(device: Any) -> Iterator[None]:
    """Multiply float32 with all digits, whatever torch was told, or with those of TF32 if the settings allow it."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if single_products(device) else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def triton_kernels(X: Any) -> Any:
    """Return the module of the Triton kernels, or None where they cannot run on the device of X."""
    if not X.is_cuda or torch.version.hip is not None:
        return None
    if torch.cuda.get_device_capability(X.device) < (8, 0):
        return None
    return _kernels()


@cache
def _kernels() -> ModuleType | None:
    try:
        importlib.import_module("triton")
    except ImportError:
        return None
    return importlib.import_module("pairlens.engines.torch.triton_screen")


def chunks(n: int, size: int) -> Iterator[slice]:
    """Return consecutive slices of ``range(n)``."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def row_step(X: Tensor, width: int) -> int:
    """Return how many rows of float64 fit a part of the working memory."""
    n_bytes = 2**28 if X.is_cuda else 2**22
    return max(256, n_bytes // (8 * max(1, width)))


class TensorRows(EngineRows):
    """Hold rows in a tensor of float32 or float64, without gradient."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.shape = tuple(tensor.shape)
        self.dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))

    @classmethod
    def of(cls, X: Tensor) -> TensorRows:
        """Check a user's tensor."""
        if X.ndim != 2:
            raise ArgumentError("X", tuple(X.shape), "must have two dimensions, rows and features")
        if X.layout is not torch.strided:
            raise TypeError(
                f"X must be a dense tensor, got layout {X.layout}. Use X.to_dense(), or a SciPy CSR matrix."
            )
        if X.is_complex():
            raise InputError("Complex data not supported: X must hold real numbers", argument="X")
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
        """Return values on the device of the rows, and in their dtype unless they are integers."""
        array = np.ascontiguousarray(values)
        tensor = torch.from_numpy(array if array.flags.writeable else array.copy()).to(self.tensor.device)
        return tensor if array.dtype.kind in "iub" else tensor.to(self.tensor.dtype)

    def like(self, values: NDArray[Any]) -> TensorRows:
        """Return values as rows on the same device, in their own dtype."""
        return TensorRows(torch.from_numpy(np.ascontiguousarray(values)).to(self.tensor.device))

    def blocks(self, n: int | None = None) -> Iterator[slice]:
        """Return slices of n items of the size of a row."""
        size = BLOCK_BYTES.get(self.tensor.device.type, BLOCK_BYTES["cuda"])
        return row_blocks(self.shape[0] if n is None else n, self.itemsize * self.shape[1], size)

    def zeros(self, *shape: int) -> Tensor:
        """Return zeros in float64 on the device, where sums start."""
        return torch.zeros(shape, dtype=torch.float64, device=self.tensor.device)


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
        raise InputError(f"Input X contains {what}, for example in row {row}, column {column}", argument="X")


def _numpy(tensor: Tensor) -> Float64:
    return np.asarray(tensor.cpu().numpy(), dtype=np.float64)


def _on_device(X: TensorRows, values: FloatArray | float) -> Tensor:
    """Return values on the device of the rows, in their own dtype."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(X.tensor.device)


def _square(rows: Tensor) -> Tensor:
    with product_precision(rows.device):
        return rows.T @ rows


@operations.read_ahead.register(TensorRows)
def read_ahead(X: TensorRows, rows: IntArray, *, scatter: bool) -> None:
    """Do nothing: the rows are on the device."""


@operations.take_rows.register(TensorRows)
def take_rows(X: TensorRows, rows: IntArray | slice) -> Float64:
    return _numpy(X[rows].tensor)


@operations.rows_in_memory.register(TensorRows)
def rows_in_memory(X: TensorRows, rows: IntArray | None = None) -> NDArray[Any]:
    return np.asarray(X if rows is None else X[rows])


@operations.rows_to_learn_from.register(TensorRows)
def rows_to_learn_from(
    X: TensorRows,
    placement: Placement,
    *,
    needed: IntArray,  # noqa: ARG001 - a tensor is copied whole
    who: str,  # noqa: ARG001
) -> tuple[Rows, IntArray | None]:
    return (np.asarray(X) if placement is Placement.MEMORY else X), None


@operations.column_means.register(TensorRows)
def column_means(X: TensorRows) -> Float64:
    return _numpy(X.tensor.mean(dim=0, dtype=torch.float64))


@operations.varying_columns.register(TensorRows)
def varying_columns(X: TensorRows) -> NDArray[np.bool_]:
    varies = np.zeros(X.shape[1], dtype=bool)
    for block in X.blocks():
        varies |= (X.tensor[block] != X.tensor[:1]).any(dim=0).cpu().numpy()
        if varies.all():
            break
    return varies


@operations.column_deviations.register(TensorRows)
def column_deviations(X: TensorRows, mean: Float64) -> Float64:
    centred = X.tensor.double() - _on_device(X, mean)
    unit = centred.abs().amax(dim=0)
    unit[unit == 0] = 1.0
    square = centred.div_(unit).square_().mean(dim=0)
    return _numpy(unit) * np.sqrt(_numpy(square))


@operations.absolute_deviations.register(TensorRows)
def absolute_deviations(X: TensorRows, mean: Float64) -> Float64:
    return _numpy((X.tensor.double() - _on_device(X, mean)).abs_().mean(dim=0))


@operations.project.register(TensorRows)
def project(X: TensorRows, mean: FloatArray, components: FloatArray) -> Tensor:
    mean, directions = (X.place(values) for values in (mean, components))
    result = torch.empty((X.shape[0], len(components)), dtype=X.tensor.dtype, device=X.tensor.device)
    with product_precision(X.tensor.device):
        for block in X.blocks():
            torch.matmul(X.tensor[block] - mean, directions.T, out=result[block])
    return result


@operations.map_rows.register(TensorRows)
def map_rows(X: TensorRows, embed: Callable[[Rows], Any], n_columns: int) -> Tensor:  # noqa: ARG001
    found = embed(X)
    return X.place(found) if isinstance(found, np.ndarray) else found.to(X.tensor.dtype)


@operations.along.register(TensorRows)
def along(X: TensorRows, directions: Float64, *, origin: Float64 | None = None) -> TensorRows:
    return TensorRows(project(X.astype(np.float64), np.zeros(X.shape[1]) if origin is None else origin, directions.T))


@operations.rescaled.register(TensorRows)
def rescaled(X: TensorRows, *, offset: Float64 | None = None, scale: Float64 | float) -> TensorRows:
    values = X.tensor.double()
    return TensorRows((values if offset is None else values - _on_device(X, offset)) / _on_device(X, scale))


@operations.kernel_product.register(TensorRows)
def kernel_product(
    X: TensorRows,
    anchors: Rows,
    combination: Float64,
    *,
    kernel: Kernel,
    gamma: float | None,
    shift: Float64 | None = None,
    contrasts: bool = False,
    offset: Float64 | float = 0.0,
) -> TensorRows:
    if kernel != "rbf" or gamma is None:
        raise ArgumentError("kernel", kernel, 'must be "rbf" for rows in a tensor', "Give X.cpu().numpy()")
    values = X.tensor
    points, factors, away = (_on_device(X, np.asarray(part, np.float64)) for part in (anchors, combination, offset))
    origin = 0.0 if shift is None else _on_device(X, shift)
    squares = points.square().sum(dim=1)
    result = torch.empty((len(values), factors.shape[1]), dtype=torch.float64, device=values.device)
    for part in chunks(len(values) if result.shape[1] else 0, row_step(values, max(X.shape[1], len(points)))):
        rows = values[part].double() - origin
        squared = torch.addmm(squares, rows, points.T, alpha=-2).add_(rows.square().sum(dim=1, keepdim=True))
        exponent = squared.clamp_(min=0).mul_(-gamma)
        result[part] = (exponent.expm1_() if contrasts else exponent.exp_()) @ factors - away
    return TensorRows(result)


@operations.mean_norm.register(TensorRows)
def mean_norm(X: TensorRows) -> float:
    offset = X.tensor.mean(dim=0, dtype=torch.float64)
    total = 0.0
    for block in X.blocks():
        total += float(torch.linalg.vector_norm(X.tensor[block] - offset, dim=1, dtype=torch.float64).sum())
    return total / X.shape[0]


@operations.weighted_scatter.register(TensorRows)
def weighted_scatter(
    X: TensorRows,
    *,
    weight: FloatArray | None = None,
    offset: FloatArray,
    is_mean: bool = False,  # noqa: ARG001 - nothing is saved by it here
) -> Float64:
    centre = X.place(offset)
    root, unit = (None, 1.0) if weight is None else _roots(X, weight)
    total = X.zeros(X.shape[1], X.shape[1])
    for block in X.blocks():
        rows = X.tensor[block] - centre
        total += _square(rows if root is None else rows * root[block, None])
    return unit * _numpy(total)


def _roots(X: TensorRows, weight: FloatArray) -> tuple[Tensor, float]:
    """Return square roots of weights in units of the largest, and that unit."""
    unit = float(np.max(weight, initial=0.0)) or 1.0
    return X.place(np.sqrt(weight / unit)), unit


@operations.group_means.register(TensorRows)
def group_means(X: TensorRows, codes: IntArray) -> Float64:
    member = np.flatnonzero(codes >= 0)
    size = np.bincount(codes[member])
    sums = X.zeros(len(size), X.shape[1])
    rows, code = X.place(member), X.place(codes[member])
    for block in X.blocks(len(member)):
        sums.index_add_(0, code[block], X.tensor[rows[block]].to(torch.float64))
    return _numpy(sums) / np.maximum(size, 1)[:, None]


@operations.group_scatter.register(TensorRows)
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


@operations.pair_scatter.register(TensorRows)
def pair_scatter(X: TensorRows, pairs: IntArray, weight: FloatArray | None = None) -> Float64:
    """Sum blocks of differences; the weights may be negative."""
    total = X.zeros(X.shape[1], X.shape[1])
    if len(pairs) == 0:
        return _numpy(total)
    unit = 1.0 if weight is None else float(np.max(np.abs(weight))) or 1.0
    left, right = X.place(pairs[:, 0].astype(np.int64)), X.place(pairs[:, 1].astype(np.int64))
    factor = None if weight is None else X.place(np.asarray(weight) / unit)
    for block in X.blocks(len(pairs)):
        difference = X.tensor[left[block]] - X.tensor[right[block]]
        weighted = difference if factor is None else difference * factor[block, None]
        with product_precision(X.tensor.device):
            total += weighted.T @ difference
    result = unit * _numpy(total)
    return (result + result.T) / 2


@operations.graph_scatter.register(TensorRows)
def graph_scatter(X: TensorRows, graph: Graph) -> Float64:
    """Sum edge by edge: more products than the Laplacian form, but nothing cancels, and products are cheap here.

    :class:`~pairlens.engines.operations.Edges` are summed in float64.
    """
    if isinstance(graph, Edges):
        left, right, weight = (_on_device(X, part) for part in (*graph.pairs.T, graph.weight))
        total = X.zeros(X.shape[1], X.shape[1])
        for block in X.blocks(len(weight)):
            difference = X.tensor[left[block]].double() - X.tensor[right[block]]
            total += (difference * weight[block, None]).T @ difference
        return _numpy((total + total.T) / 2)
    upper = sparse.triu(graph, 1).tocoo()
    return pair_scatter(X, np.column_stack([upper.row, upper.col]), upper.data)


@operations.pair_squared_distances.register(TensorRows)
def pair_squared_distances(X: TensorRows, pairs: IntArray) -> Float64:
    return _numpy(squared_differences(X.tensor, *(X.place(end.astype(np.int64)) for end in pairs.T)))


def squared_differences(X: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return squared distances of pairs of rows, in float64 on their device."""
    result = torch.empty(len(left), dtype=torch.float64, device=X.device)
    for part in chunks(len(left), row_step(X, X.shape[1])):
        difference = X[left[part]].double() - X[right[part]]
        result[part] = difference.square_().sum(dim=1)
    return result


@operations.symmetric_eigen.register(TensorRows)
def symmetric_eigen(X: TensorRows, A: Float64, at_most: int | None = None) -> tuple[Float64, Float64]:
    """Solve on a GPU from :data:`DEVICE_FEATURES` features on; for fewer, the way there is longer than the work."""
    if X.tensor.is_cuda and len(A) >= DEVICE_FEATURES:
        values, vectors = device_eigen(A, X.tensor.device)
        return values[:at_most], vectors[:, :at_most]
    return operations.symmetric_eigen(A, A, at_most)


def device_eigen(A: Float64, device: Any) -> tuple[Float64, Float64]:
    """Return eigenvalues, largest first, and eigenvectors of a symmetric matrix, by a solver on the device."""
    values, vectors = torch.linalg.eigh(torch.from_numpy(np.ascontiguousarray(A)).to(device))
    return _numpy(values.flip(0)), _numpy(vectors.flip(1))
