r"""The k nearest rows in the projected kernel distance and the k farthest in the input, on torch tensors.

:mod:`pairlens.engines.projected` for the CPU or a GPU: the same distances, ties and groups, the same result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pairlens.engines import projected
from pairlens.engines.projected import LARGEST_CANDIDATES, TIE, ProjectedRows, RowGroups
from pairlens.engines.rows import Float64, Index, IntArray
from pairlens.engines.search import QUANTUM as INPUT_QUANTUM
from pairlens.engines.search import Selected
from pairlens.engines.torch import rows as tensors
from pairlens.engines.torch import search
from pairlens.engines.torch.rows import TensorRows
from pairlens.engines.torch.search import EuclidScreen, Side, Strip, TiledStrip, TorchRows

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch.rows import torch

# Rows in which the largest projected distance is looked for in float64, those with the largest screened ones.
LARGEST_ROWS = 64


@projected.first_identical.register(TensorRows)
def first_identical(rows: TensorRows) -> Index:
    X: Tensor = rows.tensor
    n, f = X.shape
    weight = torch.from_numpy(np.random.default_rng(0).standard_normal(f)).to(X.device)
    mark = torch.empty(n, dtype=torch.float64, device=X.device)
    for part in tensors.chunks(n, 1 << 17):
        # Adding zero makes one zero of both; a sum, unlike a product with a vector, treats all rows in the same way.
        mark[part] = ((X[part].double() + 0.0) * weight).sum(dim=1)
    value, order = mark.sort(stable=True)
    is_first = torch.ones_like(order, dtype=torch.bool)
    is_first[1:] = value[1:] != value[:-1]
    start = torch.arange(n, device=X.device)[is_first]
    candidate = torch.empty_like(order)
    candidate[order] = order[start[is_first.cumsum(0) - 1]]
    repeated = (candidate != torch.arange(n, device=X.device)).nonzero()[:, 0]
    for part in tensors.chunks(len(repeated), 1 << 17):
        some = repeated[part]
        differs = some[(X[some] != X[candidate[some]]).any(dim=1)]
        candidate[differs] = differs
    return np.asarray(candidate.cpu().numpy())


@projected.projected_rows.register(TensorRows)
def projected_rows(X: TensorRows, F: TensorRows, gamma: float, chunklets: IntArray) -> TorchProjectedRows:
    return TorchProjectedRows(X, F.tensor, gamma, RowGroups.of(X, chunklets), TorchRows.of(X.tensor))


@dataclass(frozen=True)
class TorchProjectedRows(ProjectedRows):
    """Project rows in a tensor, on its device."""

    @property
    def remaining(self) -> Float64:
        return np.asarray((1 - self.F.square().sum(dim=1)).cpu().numpy())

    @cached_property
    def device(self) -> torch.device:
        return self.F.device

    @cached_property
    def representative(self) -> Tensor:
        """For each row the one that represents its group."""
        return torch.from_numpy(self.groups.representative).to(self.device)

    def squared_distances(self, rows: Index, cols: Index) -> Float64:
        halved, _ = self.halved(
            *(torch.from_numpy(np.ascontiguousarray(part)).to(self.device) for part in (rows, cols))
        )
        return np.asarray(2 * halved.cpu().numpy())

    def key(self, rows: Tensor, cols: Tensor) -> Tensor:
        """Return what near rows are ordered by: halved squared projected distances and a little of the input one."""
        halved, squared = self.halved(rows, cols)
        return halved + self.tie * squared

    def halved(self, rows: Tensor, cols: Tensor) -> tuple[Tensor, Tensor]:
        """Return halved squared projected distances of pairs, and squared input distances in units of the rows."""
        rows, cols = self.representative[rows], self.representative[cols]
        squared = self.rows.squared_distances(rows, cols)
        halved = -torch.expm1(-self.rate * squared)
        for part in tensors.chunks(len(rows), tensors.row_step(self.F, self.F.shape[1])):
            halved[part] -= (self.F[rows[part]] - self.F[cols[part]]).square_().sum(dim=1) / 2
        return torch.where(rows == cols, 0.0, halved.clamp_(min=0.0)), squared

    def _search(self, k: int, n_listed: int) -> tuple[Selected | None, Selected, float]:
        n_bytes = tensors.working_bytes(self.device)
        with tensors.product_precision(self.device):
            kernels = tensors.triton_kernels(self.X.tensor)
            fused = kernels is not None and kernels.fits(self.rows)
            screen: ProjectedScreen = kernels.TritonProjectedScreen(self) if fused else ProjectedScreen(self)
            sides = {"far": Side(k, -1, INPUT_QUANTUM, self.rows.squared_distances)}
            if n_listed:
                sides["near"] = Side(n_listed, +1, self.quantum, self.key, screen.stands)
            joined = search.self_join(screen, sides, block=search.strip_rows(screen, k, n_bytes), fine_bytes=n_bytes)
            largest = screen.largest() if n_listed else 0.0
        found = {name: (index.cpu().numpy(), keys.cpu().numpy()) for name, (index, keys) in joined.items()}
        return found.get("near"), found["far"], largest


def projected_errors(rows: TorchProjectedRows, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return bounds on what products in a dtype may be wrong by: for a pair the sum of those of its rows.

    The first is of halved squared projected distances, the second of squared input distances in units of the rows.
    """
    euclid = 2 * search.error_unit(rows.rows, dtype) * rows.rows.square
    rank = max(1, rows.F.shape[1])
    unit = (rank + 32) * torch.finfo(dtype).eps / 2
    if dtype == torch.float32 and tensors.single_products(rows.device):
        unit += search.SINGLE_ERROR / rank**0.5
    # The products are wrong by a share of (2 + |F_x| + |F_y|)², and (r + s)² is at most 2 r² + 2 s².
    length = rows.F.square().sum(dim=1).sqrt_()
    of_products = 4 * unit * (1 + length).square_()
    return rows.rate * euclid + of_products + (TIE * rows.unit if dtype == torch.float32 else 0.0), euclid


class ProjectedScreen:
    """Screen halved squared projected distances and squared input distances of strips of rows, by matrix products.

    Rows for which another one stands are not there as columns in the former. `top` is the largest halved squared
    projected distance seen in each row.
    """

    stores_keys = True

    def __init__(self, rows: TorchProjectedRows) -> None:
        self.rows, self.n, self.device = rows, rows.n, rows.device
        self.stands = rows.representative == torch.arange(rows.n, device=self.device)
        self.level = (1 - rows.F.square().sum(dim=1)) / 2
        self.top = torch.full((rows.n,), -torch.inf, dtype=torch.float64, device=self.device)
        self.euclid = EuclidScreen(rows.rows)

    @cached_property
    def F(self) -> Tensor:
        """F as factor of the products, padded to whole groups."""
        return search.padded(self.rows.F.to(self.euclid.dtype), search.GROUP)

    @cached_property
    def gain(self) -> dict[str, Tensor]:
        """See :class:`~pairlens.engines.torch.search.TiledStrip`."""
        projected, euclid = projected_errors(self.rows, self.euclid.dtype)
        near = torch.where(self.stands, -projected, torch.inf)
        return {
            name: search.padded(gain.to(self.euclid.dtype), search.GROUP, torch.inf)
            for name, gain in (("near", near), ("far", -euclid))
        }

    def strip(self, rows: slice) -> Strip:
        squared = self.euclid.squared(rows)
        dtype = squared.dtype
        level = self.level.to(dtype)
        near = torch.addmm(search.padded(level, search.GROUP), self.F[rows], self.F.T).add_(level[rows, None])
        near -= (squared * -self.rows.rate).clamp_(max=0).exp_()
        if dtype == torch.float64:
            # Here rounding of F, which nothing bounds, may exceed that of the screen.
            near.clamp_(min=0).add_(squared, alpha=self.rows.tie)
        self.top[rows] = near[:, : self.n].amax(dim=1).double()
        return TiledStrip({"near": (+1, near), "far": (-1, squared)}, self.gain, rows)

    def fine(self, name: str, rows: Tensor) -> tuple[Tensor, Tensor]:
        if name == "far":
            return self.euclid.fine(name, rows)
        squared = self.euclid.fine_squared(rows)
        near = torch.addmm(self.level, self.rows.F[rows], self.rows.F.T).add_(self.level[rows, None])
        near -= (squared * -self.rows.rate).clamp_(max=0).exp_()
        near.clamp_(min=0).add_(squared, alpha=self.rows.tie)
        self.top[rows] = near.amax(dim=1)
        near.masked_fill_(~self.stands, torch.inf).scatter_(1, rows[:, None], torch.inf)
        return near, self._fine_error[rows] + self._fine_error.max()

    @cached_property
    def _fine_error(self) -> Tensor:
        return projected_errors(self.rows, torch.float64)[0]

    def largest(self) -> float:
        """Return the largest halved squared projected distance, from the rows with the largest screened ones."""
        rows = self.top.topk(min(LARGEST_ROWS, self.n)).indices
        best = 0.0
        for part in tensors.chunks(len(rows), max(1, tensors.working_bytes(self.device) // (64 * self.n))):
            keys = self.fine("near", rows[part])[0]
            keys[keys.isinf()] = -torch.inf
            place = keys.flatten().topk(min(LARGEST_CANDIDATES, keys.numel())).indices
            halved, _ = self.rows.halved(rows[part][place // self.n], place % self.n)
            best = max(best, float(halved.max()))
        return best
