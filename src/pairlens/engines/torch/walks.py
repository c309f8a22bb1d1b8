"""The random walk over near rows of a tensor, kept on its device."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens.engines import interface
from pairlens.engines.local.neighbors import NEGLIGIBLE, spread_over
from pairlens.engines.torch.device import torch
from pairlens.engines.torch.neighbors import row_step, torch_neighbors
from pairlens.engines.torch.rows import TensorGraph, TensorRows
from pairlens.engines.torch.selection import chunks
from pairlens.engines.types import Float64, IntArray

Tensor = Any


@dataclass(frozen=True)
class TensorNearGraph:
    """See :class:`pairlens.engines.types.NearGraph`.

    `listed` joins each row with those that it lists, and `back` is the transpose of the walk, all on the device.
    """

    listed: TensorGraph
    walk: Tensor
    back: Tensor
    accuracy: float
    weights: None = None

    @property
    def indices(self) -> IntArray:
        n = self.walk.shape[0]
        return np.asarray(self.listed.right.reshape(n, -1).cpu().numpy())

    def listed_scatter(self, rows: TensorRows) -> Float64:
        return interface.graph_scatter(rows, self.listed)

    def spread(self, rows: TensorRows, a: float) -> TensorRows:
        return TensorRows(spread_over(self.walk, rows.tensor, a, accuracy=self.accuracy))

    def spread_back(self, weights: Float64, a: float) -> Float64:
        start = torch.from_numpy(weights).to(self.back.device)
        return np.asarray(spread_over(self.back, start, a, accuracy=self.accuracy).cpu().numpy())


@interface.near_walk.register(TensorRows)
def near_walk(
    X: TensorRows, k: int, *, scale_neighbor: int, accuracy: float, found: tuple[IntArray, Float64] | None = None
) -> TensorNearGraph:
    """What is searched here never leaves the device."""
    nearest: Tensor
    distance: Tensor
    if found is None:
        searched = torch_neighbors(X.tensor, n_nearest=max(k, scale_neighbor))
        nearest, distance = searched.nearest, searched.nearest_distance
    else:
        nearest, distance = X.place(found[0]), torch.from_numpy(found[1]).to(X.tensor.device)
    n, device = X.shape[0], X.tensor.device
    target = nearest[:, :k].reshape(-1)
    source = torch.arange(n, device=device).repeat_interleave(k)
    scale = distance[:, scale_neighbor - 1]
    keys = torch.unique(torch.minimum(source, target) * n + torch.maximum(source, target))
    left, right = keys // n, keys % n
    squared = torch.empty(len(keys), dtype=torch.float64, device=device)
    for part in chunks(len(keys), row_step(X.tensor, X.shape[1])):
        difference = X.tensor[left[part]].double() - X.tensor[right[part]]
        squared[part] = difference.square_().sum(dim=1)
    local = scale[left] * scale[right]
    # Rows that repeat seven times have scale 0: full weight to each other, none to all others.
    weight = torch.where(local > 0, torch.exp(-squared / torch.where(local > 0, local, 1.0)), (squared == 0).double())
    weight[weight < NEGLIGIBLE] = 0.0
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
    listed = TensorGraph(source, target, torch.ones(n * k, dtype=torch.float64, device=device))
    return TensorNearGraph(listed, forth, back, accuracy)
