"""Edges, weights and scatters of neighbour graphs on torch tensors: nothing of size n leaves the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairlens.engines.torch.neighbors import row_step
from pairlens.engines.torch.selection import chunks

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch.loading import torch

__all__ = ["edge_keys", "edge_scatter", "falling_weights", "split_keys"]


def edge_keys(indices: Tensor) -> Tensor:
    """Unordered edges of a table of neighbours, each once, as the number ``smaller * n + larger``."""
    n, k = indices.shape
    source = torch.arange(n, device=indices.device).repeat_interleave(k)
    target = indices.reshape(-1)
    return torch.unique(torch.minimum(source, target) * n + torch.maximum(source, target))


def split_keys(keys: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Both ends of edges."""
    return keys // n, keys % n


def falling_weights(distance: Tensor, largest: float) -> Tensor:
    """One less the distance in units of the largest, not below zero; ones if the largest is zero."""
    return (1 - distance / largest).clamp_(min=0.0) if largest > 0 else torch.ones_like(distance)


def edge_scatter(X: Tensor, left: Tensor, right: Tensor, weight: Tensor) -> NDArray[np.float64]:
    r"""The scatter :math:`\sum_{(i,j)} w_{ij} (x_i - x_j)(x_i - x_j)'` in float64."""
    f = X.shape[1]
    total = torch.zeros((f, f), dtype=torch.float64, device=X.device)
    for part in chunks(len(left), row_step(X, f)):
        difference = X[left[part]].double()
        difference -= X[right[part]]
        total += (difference * weight[part, None]).T @ difference
    result: NDArray[np.float64] = ((total + total.T) / 2).cpu().numpy()
    return result
