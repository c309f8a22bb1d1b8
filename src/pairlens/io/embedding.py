"""Map the rows of a file by a model, some at a time, and write the result to another file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._atomic import atomic_path
from pairlens._optional import require
from pairlens._text import TableWriter, delimiter_of
from pairlens.io._arrays import FileError
from pairlens.io._frames import Progress
from pairlens.io.columns import naming
from pairlens.io.source import Source, Table, kind_of

CHUNK_CELLS = 1 << 21
"""Cells that are read and transformed at a time: 16 MiB of 64-bit numbers."""
NPY_HEADER = 128

Write = Callable[[NDArray[Any], NDArray[Any]], None]


def embed(
    model: Any,
    source: Source,
    out: str | Path,
    *,
    vectors: bool = False,
    progress: Progress = lambda share: None,
    opened: Callable[[Table], None] = lambda table: None,
) -> int:
    """Put the rows of a file through a fitted model into another file, with their ids or row numbers; return how many.

    With `vectors`, a Parquet file is written with the columns `id` and `vector`, lists of 32-bit numbers of one length,
    as vector stores take them, in place of one column for each dimension. `progress` is called with the share of the
    file that is done, and `opened` with each part of the file before it is transformed.
    """
    count = 0
    columns = list(model.get_feature_names_out())
    with (
        atomic_path(Path(out)) as partial,
        open_writer(partial, columns, id_name="id" if vectors else source.id_name, vectors=vectors) as write,
    ):
        for table in source.tables(model, chunk_cells=CHUNK_CELLS, progress=progress):
            opened(table)
            # What is read at once is transformed some rows at a time all the same.
            size = max(1, CHUNK_CELLS // table.rows.shape[1])
            for first in range(0, table.n_rows, size):
                part = slice(first, first + size)
                with naming(source.path.name):
                    embedded = np.asarray(model.transform(table.rows[part]))
                names = np.arange(count, count + len(embedded)) if table.ids is None else table.ids[part]
                write(embedded, names)
                count += len(embedded)
                if part.stop < table.n_rows:
                    progress(part.stop / table.n_rows)
        if count == 0:
            raise FileError(f"{source.path.name} has no rows")
    return count


@contextmanager
def open_writer(path: Path, columns: Sequence[str], *, id_name: str | None, vectors: bool = False) -> Iterator[Write]:
    """Open a file of the kind that its name says, and give a function that appends embedded rows and their ids.

    NPY files hold the rows alone; NPZ files hold them as `embedding`, and the ids under their name. With `vectors`, a
    Parquet file has one column of lists of 32-bit numbers.
    """
    kind = kind_of(path, written=True)
    name = "row" if id_name is None else id_name
    if kind in ("csv", "tsv"):
        with path.open("w", newline="", encoding="utf-8") as text:
            writer = TableWriter(text, delimiter_of("", path.suffix))
            writer.row([name, *columns])
            yield lambda rows, ids: writer.rows(
                [label, *row] for label, row in zip(ids.tolist(), rows.tolist(), strict=True)
            )
    elif kind == "parquet":
        yield from _parquet_writer(path, [name, *columns], vectors)
    else:
        yield from (_npy_writer(path, len(columns)) if kind == "npy" else _npz_writer(path, columns, name))


def _parquet_writer(path: Path, names: list[str], vectors: bool) -> Iterator[Write]:
    arrow = require("pyarrow", extra="io", purpose="writing Parquet files")
    parquet = require("pyarrow.parquet", extra="io", purpose="writing Parquet files")
    writer: Any = None

    def write(rows: NDArray[Any], ids: NDArray[Any]) -> None:
        nonlocal writer
        if vectors:
            numbers = arrow.array(np.ascontiguousarray(rows, dtype=np.float32).reshape(-1))
            lists = arrow.FixedSizeListArray.from_arrays(numbers, rows.shape[1])
            table = arrow.table({names[0]: arrow.array(ids), "vector": lists})
        else:
            table = arrow.table({name: arrow.array(column) for name, column in zip(names, [ids, *rows.T])})
        writer = parquet.ParquetWriter(path, table.schema) if writer is None else writer
        writer.write_table(table.cast(writer.schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _npy_writer(path: Path, width: int) -> Iterator[Write]:
    count, dtype = 0, np.dtype(np.float64)
    with path.open("wb") as file:
        file.write(bytes(NPY_HEADER))

        def write(rows: NDArray[Any], ids: NDArray[Any]) -> None:
            nonlocal count, dtype
            dtype = rows.dtype if count == 0 else dtype
            count += len(ids)
            np.ascontiguousarray(rows, dtype=dtype).tofile(file)

        yield write
        # The number of rows is known now; the place for it was kept free.
        content = repr({"descr": dtype.str, "fortran_order": False, "shape": (count, width)}).encode()
        start = b"\x93NUMPY\x01\x00" + (NPY_HEADER - 10).to_bytes(2, "little")
        file.seek(0)
        file.write(start + content.ljust(NPY_HEADER - 11) + b"\n")


def _npz_writer(path: Path, columns: Sequence[str], name: str) -> Iterator[Write]:
    rows: list[NDArray[Any]] = []
    ids: list[NDArray[Any]] = []

    def write(part: NDArray[Any], labels: NDArray[Any]) -> None:
        rows.append(part)
        ids.append(labels.astype(str) if labels.dtype == object else labels)

    yield write
    embedding = np.concatenate(rows) if rows else np.empty((0, len(columns)))
    labels = np.concatenate(ids) if ids else np.empty(0, dtype=np.int64)
    arrays: dict[str, Any] = {"embedding": embedding, "columns": np.asarray(list(columns), dtype=str), name: labels}
    with path.open("wb") as file:
        np.savez(file, **arrays)
