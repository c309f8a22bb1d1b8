"""What the entries of a table of answers mean: rows by position or by id, kinds of answers, weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.supervision._inputs import regular_array
from pairlens.supervision._pairs import MAX_ROWS, FloatArray, IntArray, as_n_samples
from pairlens.supervision._tables import Table

ANSWER_KINDS = ("must-link", "cannot-link", "prefer")
"""The kinds of answers about two rows: they belong together, they do not, the first is better than the second."""

ENDS = ("a", "b")
"""What the columns of the two rows are called."""

KIND_COLUMNS = ("kind", "link")
"""What the column of the kinds may be called."""

WORDS = {
    "must-link": ("must", "must-link", "must_link", "same", "true", "1", "+1", "1.0"),
    "cannot-link": ("cannot", "cannot-link", "cannot_link", "different", "false", "-1", "-1.0"),
    "prefer": ("prefer", "preferred", "preference", "better", ">"),
}
"""The words for each kind."""


def read_kinds(table: Table, column: str, *, preferences: bool) -> NDArray[Any]:
    """One of :data:`ANSWER_KINDS` for each entry; preferences only where they are allowed."""
    values = table.columns[column]
    words, position = np.unique(np.char.lower(np.char.strip(values.astype(str))), return_inverse=True)
    allowed = ANSWER_KINDS if preferences else ANSWER_KINDS[:2]
    known = {word: kind for kind in allowed for word in WORDS[kind]}
    kinds = np.array([known.get(word, "") for word in words.tolist()], dtype="<U11")[position]
    expected = (
        "expected must-link, cannot-link or prefer"
        if preferences
        else "expected must or cannot (or must-link / cannot-link, same / different, 1 / -1, true / false)"
    )
    table.refuse(kinds == "", values, column, "unknown-kind", expected)
    return kinds


def read_weights(table: Table, column: str | None) -> FloatArray | None:
    """The weight of each entry; None where the table has no such column."""
    if column is None or column not in table.columns:
        return None
    values = table.columns[column]
    try:
        weights = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        weights = np.array([_number(value, table.decimal_comma) for value in values.tolist()])
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    table.refuse(wrong, values, column, "weight", "a weight must be a finite number of at least 0")
    return weights


def _number(value: Any, decimal_comma: bool) -> float:
    try:
        return float(value.replace(",", ".") if decimal_comma else value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def read_rows(
    table: Table,
    columns: Sequence[str],
    ids: ArrayLike | IdIndex | None,
    n_samples: int | None,
    distinct: Sequence[tuple[int, int]] = ((0, 1),),
) -> tuple[IntArray, int | None]:
    """The rows that each entry is about, shape (n_entries, n_columns), and the number of rows of X if it is known.

    `distinct` says which columns cannot name the same row.
    """
    size = as_n_samples(n_samples)
    if ids is None:
        rows = [_positions(table, column) for column in columns]
    else:
        index = ids if isinstance(ids, IdIndex) else IdIndex(ids)
        if size is not None and size != len(index):
            raise ValueError(f"n_samples={size}, but ids names {len(index)} rows")
        size = len(index)
        rows = [index.rows_of(table, column) for column in columns]
    if size is not None:
        for column, found in zip(columns, rows):
            table.refuse(found >= size, found, column, "out-of-range", f"row numbers go from 0 to {size - 1}")
    for k, m in distinct:
        shown, reason = f"{columns[k]} and {columns[m]}", "a row cannot be paired with itself"
        table.refuse(rows[k] == rows[m], table.columns[columns[k]], shown, "same-row", reason)
    return np.column_stack(rows), size


def _positions(table: Table, column: str) -> IntArray:
    values = table.columns[column]
    wanted = "expected a row number from 0 on"
    remedy = "to name rows otherwise, give ids"
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    if values.dtype.kind == "f":
        whole = np.isfinite(values) & (values == np.floor(values))
        table.refuse(~whole, values, column, "not-a-row", wanted, remedy)
    elif values.dtype.kind not in "iu":
        values = np.char.strip(values.astype(str))
        table.refuse(~np.char.isdecimal(values), values, column, "not-a-row", wanted, remedy)
    numbers = values.astype(np.float64)
    table.refuse(numbers < 0, values, column, "not-a-row", wanted, remedy)
    table.refuse(numbers >= MAX_ROWS, values, column, "out-of-range", "row numbers must be below 2**31")
    return values.astype(np.int64)


def name_rows(rows: IntArray, ids: ArrayLike | None, n_rows: int) -> NDArray[Any]:
    """The ids of rows, or the row numbers themselves where there are no ids."""
    if ids is None:
        return rows
    names = _as_ids(ids)
    if len(names) < n_rows:
        raise ValueError(f"ids must name every row of X: expected {n_rows}, got {len(names)}")
    chosen = names[rows]
    # Dates have no JSON and no unambiguous CSV form of their own.
    return chosen.astype(str) if chosen.dtype.kind in "mM" else chosen


def _as_ids(ids: ArrayLike) -> NDArray[Any]:
    names = regular_array(ids, name="ids")
    if names.ndim != 1:
        raise ValueError(f"ids must be one-dimensional, one id per row of X; got the shape {names.shape}")
    return names


class IdIndex:
    """Looks up the rows of many ids at once."""

    def __init__(self, ids: ArrayLike) -> None:
        self._names = _as_ids(ids)
        if self._names.dtype == object:
            self._names = self._names.astype(str)
        self._sorted, self._row, count = np.unique(self._names, return_index=True, return_counts=True)
        if len(self._sorted) < len(self._names):
            twice = int((count > 1).argmax())
            raise ValueError(f"ids must be distinct, but {self._sorted.tolist()[twice]!r} comes {count[twice]} times")

    def __len__(self) -> int:
        return len(self._names)

    def rows_of(self, table: Table, column: str) -> IntArray:
        values = table.columns[column]
        wanted, names = _comparable(values, self._sorted)
        row = self._row
        if names is not self._sorted:
            order = np.argsort(names)
            names, row = names[order], row[order]
        if not len(names):
            unknown = np.ones(len(wanted), dtype=bool)
            position = np.empty(0, dtype=np.int64)
        else:
            position = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
            unknown = names[position] != wanted
        table.refuse(unknown, values, column, "unknown-id", "ids has no such id")
        return row[position]


def _comparable(values: NDArray[Any], names: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both as one kind: as they are, or as numbers if one holds fractions, or else as text."""
    kinds = values.dtype.kind + names.dtype.kind
    # int64 and uint64 would meet as floats, where large ids blur.
    same = np.result_type(values, names).kind in "iu" if set(kinds) <= set("iu") else kinds[0] == kinds[1] != "O"
    if same:
        return values, names
    if "f" in kinds:
        try:
            return values.astype(np.float64), names.astype(np.float64)
        except (TypeError, ValueError):
            pass
    return values.astype(str), names.astype(str)
