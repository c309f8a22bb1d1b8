"""Parquet files: opening them, and columns of lists, as embeddings are stored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.exceptions import InputError
from pairlens.io._damage import reading

KIND = "a Parquet file"


def open_parquet(path: Path) -> Any:
    """Open a ParquetFile, to be closed; ValueError if it is something else."""
    parquet = require("pyarrow.parquet", extra="io", purpose="reading Parquet files")
    with reading(path, KIND):
        return parquet.ParquetFile(path, pre_buffer=False)


def read_parts(
    path: Path,
    columns: Sequence[str] | None = None,
    size: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Iterator[Any]:
    """Read the rows of a Parquet file, `size` at a time, as record batches; all of them as one table by default.

    Parameters
    ----------
    path : Path
    columns : sequence of str, optional
        The only ones to read.
    size : int, optional
    progress : callable
        Called after each part with the share of the rows that is read.
    """
    names = None if columns is None else list(columns)
    with open_parquet(path) as file:
        if size is None:
            with reading(path, KIND):
                content = file.read(names)
            yield content
            return
        done, total = 0, max(1, file.metadata.num_rows)
        with reading(path, KIND):
            batches = file.iter_batches(size, columns=names)
        while True:
            # Only the reading: whoever asks for the batches has errors of their own.
            with reading(path, KIND):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch
            done += batch.num_rows
            progress(done / total)


def list_column(path: Path, drop: Collection[str] = ()) -> str | None:
    """Return the column of a Parquet file whose cells are lists of numbers; None if there is none but those to drop."""
    types = require("pyarrow", extra="io", purpose="reading Parquet files").types
    with open_parquet(path) as file:
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
    first = next(read_parts(path, [column], 1), None)
    return 1 if first is None else max(1, len(first.column(0).flatten()))


def list_matrix(column: Any, source: str, first_row: int = 0) -> NDArray[np.float64]:
    """Return lists of numbers, an Arrow column, as a matrix; ValueError unless all hold as many.

    Parameters
    ----------
    column : Arrow array or chunked array
    source : str
        Name of the file.
    first_row : int, default=0
        Number of the first row in the file.
    """
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
