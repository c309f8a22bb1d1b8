"""Data files larger than memory, a few thousand rows at a time, through a model and out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._atomic import atomic_path
from pairlens._optional import require
from pairlens._text import TableWriter, delimiter_of
from pairlens.io._arrays import stored_npy, stored_npz
from pairlens.io._csv import UNNAMED, csv_reader, numeric_column, sniff, word_column
from pairlens.io._numpy_files import as_floats
from pairlens.io._parquet import list_column, list_matrix, open_parquet, read_batches
from pairlens.io.beside import RowsBeside, read_beside
from pairlens.io.cells import CELL_NAMES, are_cells, check_rep, read_cells
from pairlens.io.tables import Table, check_column, check_values, column_names, kind_of, read_table
from pairlens.tables import Role, TableEncoder

CHUNK_CELLS = 1 << 21
"""Cells of a chunk: 16 MiB of 64-bit numbers."""
NPY_HEADER = 128
REP = "X_pca"
"""Representation of cells, by default."""

Progress = Callable[[float], None]
Chunk = tuple[Any, NDArray[Any] | None]


@dataclass(frozen=True)
class Inputs:
    """What a model wants to see.

    Attributes
    ----------
    names : tuple of str, optional
        Its columns in order, where it knows their names.
    words : frozenset of str
        Those among them that hold text.
    n_features : int
        Number of columns.
    fills_in : bool
        Whether it fills in missing numbers itself.
    is_raw : bool
        Whether it reads columns of any kind itself, by a TableEncoder.
    """

    names: tuple[str, ...] | None
    words: frozenset[str]
    n_features: int
    fills_in: bool
    is_raw: bool = False


def inputs_of(model: Any) -> Inputs:
    """What a fitted model or pipeline wants to see."""
    first = model.steps[0][1] if hasattr(model, "steps") else model
    if isinstance(first, TableEncoder):
        return _encoded_inputs(first)
    names = getattr(first, "feature_names_in_", None)
    parts = [part for _, part in getattr(model, "steps", [("", model)])]
    words: set[str] = set()
    for _, part, columns in getattr(first, "transformers_", ()):
        parts.append(part)
        if type(part).__name__ == "OneHotEncoder":
            words.update(map(str, columns))
    return Inputs(
        names=None if names is None else tuple(map(str, names)),
        words=frozenset(words),
        n_features=int(first.n_features_in_),
        fills_in=any(type(part).__name__ == "SimpleImputer" for part in parts),
    )


def _encoded_inputs(encoder: TableEncoder) -> Inputs:
    """The columns that a TableEncoder uses; cells stay text wherever they are not numbers."""
    used = [column for column in encoder.columns_ if column.n_features]
    words = frozenset(column.name for column in used if column.role != Role.number)
    return Inputs(tuple(column.name for column in used), words, encoder.n_features_in_, fills_in=True, is_raw=True)


def _list_column(path: Path, wanted: Inputs) -> str | None:
    """The column of lists that holds the features of a Parquet file, unless its columns are those of the model."""
    if wanted.names is not None and set(wanted.names) <= set(column_names(path)):
        return None
    return list_column(path)


def read_for(
    model: Any, path: str | Path, *, ids: str | None = None, labels: Sequence[str] = (), rep: str | None = None
) -> Table:
    """A whole file as the model wants to see it, with ids and labels beside the rows; `rep` is that of cells."""
    source, wanted = Path(path), inputs_of(model)
    if are_cells(source):
        table = read_cells(source, rep=rep or REP, ids=ids, labels=labels)
        _check_width(table.rows.shape[1], wanted, source.name)
        return table
    if kind_of(source) in ("npy", "npz") or (kind_of(source) == "parquet" and _list_column(source, wanted) is not None):
        table = read_table(source, ids=ids, labels=labels, impute=wanted.fills_in)
        _check_width(table.rows.shape[1], wanted, source.name)
        return replace(table, rows=_checked_array(table.rows, wanted, source.name))
    names = column_names(source)
    columns = _columns(names, wanted, ids, (), source.name)
    if wanted.is_raw:
        table = read_table(source, ids=ids, labels=labels, raw=True, text=wanted.words)
        return replace(table, rows=table.rows.reindex(columns=list(wanted.names or ())))
    drop = [] if columns is None else [name for name in names if name not in (*columns, *labels)]
    table = read_table(
        source,
        ids=ids,
        labels=labels,
        drop=drop,
        one_hot=bool(wanted.words),
        impute=wanted.fills_in,
        strict=False,
    )
    if wanted.names is not None:
        return replace(table, rows=table.rows.reindex(columns=list(wanted.names)))
    if len(table.numbers) != wanted.n_features:
        raise ValueError(
            f"{source.name} has {len(table.numbers)} numeric columns, but the model was fitted to {wanted.n_features} "
            "and does not know their names"
        )
    return replace(table, rows=table.rows.to_numpy())


def read_beside_for(
    model: Any, data: Path, rows: Path, *, ids: str | None = None, labels: Sequence[str] = ()
) -> tuple[Table, RowsBeside]:
    """Features as the model wants to see them, with the rows of another file: see :func:`read_beside`."""
    wanted = inputs_of(model)
    table, beside = read_beside(data, rows, ids=ids, labels=labels)
    if not table.is_frame:
        _check_width(table.rows.shape[1], wanted, data.name)
        return replace(table, rows=_checked_array(table.rows, wanted, data.name)), beside
    columns = _columns([*table.rows.columns], wanted, None, (), data.name)
    if columns is not None:
        return replace(table, rows=table.rows[list(columns)]), beside
    _check_width(table.rows.shape[1], wanted, data.name)
    return replace(table, rows=table.rows.to_numpy()), beside


def embed_table(model: Any, table: Table, out: Path, *, ids: str | None = None, progress: Progress) -> int:
    """Put rows in memory through a model into a file, with the column `ids` beside them; returns their number."""
    size = max(1, CHUNK_CELLS // table.rows.shape[1])
    names = np.arange(table.n_rows) if ids is None else table.asked[ids]
    with atomic_path(out) as partial, open_writer(partial, list(model.get_feature_names_out()), id_name=ids) as write:
        for first in range(0, table.n_rows, size):
            part = slice(first, first + size)
            write(np.asarray(model.transform(table.rows[part])), names[part])
            progress(min(1.0, (first + size) / table.n_rows))
    return table.n_rows


def embed_file(
    model: Any,
    data: str | Path,
    out: str | Path,
    *,
    ids: str | None = None,
    drop: Sequence[str] = (),
    rep: str | None = None,
    progress: Progress = lambda share: None,
) -> int:
    """Put the rows of a file through a model, chunk by chunk, into another file; returns the number of rows.

    Parameters
    ----------
    model : estimator
        Fitted, with `transform`.
    data, out : str or Path
        The endings of the names say which kinds they are.
    ids : str, optional
        Column of the data to write beside the result; the row number otherwise.
    drop : sequence of str
        Columns that are no features, for models that do not know the names of theirs.
    rep : str, optional
        Representation of the cells of an h5ad file; "X_pca" by default.
    progress : callable
        Called with the share of the file that is done.
    """
    source, target = Path(data), Path(out)
    wanted = inputs_of(model)
    columns = list(model.get_feature_names_out())
    check_rep(source, rep)
    count = 0
    with (
        atomic_path(target) as partial,
        open_writer(partial, columns, id_name=ids or (CELL_NAMES if are_cells(source) else None)) as write,
        _chunks(source, wanted, ids, tuple(drop), rep or REP, progress) as chunks,
    ):
        for rows, labels in chunks:
            if len(rows) == 0:
                continue
            embedded = np.asarray(model.transform(rows))
            write(embedded, np.arange(count, count + len(embedded)) if labels is None else labels)
            count += len(embedded)
        if count == 0:
            raise ValueError(f"{source.name} has no rows")
    return count


def _chunks(
    path: Path, wanted: Inputs, ids: str | None, drop: tuple[str, ...], rep: str, progress: Progress
) -> AbstractContextManager[Iterator[Chunk]]:
    if are_cells(path):
        return _cell_chunks(path, wanted, ids, rep, progress)
    kind = kind_of(path)
    if kind == "npy" and ids is not None:
        raise ValueError(f"{path.name} is an array without named columns, so it has no column {ids!r}")
    if kind in ("npy", "npz"):
        return _array_chunks(path, wanted, ids, progress)
    return (_csv_chunks if kind in ("csv", "tsv") else _parquet_chunks)(path, wanted, ids, drop, progress)


@contextmanager
def _cell_chunks(
    path: Path, wanted: Inputs, ids: str | None, rep: str, progress: Progress
) -> Iterator[Iterator[Chunk]]:
    table = read_cells(path, rep=rep, ids=ids)
    _check_width(table.rows.shape[1], wanted, path.name)
    names = table.asked[str(table.id_column)]
    size = max(1, CHUNK_CELLS // table.rows.shape[1])

    def chunks() -> Iterator[Chunk]:
        for first in range(0, table.n_rows, size):
            yield table.rows[first : first + size], names[first : first + size]
            progress(min(1.0, (first + size) / table.n_rows))

    yield chunks()


@contextmanager
def _array_chunks(path: Path, wanted: Inputs, ids: str | None, progress: Progress) -> Iterator[Iterator[Chunk]]:
    opened = stored_npy(path) if kind_of(path) == "npy" else stored_npz(path, ids)
    with opened as stored:
        n_rows, width = stored.shape
        _check_width(width, wanted, path.name)
        size = max(1, CHUNK_CELLS // max(1, width))

        def chunks() -> Iterator[Chunk]:
            for first in range(0, n_rows, size):
                count = min(size, n_rows - first)
                rows = _checked_array(as_floats(stored.read(first, count)), wanted, path.name)
                yield rows, None if stored.ids is None else stored.ids[first : first + count]
                progress((first + count) / n_rows)

        yield chunks()


def _check_width(width: int, wanted: Inputs, source: str) -> None:
    if wanted.is_raw and wanted.names is not None:
        raise ValueError(
            f"{source} has no named columns, but the model was fitted to a table: give a CSV, TSV or Parquet file with "
            f"the column {wanted.names[0]!r} and the others"
        )
    if wanted.words:
        raise ValueError(f"{source} holds numbers only, but the model wants the text of {min(wanted.words)!r}")
    if width != wanted.n_features:
        raise ValueError(f"{source} has {width} columns, but the model was fitted to {wanted.n_features}")


def _checked_array(rows: NDArray[Any], wanted: Inputs, source: str) -> Any:
    names = wanted.names or tuple(f"x{j}" for j in range(rows.shape[1]))
    check_values(rows, names, source, impute=wanted.fills_in)
    if wanted.names is None:
        return rows
    return require("pandas", extra="cli", purpose="this model").DataFrame(rows, columns=list(wanted.names))


@contextmanager
def _csv_chunks(
    path: Path, wanted: Inputs, ids: str | None, drop: tuple[str, ...], progress: Progress
) -> Iterator[Iterator[Chunk]]:
    names = sniff(path, strict=False).names
    columns = _columns(names, wanted, ids, drop, path.name)
    text = tuple(wanted.words) + (() if ids is None else (ids,))
    size = max(1, CHUNK_CELLS // len(names))
    with csv_reader(path, text=text, columns=columns, chunk=size, strict=False, progress=progress) as frames:
        yield _frame_chunks(frames, wanted, ids, drop, path.name)


@contextmanager
def _parquet_chunks(
    path: Path, wanted: Inputs, ids: str | None, drop: tuple[str, ...], progress: Progress
) -> Iterator[Iterator[Chunk]]:
    with open_parquet(path) as file:
        names = tuple(file.schema_arrow.names)
        if (listed := _list_column(path, wanted)) is not None:
            yield _list_chunks(file, path, listed, wanted, ids, progress)
            return
        columns = _columns(names, wanted, ids, drop, path.name)
        size = max(1, CHUNK_CELLS // len(names))
        total = max(1, file.metadata.num_rows)
        batches = read_batches(file, path, size, columns)

        def frames() -> Iterator[Any]:
            done = 0
            for batch in batches:
                yield batch.to_pandas()
                done += batch.num_rows
                progress(done / total)

        yield _frame_chunks(frames(), wanted, ids, drop, path.name)


def _list_chunks(
    file: Any, path: Path, listed: str, wanted: Inputs, ids: str | None, progress: Progress
) -> Iterator[Chunk]:
    """Rows of embeddings, stored as lists."""
    source = path.name
    if ids is not None:
        check_column(ids, [name for name in file.schema_arrow.names if name != listed], source)
    done, total = 0, max(1, file.metadata.num_rows)
    first = next(read_batches(file, path, 1, [listed]), None)
    size = max(1, CHUNK_CELLS // max(1, 1 if first is None else len(first.column(0).flatten())))
    for batch in read_batches(file, path, size, [listed, *([] if ids is None else [ids])]):
        rows = list_matrix(batch.column(listed), source)
        _check_width(rows.shape[1], wanted, source)
        yield _checked_array(rows, wanted, source), None if ids is None else batch.to_pandas()[ids].to_numpy()
        done += batch.num_rows
        progress(done / total)


def _columns(
    names: Sequence[str], wanted: Inputs, ids: str | None, drop: tuple[str, ...], source: str
) -> tuple[str, ...] | None:
    """The columns to read, all of them if the model knows no names."""
    for name in (*drop, *([] if ids is None else [ids])):
        check_column(name, names, source)
    if wanted.names is None:
        return None
    lacking = [name for name in wanted.names if name not in names]
    if lacking:
        shown = ", ".join(map(repr, lacking[:5])) + (f" and {len(lacking) - 5} more" if len(lacking) > 5 else "")
        raise ValueError(f"{source} lacks columns that the model was fitted to: {shown}")
    return tuple(dict.fromkeys([*wanted.names, *([] if ids is None else [ids])]))


def _frame_chunks(
    frames: Iterator[Any], wanted: Inputs, ids: str | None, drop: tuple[str, ...], source: str
) -> Iterator[Chunk]:
    pandas = require("pandas", extra="cli", purpose="reading tables")
    first, chosen = 0, wanted.names
    for frame in frames:
        if wanted.is_raw:
            yield frame[list(wanted.names or ())], None if ids is None else frame[ids].to_numpy()
            continue
        if chosen is None:
            chosen = _numeric_names(frame, wanted, ids, drop, source)
        columns = {}
        for name in chosen:
            if name in wanted.words:
                columns[name] = word_column(frame[name])
                continue
            values = numeric_column(frame[name], name, source, first)
            if values is None:
                if frame[name].notna().any():
                    raise ValueError(f"the column {name!r} of {source} must hold numbers, but holds text")
                values = np.full(len(frame), np.nan)
            columns[name] = values
        numbers = [name for name in chosen if name not in wanted.words]
        rows = pandas.DataFrame(columns, columns=list(chosen))
        check_values(rows[numbers].to_numpy(dtype=np.float64), numbers, source, impute=wanted.fills_in)
        yield rows if wanted.names is not None else rows.to_numpy(), None if ids is None else frame[ids].to_numpy()
        first += len(frame)


def _numeric_names(frame: Any, wanted: Inputs, ids: str | None, drop: tuple[str, ...], source: str) -> tuple[str, ...]:
    """The numeric columns in their order, for a model that knows only how many it wants."""
    others = [name for name in frame.columns if name not in drop and name not in (ids, UNNAMED)]
    chosen = tuple(name for name in others if numeric_column(frame[name], name, source) is not None)
    if len(chosen) != wanted.n_features:
        raise ValueError(
            f"{source} has {len(chosen)} numeric columns, but the model was fitted to {wanted.n_features} and does not "
            "know their names: leave the others out with --drop"
        )
    return chosen


@contextmanager
def open_writer(
    path: Path, columns: Sequence[str], *, id_name: str | None
) -> Iterator[Callable[[NDArray[Any], NDArray[Any]], None]]:
    """A function that appends embedded rows and their ids to a file of the kind that its name says.

    NPY files hold the rows alone; NPZ files hold them as `embedding`, and the ids under their name.
    """
    kind = kind_of(path)
    name = "row" if id_name is None else id_name
    if kind in ("csv", "tsv"):
        with path.open("w", newline="", encoding="utf-8") as text:
            writer = TableWriter(text, delimiter_of("", path.suffix))
            writer.row([name, *columns])
            yield lambda rows, ids: writer.rows(
                [label, *row] for label, row in zip(ids.tolist(), rows.tolist(), strict=True)
            )
    elif kind == "parquet":
        yield from _parquet_writer(path, [name, *columns])
    else:
        yield from (_npy_writer(path, len(columns)) if kind == "npy" else _npz_writer(path, columns, name))


def _parquet_writer(path: Path, names: list[str]) -> Iterator[Callable[[NDArray[Any], NDArray[Any]], None]]:
    arrow = require("pyarrow", extra="io", purpose="writing Parquet files")
    parquet = require("pyarrow.parquet", extra="io", purpose="writing Parquet files")
    writer: Any = None

    def write(rows: NDArray[Any], ids: NDArray[Any]) -> None:
        nonlocal writer
        table = arrow.table({name: arrow.array(column) for name, column in zip(names, [ids, *rows.T])})
        writer = parquet.ParquetWriter(path, table.schema) if writer is None else writer
        writer.write_table(table.cast(writer.schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _npy_writer(path: Path, width: int) -> Iterator[Callable[[NDArray[Any], NDArray[Any]], None]]:
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


def _npz_writer(
    path: Path, columns: Sequence[str], name: str
) -> Iterator[Callable[[NDArray[Any], NDArray[Any]], None]]:
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
