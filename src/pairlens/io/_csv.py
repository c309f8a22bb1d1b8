"""CSV and TSV files as people have them: byte-order marks, semicolons, decimal commas, odd headers."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairlens._optional import require
from pairlens._text import DELIMITERS, not_utf8
from pairlens.tables.cells import MISSING_WORDS, distinct_names

SAMPLE = 1 << 16
LINES = 50
UNNAMED = "(unnamed)"
"""What the nameless first column is called that data frames write for their row numbers."""


@dataclass(frozen=True)
class Dialect:
    """How a file separates its cells, and the names of its columns."""

    delimiter: str
    decimal: str
    names: tuple[str, ...]


def sniff(path: Path, *, strict: bool = True) -> Dialect:
    """Look at the beginning of a file; ValueError if it is no table with a header.

    Columns without a name, or with the name of another, are refused if `strict`; otherwise they get names.
    """
    with path.open("rb") as file:
        sample = file.read(SAMPLE)
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path.name} is UTF-16 text: save the file as UTF-8")
    if b"\0" in sample:
        raise ValueError(f"{path.name} is not text: it has zero bytes")
    # The last line may be cut in the middle of a character; whether all of the file is UTF-8 shows when it is read.
    text = sample.decode("utf-8-sig", "replace")
    if not text.strip():
        raise ValueError(f"{path.name} is empty")
    candidates = "\t" if path.suffix.lower() == ".tsv" else DELIMITERS
    delimiter = max(candidates, key=lambda mark: len(_lines(text, mark)[0]))
    header, *lines = _lines(text, delimiter)
    names = [name.strip() for name in header]
    if names[0] == "" and len(names) > 1:
        names[0] = UNNAMED
    _check_header(names, path.name)
    if strict:
        _check_names(names, path.name)
    cells = [cell.strip() for line in lines for cell in line]
    comma = any(re.fullmatch(r"[-+]?\d+,\d+", cell) for cell in cells)
    point = any(re.fullmatch(r"[-+]?\d+\.\d+", cell) for cell in cells)
    decimal = "," if delimiter != "," and comma and not point else "."
    return Dialect(delimiter, decimal, tuple(distinct_names(names)))


def _lines(text: str, delimiter: str) -> list[list[str]]:
    """The cells of the first 50 lines that are not blank; quoted cells may hold line breaks."""
    found: list[list[str]] = []
    try:
        for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if any(cell.strip() for cell in cells):
                found.append(cells)
            if len(found) == LINES:
                break
    except csv.Error:
        # What follows is no such table; the reader of the whole file says why.
        pass
    return found or [[text.partition("\n")[0]]]


def _check_header(names: list[str], source: str) -> None:
    if all(_is_number(name) for name in names):
        raise ValueError(
            f"{source} has no header: its first line holds numbers only. Give the columns names in a first line"
        )


def _check_names(names: list[str], source: str) -> None:
    for name in names:
        if not name:
            raise ValueError(f"{source} has a column without a name: its header is {', '.join(map(repr, names[:8]))}")
        if names.count(name) > 1:
            raise ValueError(f"{source} has {names.count(name)} columns named {name!r}: names must differ")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@contextmanager
def csv_reader(
    path: Path,
    *,
    text: tuple[str, ...] = (),
    columns: tuple[str, ...] | None = None,
    chunk: int | None = None,
    strict: bool = True,
    progress: Callable[[float], None] = lambda share: None,
) -> Iterator[Iterator[Any]]:
    """Data frames of a file, one after another: all of it at once if `chunk`, the number of rows, is None.

    Parameters
    ----------
    path : Path
    text : tuple of str
        Columns that stay text as it is written: ids and words.
    columns : tuple of str, optional
        The only ones to read.
    chunk : int, optional
        Rows of each frame.
    strict : bool
        Whether columns must have different names.
    progress : callable
        Called after each frame with the share of the file that is read.
    """
    pandas = require("pandas", extra="cli", purpose="reading CSV files")
    dialect = sniff(path, strict=strict)
    try:
        with (
            path.open("rb") as file,
            warnings.catch_warnings(action="error", category=pandas.errors.ParserWarning),
            pandas.read_csv(
                file,
                sep=dialect.delimiter,
                decimal=dialect.decimal,
                header=0,
                names=list(dialect.names),
                usecols=None if columns is None else list(columns),
                dtype={name: str for name in text if name in dialect.names},
                index_col=False,
                keep_default_na=False,
                na_values={name: list(MISSING_WORDS) for name in dialect.names if name not in text},
                encoding="utf-8-sig",
                low_memory=False,
                iterator=True,
                chunksize=chunk,
            ) as reader,
        ):
            size = path.stat().st_size

            def frames() -> Iterator[Any]:
                for frame in reader if chunk is not None else [reader.read()]:
                    yield frame
                    progress(file.tell() / size)

            yield frames()
    except UnicodeDecodeError as error:
        raise ValueError(_not_utf8(path, error)) from None
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        raise ValueError(f"{path.name} is not a table: {_reason(error)}") from None


def _not_utf8(path: Path, error: UnicodeDecodeError) -> str:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as found:
                return not_utf8(path.name, number, found.object[found.start])
    return f"{path.name} is not UTF-8 text: {error}"


def _reason(error: Exception) -> str:
    text = str(error).replace("Error tokenizing data. C error: ", "").strip()
    if "Length of header" in text:
        return "some lines have more cells than the header"
    text = text.replace("EOF", "end of file")
    return text[:1].lower() + text[1:]


def word_column(column: Any) -> Any:
    """A column as words, "" where there is none."""
    return column.astype(object).where(column.notna(), "").astype(str).astype(object)


def numeric_column(column: Any, name: str, source: str, first_row: int = 0) -> Any | None:
    """A column as float64; None if it holds words; ValueError if it holds some text among numbers.

    Parameters
    ----------
    column : Series
    name, source : str
        For errors.
    first_row : int
        Number of the first row of the column in the file.
    """
    pandas = require("pandas", extra="cli", purpose="reading tables")
    types = pandas.api.types
    if types.is_bool_dtype(column) or types.is_numeric_dtype(column):
        if types.is_complex_dtype(column):
            return None
        return column.to_numpy(dtype="float64", na_value=float("nan"))
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        return None
    present = column.notna()
    # Text with spaces around it, decimal numbers of databases, whole numbers beyond 64 bits.
    numbers = pandas.to_numeric(column.where(present, None).astype(str).str.strip(), errors="coerce")
    wrong = present & numbers.isna()
    n_numbers = int(present.sum()) - int(wrong.sum())
    if n_numbers == 0 or n_numbers <= int(wrong.sum()):
        return None
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        more = int(wrong.sum()) - 1
        others = "" if more == 0 else f", and {more} more such cell{'s' if more > 1 else ''}"
        raise ValueError(
            f"the column {name!r} of {source} holds text among numbers: {str(column.iloc[row])[:40]!r} in row "
            f"{first_row + row}{others}. Mend it, or leave the column out with --drop {name}"
        )
    return numbers.to_numpy(dtype="float64")
