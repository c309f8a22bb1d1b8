r"""The k nearest rows in the projected kernel distance and the k farthest in the input, on torch tensors.

:mod:`pairlens.engines.local.projected` for the CPU or a GPU: the same distances, ties and groups, the same result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pairlens.engines import interface
from pairlens.engines.local.neighbors import QUANTUM as INPUT_QUANTUM
from pairlens.engines.local.projected import LARGEST_CANDIDATES, TIE, ProjectedUnits, check_k
from pairlens.engines.torch.collapse import TorchCollapsed
from pairlens.engines.torch.device import product_precision, single_products, triton_kernels, working_bytes
from pairlens.engines.torch.neighbors import (
    SINGLE_ERROR,
    EuclidScreen,
    TiledStrip,
    TorchRows,
    error_unit,
    row_step,
    strip_rows,
)
from pairlens.engines.torch.rows import TensorRows
from pairlens.engines.torch.selection import GROUP, Side, Strip, chunks, padded, self_join
from pairlens.engines.types import Float64, IntArray, ProjectedNeighbors, Span

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch.device import torch

# Rows in which the largest projected distance is looked for in float64, those with the largest screened ones.
LARGEST_ROWS = 64


@interface.projected_rows.register(TensorRows)
def projected_rows(X: TensorRows, span: Span, chunklets: IntArray) -> TorchProjectedRows:
    assert span.gamma is not None
    return TorchProjectedRows.of(X.tensor, coordinates(X.tensor, span), span.gamma, chunklets)


def coordinates(X: Tensor, span: Span) -> Tensor:
    """Coordinates F of all rows in float64, on their device.

    The kernel is exp(-gamma d²), less 1, which the contrasts of the null space do not feel.
    """
    assert span.gamma is not None
    result = torch.empty((X.shape[0], span.rank), dtype=torch.float64, device=X.device)
    if span.rank == 0:
        return result
    points = torch.as_tensor(span.points, dtype=torch.float64, device=X.device)
    shift = torch.as_tensor(span.shift, dtype=torch.float64, device=X.device)
    combination = torch.as_tensor(span.combination, dtype=torch.float64, device=X.device)
    own = points.square().sum(dim=1)
    for part in chunks(X.shape[0], row_step(X, max(X.shape[1], len(points)))):
        rows = X[part].double() - shift
        squared = torch.addmm(own, rows, points.T, alpha=-2).add_(rows.square().sum(dim=1)[:, None])
        result[part] = squared.clamp_(min=0).mul_(-span.gamma).expm1_() @ combination
    return result


@dataclass(frozen=True)
class TorchProjectedRows(ProjectedUnits):
    """Rows with their input distance and their projected kernel distance.

    Attributes
    ----------
    X : tensor of shape (n, n_features)
    F : float64 tensor of shape (n, rank)
        Coordinates in the span of must-link differences.
    gamma : float
        Of the kernel exp(-gamma d²).
    groups : TorchCollapsed
        Rows at projected distance zero from one another: must-linked or identical.
    """

    X: Tensor
    F: Tensor
    gamma: float
    groups: TorchCollapsed
    rows: TorchRows

    @classmethod
    def of(cls, X: Tensor, F: Tensor, gamma: float, chunklets: IntArray) -> TorchProjectedRows:
        """See the attributes; `chunklets` is the group of must-linked rows of each row, -1 for none."""
        return cls(X, F, gamma, TorchCollapsed.of(X, chunklets), TorchRows.of(X))

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def remaining(self) -> Float64:
        """The projected kernel of each row with itself."""
        remaining: Float64 = (1 - self.F.square().sum(dim=1)).cpu().numpy()
        return remaining

    @cached_property
    def tie(self) -> float:
        """Share of the squared input distance in the key."""
        return TIE * self.unit / self.diameter

    def squared_distances(self, rows: Tensor, cols: Tensor) -> Tensor:
        """Squared projected distances of pairs of rows; 0 inside a group."""
        return 2 * self._halved(rows, cols)[0]

    def key(self, rows: Tensor, cols: Tensor) -> Tensor:
        """What near rows are ordered by: halved squared projected distances with a little of the input distance."""
        halved, squared = self._halved(rows, cols)
        return halved + self.tie * squared

    def _halved(self, rows: Tensor, cols: Tensor) -> tuple[Tensor, Tensor]:
        rows, cols = self.groups.representative[rows], self.groups.representative[cols]
        squared = self.rows.squared_distances(rows, cols)
        halved = -torch.expm1(-self.rate * squared)
        for part in chunks(len(rows), row_step(self.X, self.F.shape[1])):
            halved[part] -= (self.F[rows[part]] - self.F[cols[part]]).square_().sum(dim=1) / 2
        return torch.where(rows == cols, 0.0, halved.clamp_(min=0.0)), squared

    def neighbors(self, k: int, *, block_bytes: int | None = None) -> ProjectedNeighbors:
        """See :meth:`pairlens.engines.types.ProjectedRows.neighbors`; the result is on the device.

        `block_bytes` is by default 256 MiB on a CPU, 4 GiB on a GPU. On precision see
        :func:`pairlens.engines.torch.neighbors.torch_neighbors`.
        """
        check_k(k, self.n)
        n_bytes = block_bytes or working_bytes(self.X.device)
        n_listed = min(k, self.groups.n_groups - 1)
        with product_precision(self.X.device):
            kernels = triton_kernels(self.X)
            fused = kernels is not None and kernels.fits(self.rows)
            screen: ProjectedScreen = kernels.TritonProjectedScreen(self) if fused else ProjectedScreen(self)
            sides = {"far": Side(k, -1, INPUT_QUANTUM, self.rows.squared_distances)}
            if n_listed:
                sides["near"] = Side(n_listed, +1, self.quantum, self.key, screen.stands)
            found = self_join(screen, sides, block=strip_rows(screen, k, n_bytes), fine_bytes=n_bytes)
            largest = screen.largest() if n_listed else 0.0
        listed = torch.empty((self.groups.n_groups, 0), dtype=torch.int64, device=self.X.device)
        key = listed.double()
        if n_listed:
            index, near = found["near"]
            listed = self.groups.group[index[self.groups.first]]
            key = (near[self.groups.first] / self.quantum).round()
        return ProjectedNeighbors(
            nearest=self.groups.expand(self.rows, listed, key, k),
            farthest=found["far"][0],
            largest_projected=(2 * largest) ** 0.5,
            largest_input=self.rows.scale * float(found["far"][1].max()) ** 0.5,
        )


@dataclass(frozen=True)
class ProjectedErrors:
    """Bounds on what a screen may be wrong by: for a pair the sum of those of its rows.

    Attributes
    ----------
    projected : float64 tensor of shape (n,)
        Of halved squared projected distances.
    euclid : float64 tensor of shape (n,)
        Of squared input distances, in units of the rows.
    """

    projected: Tensor
    euclid: Tensor

    @classmethod
    def of(cls, rows: TorchProjectedRows, dtype: torch.dtype) -> ProjectedErrors:
        """For products in a dtype."""
        euclid = 2 * error_unit(rows.rows, dtype) * rows.rows.square
        rank = max(1, rows.F.shape[1])
        unit = (rank + 32) * torch.finfo(dtype).eps / 2
        if dtype == torch.float32 and single_products(rows.X.device):
            unit += SINGLE_ERROR / rank**0.5
        return cls.combined(rows, euclid, unit, TIE * rows.unit if dtype == torch.float32 else 0.0)

    @classmethod
    def combined(cls, rows: TorchProjectedRows, euclid: Tensor, unit: float, more: float) -> ProjectedErrors:
        """From the bound on squared input distances and the share u of ``(2 + |F_x| + |F_y|)**2`` for the products."""
        length = rows.F.square().sum(dim=1).sqrt_()
        # (r + s)² is at most 2 r² + 2 s².
        return cls(rows.rate * euclid + 4 * unit * (1 + length).square_() + more, euclid)


class ProjectedScreen:
    """Halved squared projected distances and squared input distances of strips of rows, by matrix products.

    Rows for which another one stands are not there as columns in the former. `top` is the largest halved squared
    projected distance seen in each row.
    """

    stores_keys = True

    def __init__(self, rows: TorchProjectedRows) -> None:
        self.rows, self.n, self.device = rows, rows.n, rows.X.device
        self.stands = rows.groups.representative == torch.arange(rows.n, device=self.device)
        self.level = (1 - rows.F.square().sum(dim=1)) / 2
        self.top = torch.full((rows.n,), -torch.inf, dtype=torch.float64, device=self.device)
        self.euclid = EuclidScreen(rows.rows)

    @cached_property
    def F(self) -> Tensor:
        """F as factor of the products, padded to whole groups."""
        return padded(self.rows.F.to(self.euclid.dtype), GROUP)

    @cached_property
    def gain(self) -> dict[str, Tensor]:
        """See :class:`~pairlens.engines.torch.neighbors.TiledStrip`."""
        errors = ProjectedErrors.of(self.rows, self.euclid.dtype)
        near = torch.where(self.stands, -errors.projected, torch.inf)
        return {
            name: padded(gain.to(self.euclid.dtype), GROUP, torch.inf)
            for name, gain in (("near", near), ("far", -errors.euclid))
        }

    def strip(self, rows: slice) -> Strip:
        squared = self.euclid.squared(rows)
        dtype = squared.dtype
        level = self.level.to(dtype)
        near = torch.addmm(padded(level, GROUP), self.F[rows], self.F.T).add_(level[rows, None])
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
        return ProjectedErrors.of(self.rows, torch.float64).projected

    def largest(self) -> float:
        """The largest halved squared projected distance, looked for in the rows with the largest screened ones."""
        rows = self.top.topk(min(LARGEST_ROWS, self.n)).indices
        best = 0.0
        for part in chunks(len(rows), max(1, working_bytes(self.device) // (64 * self.n))):
            keys = self.fine("near", rows[part])[0]
            keys[keys.isinf()] = -torch.inf
            place = keys.flatten().topk(min(LARGEST_CANDIDATES, keys.numel())).indices
            halved, _ = self.rows._halved(rows[part][place // self.n], place % self.n)
            best = max(best, float(halved.max()))
        return best
