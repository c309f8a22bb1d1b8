"""Files of pairs without answers, a block at a time: what a model is asked about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.exceptions import AnswerError
from pairlens.supervision._entries import ENDS, IdIndex, read_rows
from pairlens.supervision._pairs import IntArray
from pairlens.supervision._tables import Table, csv_records, file_format

BLOCK = 10_000


@dataclass(frozen=True)
class PairBlock:
    """Some lines of a file of pairs.

    Attributes
    ----------
    ends : tuple of two arrays of shape (n_pairs,)
        What stands in the columns a and b.
    rows : int array of shape (n_pairs, 2)
        The rows of X that they name.
    """

    ends: tuple[NDArray[Any], NDArray[Any]]
    rows: IntArray


def read_pair_blocks(
    path: str | PathLike[str], *, ids: ArrayLike | None, n_samples: int, size: int = BLOCK
) -> Iterator[PairBlock]:
    """Read the columns a and b of a file of pairs, block by block: files of any length take the memory of one block.

    Parameters
    ----------
    path : str or path
        CSV or TSV with a header, or JSON lines; other columns are passed over.
    ids : array-like of shape (n_samples,) or None
        Names of the rows of X where the file names rows; it holds row numbers if None.
    n_samples : int
        Number of rows of X.
    size : int
        Lines of a block.

    Raises
    ------
    AnswerError
        If a line cannot be read; it holds the file, the line, the column and the value.
    """
    source = Path(path)
    entries = _csv_entries if file_format(source) == "csv" else _json_entries
    index = None if ids is None else IdIndex(ids)
    with source.open(encoding="utf-8-sig", newline="") as file:
        numbered = entries(file, source)
        try:
            while block := list(islice(numbered, size)):
                lines, a, b = zip(*block)
                columns = {name: np.array(values) for name, values in zip(ENDS, (a, b))}
                table = Table(columns, lines, source.name, decimal_comma=False)
                rows = read_rows(table, ENDS, index, n_samples)[0]
                yield PairBlock((columns["a"], columns["b"]), rows)
        except UnicodeDecodeError as error:
            raise AnswerError(f"{source.name} is not text in UTF-8", str(error), file=source.name) from None


def _csv_entries(file: TextIO, path: Path) -> Iterator[tuple[int, str, str]]:
    """Line and both ends of each record."""
    header, _, records = csv_records(file, path)
    for name in ENDS:
        if name not in header:
            found = ", ".join(map(repr, header)) or "none"
            reason = "the file must start with the header a,b"
            raise AnswerError(
                f"{path.name} has no column {name!r}; it has {found}", reason, problem="no-column", file=path.name
            )
    a, b = (header.index(name) for name in ENDS)
    yield from ((line, record[a], record[b]) for line, record in records)


def _json_entries(file: TextIO, path: Path) -> Iterator[tuple[int, Any, Any]]:
    for line, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            entry = json.loads(text)
            yield line, entry["a"], entry["b"]
        except (json.JSONDecodeError, KeyError, TypeError):
            statement = f"line {line} of {path.name} is no JSON object with a and b, got {text.strip()[:40]!r}"
            raise AnswerError(statement, file=path.name, line=line) from None
