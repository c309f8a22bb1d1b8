"""The exact k nearest rows of every row, on torch tensors of the CPU or of a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pairlens.engines.local.neighbors import QUANTUM, check_count
from pairlens.engines.torch.device import product_precision, single_products, triton_kernels, working_bytes
from pairlens.engines.torch.selection import GROUP, Screen, Side, Strip, chunks, padded, self_join

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch.device import torch

# Scales outside of this leave the range of float32 when squared.
FLOAT32_SCALES = (1e-15, 1e15)
# Of float32 products whose factors keep 11 binary digits, as a share of the norms: four standard deviations of a sum
# of f independent errors are this over the square root of f.
SINGLE_ERROR = 4 * 2.0**-11


@dataclass(frozen=True)
class TorchNeighbors:
    """Nearest rows of each row, nearest first.

    Attributes
    ----------
    nearest : int64 tensor of shape (n, k)
        Indices, in ascending order of distance.
    nearest_distance : float64 tensor of shape (n, k)
        Their Euclidean distances.
    """

    nearest: Tensor
    nearest_distance: Tensor


def torch_neighbors(X: Tensor, *, n_nearest: int, block_bytes: int | None = None) -> TorchNeighbors:
    """Find the exact nearest rows of every row in Euclidean distance.

    The same result as :func:`pairlens.engines.local.neighbors.neighbors`, on the device of X.

    Parameters
    ----------
    X : tensor of shape (n, n_features)
        Finite values in float32 or float64, on the CPU or on a GPU.
    n_nearest : int
        How many rows to find for each row, from 1 to n - 1.
    block_bytes : int, optional
        Working memory: by default 256 MiB on a CPU, 4 GiB on a GPU. The result does not depend on it.

    Returns
    -------
    TorchNeighbors
        Indices and distances, nearest first.

    Notes
    -----
    Distances are compared in float64 from differences of rows, to a resolution of about 1e-10 of the mean squared
    distance of the rows from their mean; ties come in ascending order of index. Products of float32 only screen
    candidates, and a row whose candidates are not proved complete is compared with all others in float64: see
    :mod:`pairlens.engines.torch.selection`.

    On a GPU with Triton, screening takes products of half-precision parts of the rows (two parts of 11 binary digits
    each, three products, summed in float32), nearly as precise as float32 products and several times as fast.
    ``config_context(tf32=True)`` screens with one product (TF32 without Triton) and trusts an error bound that holds
    with high probability instead of always.

    Working memory besides: two copies of X in its dtype, and for rows that are compared in float64 one in float64.
    """
    check_count(X.shape[0], n_nearest)
    rows = TorchRows.of(X)
    n_bytes = block_bytes or working_bytes(X.device)
    sides = {"near": Side(n_nearest, +1, QUANTUM, rows.squared_distances)}
    kernels = triton_kernels(X)
    fused = kernels is not None and kernels.fits(rows)
    screen: Screen = kernels.TritonEuclidScreen(rows) if fused else EuclidScreen(rows)
    with product_precision(X.device):
        found = self_join(screen, sides, block=strip_rows(screen, n_nearest, n_bytes), fine_bytes=n_bytes)
    indices, squared = found["near"]
    return TorchNeighbors(indices, rows.scale * squared.sqrt())


def strip_rows(screen: Screen, k: int, n_bytes: int) -> int:
    """Rows of a strip that fits the memory when k of each are selected."""
    n_groups = -(-screen.n // GROUP)
    per_row = (32 * GROUP if screen.stores_keys else 64) * n_groups + 16 * GROUP * (k + 2)
    return max(256, n_bytes // per_row // 256 * 256)


@dataclass(frozen=True)
class TorchRows:
    """Rows seen from their centre and in units of their spread, a power of two so that dividing rounds nothing.

    Attributes
    ----------
    X : tensor of shape (n, n_features)
    center : tensor of shape (n_features,)
        The mean, in the dtype of X.
    scale : float
    square : float64 tensor of shape (n,)
        Squared distances from the centre, in units of the scale.
    """

    X: Tensor
    center: Tensor
    scale: float
    square: Tensor

    @classmethod
    def of(cls, X: Tensor) -> TorchRows:
        if X.dtype not in (torch.float32, torch.float64):
            X = X.double()
        X = X.contiguous()
        n, f = X.shape
        step = row_step(X, f)
        center = torch.zeros(f, dtype=torch.float64, device=X.device)
        for part in chunks(n, step):
            center += X[part].sum(dim=0, dtype=torch.float64)
        center = (center / n).to(X.dtype)
        square = torch.empty(n, dtype=torch.float64, device=X.device)
        for part in chunks(n, step):
            square[part] = (X[part].double() - center).square_().sum(dim=1)
        spread = torch.sqrt(square.mean())
        scale = float(2.0 ** torch.round(torch.log2(spread))) if spread > 0 else 1.0
        return cls(X, center, scale, square / scale**2)

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def fits_float32(self) -> bool:
        """Whether squares of the scale stay in the range of float32."""
        return FLOAT32_SCALES[0] < self.scale < FLOAT32_SCALES[1]

    def centred(self, dtype: torch.dtype) -> Tensor:
        """All rows less the centre, in units of the scale."""
        result = torch.empty(self.X.shape, dtype=dtype, device=self.X.device)
        for part in chunks(self.n, row_step(self.X, self.X.shape[1])):
            result[part] = (self.X[part].double() - self.center) / self.scale
        return result

    def squared_distances(self, rows: Tensor, cols: Tensor) -> Tensor:
        """Squared distances of pairs in float64 from differences, in units of the scale."""
        squared = torch.empty(len(rows), dtype=torch.float64, device=self.X.device)
        for part in chunks(len(rows), row_step(self.X, self.X.shape[1])):
            difference = self.X[rows[part]].double()
            difference -= self.X[cols[part]]
            difference /= self.scale
            squared[part] = difference.square_().sum(dim=1)
        return squared


def row_step(X: Tensor, width: int) -> int:
    """Rows of float64 that fit a part of the working memory."""
    n_bytes = 2**28 if X.is_cuda else 2**22
    return max(256, n_bytes // (8 * max(1, width)))


class EuclidScreen:
    """Squared distances of strips of rows by matrix products, in float64 or in float32 as X is."""

    stores_keys = True

    def __init__(self, rows: TorchRows) -> None:
        self.rows, self.n, self.device = rows, rows.n, rows.X.device
        self.dtype = rows.X.dtype if rows.fits_float32 else torch.float64

    @cached_property
    def Z(self) -> Tensor:
        """The rows as factors of the products, padded to whole groups."""
        return padded(self.rows.centred(self.dtype), GROUP)

    @cached_property
    def square(self) -> Tensor:
        """Their squared norms."""
        return self.rows.square.to(self.dtype)

    @cached_property
    def gain(self) -> dict[str, Tensor]:
        """See :class:`TiledStrip`."""
        error = 2 * error_unit(self.rows, self.dtype) * self.rows.square
        gain = padded(-error.to(self.dtype), GROUP, torch.inf)
        return {"near": gain, "far": gain}

    def squared(self, rows: slice) -> Tensor:
        """Squared distances of some rows from all, padded columns included."""
        squared = torch.addmm(padded(self.square, GROUP), self.Z[rows], self.Z.T, alpha=-2)
        return squared.add_(self.square[rows, None])

    def strip(self, rows: slice) -> Strip:
        squared = self.squared(rows)
        return TiledStrip({"near": (+1, squared), "far": (-1, squared)}, self.gain, rows)

    def fine(self, name: str, rows: Tensor) -> tuple[Tensor, Tensor]:
        squared = self.fine_squared(rows)
        if name == "far":
            squared.neg_()
        squared.scatter_(1, rows[:, None], torch.inf)
        return squared, self.fine_error(rows)

    def fine_squared(self, rows: Tensor) -> Tensor:
        """Squared distances of some rows from all in float64."""
        squared = torch.addmm(self.rows.square, self._Z64[rows], self._Z64.T, alpha=-2)
        return squared.add_(self.rows.square[rows, None])

    @cached_property
    def _Z64(self) -> Tensor:
        return self.rows.centred(torch.float64)

    def fine_error(self, rows: Tensor) -> Tensor:
        """Bound on the error of these."""
        unit = (self.rows.X.shape[1] + 16) * torch.finfo(torch.float64).eps / 2
        return unit * (self.rows.square[rows].sqrt() + self.rows.square.max().sqrt()).square()


def error_unit(rows: TorchRows, dtype: torch.dtype) -> float:
    """The u in the bound ``u (|x| + |y|)**2`` on the error of a screened squared distance of centred rows."""
    f = rows.X.shape[1]
    unit = (f + 16) * torch.finfo(dtype).eps / 2
    if dtype == torch.float32 and single_products(rows.X.device):
        unit += SINGLE_ERROR / f**0.5
    return unit


@dataclass(frozen=True)
class TiledStrip:
    """A strip whose keys are known already.

    Attributes
    ----------
    keys : dict of (sign, tensor)
        Keys with all columns, padded ones included.
    gain : dict of tensors
        What the bound of a signed key gains for each column, less what it loses for the error of the screen: inf for
        columns that are not there.
    rows : slice
    """

    keys: dict[str, tuple[int, Tensor]]
    gain: dict[str, Tensor]
    rows: slice

    def bounds(self, name: str) -> Tensor:
        sign, keys = self.keys[name]
        signed = torch.add(self.gain[name], keys, alpha=sign)
        return signed.unflatten(1, (-1, GROUP)).amin(dim=2).add_(self._own(name))

    def inside(self, name: str, lines: Tensor, groups: Tensor) -> Tensor:
        sign, keys = self.keys[name]
        chosen = keys.unflatten(1, (-1, GROUP))[lines[:, None], groups]
        bounds = torch.add(self.gain[name].view(-1, GROUP)[groups], chosen, alpha=sign)
        return bounds.flatten(1).add_(self._own(name)[lines])

    def _own(self, name: str) -> Tensor:
        """What the bounds lose for the rows: those that are not there as columns still have neighbours."""
        gain = self.gain[name][self.rows]
        return torch.where(gain.isinf(), 0.0, gain)[:, None]
