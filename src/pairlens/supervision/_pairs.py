"""Pairs of rows as arrays: checking, merging, slicing, enumerating.

A pair is packed into one integer key, ``first * 2**32 + second``, so that sorting, merging and looking up
pairs are operations on flat arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.supervision._inputs import PairsLike, materialised, refuse_set, regular_array

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
_Array = TypeVar("_Array", bound=NDArray[Any])

MAX_ROWS = 2**31
MAX_MATERIALISED = 10**8

_SHIFT = 32
_LOW = (1 << _SHIFT) - 1


class AnswerTable(NamedTuple):
    """Distinct answers about rows in lexicographic order; ``weight`` is None where every one weighs 1."""

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

    def select(self, index: NDArray[Any]) -> Self:
        """The answers at a mask or at increasing positions, so that the order stays."""
        weight = None if self.weight is None else self.weight[index]
        return type(self)(freeze(self.members[index]), frozen_weight(weight))

    def positions(self, wanted: IntArray) -> IntArray:
        """The position of each of `wanted` among the answers, -1 where it is not there."""
        _, codes = np.unique(np.concatenate([self.members, wanted]), axis=0, return_inverse=True)
        codes = codes.ravel()
        position = np.full(codes.max(initial=-1) + 1, -1, dtype=np.int64)
        position[codes[: self.size]] = np.arange(self.size)
        return position[codes[self.size :]]


class PairTable(AnswerTable):
    """Distinct pairs."""

    __slots__ = ()

    @property
    def pairs(self) -> IntArray:
        """The rows of each pair."""
        return self.members

    @property
    def keys(self) -> IntArray:
        """The pairs as one integer each, in ascending order."""
        return encode(self.members[:, 0], self.members[:, 1])

    def positions(self, wanted: IntArray) -> IntArray:
        return self._positions(encode(wanted[:, 0], wanted[:, 1]))

    def weight_at(self, keys: IntArray) -> FloatArray:
        """The weight of each pair of `keys`, 0 where this table does not have it."""
        if not self.size:
            return np.zeros(len(keys))
        position = self._positions(keys)
        return np.where(position >= 0, self.weights[position], 0.0)

    def _positions(self, keys: IntArray) -> IntArray:
        if not self.size:
            return np.full(len(keys), -1)
        own = self.keys
        position = np.minimum(np.searchsorted(own, keys), len(own) - 1)
        return np.where(own[position] == keys, position, -1)


def freeze(array: _Array) -> _Array:
    array.flags.writeable = False
    return array


def frozen_weight(weight: FloatArray | None) -> FloatArray | None:
    if weight is None or bool((weight == 1.0).all()):
        return None
    return freeze(weight)


def encode(first: IntArray, second: IntArray) -> IntArray:
    return (first << _SHIFT) | second


def canonical(first: IntArray, second: IntArray) -> IntArray:
    """Keys of unordered pairs: the smaller row first."""
    return encode(np.minimum(first, second), np.maximum(first, second))


def decode(keys: IntArray) -> IntArray:
    pairs = np.empty((len(keys), 2), dtype=np.int64)
    np.right_shift(keys, _SHIFT, out=pairs[:, 0])
    np.bitwise_and(keys, _LOW, out=pairs[:, 1])
    return pairs


def contains(keys: IntArray, wanted: IntArray) -> NDArray[np.bool_]:
    """Which of `wanted` are in the sorted `keys`."""
    if not len(keys) or not len(wanted):
        return np.zeros(len(wanted), dtype=bool)
    position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return keys[position] == wanted


def from_keys(keys: IntArray, weight: FloatArray | None = None) -> PairTable:
    """Sort the keys and add up the weights of equal ones; pairs of weight 0 say nothing and are dropped."""
    if weight is None:
        keys = np.sort(keys)
        starts = _run_starts(keys)
        if len(starts) == len(keys):
            return PairTable(freeze(decode(keys)), None)
        weight = np.diff(starts, append=len(keys)).astype(np.float64)
        return PairTable(freeze(decode(keys[starts])), frozen_weight(weight))
    order = np.argsort(keys)
    ordered = keys[order]
    starts = _run_starts(ordered)
    count = np.diff(starts, append=len(keys))
    if len(starts) < len(keys):
        # Floating-point sums depend on the order of their terms, and the order of the pairs must not matter.
        repeated = np.repeat(count > 1, count)
        terms = order[repeated]
        order[repeated] = terms[np.lexsort((weight[terms], keys[terms]))]
    keys, weight = ordered[starts], weight[order]
    if len(starts) < len(weight):
        with np.errstate(over="ignore"):
            weight = np.add.reduceat(weight, starts)
    positive = weight > 0
    if not positive.all():
        keys, weight = keys[positive], weight[positive]
    return PairTable(freeze(decode(keys)), frozen_weight(weight))


def distinct(values: IntArray) -> IntArray:
    """The sorted distinct values; for integers sorting is several times as fast as the hashing of np.unique."""
    ordered = np.sort(values, axis=None)
    return ordered[_run_starts(ordered)]


def _run_starts(ordered: IntArray) -> IntArray:
    is_start = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_start[1:])
    return np.flatnonzero(is_start)


def combine(tables: Sequence[PairTable], *, weight_name: str) -> PairTable:
    """One table of the pairs of several; the weights of a pair in more than one of them add up."""
    tables = [table for table in tables if table.size]
    if len(tables) == 1:
        return tables[0]
    if not tables:
        return from_keys(np.empty(0, dtype=np.int64))
    keys = np.concatenate([table.keys for table in tables])
    if all(table.weight is None for table in tables):
        return from_keys(keys)
    return check_sums(from_keys(keys, np.concatenate([table.weights for table in tables])), weight_name=weight_name)


def check_sums(table: PairTable, *, weight_name: str) -> PairTable:
    """The table itself, if neither the weight of a pair nor the total is beyond all numbers."""
    check_weight_sums(table.pairs, table.weights, weight_name=weight_name, what="pair")
    return table


def check_weight_sums(rows: IntArray, weights: FloatArray, *, weight_name: str, what: str) -> None:
    """ValueError if the weight of an answer or the total is beyond all numbers."""
    with np.errstate(over="ignore"):
        if np.isfinite(weights.sum()):
            return
    infinite = ~np.isfinite(weights)
    of = f"of the {what} {_shown(rows[infinite.argmax()])}" if infinite.any() else f"of all {what}s together"
    raise ValueError(
        f"{weight_name}: the weights {of} add up to more than {np.finfo(np.float64).max:.2g}, the largest number; "
        "divide all weights by the same large number"
    )


def row_array(rows: Any, *, name: str) -> IntArray:
    """Whole row numbers as int64, of whatever shape; empty input has no type of its own and passes."""
    array = regular_array(materialised(rows), name=name)
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if array.dtype == object:
        whole = [isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in array.flat]
        if not all(whole):
            offender = array.flat[whole.index(False)]
            raise ValueError(f"{name} must hold whole row numbers, got {offender!r} among them")
        if (least := min(array.flat)) < -MAX_ROWS:
            raise ValueError(f"{name} holds the row number {least}; row numbers cannot be negative")
        if (most := max(array.flat)) >= MAX_ROWS:
            raise ValueError(f"{name} holds the row number {most}; row numbers must be below 2**31")
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole row numbers (integers), got {array.dtype} such as {array.flat[0]!r}")
    if array.dtype.kind == "u" and array.max() >= MAX_ROWS:
        raise ValueError(f"{name} holds the row number {array.max()}; row numbers must be below 2**31")
    return array.astype(np.int64, copy=False)


def parse_members(
    given: PairsLike | None,
    weight: ArrayLike | None,
    *,
    width: int,
    name: str,
    weight_name: str,
    what: str,
    n_samples: int | None,
) -> tuple[IntArray, FloatArray | None]:
    """Check answers from outside, `width` rows each: their shape, their rows and their weights."""
    values = None if weight is None else weight_array(weight, name=weight_name)
    if values is not None and values.ndim:
        refuse_set(given, name=name, beside=weight_name)
    array = row_array(() if given is None else given, name=name)
    if array.size == 0 and array.ndim <= 2:
        array = array.reshape(0, width)
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name} must have the shape (n_{what}s, {width}), one {what} of rows each; got {array.shape}")
    if values is not None:
        values = weight_per_answer(values, array, name=name, weight_name=weight_name, what=what)
    check_fits(array, n_samples, name=name)
    return array, values


def parse_pairs(
    pairs: PairsLike | None, weight: ArrayLike | None, *, name: str, weight_name: str, n_samples: int | None
) -> PairTable:
    """Check unordered pairs from outside and bring them into their one form."""
    members, values = parse_members(
        pairs, weight, width=2, name=name, weight_name=weight_name, what="pair", n_samples=n_samples
    )
    check_two_rows(members, name=name)
    return check_sums(from_keys(canonical(*members.T), values), weight_name=weight_name)


def check_two_rows(pairs: IntArray, *, name: str) -> None:
    """ValueError if a pair is one of a row with itself."""
    if (own := pairs[:, 0] == pairs[:, 1]).any():
        position = int(own.argmax())
        raise ValueError(
            f"{name}[{position}] is the pair {_shown(pairs[position])}: a row cannot be paired with itself; leave it "
            "out"
        )


def check_fits(pairs: IntArray, n_samples: int | None, *, name: str) -> None:
    if not len(pairs):
        return
    if pairs.min() < 0:
        position = int((pairs.min(axis=1) < 0).argmax())
        raise ValueError(
            f"{name}[{position}] is {_shown(pairs[position])}: row numbers count from 0 and cannot be negative"
        )
    bound = MAX_ROWS if n_samples is None else n_samples
    if pairs.max() >= bound:
        position = int((pairs.max(axis=1) >= bound).argmax())
        right = (
            "row numbers must be below 2**31"
            if n_samples is None
            else f"with n_samples={n_samples} row numbers go from 0 to {n_samples - 1}"
        )
        raise ValueError(f"{name}[{position}] is {_shown(pairs[position])}: {right}")


def weight_array(weight: ArrayLike, *, name: str) -> FloatArray:
    values = regular_array(materialised(weight), name=name)
    try:
        return values.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error


def weight_per_answer(
    values: FloatArray, pairs: IntArray, *, name: str, weight_name: str, what: str = "pair"
) -> FloatArray:
    """Weights from outside, one for each answer, checked."""
    if values.ndim == 0:
        values = np.broadcast_to(values, len(pairs))
    if values.shape != (len(pairs),):
        raise ValueError(
            f"{weight_name} must hold one weight per {what} of {name}: expected {len(pairs)}, "
            f"got the shape {values.shape}"
        )
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        position = int(wrong.argmax())
        raise ValueError(
            f"{weight_name}[{position}] is {values[position]} for the {what} {_shown(pairs[position])}: "
            "a weight must be finite and at least 0"
        )
    return values


def _shown(rows: IntArray) -> str:
    return f"({', '.join(map(str, rows.tolist()))})"


def as_n_samples(n_samples: Any) -> int | None:
    if n_samples is None:
        return None
    try:
        number = operator.index(n_samples)
    except TypeError:
        raise ValueError(f"n_samples must be a whole number or None, got {n_samples!r}") from None
    if not 0 <= number <= MAX_ROWS:
        raise ValueError(f"n_samples must lie between 0 and 2**31, got {number}")
    return number


def check_count(count: Any, *, name: str, least: int = 1) -> int:
    try:
        number = operator.index(count)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, got {count!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def as_rows(index: Any, n_samples: int) -> IntArray:
    """Turn what may stand in ``[...]`` into row numbers from 0 to n_samples - 1."""
    if isinstance(index, tuple):
        if len(index) != 2 or index[1] is not Ellipsis:
            raise IndexError(
                "there is one axis, the rows, so of all tuples only (rows, ...) means something; "
                f"got a tuple of {len(index)}: give row numbers as a list or an array"
            )
        index = index[0]
    if isinstance(index, slice):
        return np.arange(*index.indices(n_samples), dtype=np.int64)
    try:
        rows = regular_array(index, name="rows")
    except ValueError as error:
        raise IndexError(str(error)) from error
    if rows.ndim == 0:
        raise TypeError(
            f"one row alone has no pairs, so [{index!r}] means nothing; "
            "index with several rows: an array of row numbers, a boolean mask or a slice"
        )
    if rows.ndim != 1:
        raise IndexError(f"rows must be a one-dimensional array, got the shape {rows.shape}")
    if rows.size == 0:
        return np.empty(0, dtype=np.int64)
    if rows.dtype == bool:
        if len(rows) != n_samples:
            raise IndexError(f"a boolean mask must have {n_samples} entries, one per row; got {len(rows)}")
        return np.flatnonzero(rows)
    if rows.dtype.kind not in "iu":
        raise IndexError(f"rows must be whole row numbers or a boolean mask, got {rows.dtype}")
    outside = (rows < -n_samples) | (rows >= n_samples)
    if outside.any():
        raise IndexError(f"row {rows[outside.argmax()]} does not exist: there are {n_samples} rows")
    rows = rows.astype(np.int64, copy=False)
    return np.where(rows < 0, rows + n_samples, rows)


def among(table: AnswerTable, rows: IntArray, n_samples: int) -> tuple[IntArray, FloatArray | None]:
    """The answers among `rows`, renumbered, and their weights; where a row comes more than once, all copies inherit."""
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
    local = ranges(repeats)
    members = np.empty((len(local), counts.shape[1]), dtype=np.int64)
    # The copies of the last row change fastest.
    for column in reversed(range(counts.shape[1])):
        local, copy = np.divmod(local, np.repeat(counts[:, column], repeats))
        members[:, column] = order[np.repeat(start[kept.members[:, column]], repeats) + copy]
    return members, None if kept.weight is None else np.repeat(kept.weight, repeats)


def ranges(lengths: IntArray) -> IntArray:
    """``0 .. length - 1`` for every length, one after the other."""
    return np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def group_rows(codes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Rows with a code >= 0 sorted by code, and where each group starts among them and how long it is."""
    rows = np.flatnonzero(codes >= 0)
    size = np.bincount(codes[rows]) if len(rows) else np.empty(0, dtype=np.int64)
    order = rows[np.argsort(codes[rows], kind="stable")]
    return order, np.cumsum(size) - size, size


def pairs_within(order: IntArray, start: IntArray, size: IntArray) -> IntArray:
    """Keys of all pairs of rows of one group."""
    position = np.arange(len(order))
    length = np.repeat(start + size, size) - position - 1
    return _with_run(order, position + 1, length)


def pairs_across(order: IntArray, start: IntArray, size: IntArray) -> IntArray:
    """Keys of all pairs of rows of two different groups."""
    end = np.repeat(start + size, size)
    return _with_run(order, end, len(order) - end)


def _with_run(order: IntArray, run_start: IntArray, run_length: IntArray) -> IntArray:
    second = order[np.repeat(run_start, run_length) + ranges(run_length)]
    return canonical(np.repeat(order, run_length), second)


def pairs_between(order: IntArray, start: IntArray, size: IntArray, left: IntArray, right: IntArray) -> IntArray:
    """Keys of all pairs of a row of group ``left[k]`` and a row of group ``right[k]``, for every k."""
    repeats = size[left] * size[right]
    local = ranges(repeats)
    width = np.repeat(size[right], repeats)
    first = order[np.repeat(start[left], repeats) + local // width]
    second = order[np.repeat(start[right], repeats) + local % width]
    return canonical(first, second)


def check_not_too_many(n_pairs: int, *, what: str, remedy: str) -> None:
    if n_pairs > MAX_MATERIALISED:
        raise ValueError(f"{what} has {n_pairs:,} pairs, more than the {MAX_MATERIALISED:,} kept as a list; {remedy}")


def renumber(codes: IntArray) -> IntArray:
    """The same grouping with codes 0, 1, ... in order of first appearance, -1 as it is."""
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
