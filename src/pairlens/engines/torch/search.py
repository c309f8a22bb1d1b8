"""The exact k nearest rows of every row on torch tensors, of the CPU or of a GPU, and the random walk over near rows.

The selection is the counterpart of :mod:`pairlens.engines.search` for a device with thousands of threads, to which
lists that are updated pair by pair are of no use. Like there, pairs are *screened* by a cheap key with a bound on its
error, single pairs are *refined* in float64, keys that round to the same multiple of a quantum are equal, and among
equals the smaller row index wins.

How the k best of a row are found
---------------------------------
1. The columns are taken in groups of consecutive ones, and the screen gives for each group a bound that no key in it
   beats. It never needs to store the keys themselves.
2. The k best rows lie in the k groups with the best bounds, if bounds are exact. So the groups with the best bounds,
   a few more than k, are looked into, and the pairs with the best bounds there, again a few more than k, are refined.
3. If the k-th refined key is better than every bound that was left aside, nothing was missed. This is a proof, not a
   guess: the result does not depend on the precision of the screen.
4. Rows without this proof (ties, near-duplicates) look into more groups. Those that still have none are compared with
   all others in float64, where every pair is settled by its rounding interval or refined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from pairlens.engines import search
from pairlens.engines.rows import Float64, FloatArray, IntArray
from pairlens.engines.search import NEGLIGIBLE, QUANTUM, NearGraph, Neighbors, check_count, spread_over
from pairlens.engines.torch import rows as tensors
from pairlens.engines.torch.rows import TensorRows

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch.rows import torch

Selected: TypeAlias = "tuple[Tensor, Tensor]"

GROUP = 64
"""Columns of a group: twice as many halve the table of bounds and double the pairs that are looked at in it."""

HIDDEN = 1e20
"""Bounds from here on belong to columns that are not there."""

# Groups looked into beyond the k best and the row's own: at first, and where that proves nothing.
SPARE_GROUPS = (1, 24)
# Pairs refined beyond the k best.
SPARE_PAIRS = 8
# With more than this part of a strip left without a proof, the rest goes to float64 at once.
TOLERABLE_DOUBT = 0.25
# Bytes for each pair of a row with all others in float64: keys, both ends of their intervals, masks, hits.
FINE_BYTES = 64
# Scales outside of this leave the range of float32 when squared.
FLOAT32_SCALES = (1e-15, 1e15)
# Bytes of a product up to which it does not ask how many are free: to ask means to wait for the device.
SMALL_BYTES = 1 << 28
# Of float32 products whose factors keep 11 binary digits, as a share of the norms: four standard deviations of a sum
# of f independent errors are this over the square root of f.
SINGLE_ERROR = 4 * 2.0**-11
# Vectors of a block beyond those that are wanted; rounds, degree of the polynomial, and its value at the end.
SPARE_VECTORS = 25
MOST_ROUNDS, MOST_STEPS, GROWTH = 50, 100, 1e10


@dataclass(frozen=True)
class Side:
    """Ask one question: which k rows have the smallest key (sign +1), or the largest (sign -1).

    Keys are equal if they round to the same multiple of `quantum`, and ``refine(rows, cols)`` gives the precise float64
    keys of pairs. Rows that are not `wanted` get an arbitrary selection.
    """

    k: int
    sign: int
    quantum: float
    refine: Callable[[Tensor, Tensor], Tensor]
    wanted: Tensor | None = None


class Strip(Protocol):
    """Compare some consecutive rows with all columns. Bounds are of signed keys, from below."""

    def bounds(self, name: str) -> Tensor:
        """Return bounds of shape (rows, n_groups): no key of the group is smaller."""

    def inside(self, name: str, lines: Tensor, groups: Tensor) -> Tensor:
        """Return bounds of the pairs in chosen groups for some lines, of shape (len(lines), n_chosen * GROUP)."""


class Screen(Protocol):
    """Screen the keys of all pairs; `stores_keys` says whether a strip takes memory for all of its pairs."""

    n: int
    device: torch.device
    stores_keys: bool

    def strip(self, rows: slice) -> Strip:
        """Compare rows with all columns."""

    def fine(self, name: str, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return signed float64 keys of shape (len(rows), n), and bounds on their errors of shape (len(rows),).

        Keys are inf for a row with itself and where a column is not there.
        """


def self_join(screen: Screen, sides: dict[str, Side], *, block: int, fine_bytes: int) -> dict[str, Selected]:
    """Select for each row what the sides ask for, by the names under which the screen knows their keys.

    The row indices and the precise float64 keys, tensors of shape (n, k) and best first, depend neither on `block`, the
    rows of a strip, nor on `fine_bytes`, the working memory for rows that are compared in float64.
    """
    found = {
        name: (
            torch.zeros((screen.n, side.k), dtype=torch.int64, device=screen.device),
            torch.zeros((screen.n, side.k), dtype=torch.float64, device=screen.device),
        )
        for name, side in sides.items()
    }
    open_rows: dict[str, list[Tensor]] = {name: [] for name in sides}
    screened = set(sides)
    for rows in tensors.chunks(screen.n, block):
        strip = screen.strip(rows) if screened else None
        for name, side in sides.items():
            lines = torch.arange(rows.stop - rows.start, device=screen.device)
            if side.wanted is not None:
                lines = lines[side.wanted[rows]]
            if strip is not None and name in screened:
                n_lines = len(lines)
                for spare in SPARE_GROUPS:
                    if len(lines):
                        lines = _look(strip, name, side, rows.start, lines, spare, screen.n, found[name])
                if len(lines) > TOLERABLE_DOUBT * n_lines:
                    screened.remove(name)
            open_rows[name].append(lines + rows.start)
    for name, side in sides.items():
        rows_left = torch.cat(open_rows[name])
        for part in tensors.chunks(len(rows_left), max(1, fine_bytes // (FINE_BYTES * screen.n))):
            _compare_all(screen, name, side, rows_left[part], found[name])
    return found


def _look(
    strip: Strip, name: str, side: Side, first: int, lines: Tensor, spare: int, n: int, found: Selected
) -> Tensor:
    """Look into the groups with the best bounds; write what is proved, and return the lines that are left."""
    table = strip.bounds(name)
    if len(lines) < len(table):
        table = table[lines]
    n_groups = table.shape[1]
    n_chosen = min(side.k + 1 + spare, n_groups)
    low, group = smallest(table, min(n_chosen + 1, n_groups))
    rest = torch.full_like(low[:, 0], torch.inf) if n_chosen == n_groups else low[:, n_chosen]
    group = group[:, :n_chosen]
    bounds = strip.inside(name, lines, group)
    width = min(side.k + 1 + SPARE_PAIRS, bounds.shape[1])
    low, place = smallest(bounds, min(width + 1, bounds.shape[1]))
    if width < bounds.shape[1]:
        rest = torch.minimum(rest, low[:, width])
    low, place = low[:, :width], place[:, :width]
    cols = group.gather(1, place // GROUP) * GROUP + place % GROUP
    own = (lines + first)[:, None].expand_as(cols)
    void = (cols == own) | (low >= HIDDEN)
    precise = side.refine(own.reshape(-1), cols.clamp(max=n - 1).reshape(-1)).view(cols.shape)
    quanta = (precise * (side.sign / side.quantum)).round_().masked_fill_(void, torch.inf)
    order = _order(quanta, cols)[:, : side.k]
    proved = quanta.gather(1, order[:, -1:])[:, 0] < (rest.double() / side.quantum).round_()
    rows = lines + first
    found[0][rows] = cols.gather(1, order)
    found[1][rows] = precise.gather(1, order)
    return lines[~proved]


def _compare_all(screen: Screen, name: str, side: Side, rows: Tensor, found: Selected) -> None:
    """Settle all pairs of some rows, and write the k best."""
    keys, error = screen.fine(name, rows)
    keys /= side.quantum
    error = error[:, None] / side.quantum
    highest = (keys + error).round_()
    limit = _kth_smallest(highest, side.k)
    lowest = keys.sub_(error).round_()
    line, col = (lowest <= limit[:, None]).nonzero(as_tuple=True)
    quanta = lowest[line, col]
    unsure = (quanta != highest[line, col]).nonzero()[:, 0]
    precise = side.refine(rows[line[unsure]], col[unsure])
    quanta[unsure] = (precise * (side.sign / side.quantum)).round_()
    # Hits come by row, then by column: two stable sorts leave ties in the order of their columns.
    order = quanta.argsort(stable=True)
    order = order[line[order].argsort(stable=True)]
    line, col = line[order], col[order]
    count = torch.bincount(line, minlength=len(rows))
    place = torch.arange(len(line), device=line.device) - (count.cumsum(0) - count)[line]
    chosen = col[place < side.k].view(len(rows), side.k)
    found[0][rows] = chosen
    found[1][rows] = side.refine(rows.repeat_interleave(side.k), chosen.reshape(-1)).view(chosen.shape)


def _order(quanta: Tensor, cols: Tensor) -> Tensor:
    """Return the order of each line by key, ties by column."""
    by_column = cols.argsort(dim=1)
    return by_column.gather(1, quanta.gather(1, by_column).argsort(dim=1, stable=True))


def _kth_smallest(table: Tensor, k: int) -> Tensor:
    """Return the k-th smallest value of each row, from the k groups with the smallest minima."""
    groups = padded(table.T, GROUP, torch.inf).T.unflatten(1, (-1, GROUP))
    if groups.shape[1] > k:
        chosen = groups.amin(dim=2).topk(k, dim=1, largest=False, sorted=False).indices
        groups = groups.gather(1, chosen[:, :, None].expand(-1, -1, GROUP))
    return groups.flatten(1).topk(k, dim=1, largest=False).values[:, -1]


def smallest(table: Tensor, count: int) -> Selected:
    """Return the smallest values of each row of a table, ascending, and their places."""
    if table.is_cuda:
        kernels = tensors.triton_kernels(table)
        if kernels is not None and kernels.can_select(table, count):
            selected: Selected = kernels.smallest(table, count)
            return selected
    values, places = table.topk(count, dim=1, largest=False, sorted=True)
    return values, places


def padded(table: Tensor, multiple: int, value: float = 0.0) -> Tensor:
    """Return the table with rows of a value added, so that their number is a multiple."""
    missing = -len(table) % multiple
    if missing == 0:
        return table
    return torch.cat([table, table.new_full((missing, *table.shape[1:]), value)])


def torch_neighbors(X: Tensor, *, n_nearest: int) -> Neighbors:
    """Find the exact nearest rows of every row, as :func:`pairlens.engines.neighbors`, in tensors on the device of X.

    On a GPU with Triton, screening takes products of half-precision parts of the rows (two parts of 11 binary digits
    each, three products, summed in float32), nearly as precise as float32 products and several times as fast.
    ``config_context(tf32=True)`` screens with one product (TF32 without Triton) and trusts an error bound that holds
    with high probability instead of always.

    The working memory is 256 MiB on a CPU and 4 GiB on a GPU. Besides there are two copies of X in its dtype, and one
    in float64 for rows that are compared so.
    """
    check_count(X.shape[0], n_nearest)
    rows = TorchRows.of(X)
    n_bytes = tensors.working_bytes(X.device)
    sides = {"near": Side(n_nearest, +1, QUANTUM, rows.squared_distances)}
    kernels = tensors.triton_kernels(X)
    fused = kernels is not None and kernels.fits(rows)
    screen: Screen = kernels.TritonEuclidScreen(rows) if fused else EuclidScreen(rows)
    with tensors.product_precision(X.device):
        found = self_join(screen, sides, block=strip_rows(screen, n_nearest, n_bytes), fine_bytes=n_bytes)
    indices, squared = found["near"]
    return Neighbors(indices, rows.scale * squared.sqrt())


def strip_rows(screen: Screen, k: int, n_bytes: int) -> int:
    """Return how many rows a strip has that fits the memory when k of each are selected."""
    n_groups = -(-screen.n // GROUP)
    per_row = (32 * GROUP if screen.stores_keys else 64) * n_groups + 16 * GROUP * (k + 2)
    return max(256, n_bytes // per_row // 256 * 256)


@dataclass(frozen=True)
class TorchRows:
    """Hold rows with their mean, their spread to the nearest power of two, and squared distances in its units."""

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
        step = tensors.row_step(X, f)
        center = torch.zeros(f, dtype=torch.float64, device=X.device)
        for part in tensors.chunks(n, step):
            center += X[part].sum(dim=0, dtype=torch.float64)
        center = (center / n).to(X.dtype)
        square = torch.empty(n, dtype=torch.float64, device=X.device)
        for part in tensors.chunks(n, step):
            square[part] = (X[part].double() - center).square_().sum(dim=1)
        scale = search.unit_length(float(square.mean()))
        return cls(X, center, scale, square / scale**2)

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def fits_float32(self) -> bool:
        """Return whether squares of the scale stay in the range of float32."""
        return FLOAT32_SCALES[0] < self.scale < FLOAT32_SCALES[1]

    def centred(self, dtype: torch.dtype) -> Tensor:
        """Return all rows less the centre, in units of the scale."""
        result = torch.empty(self.X.shape, dtype=dtype, device=self.X.device)
        for part in tensors.chunks(self.n, tensors.row_step(self.X, self.X.shape[1])):
            result[part] = (self.X[part].double() - self.center) / self.scale
        return result

    def squared_distances(self, rows: Tensor, cols: Tensor) -> Tensor:
        """Return squared distances of pairs in float64 from differences, in units of the scale."""
        squared = torch.empty(len(rows), dtype=torch.float64, device=self.X.device)
        for part in tensors.chunks(len(rows), tensors.row_step(self.X, self.X.shape[1])):
            difference = self.X[rows[part]].double()
            difference -= self.X[cols[part]]
            difference /= self.scale
            squared[part] = difference.square_().sum(dim=1)
        return squared


class EuclidScreen:
    """Screen squared distances of strips of rows by matrix products, in float64 or in float32 as X is."""

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
        """Squared norms of the rows."""
        return self.rows.square.to(self.dtype)

    @cached_property
    def gain(self) -> dict[str, Tensor]:
        """See :class:`TiledStrip`."""
        error = 2 * error_unit(self.rows, self.dtype) * self.rows.square
        gain = padded(-error.to(self.dtype), GROUP, torch.inf)
        return {"near": gain, "far": gain}

    def squared(self, rows: slice) -> Tensor:
        """Return squared distances of some rows from all, padded columns included."""
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
        unit = (self.rows.X.shape[1] + 16) * torch.finfo(torch.float64).eps / 2
        return squared, unit * (self.rows.square[rows].sqrt() + self.rows.square.max().sqrt()).square()

    def fine_squared(self, rows: Tensor) -> Tensor:
        """Return squared distances of some rows from all in float64."""
        squared = torch.addmm(self.rows.square, self._Z64[rows], self._Z64.T, alpha=-2)
        return squared.add_(self.rows.square[rows, None])

    @cached_property
    def _Z64(self) -> Tensor:
        return self.rows.centred(torch.float64)


def error_unit(rows: TorchRows, dtype: torch.dtype) -> float:
    """Return the u in the bound ``u (|x| + |y|)**2`` on the error of a screened squared distance of centred rows."""
    f = rows.X.shape[1]
    unit = (f + 16) * torch.finfo(dtype).eps / 2
    if dtype == torch.float32 and tensors.single_products(rows.X.device):
        unit += SINGLE_ERROR / f**0.5
    return unit


@dataclass(frozen=True)
class TiledStrip:
    """Hold a strip whose keys with all columns, padded ones included, are known already, beside their signs.

    `gain` is what the bound of a signed key gains for each column, less what it loses for the error of the screen: inf
    for columns that are not there.
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
        """Return what the bounds lose for the rows: those that are not there as columns still have neighbours."""
        gain = self.gain[name][self.rows]
        return torch.where(gain.isinf(), 0.0, gain)[:, None]


@search.neighbors.register(TensorRows)
def neighbors(X: TensorRows, *, n_nearest: int) -> Neighbors:
    found = torch_neighbors(X.tensor, n_nearest=n_nearest)
    return Neighbors(*(np.asarray(part.cpu()) for part in (found.nearest, found.nearest_distance)))


@dataclass(frozen=True)
class TensorNearGraph(NearGraph):
    """Hold the walk on the device, and there the sum of the weights of each row too."""

    degree: Tensor

    def symmetric_weights(self) -> sparse.csr_matrix:
        start, column, value = (part.cpu().numpy() for part in (self.walk.start, self.walk.column, self.walk.value))
        walk = sparse.csr_matrix((value, column, start), shape=self.walk.shape)
        return (sparse.diags(self.degree.cpu().numpy()) @ walk).tocsr()

    def spread(self, rows: TensorRows, a: float) -> TensorRows:
        return TensorRows(spread_over(self.walk, rows.tensor, a, accuracy=self.accuracy))

    def spread_back(self, weights: Float64, a: float) -> Float64:
        start = torch.from_numpy(weights).to(self.back.value.device)
        return np.asarray(spread_over(self.back, start, a, accuracy=self.accuracy).cpu().numpy())

    def spread_columns(self, columns: FloatArray, a: float, accuracy: float) -> FloatArray:
        """Return columns in memory, spread over the walk in their dtype to a relative accuracy."""
        start = torch.from_numpy(columns).to(self.walk.value.device)
        return np.asarray(spread_over(self.walk, start, a, accuracy=accuracy).cpu().numpy())

    def leading_vectors(self, k: int, tolerance: float) -> tuple[Float64, Float64]:
        r"""Return the largest eigenvalues of the walk after that of the constant vector, and their eigenvectors.

        The vectors are those of the symmetric :math:`D^{1/2} P D^{-1/2}`, D the degrees, with residuals up to the
        tolerance in length. A block of them is filtered by Chebyshev polynomials that damp all eigenvalues below those
        of the block, so that equal eigenvalues are found.
        """
        root = self.degree.sqrt()
        walk = self.walk
        row = torch.arange(len(root), device=root.device).repeat_interleave(walk.lengths)
        steps = replace(walk, value=walk.value * root[row] / root[walk.column])
        constant = (root / torch.linalg.vector_norm(root))[:, None]

        def walked(x: Tensor) -> Tensor:
            return steps @ x - constant * (constant.T @ x)

        generator = torch.Generator().manual_seed(0)
        shape = len(root), min(len(root) - 1, k + SPARE_VECTORS)
        block = torch.randn(shape, generator=generator, dtype=torch.float64).to(root.device)
        for _ in range(MOST_ROUNDS):
            basis = torch.linalg.qr(block)[0]
            moved = walked(basis)
            values, turn = torch.linalg.eigh(basis.T @ moved)
            values, turn = values.flip(0), turn.flip(1)
            basis, moved = basis @ turn, moved @ turn
            residual = torch.linalg.vector_norm(moved[:, :k] - basis[:, :k] * values[:k], dim=0)
            largest, least = float(values[0]), float(values[-1])
            if float(residual.max()) <= tolerance:
                break
            # From [-1, least] to [-1, 1]; beyond, where the polynomial grows, it stays within the range of numbers.
            half, centre = (least + 1) / 2, (least - 1) / 2
            beyond = np.arccosh(max((largest - centre) / half, 1 + 1e-6))
            before, block = basis, (moved - centre * basis) / half
            for _ in range(int(np.clip(np.log(2 * GROWTH) / beyond, 2, MOST_STEPS)) - 1):
                before, block = block, (walked(block) - centre * block) * (2 / half) - before
        return values[:k].cpu().numpy(), basis[:, :k].cpu().numpy()


@dataclass(frozen=True)
class Steps:
    """Hold a sparse matrix in compressed rows whose products repeat: the device's own product adds in any order."""

    start: Tensor
    column: Tensor
    value: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.start) - 1, len(self.start) - 1

    @property
    def is_cuda(self) -> bool:
        return bool(self.value.is_cuda)

    @cached_property
    def lengths(self) -> Tensor:
        """Return the number of entries of each row."""
        return self.start.diff()

    def __matmul__(self, values: Tensor) -> Tensor:
        wide = values if values.ndim == 2 else values[:, None]
        n, n_bytes = len(wide), 16 * wide.shape[1] * len(self.column)
        if n_bytes <= SMALL_BYTES:
            return self._product(slice(0, n), slice(None), wide).view(values.shape)
        result = torch.empty_like(wide)
        for part in tensors.chunks(n, max(1, tensors.working_bytes(self.value.device) * n // n_bytes)):
            result[part] = self._product(part, slice(int(self.start[part.start]), int(self.start[part.stop])), wide)
        return result.view(values.shape)

    def _product(self, rows: slice, entries: slice, wide: Tensor) -> Tensor:
        moved = self.value[entries, None].to(wide.dtype) * wide[self.column[entries]]
        # To check the lengths means to wait for the device.
        return torch.segment_reduce(moved, "sum", lengths=self.lengths[rows], axis=0, unsafe=True)


@search.near_walk.register(TensorRows)
def near_walk(
    X: TensorRows, k: int, *, scale_neighbor: int, accuracy: float, found: tuple[IntArray, Float64] | None = None
) -> TensorNearGraph:
    """Build the walk without leaving the device."""
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
    squared = tensors.squared_differences(X.tensor, left, right)
    local = scale[left] * scale[right]
    # Rows that repeat seven times have scale 0: full weight to each other, none to all others.
    weight = torch.where(local > 0, torch.exp(-squared / torch.where(local > 0, local, 1.0)), (squared == 0).double())
    weight[weight < NEGLIGIBLE] = 0.0
    own = torch.arange(n, device=device)
    row, column = torch.cat([left, right, own]), torch.cat([right, left, own])
    value = torch.cat([weight, weight, torch.zeros(n, dtype=torch.float64, device=device)])
    order = torch.argsort(row * n + column)
    row, column, value = row[order], column[order], value[order]
    lengths = torch.bincount(row, minlength=n)
    start = torch.zeros(n + 1, dtype=torch.int64, device=device)
    start[1:] = torch.cumsum(lengths, dim=0)
    degree = torch.segment_reduce(value, "sum", lengths=lengths, axis=0)
    # A row whose weights all vanish walks to itself.
    alone = degree == 0
    value[(row == column) & alone[row]] = 1.0
    degree[alone] = 1.0
    forth, back = (Steps(start, column, value / degree[end]) for end in (row, column))
    return TensorNearGraph(np.asarray(nearest[:, :k].cpu()), None, forth, back, accuracy, degree)
