"""CSV and TSV files as people have them: byte-order marks, semicolons, decimal commas, unusual headers."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
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


def sniff(path: Path) -> Dialect:
    """Look at the beginning of a file; ValueError if it is not a table with a header.

    Columns without a name, or with the name of another, get names.
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
    if all(_is_number(name) for name in names):
        raise ValueError(
            f"{path.name} has no header: its first line holds numbers only. Give the columns names in a first line"
        )
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
        # What follows is not such a table; the reader of the whole file says why.
        pass
    return found or [[text.partition("\n")[0]]]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def csv_frames(
    path: Path,
    *,
    text: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    chunk: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Iterator[Any]:
    """Read a file as data frames, one after another: all of it at once if `chunk`, the number of rows, is None.

    Parameters
    ----------
    path : Path
    text : sequence of str
        Columns that stay text as it is written: ids and words.
    columns : sequence of str, optional
        The only ones to read.
    chunk : int, optional
        Rows of each frame.
    progress : callable
        Called after each frame with the share of the file that is read.
    """
    pandas = require("pandas", extra="cli", purpose="reading CSV files")
    dialect = sniff(path)
    try:
        with (
            path.open("rb") as file,
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
            while (frame := _next_frame(reader, chunk, pandas.errors.ParserWarning)) is not None:
                yield frame
                progress(file.tell() / size)
                if chunk is None:
                    return
    except UnicodeDecodeError as error:
        raise ValueError(_not_utf8(path, error)) from None
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        raise ValueError(f"{path.name} is not a table: {_reason(error)}") from None


def _next_frame(reader: Any, chunk: int | None, unreadable: type[Warning]) -> Any:
    """Read the next frame, None at the end; whoever asks for it has warnings of their own."""
    with warnings.catch_warnings(action="error", category=unreadable):
        return reader.read() if chunk is None else next(reader, None)


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
