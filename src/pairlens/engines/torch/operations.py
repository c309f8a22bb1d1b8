r"""The operations on rows that are a torch tensor, on whatever device it is.

Large arrays stay on the device; what comes back is small (f x f, or one number per row or edge) and a NumPy array of
float64. Blocks of float32 are multiplied in float32 and summed in float64, as for NumPy. TF32 is off unless
``config_context(tf32=True)`` says otherwise.

Plain PyTorch throughout: sums by group, blocks of gathered rows and the selection of neighbours are beyond the array
API standard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens.engines import interface
from pairlens.engines.local.rows import PORTION_BYTES, rebuilding_graph, row_blocks
from pairlens.engines.local.rows import median_gamma as local_median_gamma
from pairlens.engines.local.rows import symmetric_eigen as local_eigen
from pairlens.engines.torch.device import product_precision, torch, working_bytes
from pairlens.engines.torch.neighbors import torch_neighbors
from pairlens.engines.torch.rows import TensorGraph, TensorRows
from pairlens.engines.torch.selection import chunks
from pairlens.engines.types import Float64, FloatArray, Graph, IntArray, KernelMap, Neighbors, Placement, Rows

Tensor = Any

DEVICE_FEATURES = 256
"""Size from which matrices that come from rows on a GPU are diagonalised there."""


def _numpy(tensor: Tensor) -> Float64:
    return np.asarray(tensor.cpu().numpy(), dtype=np.float64)


def _on_device(X: TensorRows, values: FloatArray | float) -> Tensor:
    """Values on the device of the rows, in their own dtype."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(X.tensor.device)


def _square(rows: Tensor) -> Tensor:
    with product_precision(rows.device):
        return rows.T @ rows


@interface.read_ahead.register(TensorRows)
def read_ahead(X: TensorRows, rows: IntArray, *, scatter: bool) -> None:
    """Does nothing: the rows are on the device."""


@interface.take_rows.register(TensorRows)
def take_rows(X: TensorRows, rows: IntArray | slice) -> Float64:
    return _numpy(X[rows].tensor)


@interface.rows_in_memory.register(TensorRows)
def rows_in_memory(X: TensorRows, rows: IntArray | None = None) -> NDArray[Any]:
    return np.asarray(X if rows is None else X[rows])


@interface.rows_to_learn_from.register(TensorRows)
def rows_to_learn_from(
    X: TensorRows,
    placement: Placement,
    *,
    needed: IntArray,  # noqa: ARG001 - a tensor is copied whole
    who: str,  # noqa: ARG001
) -> tuple[Rows, IntArray | None]:
    return (np.asarray(X) if placement is Placement.MEMORY else X), None


@interface.column_means.register(TensorRows)
def column_means(X: TensorRows) -> Float64:
    return _numpy(X.tensor.mean(dim=0, dtype=torch.float64))


@interface.varying_columns.register(TensorRows)
def varying_columns(X: TensorRows) -> NDArray[np.bool_]:
    varies = np.zeros(X.shape[1], dtype=bool)
    for block in X.blocks():
        varies |= (X.tensor[block] != X.tensor[:1]).any(dim=0).cpu().numpy()
        if varies.all():
            break
    return varies


@interface.column_deviations.register(TensorRows)
def column_deviations(X: TensorRows, mean: Float64) -> Float64:
    centred = X.tensor.double() - _on_device(X, mean)
    unit = centred.abs().amax(dim=0)
    unit[unit == 0] = 1.0
    square = centred.div_(unit).square_().mean(dim=0)
    return _numpy(unit) * np.sqrt(_numpy(square))


@interface.absolute_deviations.register(TensorRows)
def absolute_deviations(X: TensorRows, mean: Float64) -> Float64:
    return _numpy((X.tensor.double() - _on_device(X, mean)).abs_().mean(dim=0))


@interface.project.register(TensorRows)
def project(X: TensorRows, mean: FloatArray, components: FloatArray) -> Tensor:
    mean, directions = (X.place(values) for values in (mean, components))
    result = torch.empty((X.shape[0], len(components)), dtype=X.tensor.dtype, device=X.tensor.device)
    with product_precision(X.tensor.device):
        for block in X.blocks():
            torch.matmul(X.tensor[block] - mean, directions.T, out=result[block])
    return result


@interface.map_rows.register(TensorRows)
def map_rows(X: TensorRows, embed: Callable[[Rows], Any], n_columns: int) -> Tensor:  # noqa: ARG001
    found = embed(X)
    return X.place(found) if isinstance(found, np.ndarray) else found.to(X.tensor.dtype)


@interface.along.register(TensorRows)
def along(X: TensorRows, directions: Float64, *, origin: Float64 | None = None) -> TensorRows:
    return TensorRows(project(X.astype(np.float64), np.zeros(X.shape[1]) if origin is None else origin, directions.T))


@interface.rescaled.register(TensorRows)
def rescaled(X: TensorRows, *, offset: Float64 | None = None, scale: Float64 | float) -> TensorRows:
    values = X.tensor.double()
    return TensorRows((values if offset is None else values - _on_device(X, offset)) / _on_device(X, scale))


@interface.unit_variance.register(TensorRows)
def unit_variance(X: TensorRows) -> tuple[TensorRows, Float64, float]:
    values = X.tensor.double()
    mean = values.mean(dim=0)
    centred = values - mean
    variance = float(centred.square().sum()) / len(centred)
    size = float(np.sqrt(variance)) if variance > 0 else 1.0
    return TensorRows(centred.div_(size)), _numpy(mean), size


@interface.kernel_product.register(TensorRows)
def kernel_product(X: TensorRows, features: KernelMap) -> TensorRows:
    if features.kernel != "rbf" or features.gamma is None:
        raise ValueError(f"kernel={features.kernel!r} is not computed on a device; give X.cpu().numpy().")
    values = X.tensor.double()
    anchors, combination, offset = (
        _on_device(X, np.asarray(part, dtype=np.float64))
        for part in (features.anchors, features.combination, features.offset)
    )
    squares = anchors.square().sum(dim=1)
    result = torch.empty((len(values), combination.shape[1]), dtype=torch.float64, device=values.device)
    for part in chunks(len(values), max(256, working_bytes(values.device) // (32 * len(anchors)))):
        rows = values[part]
        squared = torch.addmm(squares, rows, anchors.T, alpha=-2).add_(rows.square().sum(dim=1, keepdim=True))
        result[part] = squared.clamp_(min=0).mul_(-features.gamma).exp_() @ combination - offset
    return TensorRows(result)


@interface.combine_rows.register(TensorRows)
def combine_rows(X: TensorRows, coefficients: FloatArray) -> Float64:
    weights = _on_device(X, coefficients)
    total = X.zeros(len(coefficients), X.shape[1])
    for block in X.blocks():
        total += weights[:, block] @ X.tensor[block].to(torch.float64)
    return _numpy(total)


@interface.mean_norm.register(TensorRows)
def mean_norm(X: TensorRows) -> float:
    offset = X.tensor.mean(dim=0, dtype=torch.float64)
    total = 0.0
    for block in X.blocks():
        total += float(torch.linalg.vector_norm(X.tensor[block] - offset, dim=1, dtype=torch.float64).sum())
    return total / X.shape[0]


@interface.weighted_scatter.register(TensorRows)
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
    """Square roots of weights in units of the largest, and that unit."""
    unit = float(np.max(weight, initial=0.0)) or 1.0
    return X.place(np.sqrt(weight / unit)), unit


@interface.group_means.register(TensorRows)
def group_means(X: TensorRows, codes: IntArray) -> Float64:
    member = np.flatnonzero(codes >= 0)
    size = np.bincount(codes[member])
    sums = X.zeros(len(size), X.shape[1])
    rows, code = X.place(member), X.place(codes[member])
    for block in X.blocks(len(member)):
        sums.index_add_(0, code[block], X.tensor[rows[block]].to(torch.float64))
    return _numpy(sums) / np.maximum(size, 1)[:, None]


@interface.group_scatter.register(TensorRows)
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


@interface.pair_scatter.register(TensorRows)
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
        with product_precision(X.tensor.device):
            total += weighted.T @ difference
    result = unit * _numpy(total)
    return (result + result.T) / 2


@interface.graph_scatter.register(TensorRows)
def graph_scatter(X: TensorRows, graph: Graph) -> Float64:
    """Edge by edge: more products than the Laplacian form, but nothing cancels, and products are cheap here.

    A :class:`TensorGraph` is summed in float64.
    """
    if isinstance(graph, TensorGraph):
        total = X.zeros(X.shape[1], X.shape[1])
        for block in X.blocks(len(graph.left)):
            difference = X.tensor[graph.left[block]].double() - X.tensor[graph.right[block]]
            total += (difference * graph.weight[block, None]).T @ difference
        return _numpy((total + total.T) / 2)
    upper = sparse.triu(graph, 1).tocoo()
    return pair_scatter(X, np.column_stack([upper.row, upper.col]), upper.data)


@interface.residual_scatter.register(TensorRows)
def residual_scatter(X: TensorRows, rebuild: sparse.csr_matrix) -> Float64:
    return graph_scatter(X, rebuilding_graph(rebuild))


@interface.pair_squared_distances.register(TensorRows)
def pair_squared_distances(X: TensorRows, pairs: IntArray) -> Float64:
    result = np.empty(len(pairs))
    left, right = X.place(pairs[:, 0].astype(np.int64)), X.place(pairs[:, 1].astype(np.int64))
    for block in X.blocks(len(pairs)):
        difference = X.tensor[left[block]].to(torch.float64) - X.tensor[right[block]].to(torch.float64)
        result[block] = _numpy((difference * difference).sum(dim=1))
    return result


@interface.centred_product.register(TensorRows)
def centred_product(left: TensorRows, right: TensorRows, centre: Float64) -> Float64:
    product = left.zeros(left.shape[0], right.shape[0])
    shift = _on_device(left, centre)
    for block in row_blocks(left.shape[1], 8 * max(left.shape[0], right.shape[0]), 1 << 25):
        product += (left.tensor[:, block] - shift[block]) @ (right.tensor[:, block] - shift[block]).T
    return _numpy(product)


@interface.symmetric_eigen.register(TensorRows)
def symmetric_eigen(X: TensorRows, A: Float64) -> tuple[Float64, Float64]:
    """On a GPU from :data:`DEVICE_FEATURES` features on; for fewer, the way there is longer than the work."""
    if not X.tensor.is_cuda or len(A) < DEVICE_FEATURES:
        return local_eigen(A, A)
    return device_eigen(A, X.tensor.device)


def device_eigen(A: Float64, device: Any) -> tuple[Float64, Float64]:
    """Eigenvalues, largest first, and eigenvectors of a symmetric matrix, by a solver on the device in float64."""
    values, vectors = torch.linalg.eigh(torch.from_numpy(np.ascontiguousarray(A)).to(device))
    return _numpy(values.flip(0)), _numpy(vectors.flip(1))


# It asks for some of the rows in memory.
interface.median_gamma.register(TensorRows)(local_median_gamma)


@interface.rebuilding_weights.register(TensorRows)
def rebuilding_weights(X: TensorRows, indices: IntArray, reg: float) -> Float64:
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


@interface.neighbors.register(TensorRows)
def neighbors(X: TensorRows, *, n_nearest: int, block_bytes: int | None = None) -> Neighbors:
    found = torch_neighbors(X.tensor, n_nearest=n_nearest, block_bytes=block_bytes)
    return Neighbors(found.nearest.cpu().numpy(), found.nearest_distance.cpu().numpy())
