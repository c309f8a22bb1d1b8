"""Read and write tables of answers: data frames, CSV, TSV and JSON-lines files.

A table of answers of all kinds has one answer per row, with these columns:

a, b
    The two rows, by number from 0 on or by id.
kind (or link)
    must-link (must, same, true, 1), cannot-link (cannot, different, false, -1), or prefer (better, >): a is better.
weight
    How much the answer counts; 1 where the table does not say.

Preferences alone may have the columns better and worse in place of a, b and kind. A label table of Splink has
unique_id_l and unique_id_r in place of a and b, and clerical_match_score, the probability of a match, in place of kind
and weight: a score s of at least 0.5 is a must-link of the weight 2 s - 1, another one a cannot-link of the weight
1 - 2 s. Files are CSV or TSV with a header, separated by commas, semicolons, tabs or bars, or JSON lines.
"""

from __future__ import annotations

import csv
import json
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._atomic import atomic_path
from pairlens._text import TableWriter, as_it_was, delimiter_of, read_text
from pairlens.engines import collected
from pairlens.exceptions import AnswerError, ArgumentError
from pairlens.supervision.inputs import as_array, as_n_samples
from pairlens.supervision.pairs import MAX_ROWS, FloatArray, IntArray

ANSWER_KINDS = ("must-link", "cannot-link", "prefer")
"""The kinds of answers about two rows: they belong together, they do not, the first is better than the second."""

ENDS = ("a", "b")
"""The columns of the two rows."""

SPLINK_ENDS = ("unique_id_l", "unique_id_r")
"""The columns of the two rows in tables of Splink."""

SCORE = "clerical_match_score"
"""The column of the answers in a label table of Splink."""

KIND_COLUMNS = ("kind", "link", SCORE)
"""The names that the column of the kinds may have."""

WEIGHT = "weight"
"""The column of the weights."""

BLOCK = 10_000
"""Lines of a file of pairs that are read at a time."""

_FORMATS = {".csv": "csv", ".jsonl": "json", ".ndjson": "json", ".tsv": "csv"}
_WORDS = {
    "must-link": ("must", "must-link", "must_link", "same", "true", "1", "+1", "1.0"),
    "cannot-link": ("cannot", "cannot-link", "cannot_link", "different", "false", "-1", "-1.0"),
    "prefer": ("prefer", "preferred", "preference", "better", ">"),
}


class AnswerColumns:
    """Hold the columns of a data frame or of a file, and say where an entry stands.

    ``read(name, default)`` returns the values of a column. Entries that are empty in a file take the default; without
    one they stay as they are, or are an error in a file of JSON lines. `lines` has the line of each entry in the file,
    from 1, None for a data frame, whose rows count from 0. `decimal_comma` says that numbers may have a comma in place
    of the point, because something else separates the cells.
    """

    def __init__(
        self,
        names: Sequence[str],
        read: Callable[[str, str | None], Any],
        lines: Sequence[int] | None = None,
        file: str | None = None,
        decimal_comma: bool = False,
    ) -> None:
        self.names, self.lines, self.file, self.decimal_comma = tuple(names), lines, file, decimal_comma
        self._read = read
        self._columns: dict[str, NDArray[Any]] = {}

    @property
    def title(self) -> str:
        """The name of the table in errors."""
        return "the frame" if self.file is None else self.file

    @property
    def ends(self) -> tuple[str, str]:
        """The names of the columns of the two rows."""
        return SPLINK_ENDS if self.find(*ENDS, *SPLINK_ENDS) in SPLINK_ENDS else ENDS

    def find(self, *alternatives: str) -> str | None:
        """Return the first of these columns that the table has, or None."""
        return next((name for name in alternatives if name in self.names), None)

    def require(self, names: Sequence[str]) -> None:
        """Read columns that the table must have, and that of the weights if it has one."""
        for name in names:
            self._check_has(name, names)
        defaults: dict[str, str | None] = dict.fromkeys(names)
        if WEIGHT in self.names:
            defaults[WEIGHT] = "1"
        for name, default in defaults.items():
            column = as_array(self._read(name, default), f"column {name!r}")
            if column.ndim != 1:
                raise ArgumentError(f"column {name!r}", column.shape, "must hold one plain value per row")
            self._columns[name] = column
            if len(column) != len(self._columns[names[0]]):
                reason = f"must have {len(self._columns[names[0]])} entries, as many as {names[0]!r}"
                raise ArgumentError(f"column {name!r}", len(column), reason)

    def _check_has(self, name: str, required: Sequence[str]) -> None:
        # In JSON lines every line has names of its own, and reading finds the first that lacks one.
        if name in self.names or (self.file is not None and file_format(Path(self.file)) == "json"):
            return
        found = ", ".join(map(repr, self.names)) or "none"
        header = f"the file must start with the header {','.join(required)} (and perhaps weight)"
        raise AnswerError(
            f"{self.title} has no column {name!r}; it has {found}",
            "" if self.file is None else header if self.names else f"it is empty; {header}",
            problem="no-column",
            file=self.file,
            column=name,
        )

    def has_read(self, name: str) -> bool:
        """Return whether :meth:`require` has read a column."""
        return name in self._columns

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column that :meth:`require` has read."""
        return self._columns[name]

    def refuse(
        self,
        wrong: NDArray[np.bool_],
        values: NDArray[Any],
        column: str,
        problem: str,
        reason: str,
        remedy: str = "",
    ) -> None:
        """Raise AnswerError about the first entry that is wrong, if there is one."""
        if not wrong.any():
            return
        entry = int(wrong.argmax())
        value = values[entry : entry + 1].tolist()[0]
        line = entry if self.lines is None else int(self.lines[entry])
        place = f"row {line} of the frame" if self.file is None else f"line {line} of {self.file}"
        where: dict[str, Any] = {"file": self.file, "line": line, "column": column}
        raise AnswerError(f"{place} has {value!r} as {column}", reason, remedy, problem=problem, value=value, **where)


def read_frame(frame: Any) -> AnswerColumns:
    """Read a data frame of any library, or a mapping from names to columns."""
    if isinstance(frame, Mapping):
        return AnswerColumns(list(frame), lambda name, _: frame[name])
    frame = collected(frame, "from_frame")
    names = getattr(frame, "column_names", None)
    names = getattr(frame, "columns", None) if names is None else names
    if names is None:
        raise ArgumentError("frame", frame, "must be a table with named columns")
    return AnswerColumns(list(names), lambda name, _: frame[name])


def file_format(path: Path) -> str:
    """Return "csv" or "json" (lines of it), by the ending of a file name."""
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        *endings, last = _FORMATS
        raise ArgumentError("path", path.name, f"must end in {', '.join(endings)} or {last}")
    return kind


def read_file(path: str | PathLike[str]) -> AnswerColumns:
    """Read a CSV or TSV file with a header, whatever separates its cells, or a file of one JSON object per line."""
    (table,) = _tables(Path(path), None)
    return table


def _tables(path: Path, size: int | None) -> Iterator[AnswerColumns]:
    """Read a file as tables of `size` lines each, of which the last may be shorter; as one table if None."""
    make = _csv_tables if file_format(path) == "csv" else _json_tables
    try:
        # "utf-8-sig" because spreadsheets put a byte-order mark in front.
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from make(file, path, size)
    except UnicodeDecodeError:
        try:
            read_text(path)
        except ValueError as error:
            raise AnswerError(str(error), file=path.name) from None


def _blocks(entries: Iterator[Any], size: int | None) -> Iterator[list[Any]]:
    while True:
        block = list(islice(entries, size))
        yield block
        if size is None or len(block) < size:
            return


def _csv_tables(file: TextIO, path: Path, size: int | None) -> Iterator[AnswerColumns]:
    blank, start = [], ""
    for start in file:
        if start.strip():
            break
        blank.append(start)
    delimiter = delimiter_of(start, path.suffix)
    records = _csv_records(chain(blank, [start], file), delimiter, path.name)
    header = [name.strip() for name in next(records, (0, []))[1]]
    for block in _blocks(records, size):
        for line, record in block:
            if len(record) != len(header):
                statement = f"line {line} of {path.name} has {len(record)} fields, but the header has {len(header)}"
                raise AnswerError(statement, file=path.name, line=line)
        yield _csv_table(header, block, path.name, decimal_comma=delimiter != ",")


def _csv_records(lines: Iterable[str], delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Return each record that is not empty, with its line."""
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for record in reader:
            if len(record) > 1 or "".join(record).strip():
                yield reader.line_num, record
    except csv.Error as error:
        line = reader.line_num
        raise AnswerError(f"line {line} of {name} is not CSV", str(error), file=name, line=line) from error


def _csv_table(
    header: list[str], block: list[tuple[int, list[str]]], file: str, *, decimal_comma: bool
) -> AnswerColumns:
    def read(name: str, default: str | None) -> NDArray[Any]:
        if header.count(name) > 1:
            raise AnswerError(f"{file} has {header.count(name)} columns named {name!r}", file=file)
        cells = [as_it_was(record[header.index(name)]) for _, record in block]
        return np.array(cells if default is None else [cell if cell.strip() else default for cell in cells], dtype=str)

    return AnswerColumns(header, read, [line for line, _ in block], file, decimal_comma)


def _json_tables(file: TextIO, path: Path, size: int | None) -> Iterator[AnswerColumns]:
    numbered = ((line, text) for line, text in enumerate(file, start=1) if text.strip())
    for block in _blocks(numbered, size):
        yield _json_table([(line, _json_object(text, line, path.name)) for line, text in block], path.name)


def _json_object(text: str, line: int, file: str) -> dict[str, Any]:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"line {line} of {file} is not JSON", str(error), file=file, line=line) from error
    if not isinstance(entry, dict):
        statement = f"line {line} of {file} must be a JSON object, got {text.strip()[:40]!r}"
        raise AnswerError(statement, file=file, line=line, value=entry)
    return entry


def _json_table(entries: list[tuple[int, dict[str, Any]]], file: str) -> AnswerColumns:
    def read(name: str, default: str | None) -> list[Any]:
        return [value_of(entry, line, name, default) for line, entry in entries]

    def value_of(entry: dict[str, Any], line: int, name: str, default: str | None) -> Any:
        value = entry.get(name)
        where: dict[str, Any] = {"file": file, "line": line, "column": name}
        if value is None and default is not None:
            return float(default)
        if name not in entry:
            raise AnswerError(f"line {line} of {file} has no column {name!r}", problem="no-column", **where)
        if isinstance(value, (list, dict)):
            statement = f"line {line} of {file} has {reprlib.repr(value)} as {name}"
            raise AnswerError(statement, f"the column {name!r} must hold one plain value per row", value=value, **where)
        return value

    names = dict.fromkeys(name for _, entry in entries for name in entry)
    return AnswerColumns(list(names), read, [line for line, _ in entries], file)


def read_kinds(table: AnswerColumns, column: str, *, preferences: bool) -> NDArray[Any]:
    """Return one of :data:`ANSWER_KINDS` for each entry; preferences only where they are allowed."""
    values = table[column]
    if column == SCORE:
        return np.where(_scores(table) < 0.5, "cannot-link", "must-link")
    words, position = np.unique(np.char.lower(np.char.strip(values.astype(str))), return_inverse=True)
    allowed = ANSWER_KINDS if preferences else ANSWER_KINDS[:2]
    known = {word: kind for kind in allowed for word in _WORDS[kind]}
    kinds = np.array([known.get(word, "") for word in words.tolist()], dtype="<U11")[position]
    expected = (
        "expected must-link, cannot-link or prefer"
        if preferences
        else "expected must or cannot (or must-link / cannot-link, same / different, 1 / -1, true / false)"
    )
    table.refuse(kinds == "", values, column, "unknown-kind", expected)
    return kinds


def read_weights(table: AnswerColumns) -> FloatArray | None:
    """Return the weight of each entry; None where the table has no weights."""
    if WEIGHT in table.names:
        weights = _numbers(table, WEIGHT)
        wrong = ~(np.isfinite(weights) & (weights >= 0))
        table.refuse(wrong, table[WEIGHT], WEIGHT, "weight", "a weight must be a finite number of at least 0")
        return weights
    return np.abs(2 * _scores(table) - 1) if table.has_read(SCORE) else None


def _scores(table: AnswerColumns) -> FloatArray:
    """Return the probability of a match of each entry of a label table of Splink."""
    scores = _numbers(table, SCORE)
    wrong = ~((scores >= 0) & (scores <= 1))
    table.refuse(wrong, table[SCORE], SCORE, "score", "a score must be a number from 0 to 1")
    return scores


def _numbers(table: AnswerColumns, column: str) -> FloatArray:
    values = table[column]
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array([_number(value, table.decimal_comma) for value in values.tolist()])


def _number(value: Any, decimal_comma: bool) -> float:
    try:
        return float(value.replace(",", ".") if decimal_comma else value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def read_rows(
    table: AnswerColumns,
    columns: Sequence[str],
    ids: ArrayLike | IdIndex | None,
    n_samples: int | None,
    distinct: Sequence[tuple[int, int]] = ((0, 1),),
) -> tuple[IntArray, int | None]:
    """Return the rows that each entry is about, shape (n_entries, n_columns), and the number of rows of X if known.

    `distinct` says which columns cannot name the same row.
    """
    size = as_n_samples(n_samples)
    if ids is None:
        rows = [_positions(table, column) for column in columns]
    else:
        index = ids if isinstance(ids, IdIndex) else IdIndex(ids)
        if size is not None and size != len(index):
            raise ArgumentError("n_samples", size, f"must be {len(index)}, the number of entries of ids")
        size = len(index)
        rows = [index.rows_of(table, column) for column in columns]
    if size is not None:
        for column, found in zip(columns, rows):
            table.refuse(found >= size, found, column, "out-of-range", f"row numbers go from 0 to {size - 1}")
    for k, m in distinct:
        shown, reason = f"{columns[k]} and {columns[m]}", "a row cannot be paired with itself"
        table.refuse(rows[k] == rows[m], table[columns[k]], shown, "same-row", reason)
    return np.column_stack(rows), size


def _positions(table: AnswerColumns, column: str) -> IntArray:
    values = table[column]
    expected, remedy = "expected a row number from 0 on", "to name rows otherwise, give ids"
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    if values.dtype.kind == "f":
        whole = np.isfinite(values) & (values == np.floor(values))
        table.refuse(~whole, values, column, "not-a-row", expected, remedy)
    elif values.dtype.kind not in "iu":
        values = np.char.strip(values.astype(str))
        table.refuse(~np.char.isdecimal(values), values, column, "not-a-row", expected, remedy)
    numbers = values.astype(np.float64)
    table.refuse(numbers < 0, values, column, "not-a-row", expected, remedy)
    table.refuse(numbers >= MAX_ROWS, values, column, "out-of-range", "row numbers must be below 2**31")
    return values.astype(np.int64)


class IdIndex:
    """Look up the rows of many ids at once."""

    def __init__(self, ids: ArrayLike) -> None:
        names = _as_ids(ids)
        self._names = names.astype(str) if names.dtype == object else names
        self._sorted, self._row, count = np.unique(self._names, return_index=True, return_counts=True)
        if len(self._sorted) < len(self._names):
            twice = int((count > 1).argmax())
            raise ArgumentError(
                "ids", self._sorted.tolist()[twice], f"must be distinct, and one comes {count[twice]} times"
            )

    def __len__(self) -> int:
        return len(self._names)

    def rows_of(self, table: AnswerColumns, column: str) -> IntArray:
        """Return the row of each entry of a column of ids."""
        values = table[column]
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


def _as_ids(ids: ArrayLike) -> NDArray[Any]:
    names = as_array(ids, "ids")
    if names.ndim != 1:
        raise ArgumentError("ids", names.shape, "must be one-dimensional, with one id per row of X")
    return names


def _comparable(values: NDArray[Any], names: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both as one kind: as they are, or as numbers if one holds fractions, or else as text."""
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


def name_rows(rows: IntArray, ids: ArrayLike | None, n_rows: int) -> NDArray[Any]:
    """Return the ids of rows, or the row numbers themselves where there are no ids."""
    if ids is None:
        return rows
    names = _as_ids(ids)
    if len(names) < n_rows:
        raise ArgumentError("ids", len(names), f"must name every row of X, which are {n_rows}")
    chosen = names[rows]
    # Dates have no JSON and no unambiguous CSV form of their own.
    return chosen.astype(str) if chosen.dtype.kind in "mM" else chosen


def write_file(path: str | PathLike[str], columns: dict[str, NDArray[Any]]) -> None:
    """Write columns as CSV, TSV or JSON lines, by the ending of the name: whole, or not at all."""
    path = Path(path)
    kind = file_format(path)
    records = zip(*(column.tolist() for column in columns.values()))
    with atomic_path(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        if kind == "csv":
            writer = TableWriter(file, delimiter_of("", path.suffix))
            writer.row(columns)
            writer.rows(records)
        else:
            names = list(columns)
            file.writelines(
                json.dumps(dict(zip(names, record)), ensure_ascii=False, default=str) + "\n" for record in records
            )


def write_answers(
    path: str | PathLike[str],
    a: NDArray[Any],
    b: NDArray[Any],
    kind: NDArray[Any],
    weight: NDArray[np.float64] | None = None,
    *,
    splink: bool = False,
) -> None:
    """Write a file of answers of all kinds, whole or not at all, in the format of its ending.

    `a` and `b` are numbers or ids of the two rows, `kind` one of :data:`ANSWER_KINDS` each; weights are left out where
    all are 1. `splink` writes a label table of Splink, which has no preferences and no weights above 1.
    """
    if splink:
        certainty = np.ones(len(kind)) if weight is None else weight
        if (kind == "prefer").any():
            raise ArgumentError("kind", "prefer", "must be must-link or cannot-link in a label table of Splink")
        if (certainty > 1).any():
            reason = "must be at most 1 in a label table of Splink, whose scores go from 0 to 1"
            raise ArgumentError("weight", float(certainty.max()), reason)
        score = 0.5 + np.where(kind == "must-link", 0.5, -0.5) * certainty
        write_file(path, {SPLINK_ENDS[0]: a, SPLINK_ENDS[1]: b, SCORE: score})
        return
    columns: dict[str, NDArray[Any]] = {"a": a, "b": b, "kind": kind}
    if weight is not None and not (weight == 1).all():
        columns[WEIGHT] = weight
    write_file(path, columns)


@dataclass(frozen=True)
class AnswerFile:
    """Hold the kinds and weights of the lines of a file, before it is known which rows of X they are about."""

    _table: AnswerColumns
    kind: NDArray[Any]
    weight: NDArray[np.float64] | None

    @classmethod
    def read(cls, path: str | PathLike[str]) -> AnswerFile:
        """Read the lines of a file."""
        table = read_file(path)
        if not table.names:
            raise AnswerError(f"{table.title} is empty", "it should hold one answer per line", file=table.file)
        column = table.find(*KIND_COLUMNS) or KIND_COLUMNS[0]
        table.require((*table.ends, column))
        return cls(table, read_kinds(table, column, preferences=True), read_weights(table))

    @property
    def ends(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The columns of the two rows."""
        first, second = self._table.ends
        return self._table[first], self._table[second]

    @property
    def names(self) -> NDArray[Any]:
        """The distinct rows that the lines name, as text."""
        named = [column.astype(str) for column in self.ends]
        return np.unique(np.concatenate(named)) if len(self.kind) else np.empty(0, dtype=str)

    def rows(self, ids: ArrayLike | None, n_samples: int | None) -> tuple[IntArray, int | None]:
        """Return the two rows of every line, shape (n_lines, 2), and the number of rows of X if it is known."""
        return read_rows(self._table, self._table.ends, ids, n_samples)


def read_pair_blocks(
    path: str | PathLike[str], *, ids: ArrayLike | None, n_samples: int, size: int = BLOCK
) -> Iterator[tuple[tuple[NDArray[Any], ...], IntArray]]:
    """Read the two rows of each line of a file of pairs without answers, in the memory of one block at a time.

    Each block is the columns a and b as they are written, and the rows of X that they name.
    Files have a header or are JSON lines, and other columns are ignored. They name rows by `ids`, or by number if None.
    A line that cannot be read is an AnswerError with the file, the line, the column and the value.
    """
    index = None if ids is None else IdIndex(ids)
    for table in _tables(Path(path), size):
        table.require(table.ends)
        if table.lines:
            ends = tuple(table[column] for column in table.ends)
            yield ends, read_rows(table, table.ends, index, n_samples)[0]
