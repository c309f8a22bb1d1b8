"""The scatters of DSP for rows in a torch tensor: the same graphs and weights, on the device of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import IntArray
from pairlens.engines.torch.graphs import edge_keys, edge_scatter, falling_weights, split_keys
from pairlens.engines.torch.neighbors import row_step
from pairlens.engines.torch.projected import TorchProjectedNeighbors, TorchProjectedRows
from pairlens.engines.torch.selection import chunks
from pairlens.kernels.nullspace import NullSpace, must_link_null_space
from pairlens.spectral.eigen import Pencil

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch.loading import torch

__all__ = ["device_eigh", "null_space_coordinates", "null_space_of", "projected_rows", "scatters"]

Matrix = NDArray[np.float64]


def null_space_of(X: Tensor, chunklets: IntArray, gamma: float) -> NullSpace:
    """The null space of the must-links, from the linked rows alone."""
    linked = np.flatnonzero(chunklets >= 0)
    points = X[torch.from_numpy(linked).to(X.device)].cpu().numpy()
    return must_link_null_space(points, chunklets[linked], gamma=gamma)


def null_space_coordinates(X: Tensor, space: NullSpace) -> Tensor:
    """F of all rows of X in float64, on their device: :meth:`pairlens.kernels.nullspace.NullSpace.coordinates`.

    The kernel is exp(-gamma d²), less 1, which the contrasts of the null space do not feel.
    """
    assert space.gamma is not None
    result = torch.empty((X.shape[0], space.rank), dtype=torch.float64, device=X.device)
    if space.rank == 0:
        return result
    points = torch.as_tensor(space.points, dtype=torch.float64, device=X.device)
    shift = torch.as_tensor(space.shift, dtype=torch.float64, device=X.device)
    combination = torch.as_tensor(space.combination, dtype=torch.float64, device=X.device)
    own = points.square().sum(dim=1)
    for part in chunks(X.shape[0], row_step(X, max(X.shape[1], len(points)))):
        rows = X[part].double() - shift
        squared = torch.addmm(own, rows, points.T, alpha=-2).add_(rows.square().sum(dim=1)[:, None])
        result[part] = squared.clamp_(min=0).mul_(-space.gamma).expm1_() @ combination
    return result


def projected_rows(X: Tensor, chunklets: IntArray, gamma: float) -> TorchProjectedRows:
    """The rows with both distances."""
    F = null_space_coordinates(X, null_space_of(X, chunklets, gamma))
    return TorchProjectedRows.of(X, F, gamma, chunklets)


def scatters(
    X: Tensor,
    projected: TorchProjectedRows,
    found: TorchProjectedNeighbors,
    cannot_link: IntArray,
    factor: NDArray[np.float64],
) -> tuple[Matrix, Matrix]:
    """A and B: the scatters of the coordinates X over near rows, and over far and cannot-linked rows.

    Parameters
    ----------
    X : tensor of shape (n, dim)
    projected : TorchProjectedRows
        The rows whose distances are the weights.
    found : TorchProjectedNeighbors
    cannot_link : int array of shape (m, 2)
    factor : array of shape (m,)
        What each of them counts for.
    """
    n = projected.n
    left, right = split_keys(edge_keys(found.nearest), n)
    distance = projected.squared_distances(left, right).sqrt_()
    near = edge_scatter(X, left, right, falling_weights(distance, found.largest_projected))

    keys = edge_keys(found.farthest)
    pairs, first = np.unique(cannot_link.astype(np.int64) @ np.array([n, 1]), return_index=True)
    linked = torch.from_numpy(pairs).to(keys.device)
    # An edge that is both far and cannot-linked counts once, as a far one.
    new = ~torch.isin(linked, keys)
    left, right = split_keys(torch.cat([keys, linked[new]]), n)
    share = torch.cat([torch.ones(len(keys), dtype=torch.float64), torch.from_numpy(factor[first])[new.cpu()]])
    distance = projected.rows.scale * projected.rows.squared_distances(left, right).sqrt_()
    weight = share.to(keys.device) * falling_weights(distance, found.largest_input)
    return near, edge_scatter(X, left, right, weight)


def device_eigh(device: torch.device) -> Callable[[Matrix], Pencil]:
    """Eigenvalues, largest first, and eigenvectors of a symmetric matrix, by a solver on the device in float64."""

    def eigh(A: Matrix) -> Pencil:
        values, vectors = torch.linalg.eigh(torch.from_numpy(A).to(device))
        return values.flip(0).cpu().numpy(), vectors.flip(1).cpu().numpy()

    return eigh
