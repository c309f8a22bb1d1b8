"""Read data files as rows, whole or some at a time: tables (CSV, TSV, JSON lines, Excel, Parquet), arrays (NPY, NPZ,
h5ad) and folders of pictures by one way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairlens._optional import require
from pairlens._text import listed_names
from pairlens.exceptions import InputError
from pairlens.io import _frames
from pairlens.io._arrays import (
    FileError,
    as_floats,
    check_length,
    check_sparse,
    load_array,
    load_arrays,
    numeric_matrix,
    reading,
    stored_rows,
    table_among,
)
from pairlens.io._frames import UNNAMED, Progress, frames, kind_of_frame
from pairlens.io.columns import check_column, check_values, naming, numeric_column, numeric_columns, plain_column
from pairlens.tables import Role, TableEncoder
from pairlens.tables.cells import distinct_names
from pairlens.tables.pictures import PictureFolder, are_picture_paths, picture_names

ARRAYS = {".npy": "npy", ".npz": "npz", ".h5ad": "h5ad"}
NAMED = ("csv", "tsv", "jsonl", "xlsx", "parquet")
"""Kinds of files that have named columns."""
READ_ONLY = (".jsonl", ".xlsx", ".h5ad")
CELL_NAMES = "cell"
"""What the names of the cells of an h5ad file are called where it does not say."""
PICTURES = "pictures"
"""The kind of a folder."""
FILE = "file"
"""The column that names the pictures of a folder."""
REP = "X_pca"


@dataclass(frozen=True)
class RowsBeside:
    """Hold what people know of the rows of a table of features, from a second file in `folder`; text stays text.

    `n_unmatched` counts rows of the features, and of the file, that have no partner and are left out.
    """

    columns: dict[str, NDArray[Any]]
    folder: Path
    n_unmatched: tuple[int, int] = (0, 0)

    def pictures(self) -> tuple[str, Any] | None:
        """Return the column that names files of pictures, and these; None if there is none."""
        for name, column in self.columns.items():
            if are_picture_paths(column.tolist()):
                return name, PictureFolder(self.folder, ["" if cell is None else str(cell) for cell in column])
        return None


@dataclass(frozen=True)
class Table:
    """Hold rows of a file, with the columns asked for beside them.

    `rows` are what is learned from: a data frame with the cells as they are in the file, for a TableEncoder to read, or
    an array or CSR matrix of float64. `kind` says what kind of file a view of these rows is written to. `asked` has ids
    and labels by the name of their column; text stays as it is written. `own_scale` means that the columns have one
    scale of their own, as those of annotated data do.
    """

    source: str
    kind: str
    rows: Any
    features: tuple[str, ...]
    asked: dict[str, NDArray[Any]] = field(default_factory=dict)
    id_column: str | None = None
    left_out: tuple[str, ...] = ()
    own_scale: bool = False
    beside: RowsBeside | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    @property
    def is_frame(self) -> bool:
        """Return whether the rows have named columns."""
        return hasattr(self.rows, "columns")

    @property
    def ids(self) -> NDArray[Any] | None:
        """Names of the rows, None if they have none."""
        return None if self.id_column is None else self.asked[self.id_column]


@dataclass(frozen=True)
class Inputs:
    """Hold what a fitted model takes.

    `names` are the columns that it uses, where it knows their names, and `words` those among them whose cells stay
    text. `array_names` are the columns that an array stands for; None if the model does not take arrays, or does not
    need names. It `encodes` if it reads columns of any kind itself.
    """

    names: tuple[str, ...] | None
    words: frozenset[str]
    array_names: tuple[str, ...] | None
    n_features: int
    fills_in: bool
    encodes: bool = False


def inputs_of(model: Any) -> Inputs:
    """Return what a fitted model or pipeline takes."""
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    first = steps[0]
    known = getattr(first, "feature_names_in_", None)
    names = None if known is None else tuple(map(str, known))
    if isinstance(first, TableEncoder) and names is not None:
        used = [column for column in first.columns_ if column.n_features]
        words = frozenset(column.name for column in used if column.role != Role.number)
        array_names = None if first.number_blocks() is None else names
        return Inputs(tuple(each.name for each in used), words, array_names, len(names), True, encodes=True)
    # A ColumnTransformer finds its columns by name and reads them itself.
    encodes = hasattr(first, "transformers_") and names is not None
    fills_in = encodes or any(type(step).__name__ in ("SimpleImputer", "TableEncoder") for step in steps)
    return Inputs(names, frozenset(), None if encodes else names, int(first.n_features_in_), fills_in, encodes)


@dataclass(frozen=True)
class Source:
    """Read a data file, whose ending says which kind it is, or a folder: a table of the pictures in it, called by their
    names.

    `ids` is the column that names the rows: of `rows` if given, of `obs` for an h5ad file. `labels` are other columns
    to hand over beside the rows; they are not features. Columns to `drop` are left out, and cells of the columns `text`
    of a CSV file stay text, as categories written in digits must.

    `rows` is the table that people know the rows by, where `path` holds features alone. Where the features have a
    column or an array called `ids` too, rows are joined by it. Otherwise both files must have the same rows in the same
    order.

    `rep` is the representation of the cells of an h5ad file: a key of `obsm`, or "X"; "X_pca" by default. The rows of a
    folder are small versions of its pictures; if a model embeds them (`embed`), they are their names, in the column
    "file".
    """

    path: Path
    ids: str | None = None
    labels: Sequence[str] = ()
    drop: Sequence[str] = ()
    text: Sequence[str] = ()
    rows: Path | None = None
    rep: str | None = None
    embed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "rows", None if self.rows is None else Path(self.rows))
        cells = kind_of(self.path) == "h5ad"
        if self.rep is not None and not cells:
            raise InputError(
                f"rep= chooses among the representations of an h5ad file, which {self.path.name} is not",
                argument="rep",
                value=self.rep,
            )
        if cells and self.rows is not None:
            raise InputError(
                f"{self.path.name} holds what is known of its cells in obs", argument="rows", remedy="Leave out rows="
            )
        if self.drop and (cells or self.rows is not None):
            other = "an h5ad file" if cells else "rows="
            raise InputError(f"drop= is for the columns of a table, not for {other}", argument="drop", value=self.drop)
        if self.rows is not None and kind_of(self.rows) not in NAMED:
            raise InputError(
                f"{self.rows.name} must be a table with named columns: CSV, TSV, JSON lines, Excel or Parquet",
                argument="rows",
                value=self.rows,
            )

    @property
    def id_name(self) -> str | None:
        """Return what the names of the rows are called; None if they have none."""
        return self.ids or {"h5ad": CELL_NAMES, PICTURES: FILE}.get(kind_of(self.path))

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the columns to hand over."""
        return tuple(dict.fromkeys([*([] if self.ids is None else [self.ids]), *self.labels]))

    def read(self, model: Any = None, *, least_rows: int = 2) -> Table:
        """Read the whole file; as a fitted model takes it, if one is given."""
        table = next(self.tables(model))
        if table.n_rows < least_rows:
            has = {0: "has no rows", 1: "has only one row"}.get(table.n_rows, f"has only {table.n_rows} rows")
            raise FileError(f"{self.path.name} {has}; at least {least_rows} are needed")
        return table

    def tables(
        self, model: Any = None, *, chunk_cells: int | None = None, progress: Progress = lambda share: None
    ) -> Iterator[Table]:
        """Read parts of `chunk_cells` cells; NPZ archives, h5ad files and those with `rows` at once.

        `progress` is called after each part with the share of the file that is read.
        """
        wanted = None if model is None else inputs_of(model)
        kind = kind_of(self.path)
        if self.rows is not None:
            return iter([self._with_rows(model)])
        if kind == "h5ad":
            return iter([self._cells(wanted)])
        if kind == PICTURES:
            return iter([self._pictures(wanted)])
        if kind == "npz":
            return iter([self._archive(wanted)])
        if kind == "npy":
            return self._array(wanted, chunk_cells, progress)
        if kind == "parquet" and (listed := self._list_column(wanted)) is not None:
            return self._lists(listed, wanted, chunk_cells, progress)
        return self._frames(wanted, chunk_cells, progress)

    def _frames(self, wanted: Inputs | None, cells: int | None, progress: Progress) -> Iterator[Table]:
        """Read a file of named columns."""
        names = column_names(self.path)
        columns = self._columns(names, wanted)
        text = (*self.asked, *(self.text if wanted is None else wanted.words))
        size = None if cells is None else max(1, cells // max(1, len(names)))
        first, chosen = 0, None if wanted is None else wanted.names
        for frame in frames(self.path, text=text, columns=columns, size=size, progress=progress):
            # Errors that name a row count the rows of the file.
            frame.index = range(first, first + len(frame))
            if columns is None:
                frame.columns = distinct_names(list(frame.columns))
            if chosen is None:
                chosen = self._features(frame, wanted)
            rows = frame[list(chosen)]
            if wanted is not None and not wanted.encodes:
                taken = numeric_columns(rows, self.path.name, fills_in=wanted.fills_in)
                rows = taken if wanted.names is not None else taken.to_numpy(dtype=np.float64)
            yield self._table(rows, chosen, {name: plain_column(frame[name]) for name in self.asked})
            first += len(frame)

    def _check_columns(self, names: Sequence[str]) -> None:
        for name in (*self.asked, *self.drop):
            check_column(name, names, self.path.name)

    def _columns(self, names: Sequence[str], wanted: Inputs | None) -> tuple[str, ...] | None:
        """Return the columns to read, None for all of them."""
        if wanted is None or wanted.names is None:
            return None
        self._check_columns(names)
        lacking = [name for name in wanted.names if name not in names]
        if lacking:
            raise InputError(f"{self.path.name} lacks columns that the model was fitted to: {listed_names(lacking)}")
        return tuple(dict.fromkeys([*wanted.names, *self.asked]))

    def _features(self, frame: Any, wanted: Inputs | None) -> tuple[str, ...]:
        """Return the columns to learn from, or the numeric ones for a model that knows only how many it takes."""
        source = self.path.name
        self._check_columns(list(frame.columns))
        names = tuple(name for name in frame.columns if name not in (*self.asked, *self.drop))
        if wanted is None:
            if not names:
                raise InputError(f"{source} has no columns besides those asked for", argument="drop", value=self.drop)
            return names
        names = tuple(
            name for name in names if name != UNNAMED and numeric_column(frame[name], name, source) is not None
        )
        if len(names) != wanted.n_features:
            raise InputError(
                f"{source} has {len(names)} numeric columns, but the model was fitted to {wanted.n_features} and does "
                "not know their names",
                argument="drop",
                value=self.drop,
                remedy="Leave the others out by drop=",
            )
        return names

    def _list_column(self, wanted: Inputs | None) -> str | None:
        """Return the column of lists that holds the features, unless its columns are those of the model."""
        if wanted is not None and wanted.names is not None and set(wanted.names) <= set(column_names(self.path)):
            return None
        return _frames.list_column(self.path, self.drop)

    def _lists(self, listed: str, wanted: Inputs | None, cells: int | None, progress: Progress) -> Iterator[Table]:
        """Read a Parquet file of embeddings: its features are the numbers of the lists, whatever else is there."""
        names = [name for name in column_names(self.path) if name != listed]
        # pandas stores an index that has no name as such a column.
        names = [name for name in names if not name.startswith("__index_level_")]
        self._check_columns(names)
        left_out = tuple(name for name in names if name not in (*self.asked, *self.drop))
        size = None if cells is None else max(1, cells // _frames.list_width(self.path, listed))
        first = 0
        for batch in _frames.parquet_parts(self.path, [listed, *self.asked], size, progress):
            values = _frames.list_matrix(batch.column(listed), self.path.name, first)
            frame = batch.select(list(self.asked)).to_pandas()
            asked = {name: plain_column(frame[name]) for name in self.asked}
            yield self._numbers_table(values, None, wanted, asked, left_out)
            first += batch.num_rows

    def _array(self, wanted: Inputs | None, cells: int | None, progress: Progress) -> Iterator[Table]:
        self._check_columns([])
        if cells is None:
            yield self._numbers_table(as_floats(load_array(self.path)), None, wanted, {})
            return
        with stored_rows(self.path) as (n_rows, width, read):
            size = max(1, cells // max(1, width))
            for first in range(0, max(1, n_rows), size):
                count = min(size, n_rows - first)
                yield self._numbers_table(as_floats(read(first, count)), None, wanted, {})
                progress((first + count) / max(1, n_rows))

    def _archive(self, wanted: Inputs | None) -> Table:
        source, arrays = self.path.name, load_arrays(self.path)
        chosen = table_among(arrays, source)
        values = as_floats(numeric_matrix(arrays.pop(chosen), f"{chosen} of {source}"))
        names = arrays.pop("feature_names", None)
        self._check_columns(list(arrays))
        asked = {name: check_length(arrays[name], name, len(values), source) for name in self.asked}
        left_out = tuple(name for name in arrays if name not in (*self.asked, *self.drop))
        given = None if names is None or names.shape != (values.shape[1],) else tuple(map(str, names))
        return self._numbers_table(values, given, wanted, asked, left_out)

    def _cells(self, wanted: Inputs | None) -> Table:
        """Read the cells of an h5ad file: rows from `obsm` or `X`, names and labels from `obs`."""
        from pairlens.anndata import representation

        anndata = require("anndata", extra="anndata", purpose="reading h5ad files")
        rep, source = self.rep or REP, self.path.name
        with reading(self.path, "an h5ad file of annotated data"):
            adata = anndata.read_h5ad(self.path, backed="r")
            try:
                with naming(source):
                    rows: Any = representation(adata, rep)
                if sparse.issparse(rows):
                    check_sparse(rows)
                for name in self.asked:
                    check_column(name, [str(column) for column in adata.obs.columns], f"obs of {source}")
                asked = {name: plain_column(adata.obs[name]) for name in self.asked}
                id_column = self.ids or str(adata.obs_names.name or CELL_NAMES)
                asked.setdefault(id_column, np.asarray(adata.obs_names, dtype=object))
                stem = rep.removeprefix("X_")
                numbered = tuple(f"{stem}{j + 1}" for j in range(rows.shape[1]))
                names = tuple(str(name) for name in adata.var_names) if rep == "X" else numbered
            finally:
                adata.file.close()
        rows = rows.astype(np.float64) if sparse.issparse(rows) else as_floats(rows)
        return replace(self._numbers_table(rows, names, wanted, asked), kind="csv", id_column=id_column, own_scale=True)

    def _pictures(self, wanted: Inputs | None) -> Table:
        """Read a folder: small versions of the pictures, or their names for a model that embeds them."""
        names = np.array(picture_names(self.path), dtype=object)
        self._check_columns(column_names(self.path))
        folder = PictureFolder(self.path, names.tolist())
        asked = {FILE: names}
        if self.embed if wanted is None else wanted.encodes:
            pandas = require("pandas", extra="cli", purpose="embedding pictures")
            table = self._table(pandas.DataFrame({FILE: names}), (FILE,), asked)
        else:
            small = folder.thumbnails()
            table = self._numbers_table(small, tuple(f"pixel{k}" for k in range(small.shape[1])), wanted, asked)
        sizes = [size or (None, None) for size in folder.sizes()]
        shown = {FILE: names, **{name: np.array(side) for name, side in zip(("width", "height"), zip(*sizes))}}
        return replace(table, id_column=FILE, own_scale=True, beside=RowsBeside(shown, self.path))

    def _with_rows(self, model: Any) -> Table:
        """Read features and the rows that belong to them."""
        assert self.rows is not None
        data, rows, ids = self.path.name, self.rows.name, self.ids
        names = column_names(self.rows)
        for name in self.asked:
            check_column(name, names, rows)
        cells = read_columns(self.rows, names)
        joins = ids is not None and ids in column_names(self.path)
        table = Source(self.path, ids=ids if joins else None, embed=self.embed).read(model)
        n_rows = len(next(iter(cells.values())))
        if joins and ids is not None:
            left, right = _joined(table.asked[ids], cells[ids], ids, data, rows)
        elif table.n_rows != n_rows:
            hint = "" if ids is None else f", or {data} a column {ids!r} to join them by"
            raise InputError(
                f"{data} has {table.n_rows} rows and {rows} {n_rows}: both need the same rows in the same order{hint}",
                argument="rows",
                value=self.rows,
            )
        else:
            left = right = np.arange(n_rows)
        columns = {name: column[right] for name, column in cells.items()}
        return replace(
            table,
            rows=table.rows.iloc[left].reset_index(drop=True) if table.is_frame else table.rows[left],
            asked={name: columns[name] for name in self.asked},
            id_column=ids,
            kind="csv" if kind_of(self.rows) in ("jsonl", "xlsx") else kind_of(self.rows),
            beside=RowsBeside(
                columns,
                self.path if kind_of(self.path) == PICTURES else self.rows.parent,
                (table.n_rows - len(left), n_rows - len(right)),
            ),
        )

    def _numbers_table(
        self,
        values: Any,
        names: tuple[str, ...] | None,
        wanted: Inputs | None,
        asked: dict[str, NDArray[Any]],
        left_out: tuple[str, ...] = (),
    ) -> Table:
        """Return a table of an array of numbers, as a model takes it."""
        source, width = self.path.name, values.shape[1]
        if width == 0:
            raise FileError(f"{source} has no columns")
        if wanted is not None:
            if wanted.encodes and wanted.array_names is None:
                raise FileError(
                    f"{source} has no named columns, but the model was fitted to a table",
                    remedy=f"Give a table with the column {(wanted.names or ('',))[0]!r} and the others",
                )
            if width != wanted.n_features:
                raise InputError(f"{source} has {width} columns, but the model was fitted to {wanted.n_features}")
            names = wanted.array_names
        features = names or tuple(f"x{j}" for j in range(width))
        is_sparse = sparse.issparse(values)
        stored = values.data[:, None] if is_sparse else values
        fills_in = not is_sparse and (wanted is None or wanted.fills_in)
        check_values(stored, ["X"] if is_sparse else features, source, fills_in=fills_in)
        if wanted is not None and names is not None:
            frame = require("pandas", extra="cli", purpose="this model").DataFrame
            values = frame(values, columns=list(names))
        return self._table(values, features, asked, left_out)

    def _table(
        self, rows: Any, features: tuple[str, ...], asked: dict[str, NDArray[Any]], left_out: tuple[str, ...] = ()
    ) -> Table:
        kind = kind_of(self.path)
        # A view of rows from a file that is only read is written as CSV.
        written = "csv" if kind in ("jsonl", "xlsx", PICTURES) else kind
        return Table(self.path.name, written, rows, features, asked, self.ids, left_out)


def kind_of(path: Path, *, written: bool = False) -> str:
    """Return the kind of a data file by its ending; InputError if it is unknown, or not one that is `written`."""
    kind = kind_of_frame(path) or ARRAYS.get(path.suffix.lower())
    if kind is None and path.is_dir() and not written:
        return PICTURES
    if kind is None or (written and path.suffix.lower() in (*READ_ONLY, _frames.COMPRESSED)):
        endings = [ending for ending in (*_frames.KINDS, *ARRAYS) if not (written and ending in READ_ONLY)]
        packed = "" if written else "; text may be compressed, as in .csv.gz"
        raise FileError(
            f"{path.name or path} must end in {', '.join(endings[:-1])} or {endings[-1]}{packed}",
            value=path,
        )
    return kind


def column_names(path: Path) -> list[str]:
    """Return the columns of a table or a folder of pictures, or the arrays of an NPZ archive; none of other files."""
    kind = kind_of(path)
    if kind == PICTURES:
        return [FILE]
    if kind in NAMED:
        return _frames.names_of(path)
    return list(load_arrays(path)) if kind == "npz" else []


def read_columns(path: str | Path, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Read some columns of a file and nothing else: ids, labels, scores; text stays text."""
    source = Path(path)
    known = column_names(source)
    for name in names:
        check_column(name, known, source.name)
    if kind_of(source) == "npz":
        arrays = load_arrays(source)
        return {name: arrays[name] for name in names}
    frame = next(frames(source, text=names, columns=names))
    return {name: plain_column(frame[name]) for name in names}


def _joined(
    known: NDArray[Any], wanted: NDArray[Any], ids: str, data: str, rows: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row numbers of the features and of the table, row for row, in the order of the table."""
    left_names, right_names = ([str(name).strip() for name in names.tolist()] for names in (known, wanted))
    for source, names in ((rows, right_names), (data, left_names)):
        ((twice, count),) = Counter(names).most_common(1)
        if count > 1:
            raise InputError(
                f"the ids {ids!r} of {source} must differ, but {twice!r} is there more than once", argument="ids"
            )
    places = {name: row for row, name in enumerate(left_names)}
    pairs = [(places[name], row) for row, name in enumerate(right_names) if name in places]
    if len(pairs) < 2:
        raise InputError(
            f"{data} and {rows} have {'only one id' if pairs else 'no id'} in common: {ids!r} is {left_names[0]!r} in "
            f"the first row of {data} and {right_names[0]!r} in that of {rows}",
            argument="ids",
            value=ids,
        )
    left, right = np.array(pairs, dtype=np.int64).T
    return left, right
