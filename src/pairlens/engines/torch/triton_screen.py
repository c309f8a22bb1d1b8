r"""Screens for a GPU in which products, exponentials and the best of each group are one Triton kernel.

The keys of a tile never leave the registers: what is written is the best bound of each group of columns.

Products run on tensor cores in half precision. A row is split into two parts of 11 binary digits each,
:math:`x = h + l` to a relative error of :math:`2^{-22}`, and
:math:`x \cdot y = h_x \cdot h_y + h_x \cdot l_y + l_x \cdot h_y` is summed in float32; what is left out is another
:math:`2^{-22}` of the norms. Rows are scaled by a power of two beforehand, so that the lower parts stay clear of the
smallest half-precision numbers. With TF32 allowed only the first product is taken.

CI does not run these kernels: it has no GPU, and Triton, whose interpreter might run them on a CPU, is a download of
286 MB and takes 1 GB on disk. Where there is a GPU the tests in ``tests/engines/torch`` run them and compare the result
with the search in memory.
"""

# Kernels are typed by Triton, which is not installed where types are checked.
# mypy: disable-error-code="no-untyped-def,import-not-found,import-untyped,misc"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pairlens.engines.projected import TIE
from pairlens.engines.torch.projected import ProjectedScreen, TorchProjectedRows
from pairlens.engines.torch.rows import chunks, row_step, single_products
from pairlens.engines.torch.search import GROUP, HIDDEN, SINGLE_ERROR, EuclidScreen, Selected, Strip, TorchRows

try:
    import triton
    import triton.language as tl

    jit = triton.jit
except ImportError:
    # Without Triton the kernels are never called, but the module can be imported.
    def jit(kernel):
        return kernel


if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch.rows import torch

LARGEST_TABLE = 1 << 15
"""Width up to which a row of a table is held in registers."""

LARGEST_COUNT = 64
"""Values up to which taking one after another is faster than sorting."""

# Half-precision factors reach up to here: far enough from the smallest numbers, far enough from overflow.
LARGEST_HALF = 2.0**12
# Rows farther out than this, in units of the spread, would push all others into the smallest half-precision numbers.
FARTHEST = 2.0**14
FAR_AWAY = 1e25
LOG2_E = 1.4426950408889634


@dataclass(frozen=True)
class Tiling:
    """Shape the work: rows, columns and depth of a tile, tiles of a program, warps and stages of the pipeline."""

    rows: int = 128
    cols: int = 256
    depth: int = 32
    span: int = 8
    warps: int = 8
    stages: int = 3


TILING = Tiling()


@jit
def _multiply(acc, left, right, line, col, WIDTH: tl.constexpr, DEPTH: tl.constexpr, PARTS: tl.constexpr):
    """Add the products of rows of two matrices of halves, [upper | lower] parts side by side."""
    at = tl.arange(0, DEPTH)
    a = left + line[:, None] * (PARTS * WIDTH) + at[None, :]
    b = right + col[:, None] * (PARTS * WIDTH) + at[None, :]
    for k in range(0, WIDTH, DEPTH):
        upper = tl.load(a + k)
        other = tl.load(b + k)
        acc = tl.dot(upper, tl.trans(other), acc)
        if PARTS == 2:
            acc = tl.dot(upper, tl.trans(tl.load(b + (WIDTH + k))), acc)
            acc = tl.dot(tl.load(a + (WIDTH + k)), tl.trans(other), acc)
    return acc


@jit
def _best_of_groups(keys, ROWS: tl.constexpr, COLS: tl.constexpr, GROUP_: tl.constexpr):
    return tl.min(tl.reshape(keys, (ROWS, COLS // GROUP_, GROUP_)), axis=2)


@jit
def _bounds(
    X,
    F,
    near_col,
    near_gain,
    far_col,
    kernel_col,
    near_out,
    far_out,
    top_out,
    first,
    n_rows,
    n_tiles,
    n_groups,
    product,
    slope,
    rise,
    WIDTH: tl.constexpr,
    RANK: tl.constexpr,
    PARTS: tl.constexpr,
    PROJECTED: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    DEPTH: tl.constexpr,
    RANK_DEPTH: tl.constexpr,
    SPAN: tl.constexpr,
    GROUP_: tl.constexpr,
):
    """Compute bounds of the groups of columns for a strip of rows; see :class:`_Strip`."""
    local = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    line = (first + local).to(tl.int64)
    PER_TILE: tl.constexpr = COLS // GROUP_
    top = tl.full((ROWS,), -1e30, tl.float32)
    if PROJECTED:
        own = tl.load(kernel_col + line)
    begin = tl.program_id(1) * SPAN
    for tile in range(begin, tl.minimum(begin + SPAN, n_tiles)):
        col = tile * COLS + tl.arange(0, COLS)
        col64 = col.to(tl.int64)
        acc = tl.zeros((ROWS, COLS), tl.float32)
        acc = _multiply(acc, X, X, line, col64, WIDTH, DEPTH, PARTS)
        at = local.to(tl.int64)[:, None] * n_groups + (tile * PER_TILE + tl.arange(0, PER_TILE))[None, :]
        inside = (local < n_rows)[:, None]
        far = acc * product + tl.load(far_col + col)[None, :]
        tl.store(far_out + at, _best_of_groups(far, ROWS, COLS, GROUP_), mask=inside)
        if PROJECTED:
            exponent = acc * slope + (tl.load(kernel_col + col)[None, :] + own[:, None])
            acc = (tl.load(near_col + col)[None, :] - tl.exp2(tl.minimum(exponent, 0.0))) * rise
            if RANK > 0:
                acc = _multiply(acc, F, F, line, col64, RANK, RANK_DEPTH, PARTS)
            top = tl.maximum(top, tl.max(acc, axis=1))
            near = acc + tl.load(near_gain + col)[None, :]
        else:
            near = tl.load(near_col + col)[None, :] - acc * product
        tl.store(near_out + at, _best_of_groups(near, ROWS, COLS, GROUP_), mask=inside)
    if PROJECTED:
        tl.store(top_out + tl.program_id(1).to(tl.int64) * n_rows + local, top, mask=local < n_rows)


@jit
def _inside(
    X,
    F,
    rows,
    groups,
    gain,
    out,
    n,
    f,
    rank,
    n_chosen,
    inverse_scale,
    rate,
    sign,
    PROJECTED: tl.constexpr,
    GROUP_: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Compute bounds of the pairs of a row with the columns of one group, from differences."""
    place = tl.program_id(0).to(tl.int64)
    row = tl.load(rows + place)
    slot = place * n_chosen + tl.program_id(1)
    col = tl.load(groups + slot) * GROUP_ + tl.arange(0, GROUP_)
    there = (col < n)[:, None]
    at = tl.arange(0, DEPTH)
    total = tl.zeros((GROUP_, DEPTH), tl.float32)
    for k in range(0, f, DEPTH):
        wide = at + k < f
        x = tl.load(X + row * f + k + at, mask=wide, other=0.0)
        y = tl.load(X + col[:, None] * f + (k + at)[None, :], mask=there & wide[None, :], other=0.0)
        difference = (x[None, :] - y).to(tl.float32) * inverse_scale
        total += difference * difference
    key = tl.sum(total, axis=1)
    if PROJECTED:
        lost = tl.zeros((GROUP_, DEPTH), tl.float32)
        for k in range(0, rank, DEPTH):
            wide = at + k < rank
            x = tl.load(F + row * rank + k + at, mask=wide, other=0.0)
            y = tl.load(F + col[:, None] * rank + (k + at)[None, :], mask=there & wide[None, :], other=0.0)
            lost += (x[None, :] - y) * (x[None, :] - y)
        key = 1.0 - tl.exp(-rate * key) - 0.5 * tl.sum(lost, axis=1)
    bound = sign * key + tl.load(gain + col)
    tl.store(out + slot * GROUP_ + tl.arange(0, GROUP_), bound)


@jit
def _smallest(table, values, places, width, count, BLOCK: tl.constexpr):
    """Take the smallest values of a row of a table, one after another."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    held = tl.load(table + row * width + at, mask=at < width, other=float("inf"))
    for i in range(count):
        best, place = tl.min(held, axis=0, return_indices=True)
        tl.store(values + row * count + i, best)
        tl.store(places + row * count + i, place.to(tl.int64))
        held = tl.where(at == place, float("inf"), held)


def can_select(table: Tensor, count: int) -> bool:
    """Return whether :func:`smallest` takes the table, and is the faster way."""
    fits_registers = table.dtype == torch.float32 and table.shape[1] <= LARGEST_TABLE and table.is_contiguous()
    return fits_registers and count <= LARGEST_COUNT


def smallest(table: Tensor, count: int) -> Selected:
    """Return the smallest values of each row of a table, ascending, and their places."""
    n, width = table.shape
    values = torch.empty((n, count), dtype=torch.float32, device=table.device)
    places = torch.empty((n, count), dtype=torch.int64, device=table.device)
    block = max(32, triton.next_power_of_2(width))
    if n:
        _smallest[(n,)](table, values, places, width, count, BLOCK=block, num_warps=max(1, min(16, block // 512)))
    return values, places


@dataclass(frozen=True)
class Halves:
    """Hold a matrix as sums of half-precision parts, ``parts / factor``, with zeros up to whole tiles."""

    parts: Tensor
    width: int
    factor: float
    depth: int

    @classmethod
    def of(
        cls,
        values: Callable[[slice], Tensor],
        shape: tuple[int, int],
        largest: float,
        n_parts: int,
        n_rows: int,
        depth: int,
    ) -> Halves:
        """Split ``values(slice)``, float64 or float32 rows of which no entry is larger than `largest`."""
        n, f = shape
        depth = min(depth, max(16, triton.next_power_of_2(f)))
        width = -(-f // depth) * depth
        factor = float(2.0 ** torch.floor(torch.log2(torch.tensor(LARGEST_HALF / max(largest, 1e-30)))))
        some = values(slice(0, 1))
        parts = torch.zeros((n_rows, n_parts, width), dtype=torch.float16, device=some.device)
        for part in chunks(n, row_step(some, f)):
            scaled = values(part) * factor
            upper = scaled.half()
            parts[part, 0, :f] = upper
            if n_parts == 2:
                parts[part, 1, :f] = (scaled - upper).half()
        return cls(parts, width, factor, depth)


def _half_errors(length: Tensor, f: int, largest: float, extra: int, single: bool) -> Tensor:
    """Return bounds on twice the error of products of halves: for a pair the sum of these; `length` is that of a row.

    Tensor cores cut off where float32 rounds, hence twice its unit. The last term is for entries whose lower part is
    among the smallest half-precision numbers.
    """
    unit = (f + extra) * 2.0**-23 + 3 * 2.0**-22
    if single:
        unit += SINGLE_ERROR / f**0.5
    return unit * length.square() + f**0.5 * 2.0**-35 * largest * length


class _Strip:
    """Hold bounds of the groups of columns for some rows."""

    def __init__(self, kernels: _Kernels, rows: slice, tables: dict[str, Tensor]) -> None:
        self.kernels, self.rows, self.tables = kernels, rows, tables

    def bounds(self, name: str) -> Tensor:
        return self.tables[name]

    def inside(self, name: str, lines: Tensor, groups: Tensor) -> Tensor:
        return self.kernels.inside(name, lines + self.rows.start, groups)


class _Kernels:
    """Hold the rows prepared for the kernels, and their launches.

    What a bound gains or loses by column is added inside a kernel, before the best of a group is taken; what it does by
    row, afterwards.
    """

    def __init__(self, rows: TorchRows, tiling: Tiling) -> None:
        self.rows, self.tiling = rows, tiling
        n, f = rows.X.shape
        tile = max(tiling.rows, tiling.cols)
        self.n_columns = -(-n // tile) * tile
        self.n_groups = self.n_columns // GROUP
        self.single = single_products(rows.X.device)
        largest = _largest_entry(rows)
        self.error = _half_errors(rows.square.sqrt(), f, largest, 16, self.single)
        self.X = self._halves(lambda part: (rows.X[part].double() - rows.center) / rows.scale, f, largest)
        self.far_row = (-rows.square - self.error).float()
        self.far_col = self._column(-rows.square - self.error, FAR_AWAY)
        self.own_gain = {"far": -self.error.float()}
        self.gain = {"far": self._column(-self.error, FAR_AWAY)}
        self.projected = False

    def measure(self) -> None:
        """Let near mean near in the input."""
        self.near_row = (self.rows.square - self.error).float()
        self.near_col = self._column(self.rows.square - self.error, FAR_AWAY)
        self.own_gain["near"], self.gain["near"] = self.own_gain["far"], self.gain["far"]

    def project(self, F: Tensor, rate: float, more: float, hidden: Tensor) -> None:
        """Let near mean near in projected distance; hidden rows are near to none.

        The error of squared distances goes into the exponent: where rows are so far apart that the kernel vanishes,
        it does no harm.
        """
        self.projected, self.rate, self.F32 = True, rate, F.float().contiguous()
        rank = F.shape[1]
        largest = float(F.abs().max()) if F.numel() else 1.0
        self.F = self._halves(lambda part: F[part], rank, largest)
        of_row = F.square().sum(dim=1)
        error = _half_errors(1 + of_row.sqrt(), max(1, rank), largest, 32, self.single) + more
        level = (1 - of_row) / 2
        self.near_row = (level - error).float()
        self.top_row = level.float()
        # Padded columns must lose both as the nearest and as the largest.
        self.near_col = self._column(level, -HIDDEN)
        self.near_gain = self._column(torch.where(hidden, FAR_AWAY, -error), FAR_AWAY) * self.F.factor**2
        self.log2_rate = rate * LOG2_E
        self.kernel_col = self._column(-self.log2_rate * (self.rows.square - self.error), 0.0)
        # Differences of rows are exact enough that only their sum of squares counts.
        inside = error + (self.rows.X.shape[1] + 16) * 2.0**-24
        self.own_gain["near"] = -inside.float()
        self.gain["near"] = self._column(torch.where(hidden, FAR_AWAY, -inside), FAR_AWAY)

    def _halves(self, values: Callable[[slice], Tensor], width: int, largest: float) -> Halves:
        n_parts = 1 if self.single else 2
        return Halves.of(values, (self.rows.n, width), largest, n_parts, self.n_columns, self.tiling.depth)

    def _column(self, values: Tensor, padding: float) -> Tensor:
        result = torch.full((self.n_columns,), padding, dtype=torch.float32, device=values.device)
        result[: len(values)] = values
        return result

    def bounds(self, part: slice) -> tuple[dict[str, Tensor], Tensor | None]:
        """Return tables of bounds of the groups, and in the projected case the largest key of each row."""
        names = ("near", "far")
        n_rows = part.stop - part.start
        tiling, device = self.tiling, self.rows.X.device
        tables = {name: torch.empty((n_rows, self.n_groups), device=device) for name in names}
        n_tiles = self.n_columns // tiling.cols
        n_spans = -(-n_tiles // tiling.span)
        top = torch.empty((n_spans, n_rows), device=device) if self.projected else None
        unused = self.X.parts
        product = 2 / self.X.factor**2
        rise = self.F.factor**2 if self.projected else 1.0
        _bounds[(-(-n_rows // tiling.rows), n_spans)](
            self.X.parts,
            self.F.parts if self.projected else unused,
            self.near_col,
            self.near_gain if self.projected else unused,
            self.far_col,
            self.kernel_col if self.projected else unused,
            tables["near"],
            tables["far"],
            unused if top is None else top,
            part.start,
            n_rows,
            n_tiles,
            self.n_groups,
            product,
            self.log2_rate * product if self.projected else 0.0,
            rise,
            WIDTH=self.X.width,
            RANK=self.F.width if self.projected and self.F32.shape[1] else 0,
            PARTS=self.X.parts.shape[1],
            PROJECTED=self.projected,
            ROWS=tiling.rows,
            COLS=tiling.cols,
            DEPTH=self.X.depth,
            RANK_DEPTH=self.F.depth if self.projected else 16,
            SPAN=tiling.span,
            GROUP_=GROUP,
            num_warps=tiling.warps,
            num_stages=tiling.stages,
        )
        tables["far"] += self.far_row[part, None]
        if top is not None:
            tables["near"] *= 1 / rise
            top = top.amax(dim=0) / rise + self.top_row[part]
        tables["near"] += self.near_row[part, None]
        return tables, top

    def inside(self, name: str, rows: Tensor, groups: Tensor) -> Tensor:
        n_chosen = groups.shape[1]
        projected = self.projected and name == "near"
        out = torch.empty((len(rows), n_chosen * GROUP), device=rows.device)
        if len(rows) == 0:
            return out
        X = self.rows.X
        _inside[(len(rows), n_chosen)](
            X,
            self.F32 if projected else X,
            rows.contiguous(),
            groups.contiguous(),
            self.gain[name],
            out,
            self.rows.n,
            X.shape[1],
            self.F32.shape[1] if projected else 0,
            n_chosen,
            1 / self.rows.scale,
            self.rate if projected else 0.0,
            1.0 if name == "near" else -1.0,
            PROJECTED=projected,
            GROUP_=GROUP,
            DEPTH=64,
            num_warps=4,
        )
        return out.add_(self.own_gain[name][rows, None])


def _largest_entry(rows: TorchRows) -> float:
    return (
        max(
            float((rows.X[part].double() - rows.center).abs().max())
            for part in chunks(rows.n, row_step(rows.X, rows.X.shape[1]))
        )
        / rows.scale
    )


class TritonEuclidScreen(EuclidScreen):
    """Screen squared distances; rows that need it are compared in float64 as by the parent."""

    stores_keys = False

    def __init__(self, rows: TorchRows, tiling: Tiling = TILING) -> None:
        super().__init__(rows)
        self.kernels = _Kernels(rows, tiling)
        self.kernels.measure()

    def strip(self, rows: slice) -> Strip:
        return _Strip(self.kernels, rows, self.kernels.bounds(rows)[0])


class TritonProjectedScreen(ProjectedScreen):
    """Screen projected and input distances; rows that need it are compared in float64 as by the parent."""

    stores_keys = False

    def __init__(self, rows: TorchProjectedRows, tiling: Tiling = TILING) -> None:
        super().__init__(rows)
        self.kernels = _Kernels(rows.rows, tiling)
        self.kernels.project(rows.F, rows.rate, TIE * rows.unit, ~self.stands)

    def strip(self, rows: slice) -> Strip:
        tables, top = self.kernels.bounds(rows)
        assert top is not None
        self.top[rows] = top.double()
        return _Strip(self.kernels, rows, tables)


def fits(rows: TorchRows) -> bool:
    """Return whether half-precision parts serve these rows."""
    return rows.fits_float32 and float(rows.square.max()) <= FARTHEST**2


@jit
def _attraction(start, column, weight, x, y, out, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    first, last = tl.load(start + row), tl.load(start + row + 1)
    own_x, own_y = tl.load(x + row), tl.load(y + row)
    sum_x = tl.zeros([BLOCK], dtype=tl.float32)
    sum_y = tl.zeros([BLOCK], dtype=tl.float32)
    for begin in range(first, last, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        there = at < last
        other = tl.load(column + at, mask=there, other=0)
        apart_x = own_x - tl.load(x + other, mask=there, other=0.0)
        apart_y = own_y - tl.load(y + other, mask=there, other=0.0)
        force = tl.load(weight + at, mask=there, other=0.0) / (1 + apart_x * apart_x + apart_y * apart_y)
        sum_x += force * apart_x
        sum_y += force * apart_y
    tl.store(out + 2 * row, tl.sum(sum_x, axis=0))
    tl.store(out + 2 * row + 1, tl.sum(sum_y, axis=0))


def attraction(start: Tensor, column: Tensor, weight: Tensor, places: Tensor) -> Tensor:
    """Return the attracting forces on rows of a map in two dimensions, whose affinities are compressed rows."""
    x, y = places.T.to(torch.float32).contiguous()
    out = torch.empty(places.shape, dtype=torch.float32, device=places.device)
    _attraction[(len(places),)](start, column, weight, x, y, out, BLOCK=128, num_warps=1)
    return out.to(places.dtype)
