"""Read text files that people make, and write CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

DELIMITERS = ",;\t|"
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a cell starts with that a spreadsheet takes for a formula; line breaks and tabs may hide one."""


def read_text(path: Path) -> str:
    """Read a UTF-8 file; raise ValueError with the line and the byte if it is not UTF-8."""
    try:
        # "utf-8-sig" because spreadsheets put a byte-order mark in front.
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(not_utf8(path.name, line, error.object[error.start])) from None


def count(n: int, noun: str) -> str:
    """Format a number of things: "1 pair", "2,000 pairs"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def listed_names(names: Iterable[object]) -> str:
    """Return the first names for an error message."""
    listed = list(map(repr, names))
    return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "") or "nothing"


def whole_characters(text: str) -> str:
    """Replace halves of surrogate pairs, which JSON may hold and no file can, by the sign for unknown characters."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_number(text: str) -> bool:
    """Return whether a cell is a number, which a name in a header is not."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def not_utf8(name: str, line: int, byte: int) -> str:
    """Return the message for a file that is not UTF-8."""
    return f"{name} is not UTF-8 text: line {line} has the byte {byte:#04x}; save the file as UTF-8"


def delimiter_of(header: str, suffix: str) -> str:
    """Return the delimiter that splits a line into most cells; the tab for a TSV file."""
    candidates = "\t" if suffix.lower() == ".tsv" else DELIMITERS
    return max(candidates, key=lambda mark: len(cells_of(header, mark)))


def cells_of(line: str, delimiter: str) -> list[str]:
    """Return the cells of one line."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [""])
    except csv.Error:
        return [line]


class TableWriter:
    """Write lines of CSV or TSV to a file opened with ``newline=""``, with every cell harmless, and quoted where
    necessary.
    """

    def __init__(self, file: IO[str], delimiter: str = ",") -> None:
        # Python up to 3.12 quotes those line breaks alone that end its own lines, so these are both kinds; see _Lines.
        self._writer = csv.writer(_Lines(file), delimiter=delimiter, lineterminator="\r\n")

    def row(self, cells: Iterable[Any]) -> None:
        """Write one line."""
        self._writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in cells])

    def rows(self, rows: Iterable[Iterable[Any]]) -> None:
        """Write many lines."""
        for cells in rows:
            self.row(cells)


def csv_text(header: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    """Return a header and lines as CSV."""
    file = io.StringIO(newline="")
    TableWriter(file).rows([header, *rows])
    return file.getvalue()


class _Lines:
    """A text file whose lines end with a line feed alone."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str, /) -> Any:
        return self._file.write(line.removesuffix("\r\n") + "\n")


def harmless(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: an apostrophe is put before what might be one.

    Numbers are not changed. :func:`as_it_was` is the inverse.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-5"), harmless("plain")
    ("'=1+1", '-5', 'plain')
    """
    return f"'{cell}" if _like_formula(cell.lstrip("'")) else cell


def as_it_was(cell: str) -> str:
    """Return a cell as it was before :func:`harmless`.

    Examples
    --------
    >>> as_it_was("'=1+1"), as_it_was("'plain'")
    ('=1+1', "'plain'")
    """
    return cell[1:] if cell.startswith("'") and _like_formula(cell.lstrip("'")) else cell


def _like_formula(cell: str) -> bool:
    if not cell.lstrip(" ").startswith(FORMULA):
        return False
    try:
        return not math.isfinite(float(cell)) or "\n" in cell or "\r" in cell
    except ValueError:
        return True
