"""Read files of named columns as data frames: CSV and TSV as people have them, JSON lines, Excel and Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens._text import DELIMITERS, is_number, not_utf8, whole_characters
from pairlens.exceptions import InputError
from pairlens.io._arrays import FileError, reading
from pairlens.tables.cells import MISSING_WORDS, distinct_names

KINDS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".xlsx": "xlsx", ".parquet": "parquet", ".pq": "parquet"}
COMPRESSED = ".gz"
"""Ending of compressed text, behind that of the kind."""
SAMPLE = 1 << 16
LINES = 50
UNNAMED = "(unnamed)"
"""Name of the first column where it has none, as that of the row numbers that data frames write."""

Progress = Callable[[float], None]


def kind_of_frame(path: Path) -> str | None:
    """Return the kind of a file of named columns by its ending; None for other files."""
    suffix = path.suffix.lower()
    if suffix == COMPRESSED:
        kind = KINDS.get(Path(path.stem).suffix.lower())
        return kind if kind in ("csv", "tsv", "jsonl") else None
    return KINDS.get(suffix)


def names_of(path: Path) -> list[str]:
    """Return the names of the columns."""
    kind = kind_of_frame(path)
    if kind in ("csv", "tsv"):
        return sniff(path)[2]
    if kind == "parquet":
        with _open_parquet(path) as file:
            return list(file.schema_arrow.names)
    return list(next(frames(path)).columns)


def frames(
    path: Path,
    *,
    text: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    size: int | None = None,
    progress: Progress = lambda share: None,
) -> Iterator[Any]:
    """Read a file as data frames of `size` rows; as one frame if `size` is None, or for JSON lines and Excel.

    Cells of the columns `text` of a CSV file stay as they are written, which ids and words must. Only `columns` are
    read if they are given. `progress` is called after each frame with the share of the file that is read.
    """
    kind = kind_of_frame(path)
    if kind == "parquet":
        return (part.to_pandas() for part in parquet_parts(path, columns, size, progress))
    if kind in ("csv", "tsv"):
        return _csv_frames(path, text, columns, size, progress)
    return iter([_whole_frame(path, kind, columns)])


def _whole_frame(path: Path, kind: str | None, columns: Sequence[str] | None) -> Any:
    pandas = require("pandas", extra="cli", purpose="reading tables")
    if kind == "jsonl":
        with reading(path, "a file of JSON lines"), _opened(path) as (file, _):
            frame = pandas.read_json(file, lines=True, dtype=False, convert_dates=False, encoding="utf-8-sig")
        for name, column in frame.items():
            if column.dtype == object:
                frame[name] = column.map(lambda cell: whole_characters(cell) if isinstance(cell, str) else cell)
    else:
        require("openpyxl", extra="io", purpose="reading Excel files")
        with reading(path, "an Excel file"):
            frame = pandas.read_excel(path, engine="openpyxl", keep_default_na=False, na_values=list(MISSING_WORDS))
    frame.columns = distinct_names(list(frame.columns))
    if not len(frame.columns):
        raise FileError(f"{path.name} is empty")
    return frame if columns is None else frame[list(columns)]


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file: what it holds, unpacked if it is compressed, and the file itself, which tells how far one is."""
    with path.open("rb") as stored:
        if path.suffix.lower() != COMPRESSED:
            yield stored, stored
            return
        try:
            with gzip.GzipFile(fileobj=stored) as unpacked:
                yield unpacked, stored  # type: ignore[misc]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileError(f"{path.name} is not a gzip file, or is damaged: {error}") from None


def sniff(path: Path) -> tuple[str, str, list[str]]:
    """Return the delimiter, the sign of decimals and the names of the columns; InputError without a header.

    Columns without a name, or with the name of another, get names.
    """
    with _opened(path) as (file, _):
        sample = file.read(SAMPLE)
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(f"{path.name} is UTF-16 text: save the file as UTF-8")
    if b"\0" in sample:
        raise FileError(f"{path.name} is not text: it has zero bytes")
    # The last line may be cut in the middle of a character; whether all of the file is UTF-8 shows when it is read.
    text = sample.decode("utf-8-sig", "replace")
    if not text.strip():
        raise FileError(f"{path.name} is empty")
    candidates = "\t" if kind_of_frame(path) == "tsv" else DELIMITERS
    delimiter = max(candidates, key=lambda mark: len(_lines(text, mark)[0]))
    header, *lines = _lines(text, delimiter)
    names = [name.strip() for name in header]
    if names[0] == "" and len(names) > 1:
        names[0] = UNNAMED
    if all(is_number(name) for name in names):
        raise FileError(
            f"{path.name} has no header: its first line holds numbers only. Give the columns names in a first line"
        )
    cells = [cell.strip() for line in lines for cell in line]
    comma = any(re.fullmatch(r"[-+]?\d+,\d+", cell) for cell in cells)
    point = any(re.fullmatch(r"[-+]?\d+\.\d+", cell) for cell in cells)
    decimal = "," if delimiter != "," and comma and not point else "."
    return delimiter, decimal, distinct_names(names)


def _lines(text: str, delimiter: str) -> list[list[str]]:
    """Return the cells of the first 50 lines that are not blank; quoted cells may hold line breaks."""
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


def _csv_frames(
    path: Path, text: Sequence[str], columns: Sequence[str] | None, size: int | None, progress: Progress
) -> Iterator[Any]:
    pandas = require("pandas", extra="cli", purpose="reading CSV files")
    delimiter, decimal, names = sniff(path)
    try:
        with (
            _opened(path) as (file, stored),
            pandas.read_csv(
                file,
                sep=delimiter,
                decimal=decimal,
                header=0,
                names=names,
                dtype={name: str for name in text if name in names},
                index_col=False,
                keep_default_na=False,
                na_values={name: list(MISSING_WORDS) for name in names if name not in text},
                encoding="utf-8-sig",
                low_memory=False,
                iterator=True,
                chunksize=size,
            ) as reader,
        ):
            total = path.stat().st_size
            while True:
                # Only the reading: whoever asks for the frames has warnings of their own.
                with warnings.catch_warnings(action="error", category=pandas.errors.ParserWarning):
                    frame = reader.read() if size is None else next(reader, None)
                if frame is None:
                    return
                # All columns are read: among some, pandas takes a line that has more cells than the header.
                yield frame if columns is None else frame[list(columns)]
                progress(stored.tell() / total)
                if size is None:
                    return
    except UnicodeDecodeError as error:
        raise FileError(_not_utf8(path, error)) from None
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        raise FileError(f"{path.name} is not a table: {_reason(error)}") from None


def _not_utf8(path: Path, error: UnicodeDecodeError) -> str:
    with _opened(path) as (file, _):
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


def _open_parquet(path: Path) -> Any:
    """Open a ParquetFile, to be closed; InputError if it is something else."""
    parquet = require("pyarrow.parquet", extra="io", purpose="reading Parquet files")
    with reading(path, "a Parquet file"):
        return parquet.ParquetFile(path, pre_buffer=False)


def parquet_parts(
    path: Path,
    columns: Sequence[str] | None = None,
    size: int | None = None,
    progress: Progress = lambda share: None,
) -> Iterator[Any]:
    """Read the rows of a Parquet file, `size` at a time, as record batches; all of them as one table by default."""
    names = None if columns is None else list(columns)
    with _open_parquet(path) as file:
        if size is None:
            with reading(path, "a Parquet file"):
                content = file.read(names)
            yield content
            return
        done, total = 0, max(1, file.metadata.num_rows)
        with reading(path, "a Parquet file"):
            batches = file.iter_batches(size, columns=names)
        while True:
            # Only the reading: whoever asks for the batches has errors of their own.
            with reading(path, "a Parquet file"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch
            done += batch.num_rows
            progress(done / total)


def list_column(path: Path, drop: Collection[str] = ()) -> str | None:
    """Return the column of a Parquet file whose cells are lists of numbers; None if there is none but those to drop."""
    types = require("pyarrow", extra="io", purpose="reading Parquet files").types
    with _open_parquet(path) as file:
        schema = file.schema_arrow
    found = [
        field.name
        for field in schema
        if field.name not in drop
        and (types.is_list(field.type) or types.is_large_list(field.type) or types.is_fixed_size_list(field.type))
        and (types.is_floating(field.type.value_type) or types.is_integer(field.type.value_type))
    ]
    if len(found) > 1:
        raise InputError(
            f"{path.name} has several columns of lists, {', '.join(found[:5])}",
            argument="drop",
            value=drop,
            remedy="Leave out all but the one to learn from by drop=",
        )
    return found[0] if found else None


def list_width(path: Path, column: str) -> int:
    """Return how many numbers the first list of a column holds, at least 1."""
    first = next(parquet_parts(path, [column], 1), None)
    return 1 if first is None else max(1, len(first.column(0).flatten()))


def list_matrix(column: Any, source: str, first_row: int = 0) -> NDArray[np.float64]:
    """Return lists of numbers, an Arrow column, as a matrix; InputError unless all hold as many."""
    arrow = require("pyarrow", extra="io", purpose="reading Parquet files")
    compute = require("pyarrow.compute", extra="io", purpose="reading Parquet files")
    chunk = column.combine_chunks() if isinstance(column, arrow.ChunkedArray) else column
    lengths = np.asarray(compute.fill_null(compute.list_value_length(chunk), -1))
    if not len(lengths):
        return np.empty((0, 1))
    wrong = (lengths != lengths[0]) | (lengths < 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        said = "is missing" if lengths[row] < 0 else f"has {lengths[row]}"
        beside = f"the first has {lengths[0]}, that" if row else "that"
        raise InputError(
            f"the lists of {source} must hold numbers, all of them as many: {beside} of row {first_row + row} {said}",
            argument="drop",
            remedy="Fix them, or leave the column out by drop=",
        )
    values = np.asarray(chunk.flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
    return values.reshape(len(lengths), -1)
