"""Tuples of three or four rows as arrays: checking, merging, slicing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from pairlens.supervision._inputs import PairsLike, refuse_set
from pairlens.supervision._pairs import (
    AnswerTable,
    FloatArray,
    IntArray,
    check_fits,
    check_weight_sums,
    freeze,
    frozen_weight,
    ranges,
    row_array,
    weight_array,
    weight_per_answer,
)


def tuple_table(members: IntArray, weight: FloatArray | None, *, what: str) -> AnswerTable:
    """Sort the tuples and add up the weights of equal ones; tuples of weight 0 say nothing and are dropped."""
    columns = tuple(members.T[::-1])
    # Sums depend on the order of their terms, and the order of the tuples must not matter: equal ones go by weight.
    order = np.lexsort(columns if weight is None else (weight, *columns))
    ordered = members[order]
    is_start = np.ones(len(ordered), dtype=bool)
    is_start[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.flatnonzero(is_start)
    if weight is None:
        total = np.diff(starts, append=len(ordered)).astype(np.float64)
    else:
        with np.errstate(over="ignore"):
            total = np.add.reduceat(weight[order], starts) if len(starts) else np.empty(0)
    found, kept = ordered[starts], total > 0
    check_weight_sums(found, total, weight_name="weight", what=what)
    return AnswerTable(freeze(found[kept]), frozen_weight(total[kept]))


def parse_tuples(
    given: PairsLike | None,
    weight: ArrayLike | None,
    *,
    width: int,
    name: str,
    what: str,
    n_samples: int | None,
    check: Callable[[IntArray], None],
) -> tuple[IntArray, FloatArray | None]:
    """Check tuples from outside: their shape, their rows, their weights, and what `check` refuses."""
    values = None if weight is None else weight_array(weight, name="weight")
    if values is not None and values.ndim:
        refuse_set(given, name=name, beside="weight")
    array = row_array(() if given is None else given, name=name)
    if array.size == 0 and array.ndim <= 2:
        array = array.reshape(0, width)
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name} must have the shape (n_{name}, {width}), {width} rows each; got {array.shape}")
    if values is not None:
        values = weight_per_answer(values, array, name=name, weight_name="weight", what=what)
    check_fits(array, n_samples, name=name)
    check(array)
    return array, values


def merge_tuples(tables: list[AnswerTable], *, what: str) -> AnswerTable:
    """One table of the tuples of several; the weights of a tuple in more than one of them add up."""
    plain = all(table.weight is None for table in tables)
    weight = None if plain else np.concatenate([table.weights for table in tables])
    return tuple_table(np.concatenate([table.members for table in tables]), weight, what=what)


def positions_in(table: AnswerTable, wanted: IntArray) -> IntArray:
    """The position of each of `wanted` in the table, -1 where it is not there."""
    both = np.concatenate([table.members, wanted])
    _, codes = np.unique(both, axis=0, return_inverse=True)
    codes = codes.ravel()
    position = np.full(codes.max(initial=-1) + 1, -1, dtype=np.int64)
    position[codes[: table.size]] = np.arange(table.size)
    return position[codes[table.size :]]


def take_tuples(
    table: AnswerTable, rows: IntArray, n_samples: int, canonical: Callable[[IntArray], IntArray], *, what: str
) -> AnswerTable:
    """The tuples among `rows`, renumbered; where a row comes more than once, every copy inherits its tuples."""
    copies = np.bincount(rows, minlength=n_samples)
    kept = table.select(np.all(copies[table.members] > 0, axis=1, keepdims=True)[:, 0])
    order = np.argsort(rows, kind="stable")
    start = np.cumsum(copies) - copies
    counts = copies[kept.members]
    repeats = counts.prod(axis=1)
    local = ranges(repeats)
    columns = []
    # The copies of the last row change fastest.
    for column in range(kept.members.shape[1] - 1, -1, -1):
        local, copy = np.divmod(local, np.repeat(counts[:, column], repeats))
        columns.append(order[np.repeat(start[kept.members[:, column]], repeats) + copy])
    weight = None if kept.weight is None else np.repeat(kept.weight, repeats)
    return tuple_table(canonical(np.column_stack(columns[::-1])), weight, what=what)
