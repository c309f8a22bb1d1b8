"""Tables of answers as columns: data frames, CSV and JSON-lines files, there and back."""

from __future__ import annotations

import csv
import io
import json
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._atomic import atomic_path
from pairlens._optional import require
from pairlens._text import TableWriter, as_it_was, delimiter_of, read_text
from pairlens.engines import collected
from pairlens.exceptions import AnswerError
from pairlens.supervision._inputs import regular_array

FORMATS = {".csv": "csv", ".jsonl": "json", ".ndjson": "json", ".tsv": "csv"}


@dataclass(frozen=True)
class Table:
    """Some columns of a data frame or of a file, and where each entry stands.

    Attributes
    ----------
    columns : dict of arrays
        One plain value for each entry.
    lines : sequence of int or None
        The line of each entry in the file, counted from 1; None for a data frame, whose rows count from 0.
    file : str or None
        Name of the file, None for a data frame.
    decimal_comma : bool
        Whether numbers may have a comma in place of the point, because something else separates the cells.
    """

    columns: dict[str, NDArray[Any]]
    lines: Sequence[int] | None
    file: str | None
    decimal_comma: bool

    def refuse(
        self,
        wrong: NDArray[np.bool_],
        values: NDArray[Any],
        column: str,
        problem: str,
        reason: str,
        remedy: str = "",
    ) -> None:
        """AnswerError about the first entry that is wrong, if there is one."""
        if not wrong.any():
            return
        entry = int(wrong.argmax())
        value = values[entry : entry + 1].tolist()[0]
        line = entry if self.lines is None else int(self.lines[entry])
        raise AnswerError(
            f"{_place(line, self.file)} has {value!r} as {column}",
            reason,
            remedy,
            problem=problem,
            file=self.file,
            line=line,
            column=column,
            value=value,
        )


@dataclass(frozen=True)
class Source:
    """A data frame or a file whose columns have not been looked at yet.

    Attributes
    ----------
    names : tuple of str
        The columns.
    read : callable
        ``read(name, default)`` gives the values of a column. Entries that are empty in a file take the default; without
        one they stay as they are, or are an error in a file of JSON lines.
    lines, file, decimal_comma
        See :class:`Table`.
    """

    names: tuple[str, ...]
    read: Callable[[str, str | None], Any]
    lines: Sequence[int] | None = None
    file: str | None = None
    decimal_comma: bool = False

    @property
    def title(self) -> str:
        """What to call it in errors."""
        return "the frame" if self.file is None else self.file

    def find(self, *alternatives: str) -> str | None:
        """The first of these columns that is there, or None."""
        return next((name for name in alternatives if name in self.names), None)

    def table(self, required: Sequence[str], weight: str | None) -> Table:
        """Columns that have to be there, and that of the weights if it is."""
        for name in required:
            self._check_has(name, required)
        columns = {name: self._column(name, None) for name in required}
        if weight is not None and weight in self.names:
            columns[weight] = self._column(weight, "1")
        first = required[0]
        for name, values in columns.items():
            if len(values) != len(columns[first]):
                raise ValueError(
                    f"the columns must be equally long, but {first!r} has {len(columns[first])} entries and "
                    f"{name!r} has {len(values)}"
                )
        return Table(columns, self.lines, self.file, self.decimal_comma)

    def _column(self, name: str, default: str | None) -> NDArray[Any]:
        column = regular_array(self.read(name, default), name=f"the column {name!r}")
        if column.ndim != 1:
            raise ValueError(f"the column {name!r} must hold one plain value per row, got the shape {column.shape}")
        return column

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


def _place(line: int, file: str | None) -> str:
    return f"row {line} of the frame" if file is None else f"line {line} of {file}"


def read_frame(frame: Any) -> Source:
    """A data frame of any library, or a mapping from names to columns."""
    if isinstance(frame, Mapping):
        names = list(frame)
    else:
        frame = collected(frame, "from_frame")
        found = getattr(frame, "column_names", None)
        found = getattr(frame, "columns", None) if found is None else found
        if found is None:
            raise ValueError(f"frame must be a table with named columns, got {type(frame).__name__}")
        names = list(found)
    return Source(tuple(names), lambda name, _: frame[name])


def read_file(path: str | PathLike[str]) -> Source:
    """A CSV or TSV file with a header, whatever separates its cells, or a file of one JSON object per line."""
    path = Path(path)
    return (_read_csv if file_format(path) == "csv" else _read_json_lines)(read_text(path), path)


def file_format(path: Path) -> str:
    """Whether a file is "csv" or "json" (lines of it), by its ending."""
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        endings = list(FORMATS)
        raise ValueError(
            f"the name of the file must end in {', '.join(endings[:-1])} or {endings[-1]}, got {path.name!r}"
        )
    return kind


def csv_records(file: Iterable[str], path: Path) -> tuple[list[str], str, Iterator[tuple[int, list[str]]]]:
    """The header, what separates the cells, and each record with its line, read as they are asked for."""
    blank, start = [], ""
    lines = iter(file)
    for start in lines:
        if start.strip():
            break
        blank.append(start)
    delimiter = delimiter_of(start, path.suffix)
    reader = csv.reader(chain(blank, [start], lines), delimiter=delimiter)

    def records() -> Iterator[tuple[int, list[str]]]:
        try:
            for record in reader:
                if len(record) > 1 or "".join(record).strip():
                    yield reader.line_num, record
        except csv.Error as error:
            line, name = reader.line_num, path.name
            raise AnswerError(f"line {line} of {name} is not CSV", str(error), file=name, line=line) from error

    found = records()
    header = [name.strip() for name in next(found, (0, []))[1]]

    def checked() -> Iterator[tuple[int, list[str]]]:
        for line, record in found:
            if len(record) != len(header):
                statement = f"line {line} of {path.name} has {len(record)} fields, but the header has {len(header)}"
                raise AnswerError(statement, file=path.name, line=line)
            yield line, [as_it_was(cell) for cell in record]

    return header, delimiter, checked()


def _read_csv(text: str, path: Path) -> Source:
    header, delimiter, records = csv_records(io.StringIO(text, newline=""), path)
    numbered = list(records)

    def read(name: str, default: str | None) -> NDArray[Any]:
        if header.count(name) > 1:
            raise AnswerError(f"{path.name} has {header.count(name)} columns named {name!r}", file=path.name)
        cells = [record[header.index(name)] for _, record in numbered]
        return np.array(cells if default is None else [cell if cell.strip() else default for cell in cells], dtype=str)

    return Source(tuple(header), read, [line for line, _ in numbered], path.name, decimal_comma=delimiter != ",")


def _read_json_lines(text: str, path: Path) -> Source:
    numbered = [(line, part) for line, part in enumerate(io.StringIO(text, newline=None), start=1) if part.strip()]
    entries = [(line, _json_object(part, line, path.name)) for line, part in numbered]

    def read(name: str, default: str | None) -> list[Any]:
        return [_json_value(entry, name, default, line, path.name) for line, entry in entries]

    names = tuple(dict.fromkeys(name for _, entry in entries for name in entry))
    return Source(names, read, [line for line, _ in entries], path.name)


def _json_value(entry: dict[str, Any], name: str, default: str | None, line: int, file: str) -> Any:
    value = entry.get(name)
    if value is None and default is not None:
        return float(default)
    if name not in entry:
        statement = f"{_place(line, file)} has no column {name!r}"
        raise AnswerError(statement, problem="no-column", file=file, line=line, column=name)
    if isinstance(value, (list, dict)):
        raise AnswerError(
            f"{_place(line, file)} has {reprlib.repr(value)} as {name}",
            f"the column {name!r} must hold one plain value per row",
            file=file,
            line=line,
            column=name,
            value=value,
        )
    return value


def _json_object(text: str, line: int, source: str) -> dict[str, Any]:
    try:
        entry = json.loads(text)
    except json.JSONDecodeError as error:
        raise AnswerError(f"line {line} of {source} is not JSON", str(error), file=source, line=line) from error
    if not isinstance(entry, dict):
        statement = f"line {line} of {source} must be a JSON object, got {text.strip()[:40]!r}"
        raise AnswerError(statement, file=source, line=line, value=entry)
    return entry


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


def to_dataframe(columns: dict[str, NDArray[Any]], *, purpose: str) -> Any:
    """The columns as a pandas DataFrame."""
    return require("pandas", extra="io", purpose=purpose).DataFrame(columns)
