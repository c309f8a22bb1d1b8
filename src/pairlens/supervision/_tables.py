"""Answers in tables: data frames, CSV and JSON-lines files, with rows named by position or by id."""

from __future__ import annotations

import csv
import io
import json
import reprlib
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._optional import require
from pairlens.supervision._inputs import regular_array
from pairlens.supervision._pairs import MAX_ROWS, FloatArray, IntArray, as_n_samples

__all__ = [
    "Table",
    "name_rows",
    "read_ends",
    "read_file",
    "read_frame",
    "read_links",
    "read_weights",
    "to_dataframe",
    "write_file",
]

_MUST = ("must", "must-link", "must_link", "same", "true", "1", "+1", "1.0")
_CANNOT = ("cannot", "cannot-link", "cannot_link", "different", "false", "-1", "-1.0")
_SUFFIXES = ".csv, .jsonl or .ndjson"


class Table(NamedTuple):
    """The columns asked for, and how to tell a person where the entry at a position stands."""

    columns: dict[str, NDArray[Any]]
    place: Callable[[int], str]


def read_frame(frame: Any, required: tuple[str, ...], weight: str | None) -> Table:
    """Columns of a data frame of any library, or of a mapping from names to columns."""
    if isinstance(frame, Mapping):
        available = list(frame)
    else:
        found = getattr(frame, "column_names", None)
        found = getattr(frame, "columns", None) if found is None else found
        if found is None:
            raise ValueError(f"frame must be a table with named columns, got {type(frame).__name__}")
        available = list(found)
    names = _wanted(available, required, weight, source="the frame")
    columns = {name: _column(frame[name], name) for name in names}
    for name, values in columns.items():
        if len(values) != len(columns[names[0]]):
            raise ValueError(
                f"the columns must be equally long, but {names[0]!r} has {len(columns[names[0]])} entries and "
                f"{name!r} has {len(values)}"
            )
    return Table(columns, lambda row: f"row {row} of the frame")


def read_file(path: str | PathLike[str], required: tuple[str, ...], weight: str | None) -> Table:
    """Columns of a CSV file with a header, or of a file of one JSON object per line."""
    path = Path(path)
    read = _read_csv if _kind(path) == "csv" else _read_json_lines
    lines, columns = read(_text(path), path.name, required, weight)
    return Table(
        {name: _column(values, name) for name, values in columns.items()},
        lambda row: f"line {lines[row]} of {path.name}",
    )


def _text(path: Path) -> str:
    try:
        # "utf-8-sig" because spreadsheets put a byte-order mark in front.
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path.name} is not UTF-8 text: line {line} has the byte {error.object[error.start]:#04x}; "
            "save the file as UTF-8"
        ) from None


def _read_csv(
    text: str, source: str, required: tuple[str, ...], weight: str | None
) -> tuple[list[int], dict[str, list[Any]]]:
    """The line number of every record, and its fields by column."""
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        numbered = [(reader.line_num, record) for record in reader if len(record) > 1 or "".join(record).strip()]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} of {source} is not CSV: {error}") from error
    header = [name.strip() for name in numbered.pop(0)[1]] if numbered else []
    names = _wanted(header, required, weight, source=source)
    for line, record in numbered:
        if len(record) != len(header):
            raise ValueError(f"line {line} of {source} has {len(record)} fields, but the header has {len(header)}")
    columns = {name: [record[header.index(name)] for _, record in numbered] for name in names}
    if weight in columns:
        columns[weight] = [cell if cell.strip() else "1" for cell in columns[weight]]
    return [line for line, _ in numbered], columns


def _read_json_lines(
    text: str, source: str, required: tuple[str, ...], weight: str | None
) -> tuple[list[int], dict[str, list[Any]]]:
    """The line number of every object, and its entries by name."""
    numbered = [(line, part) for line, part in enumerate(io.StringIO(text, newline=None), start=1) if part.strip()]
    lines = [line for line, _ in numbered]
    objects = [_json_object(part, line, source) for line, part in numbered]
    for line, entry in zip(lines, objects):
        _wanted(list(entry), required, None, source=f"line {line} of {source}")
    columns = {name: [entry[name] for entry in objects] for name in required}
    if weight is not None and any(weight in entry for entry in objects):
        columns[weight] = [1 if entry.get(weight) is None else entry[weight] for entry in objects]
    for name, values in columns.items():
        for line, value in zip(lines, values):
            if isinstance(value, (list, dict)):
                raise ValueError(
                    f"line {line} of {source} has {reprlib.repr(value)} as {name}: "
                    f"the column {name!r} must hold one plain value per row"
                )
    return lines, columns


def _wanted(available: list[Any], required: tuple[str, ...], weight: str | None, *, source: str) -> list[str]:
    for name in required:
        if name not in available:
            raise ValueError(f"{source} has no column {name!r}; it has {', '.join(map(repr, available)) or 'none'}")
    return [*required, weight] if weight is not None and weight in available else list(required)


def _column(values: Any, name: str) -> NDArray[Any]:
    column = regular_array(values, name=f"the column {name!r}")
    if column.ndim != 1:
        raise ValueError(f"the column {name!r} must hold one plain value per row, got the shape {column.shape}")
    return column


def _json_object(text: str, line: int, source: str) -> dict[str, Any]:
    try:
        entry = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {line} of {source} is not JSON: {error}") from error
    if not isinstance(entry, dict):
        raise ValueError(f"line {line} of {source} must be a JSON object, got {text.strip()[:40]!r}")
    return entry


def _kind(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return "csv"
    if suffix in (".jsonl", ".ndjson"):
        return "json"
    raise ValueError(f"the name of the file must end in {_SUFFIXES}, got {path.name!r}")


def write_file(path: str | PathLike[str], columns: dict[str, NDArray[Any]]) -> None:
    path = Path(path)
    kind = _kind(path)
    records = zip(*(column.tolist() for column in columns.values()))
    with path.open("w", newline="", encoding="utf-8") as file:
        if kind == "csv":
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(records)
        else:
            names = list(columns)
            file.writelines(
                json.dumps(dict(zip(names, record)), ensure_ascii=False, default=str) + "\n" for record in records
            )


def to_dataframe(columns: dict[str, NDArray[Any]], *, purpose: str) -> Any:
    return require("pandas", extra="io", purpose=purpose).DataFrame(columns)


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


def read_ends(
    table: Table, names: tuple[str, str], ids: ArrayLike | None, n_samples: int | None
) -> tuple[IntArray, int | None]:
    """The two rows of every pair, and the number of rows of X if `ids` tells it."""
    size = as_n_samples(n_samples)
    if ids is None:
        ends = [_positions(table.columns[name], name, table.place) for name in names]
    else:
        index = _IdIndex(ids)
        if size is not None and size != len(index):
            raise ValueError(f"n_samples={size}, but ids names {len(index)} rows")
        size = len(index)
        ends = [index.rows_of(table.columns[name], name, table.place) for name in names]
    first, second = ends
    if size is not None:
        for name, rows in zip(names, ends):
            _refuse(rows >= size, rows, name, table.place, f"row numbers go from 0 to {size - 1}")
    itself = "a row cannot be paired with itself"
    _refuse(first == second, table.columns[names[0]], f"{names[0]} and {names[1]}", table.place, itself)
    return np.column_stack([first, second]), size


def _positions(values: NDArray[Any], name: str, place: Callable[[int], str]) -> IntArray:
    right = "expected a row number from 0 on; to name rows otherwise, give ids"
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    if values.dtype.kind == "f":
        _refuse(~(np.isfinite(values) & (values == np.floor(values))), values, name, place, right)
    elif values.dtype.kind not in "iu":
        values = np.char.strip(values.astype(str))
        _refuse(~np.char.isdecimal(values), values, name, place, right)
    numbers = values.astype(np.float64)
    _refuse(numbers < 0, values, name, place, right)
    _refuse(numbers >= MAX_ROWS, values, name, place, "row numbers must be below 2**31")
    return values.astype(np.int64)


def _refuse(wrong: NDArray[np.bool_], values: NDArray[Any], name: str, place: Callable[[int], str], why: str) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{place(row)} has {values[row : row + 1].tolist()[0]!r} as {name}: {why}")


def _as_ids(ids: ArrayLike) -> NDArray[Any]:
    names = regular_array(ids, name="ids")
    if names.ndim != 1:
        raise ValueError(f"ids must be one-dimensional, one id per row of X; got the shape {names.shape}")
    return names


class _IdIndex:
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

    def rows_of(self, values: NDArray[Any], name: str, place: Callable[[int], str]) -> IntArray:
        wanted, names = _comparable(values, self._sorted)
        row = self._row
        if names is not self._sorted:
            order = np.argsort(names)
            names, row = names[order], row[order]
        if not len(names):
            _refuse(np.ones(len(wanted), dtype=bool), values, name, place, "ids has no such id")
            return np.empty(0, dtype=np.int64)
        position = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
        _refuse(names[position] != wanted, values, name, place, "ids has no such id")
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


def read_links(table: Table, name: str) -> NDArray[np.bool_]:
    """Whether each pair is a must-link, from any of the usual words for it."""
    values = table.columns[name]
    words, position = np.unique(np.char.lower(np.char.strip(values.astype(str))), return_inverse=True)
    is_must = np.isin(words, _MUST)
    unknown = ~(is_must | np.isin(words, _CANNOT))
    _refuse(
        unknown[position],
        values,
        name,
        table.place,
        "expected must or cannot (or must-link / cannot-link, same / different, 1 / -1, true / false)",
    )
    return is_must[position]


def read_weights(table: Table, name: str | None) -> FloatArray | None:
    if name is None or name not in table.columns:
        return None
    values = table.columns[name]
    try:
        weights = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        weights = np.array([_number(value) for value in values.tolist()])
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    _refuse(wrong, values, name, table.place, "a weight must be a finite number of at least 0")
    return weights


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
