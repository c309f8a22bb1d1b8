"""Parquet files: opening them, and columns of lists, as embeddings are stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.io._damage import reading

KIND = "a Parquet file"


def open_parquet(path: Path) -> Any:
    """A ParquetFile, to be closed; ValueError if it is something else."""
    parquet = require("pyarrow.parquet", extra="io", purpose="reading Parquet files")
    with reading(path, KIND):
        return parquet.ParquetFile(path, pre_buffer=False)


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Any:
    """The Arrow table of a Parquet file, or some of its columns."""
    with open_parquet(path) as file, reading(path, KIND):
        return file.read(None if columns is None else list(columns))


def read_batches(file: Any, path: Path, size: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Some rows of an open ParquetFile after another, as record batches."""
    with reading(path, KIND):
        batches = file.iter_batches(size, columns=None if columns is None else list(columns))
    while True:
        # Only the reading: whoever asks for the batches has errors of their own.
        with reading(path, KIND):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def list_column(path: Path, drop: Collection[str] = ()) -> str | None:
    """The column of a Parquet file whose cells are lists of numbers; None if there is none but those to drop."""
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
        raise ValueError(
            f"{path.name} has several columns of lists, {', '.join(found[:5])}: --drop all but the one to learn from"
        )
    return found[0] if found else None


def list_matrix(column: Any, source: str) -> NDArray[np.float64]:
    """Lists of numbers, an Arrow column, as a matrix; ValueError unless all hold as many."""
    arrow = require("pyarrow", extra="io", purpose="reading Parquet files")
    compute = require("pyarrow.compute", extra="io", purpose="reading Parquet files")
    chunk = column.combine_chunks() if isinstance(column, arrow.ChunkedArray) else column
    lengths = np.asarray(compute.fill_null(compute.list_value_length(chunk), -1))
    if not len(lengths):
        return np.empty((0, 0))
    wrong = (lengths != lengths[0]) | (lengths < 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        said = "is missing" if lengths[row] < 0 else f"has {lengths[row]}"
        beside = f"the first has {lengths[0]}, that" if row else "that"
        raise ValueError(
            f"the lists of {source} must hold numbers, all of them as many: {beside} of row {row} {said}. Mend them, "
            "or --drop the column"
        )
    values = np.asarray(chunk.flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
    return values.reshape(len(lengths), -1)
