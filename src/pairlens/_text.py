"""Text files that people make: UTF-8 or a reason why not, and what separates the cells of a table."""

from __future__ import annotations

import csv
from pathlib import Path

DELIMITERS = ",;\t|"


def read_text(path: Path) -> str:
    """The text of a UTF-8 file; ValueError with the line and the byte if it is none."""
    try:
        # "utf-8-sig" because spreadsheets put a byte-order mark in front.
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(not_utf8(path.name, line, error.object[error.start])) from None


def not_utf8(name: str, line: int, byte: int) -> str:
    """What is wrong with a file that is not UTF-8."""
    return f"{name} is not UTF-8 text: line {line} has the byte {byte:#04x}; save the file as UTF-8"


def delimiter_of(header: str, suffix: str) -> str:
    """What separates the cells of a line: the mark that makes most of them; the tab in a TSV file."""
    candidates = "\t" if suffix.lower() == ".tsv" else DELIMITERS
    return max(candidates, key=lambda mark: len(cells_of(header, mark)))


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of one line."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [""])
    except csv.Error:
        return [line]
