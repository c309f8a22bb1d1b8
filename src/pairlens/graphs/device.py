"""The graph of near rows of a tensor, built and kept on its device."""

from __future__ import annotations

import warnings
from typing import Any

from pairlens.engines import Float64, graph_scatter
from pairlens.engines.torch import TensorGraph, TensorRows, chunks, row_step, torch, torch_neighbors

Tensor = Any


def device_nearest(rows: TensorRows, k: int) -> tuple[Tensor, Tensor]:
    """The k nearest rows of each row, nearest first, and their distances, exactly and on the device."""
    found = torch_neighbors(rows.tensor, n_nearest=k)
    return found.nearest, found.nearest_distance


def device_walks(rows: TensorRows, nearest: Tensor, scale: Tensor, negligible: float) -> tuple[Tensor, Tensor]:
    r"""The random walk over near rows with weights :math:`\exp(-d_{ij}^2 / (s_i s_j))`, and its transpose, as CSR.

    Parameters
    ----------
    rows : TensorRows of shape (n, p)
    nearest : int tensor of shape (n, k)
        Neighbours of each row.
    scale : float64 tensor of shape (n,)
        The s.
    negligible : float
        Weights below it are none.
    """
    n, k = nearest.shape
    device = nearest.device
    source = torch.arange(n, device=device).repeat_interleave(k)
    target = nearest.reshape(-1)
    keys = torch.unique(torch.minimum(source, target) * n + torch.maximum(source, target))
    left, right = keys // n, keys % n
    squared = torch.empty(len(keys), dtype=torch.float64, device=device)
    for part in chunks(len(keys), row_step(rows.tensor, rows.shape[1])):
        difference = rows.tensor[left[part]].double() - rows.tensor[right[part]]
        squared[part] = difference.square_().sum(dim=1)
    local = scale[left] * scale[right]
    # Rows that repeat seven times have scale 0: full weight to each other, none to all others.
    weight = torch.where(local > 0, torch.exp(-squared / torch.where(local > 0, local, 1.0)), (squared == 0).double())
    weight[weight < negligible] = 0.0
    degree = torch.zeros(n, dtype=torch.float64, device=device)
    degree.index_add_(0, left, weight).index_add_(0, right, weight)
    # A row whose weights all vanish walks to itself.
    alone = torch.nonzero(degree == 0).reshape(-1)
    degree[alone] = 1.0
    row = torch.cat([left, right, alone])
    column = torch.cat([right, left, alone])
    value = torch.cat([weight, weight, torch.ones(len(alone), dtype=torch.float64, device=device)])
    order = torch.argsort(row * n + column)
    row, column, value = row[order], column[order], value[order]
    start = torch.zeros(n + 1, dtype=torch.int64, device=device)
    start[1:] = torch.cumsum(torch.bincount(row, minlength=n), dim=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)
        forth, back = (
            torch.sparse_csr_tensor(start, column, value / degree[end], size=(n, n), check_invariants=False)
            for end in (row, column)
        )
    return forth, back


def listed_scatter(rows: TensorRows, nearest: Tensor) -> Float64:
    """Scatter of the differences between each row and those it lists."""
    n, k = nearest.shape
    source = torch.arange(n, device=nearest.device).repeat_interleave(k)
    ones = torch.ones(n * k, dtype=torch.float64, device=nearest.device)
    return graph_scatter(rows, TensorGraph(source, nearest.reshape(-1), ones))
