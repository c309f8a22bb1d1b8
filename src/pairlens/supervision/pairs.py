"""Store answers about rows as sorted arrays, cut them to fewer rows, and list or draw the pairs that groups imply.

A pair is packed into one integer key, ``first * 2**32 + second``, so that sorting, merging and looking up pairs are
operations on flat arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from pairlens.exceptions import ArgumentError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
_Array = TypeVar("_Array", bound=NDArray[Any])

MAX_ROWS = 2**31
"""Row numbers are below this."""

MAX_LISTED = 10**8
"""Most pairs that are written out as a list."""

_SHIFT = 32
_LOW = (1 << _SHIFT) - 1


class AnswerTable(NamedTuple):
    """Hold distinct answers about two or more rows each, in lexicographic order, all of weight 1 unless given."""

    members: IntArray
    weight: FloatArray | None

    @property
    def size(self) -> int:
        """Number of answers."""
        return len(self.members)

    @property
    def weights(self) -> FloatArray:
        """One weight per answer, without memory of its own where all are 1."""
        return np.broadcast_to(np.float64(1.0), self.size) if self.weight is None else self.weight

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.size) if self.weight is None else float(self.weight.sum())

    @property
    def n_rows(self) -> int:
        """One more than the largest row number."""
        return int(self.members.max()) + 1 if self.size else 0

    @property
    def keys(self) -> IntArray:
        """The pairs of a table of pairs as one integer each, in ascending order."""
        return encode(self.members[:, 0], self.members[:, 1])

    def select(self, index: NDArray[Any]) -> Self:
        """Return the answers at a mask or at increasing positions, so that the order stays."""
        weight = None if self.weight is None else self.weight[index]
        return type(self)(freeze(self.members[index]), _frozen_weight(weight))

    def weight_at(self, keys: IntArray) -> FloatArray:
        """Return the weight of each pair of `keys`, 0 where this table of pairs does not have it."""
        if not self.size:
            return np.zeros(len(keys))
        own = self.keys
        position = np.minimum(np.searchsorted(own, keys), len(own) - 1)
        return np.where(own[position] == keys, self.weights[position], 0.0)


def freeze(array: _Array) -> _Array:
    """Make an array read-only and return it."""
    array.flags.writeable = False
    return array


def _frozen_weight(weight: FloatArray | None) -> FloatArray | None:
    if weight is None or bool((weight == 1.0).all()):
        return None
    return freeze(weight)


def encode(first: IntArray, second: IntArray) -> IntArray:
    """Return the keys of ordered pairs."""
    return (first << _SHIFT) | second


def canonical(first: IntArray, second: IntArray) -> IntArray:
    """Return the keys of unordered pairs: the smaller row comes first."""
    return encode(np.minimum(first, second), np.maximum(first, second))


def decode(keys: IntArray) -> IntArray:
    """Return the pairs of keys, shape (n_keys, 2)."""
    pairs = np.empty((len(keys), 2), dtype=np.int64)
    np.right_shift(keys, _SHIFT, out=pairs[:, 0])
    np.bitwise_and(keys, _LOW, out=pairs[:, 1])
    return pairs


def contains(keys: IntArray, wanted: IntArray) -> NDArray[np.bool_]:
    """Return which of `wanted` are among the sorted `keys`."""
    if not len(keys) or not len(wanted):
        return np.zeros(len(wanted), dtype=bool)
    position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return keys[position] == wanted


def distinct(values: IntArray) -> IntArray:
    """Return the sorted distinct values; for integers sorting is several times as fast as the hashing of np.unique."""
    ordered = np.sort(values, axis=None)
    return ordered[_run_starts(ordered)]


def _run_starts(ordered: IntArray) -> IntArray:
    is_start = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_start[1:])
    return np.flatnonzero(is_start)


def from_keys(keys: IntArray, weight: FloatArray | None = None, *, weight_name: str = "weight") -> AnswerTable:
    """Sort pairs and add up the weights of equal ones, 1 each if None; pairs whose weights add up to 0 are left out.

    An error about infinite weights names the argument `weight_name`.
    """
    if weight is None:
        keys = np.sort(keys)
        starts = _run_starts(keys)
        if len(starts) == len(keys):
            return AnswerTable(freeze(decode(keys)), None)
        weight = np.diff(starts, append=len(keys)).astype(np.float64)
        return AnswerTable(freeze(decode(keys[starts])), _frozen_weight(weight))
    order = np.argsort(keys)
    ordered = keys[order]
    starts = _run_starts(ordered)
    if len(starts) < len(keys):
        # Floating-point sums depend on the order of their terms, and the order of the pairs must not matter.
        count = np.diff(starts, append=len(keys))
        repeated = np.repeat(count > 1, count)
        terms = order[repeated]
        order[repeated] = terms[np.lexsort((weight[terms], keys[terms]))]
        with np.errstate(over="ignore"):
            weight = np.add.reduceat(weight[order], starts)
    else:
        weight = weight[order]
    return _weighted(decode(ordered[starts]), weight, weight_name)


def from_tuples(members: IntArray, weight: FloatArray | None) -> AnswerTable:
    """Sort tuples of rows and add up the weights of equal ones; tuples of weight 0 are left out."""
    if members.shape[1] == 2:
        return from_keys(encode(members[:, 0], members[:, 1]), weight)
    weight = np.ones(len(members)) if weight is None else weight
    # Equal tuples go by weight, so that the order in which they are given does not change the sum.
    order = np.lexsort((weight, *members.T[::-1]))
    ordered = members[order]
    is_start = np.ones(len(ordered), dtype=bool)
    is_start[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.flatnonzero(is_start)
    with np.errstate(over="ignore"):
        total = np.add.reduceat(weight[order], starts) if len(starts) else np.empty(0)
    return _weighted(ordered[starts], total, "weight")


def _weighted(members: IntArray, weight: FloatArray, weight_name: str) -> AnswerTable:
    """Return the answers of positive weight; ArgumentError if the weights add up to infinity."""
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        infinite = ~np.isfinite(weight)
        of = f"of {tuple(members[infinite.argmax()].tolist())}" if infinite.any() else "of all answers"
        reason = f"must add up to a finite number, and the weights {of} do not"
        raise ArgumentError(weight_name, float(total), reason, "Divide all weights by the same large number")
    positive = weight > 0
    if not positive.all():
        members, weight = members[positive], weight[positive]
    return AnswerTable(freeze(members), _frozen_weight(weight))


def combine(tables: Sequence[AnswerTable], *, weight_name: str) -> AnswerTable:
    """Return one table of the pairs of several; the weights of a pair in more than one of them add up."""
    tables = [table for table in tables if table.size]
    if len(tables) == 1:
        return tables[0]
    if not tables:
        return from_keys(np.empty(0, dtype=np.int64))
    keys = np.concatenate([table.keys for table in tables])
    if all(table.weight is None for table in tables):
        return from_keys(keys)
    return from_keys(keys, np.concatenate([table.weights for table in tables]), weight_name=weight_name)


def among(table: AnswerTable, rows: IntArray, n_samples: int) -> tuple[IntArray, FloatArray | None]:
    """Return the answers among `rows`, renumbered, and their weights.

    Where a row comes more than once in `rows`, every copy of it inherits its answers.
    """
    copies = np.bincount(rows, minlength=n_samples)
    kept = table.select(np.flatnonzero((copies[table.members] > 0).all(axis=1)))
    if copies.max(initial=0) <= 1:
        new = np.empty(n_samples, dtype=np.int64)
        new[rows] = np.arange(len(rows))
        return new[kept.members], kept.weight
    order = np.argsort(rows, kind="stable")
    start = np.cumsum(copies) - copies
    counts = copies[kept.members]
    repeats = counts.prod(axis=1)
    local = _ranges(repeats)
    members = np.empty((len(local), counts.shape[1]), dtype=np.int64)
    # The copies of the last row change fastest.
    for column in reversed(range(counts.shape[1])):
        local, copy = np.divmod(local, np.repeat(counts[:, column], repeats))
        members[:, column] = order[np.repeat(start[kept.members[:, column]], repeats) + copy]
    return members, None if kept.weight is None else np.repeat(kept.weight, repeats)


def _ranges(lengths: IntArray) -> IntArray:
    """Return ``0 .. length - 1`` for every length, one after the other."""
    return np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def group_rows(codes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the rows with a code >= 0 sorted by code, and where each group starts among them and how long it is."""
    rows = np.flatnonzero(codes >= 0)
    size = np.bincount(codes[rows]) if len(rows) else np.empty(0, dtype=np.int64)
    order = rows[np.argsort(codes[rows], kind="stable")]
    return order, np.cumsum(size) - size, size


def pairs_within(order: IntArray, start: IntArray, size: IntArray) -> IntArray:
    """Return the keys of all pairs of rows of one group."""
    position = np.arange(len(order))
    length = np.repeat(start + size, size) - position - 1
    return _with_run(order, position + 1, length)


def pairs_across(order: IntArray, start: IntArray, size: IntArray) -> IntArray:
    """Return the keys of all pairs of rows of two different groups."""
    end = np.repeat(start + size, size)
    return _with_run(order, end, len(order) - end)


def _with_run(order: IntArray, run_start: IntArray, run_length: IntArray) -> IntArray:
    second = order[np.repeat(run_start, run_length) + _ranges(run_length)]
    return canonical(np.repeat(order, run_length), second)


def pairs_between(order: IntArray, start: IntArray, size: IntArray, left: IntArray, right: IntArray) -> IntArray:
    """Return the keys of all pairs of a row of group ``left[k]`` and a row of group ``right[k]``, for every k."""
    repeats = size[left] * size[right]
    local = _ranges(repeats)
    width = np.repeat(size[right], repeats)
    first = order[np.repeat(start[left], repeats) + local // width]
    second = order[np.repeat(start[right], repeats) + local % width]
    return canonical(first, second)


def check_listable(n_pairs: int, argument: str, remedy: str) -> None:
    """Raise ArgumentError if there are more pairs than are written out as a list."""
    if n_pairs > MAX_LISTED:
        raise ArgumentError(argument, n_pairs, f"must imply at most {MAX_LISTED:,} pairs to be listed", remedy)


def renumber(codes: IntArray) -> IntArray:
    """Return the same grouping with codes 0, 1, ... in order of first appearance; -1 stays."""
    labelled = codes >= 0
    if not labelled.any():
        return np.full(len(codes), -1, dtype=np.int64)
    backwards = np.flatnonzero(labelled)[::-1]
    first = np.full(int(codes.max()) + 1, len(codes), dtype=np.int64)
    # Of repeated targets the last assignment stays, which from behind is the first row.
    first[codes[backwards]] = backwards
    present = np.flatnonzero(first < len(codes))
    new = np.full(len(first), -1, dtype=np.int64)
    new[present[np.argsort(first[present])]] = np.arange(len(present))
    return np.where(labelled, new[codes], -1)


def draw_distinct(population: int, count: int, rng: np.random.Generator) -> IntArray:
    """Draw a uniformly random set of `count` numbers below `population`, sorted."""
    if count <= population // 2:
        return _draw_by_rejection(population, count, rng)
    # Rejection would have to wait for the last few: draw what is left out instead.
    kept = np.ones(population, dtype=bool)
    kept[_draw_by_rejection(population, population - count, rng)] = False
    return np.flatnonzero(kept)


def _draw_by_rejection(population: int, count: int, rng: np.random.Generator) -> IntArray:
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        missing = count - len(drawn)
        more = rng.integers(population, size=missing + missing // 4 + 16, dtype=np.int64)
        drawn = distinct(np.concatenate([drawn, more]))
    if len(drawn) > count:
        drawn = np.sort(rng.permutation(drawn)[:count])
    return drawn


def triangle(index: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pairs i < j of these numbers, where (0, 1), (0, 2), (1, 2), (0, 3), ... are numbered from 0 on."""
    j = (np.sqrt(2.0 * index + 0.25) + 0.5).astype(np.int64)
    # The square root of numbers near 2**53 and above is off by one now and then.
    j -= j * (j - 1) // 2 > index
    j += (j + 1) * j // 2 <= index
    return index - j * (j - 1) // 2, j


def draw_per_class(codes: IntArray, per_class: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw the keys of `per_class` must-links inside each class and of as many cannot-links with one end in it."""
    order, start, size = group_rows(codes)
    must: list[IntArray] = []
    cannot: list[IntArray] = []
    partner: list[IntArray] = []
    none = np.empty(0, dtype=np.int64)
    # The classes with the fewest cannot-links to choose from choose first.
    for label in np.argsort(size * (len(order) - size), kind="stable"):
        own, first = int(size[label]), int(start[label])
        possible = own * (own - 1) // 2
        i, j = triangle(draw_distinct(possible, min(per_class, possible), rng))
        must.append(canonical(order[first + i], order[first + j]))

        others = len(order) - own
        # Pairs that another class drew are taken: draw as many more, and leave out those.
        taken = np.sort(np.concatenate([none, *(k[p == label] for k, p in zip(cannot, partner))]))
        possible = own * others
        inside, outside = np.divmod(draw_distinct(possible, min(per_class + len(taken), possible), rng), max(others, 1))
        outside += np.where(outside >= first, own, 0)
        keys = canonical(order[first + inside], order[outside])
        free = np.flatnonzero(~contains(taken, keys))
        free = free[draw_distinct(len(free), min(per_class, len(free)), rng)]
        cannot.append(keys[free])
        partner.append(codes[order[outside[free]]])
    across = np.concatenate([none, *cannot])
    possible = (len(order) ** 2 - int((size**2).sum())) // 2
    if len(across) < min(per_class * len(size), possible):
        across = _draw_by_allotment(order, start, size, per_class, rng)
    return np.concatenate([none, *must]), across


def _draw_by_allotment(
    order: IntArray, start: IntArray, size: IntArray, per_class: int, rng: np.random.Generator
) -> IntArray:
    """Draw the keys of cannot-links where pairs are scarce and one class may draw what only another could use.

    A maximum flow from the classes, each asking for `per_class`, to the pairs of classes, each with the capacity of its
    pairs of rows, gives the number to draw of each.
    """
    left, right = np.triu_indices(len(size), 1)
    classes = 1 + np.arange(len(size))
    blocks = 1 + len(size) + np.arange(len(left))
    sink = 1 + len(size) + len(left)
    most = int(np.iinfo(np.int32).max)
    capacity = np.minimum(size[left] * size[right], most)
    wanted = np.full(len(classes), min(per_class, most))
    source = np.concatenate([np.zeros(len(classes)), classes[left], classes[right], blocks])
    target = np.concatenate([classes, blocks, blocks, np.full(len(blocks), sink)])
    flow = np.concatenate([wanted, capacity, capacity, capacity])
    graph = sparse.csr_array(
        (flow.astype(np.int32), (source.astype(np.int32), target.astype(np.int32))), shape=(sink + 1, sink + 1)
    )
    amount = csgraph.maximum_flow(graph, 0, sink).flow.tocsc()[:, [sink]].toarray()[blocks, 0]
    drawn = []
    for block in np.flatnonzero(amount):
        one, other = left[block], right[block]
        index = draw_distinct(int(size[one] * size[other]), int(amount[block]), rng)
        i, j = np.divmod(index, size[other])
        drawn.append(canonical(order[start[one] + i], order[start[other] + j]))
    return np.concatenate(drawn)
