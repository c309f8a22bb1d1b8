"""Exact k-best selection over all pairs of n rows on torch tensors: strips of rows, no n x n array.

The counterpart of :mod:`pairlens.engines.local.selection` for a device with thousands of threads, which has no use for
lists that are updated pair by pair. Like there, pairs are *screened* by a cheap key with a bound on its error, single
pairs are *refined* in float64, keys that round to the same multiple of a quantum are equal, and among equals the
smaller row index wins.

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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from pairlens.engines.torch.device import torch

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


@dataclass(frozen=True)
class Side:
    """One question: which k rows have the smallest key (sign +1), or the largest (sign -1).

    Parameters
    ----------
    k : int
        How many rows to select for each row.
    sign : int
        +1 or -1; the screen works with the key times this, of which the smallest are wanted.
    quantum : float
        Keys are equal if they round to the same multiple of this.
    refine : callable
        ``refine(rows, cols)`` gives the precise float64 keys of pairs.
    wanted : bool tensor of shape (n,), optional
        Rows whose selection is used; the others get an arbitrary one.
    """

    k: int
    sign: int
    quantum: float
    refine: Callable[[Tensor, Tensor], Tensor]
    wanted: Tensor | None = None


class Strip(Protocol):
    """Some consecutive rows against all columns. Bounds are of signed keys, from below."""

    def bounds(self, name: str) -> Tensor:
        """Of shape (rows, n_groups): no key of the group is smaller."""

    def inside(self, name: str, lines: Tensor, groups: Tensor) -> Tensor:
        """Of shape (len(lines), n_chosen * GROUP): bounds of the pairs in chosen groups, for some lines."""


class Screen(Protocol):
    """The keys of all pairs; `stores_keys` says whether a strip takes memory for all of its pairs."""

    n: int
    device: torch.device
    stores_keys: bool

    def strip(self, rows: slice) -> Strip:
        """Rows against all columns."""

    def fine(self, name: str, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Signed float64 keys of shape (len(rows), n), inf where a column is not there, and error bounds (len(rows),).

        A row's key with itself is inf.
        """


def self_join(screen: Screen, sides: dict[str, Side], *, block: int, fine_bytes: int) -> dict[str, Selected]:
    """Select for each row what the sides ask for.

    Parameters
    ----------
    screen : Screen
    sides : dict
        The questions by the name under which the screen knows their keys.
    block : int
        Rows of a strip.
    fine_bytes : int
        Working memory for rows that are compared in float64.

    Returns
    -------
    dict of (indices, keys)
        Tensors of shape (n, k), best first: row indices and the precise float64 keys. They depend neither on `block`
        nor on `fine_bytes`.
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
    for rows in chunks(screen.n, block):
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
        for part in chunks(len(rows_left), max(1, fine_bytes // (FINE_BYTES * screen.n))):
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
    """Order of each line by key, ties by column."""
    by_column = cols.argsort(dim=1)
    return by_column.gather(1, quanta.gather(1, by_column).argsort(dim=1, stable=True))


def _kth_smallest(table: Tensor, k: int) -> Tensor:
    """The k-th smallest value of each row, from the k groups with the smallest minima."""
    groups = padded(table.T, GROUP, torch.inf).T.unflatten(1, (-1, GROUP))
    if groups.shape[1] > k:
        chosen = groups.amin(dim=2).topk(k, dim=1, largest=False, sorted=False).indices
        groups = groups.gather(1, chosen[:, :, None].expand(-1, -1, GROUP))
    return groups.flatten(1).topk(k, dim=1, largest=False).values[:, -1]


def smallest(table: Tensor, count: int) -> Selected:
    """The smallest values of each row of a table, ascending, and their places."""
    if table.is_cuda:
        from pairlens.engines.torch.device import triton_kernels

        kernels = triton_kernels(table)
        if kernels is not None and kernels.can_select(table, count):
            selected: Selected = kernels.smallest(table, count)
            return selected
    values, places = table.topk(count, dim=1, largest=False, sorted=True)
    return values, places


def chunks(n: int, size: int) -> Iterator[slice]:
    """Consecutive slices of ``range(n)``."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def padded(table: Tensor, multiple: int, value: float = 0.0) -> Tensor:
    """The table with rows of a value added, so that their number is a multiple."""
    missing = -len(table) % multiple
    if missing == 0:
        return table
    return torch.cat([table, table.new_full((missing, *table.shape[1:]), value)])
