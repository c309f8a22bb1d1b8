"""Data files read whole: CSV, TSV, Parquet, NPY and NPZ, as rows of numbers with ids and labels beside them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.io._csv import UNNAMED, csv_reader, numeric_column, sniff, word_column
from pairlens.io._numpy_files import (
    as_floats,
    check_length,
    listed_names,
    load_array,
    load_arrays,
    numeric_matrix,
    table_among,
)
from pairlens.io._parquet import list_column, list_matrix, open_parquet, read_parquet
from pairlens.tables.cells import MISSING_WORDS, are_plain_numbers, distinct_names, is_text
from pairlens.tables.columns import LARGEST
from pairlens.tables.roles import Role, role_of

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
    ".npz": "npz",
}
MOST_WORDS = 100
"""Different words in a column beyond which it is no category, but a name or a text."""
SHOWN = 5


@dataclass(frozen=True)
class Table:
    """A table of rows.

    Attributes
    ----------
    source : str
        Name of the file.
    kind : {"csv", "tsv", "parquet", "npy", "npz"}
    rows : DataFrame, or array or CSR matrix of shape (n_rows, n_numbers)
        What a model is fitted to; a frame if the file has named columns.
    is_raw : bool
        Whether the columns are as they stand in the file, for TableEncoder to read.
    numbers : tuple of str
        The numeric columns that are used; all columns of a raw table.
    words : tuple of str
        The text columns that become one-hot columns.
    left_out : tuple of str
        Columns that are not used.
    asked : dict of arrays
        The columns asked for by name, such as ids and labels; text stays text, and missing labels are None.
    missing : bool
        Whether numbers are missing.
    id_column : str or None
        Which of the columns asked for names the rows, where the file says so itself.
    own_scale : bool
        Whether the columns are comparable as they are, such as principal components.
    """

    source: str
    kind: str
    rows: Any
    is_raw: bool
    numbers: tuple[str, ...]
    words: tuple[str, ...]
    left_out: tuple[str, ...]
    asked: dict[str, NDArray[Any]]
    missing: bool
    id_column: str | None = None
    own_scale: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    @property
    def is_frame(self) -> bool:
        """Whether the rows have named columns."""
        return hasattr(self.rows, "columns")


def suspected_ids(table: Table) -> list[str]:
    """Features that look like names of the rows: whole numbers, all different, in a column called id or the like."""
    found = []
    for j, name in enumerate(table.numbers):
        if re.fullmatch(r"(?i)(.*[_\s-])?(id|ids|index|key|uuid|row)", name) is None:
            continue
        values = table.rows[name].to_numpy() if table.is_frame else table.rows[:, j]
        if len(np.unique(values)) == len(values) and (values == np.floor(values)).all():
            found.append(name)
    return found


def kind_of(path: Path) -> str:
    """The kind of a data file by its ending."""
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"{path.name or path} must end in {', '.join(list(FORMATS)[:-1])} or {list(FORMATS)[-1]}")
    return kind


def read_table(
    path: str | Path,
    *,
    ids: str | None = None,
    labels: Sequence[str] = (),
    drop: Iterable[str] = (),
    one_hot: bool = False,
    impute: bool = False,
    raw: bool = False,
    text: Iterable[str] = (),
    strict: bool | None = None,
    least_rows: int = 2,
) -> Table:
    """Read a data file.

    Parameters
    ----------
    path : str or Path
        The ending of the name says which kind it is.
    ids : str, optional
        Column that names the rows.
    labels : sequence of str
        Other columns to hand over beside the rows; they are no features.
    drop : iterable of str
        Columns to leave out.
    one_hot : bool, default=False
        Whether text columns become features, one for each word; else they are left out.
    impute : bool, default=False
        Whether missing numbers are allowed, because the model will fill them in.
    raw : bool, default=False
        Whether to leave the columns as they are, of whatever kind, for :class:`~pairlens.TableEncoder` to read, unless
        all hold numbers; columns without a name, or with the name of another, get one. Arrays are not affected.
    text : iterable of str
        Columns of a raw CSV file whose cells stay text, as categories written in digits must.
    strict : bool, optional
        Whether columns must have different names; otherwise the second ``a`` is ``a.2``. By default unless `raw`.
    least_rows : int, default=2
        Fewest rows that are enough.
    """
    source = Path(path)
    kind = kind_of(source)
    asked = tuple(dict.fromkeys([*([] if ids is None else [ids]), *labels]))
    if kind == "npy":
        table = _read_npy(source, asked)
    elif kind == "npz":
        table = _read_npz(source, asked, tuple(drop))
    elif kind == "parquet" and (listed := list_column(source, tuple(drop))) is not None:
        table = _read_lists(source, listed, asked, tuple(drop))
    else:
        as_text = (*asked, *text)
        strict = not raw if strict is None else strict
        frame = read_frame(source, as_text, strict=strict)
        if not strict:
            frame = frame.set_axis(distinct_names(list(frame.columns)), axis=1)
        if raw and _needs_encoding(frame, (*asked, *drop), text):
            table = _raw_frame(frame, source, kind, asked, tuple(drop))
        else:
            table = _from_frame(frame, source, kind, asked, tuple(drop), one_hot)
    if table.n_rows < least_rows:
        has = {0: "has no rows", 1: "has only one row"}.get(table.n_rows, f"has only {table.n_rows} rows")
        raise ValueError(f"{source.name} {has}; at least {least_rows} are needed")
    if table.is_raw:
        return table
    return replace(table, missing=_check_table(table, impute))


def read_frame(path: Path, text: tuple[str, ...], *, columns: Sequence[str] | None = None, strict: bool = True) -> Any:
    """A CSV, TSV or Parquet file as a data frame; parameters are those of :func:`csv_reader`."""
    if kind_of(path) == "parquet":
        return read_parquet(path, columns).to_pandas()
    with csv_reader(path, text=text, columns=None if columns is None else tuple(columns), strict=strict) as frames:
        return next(frames)


def _read_lists(path: Path, listed: str, asked: tuple[str, ...], drop: tuple[str, ...]) -> Table:
    """A Parquet file of embeddings: its features are the numbers of the lists, whatever else is there."""
    content = read_parquet(path)
    # pandas stores an index that has no name as such a column.
    others = [name for name in content.column_names if name != listed and not name.startswith("__index_level_")]
    for name in (*asked, *drop):
        check_column(name, others, path.name)
    frame = content.select(list(asked)).to_pandas()
    columns = {name: plain_column(frame[name]) for name in asked}
    left_out = tuple(name for name in others if name not in asked and name not in drop)
    return _from_array(list_matrix(content.column(listed), path.name), path, "parquet", left_out, columns, None)


def _needs_encoding(frame: Any, others: tuple[str, ...], chosen: Iterable[str]) -> bool:
    """Whether the features are anything but numbers, or some of them name the rows."""
    features = frame[[name for name in frame.columns if name not in others]]
    if set(chosen) or not are_plain_numbers(features):
        return True
    return any(role_of(features[name], name)[0] is Role.identifier for name in features.columns)


def _raw_frame(frame: Any, path: Path, kind: str, asked: tuple[str, ...], drop: tuple[str, ...]) -> Table:
    """The columns as they are."""
    names = list(frame.columns)
    for name in (*asked, *drop):
        check_column(name, names, path.name)
    features = tuple(name for name in names if name not in asked and name not in drop)
    if not features:
        raise ValueError(f"{path.name} has no columns besides those asked for")
    return Table(
        source=path.name,
        kind=kind,
        rows=frame[list(features)],
        is_raw=True,
        numbers=features,
        words=(),
        left_out=(),
        asked={name: plain_column(frame[name]) for name in asked},
        missing=False,
    )


def _from_frame(
    frame: Any, path: Path, kind: str, asked: tuple[str, ...], drop: tuple[str, ...], one_hot: bool
) -> Table:
    pandas = require("pandas", extra="cli", purpose="reading tables")
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path.name} has {names.count(twice)} columns named {twice!r}: names must differ")
    frame.columns = names
    for name in (*asked, *drop):
        check_column(name, names, path.name)
    numbers: dict[str, NDArray[Any]] = {}
    words: dict[str, Any] = {}
    left_out: list[str] = []
    for name in names:
        if name in asked or name in drop:
            continue
        column = frame[name]
        values = None if name == UNNAMED else numeric_column(column, name, path.name)
        if values is not None and not np.isnan(values).all():
            numbers[name] = values
        elif values is None and one_hot and name != UNNAMED and is_text(column):
            words[name] = word_column(column)
            _check_words(words[name], name, path.name)
        else:
            left_out.append(name)
    if not numbers and not words and len(frame):
        hint = "" if one_hot or not left_out else "; --one-hot would make features of text"
        raise ValueError(f"{path.name} has no numeric columns besides those asked for{hint}")
    return Table(
        source=path.name,
        kind=kind,
        rows=pandas.DataFrame({**numbers, **words}),
        is_raw=False,
        numbers=tuple(numbers),
        words=tuple(words),
        left_out=tuple(left_out),
        asked={name: plain_column(frame[name]) for name in asked},
        missing=False,
    )


def plain_column(column: Any) -> NDArray[Any]:
    """A column as it stands; text as text, with None where it is missing."""
    values = column.to_numpy()
    if values.dtype.kind in "biufmM":
        return values
    return np.array([None if missing else value for value, missing in zip(values, column.isna())], dtype=object)


def _check_words(column: Any, name: str, source: str) -> None:
    count = int(column.nunique())
    if count > MOST_WORDS:
        raise ValueError(
            f"the column {name!r} of {source} has {count} different words, too many for --one-hot (at most "
            f"{MOST_WORDS}): leave it out with --drop {name}"
        )


def column_names(path: Path) -> list[str]:
    """The columns of a CSV, TSV or Parquet file, or the arrays of an NPZ archive."""
    kind = kind_of(path)
    if kind in ("csv", "tsv"):
        return list(sniff(path, strict=False).names)
    if kind == "parquet":
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)
    return [] if kind == "npy" else list(load_arrays(path))


def read_columns(path: str | Path, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Some columns of a file and nothing else: ids, labels, scores; text stays text."""
    source = Path(path)
    for name in names:
        check_column(name, column_names(source), source.name)
    if kind_of(source) == "npz":
        arrays = load_arrays(source)
        return {name: arrays[name] for name in names}
    frame = read_frame(source, tuple(names), columns=list(names))
    return {name: plain_column(frame[name]) for name in names}


def check_column(name: str, names: Sequence[str], source: str) -> None:
    """ValueError with a suggestion if a file has no such column."""
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; it has {listed_names(names)}"
    raise ValueError(f"{source} has no column {name!r}{hint}")


def _read_npy(path: Path, asked: tuple[str, ...]) -> Table:
    for name in asked:
        raise ValueError(f"{path.name} is an array without named columns, so it has no column {name!r}")
    values = as_floats(load_array(path))
    return _from_array(values, path, "npy", (), {}, None)


def _read_npz(path: Path, asked: tuple[str, ...], drop: tuple[str, ...]) -> Table:
    arrays = load_arrays(path)
    chosen = table_among({name: (values.ndim, values.dtype) for name, values in arrays.items()}, path.name)
    values = as_floats(numeric_matrix(arrays.pop(chosen), f"{chosen} of {path.name}"))
    names = arrays.pop("feature_names", None)
    for name in (*asked, *drop):
        check_column(name, list(arrays), path.name)
    columns = {name: check_length(arrays[name], name, len(values), path.name) for name in asked}
    left_out = tuple(name for name in arrays if name not in asked and name not in drop)
    return _from_array(values, path, "npz", left_out, columns, names)


def _from_array(
    values: NDArray[Any],
    path: Path,
    kind: str,
    left_out: tuple[str, ...],
    columns: dict[str, NDArray[Any]],
    names: NDArray[Any] | None,
) -> Table:
    if values.shape[1] == 0:
        raise ValueError(f"{path.name} has no columns")
    given = names is not None and names.shape == (values.shape[1],)
    numbers = tuple(map(str, names)) if given and names is not None else tuple(f"x{j}" for j in range(values.shape[1]))
    return Table(path.name, kind, values, False, numbers, (), left_out, columns, False)


def _check_table(table: Table, impute: bool) -> bool:
    """Refuse what no method can take; says whether numbers are missing."""
    if table.n_rows == 0:
        return False
    values = table.rows[list(table.numbers)].to_numpy() if table.is_frame else table.rows
    return check_values(values, table.numbers, table.source, impute)


def check_values(values: NDArray[Any], names: Sequence[str], source: str, impute: bool) -> bool:
    """Refuse infinite and huge numbers, and missing ones that nobody fills in; says whether some are missing."""
    infinite = np.isinf(values).sum(axis=0)
    if infinite.any():
        raise ValueError(f"{source} has infinite values: {_counts(infinite, names)}. Mend them, or --drop the columns")
    missing = np.isnan(values).sum(axis=0)
    if missing.any() and not impute:
        raise ValueError(
            f"{source} has missing values: {_counts(missing, names)}. Fill them in, --drop the columns, or fit "
            "with --impute median"
        )
    with np.errstate(invalid="ignore"):
        largest = np.fmax.reduce(np.abs(values), axis=0, initial=0)
    if (largest > LARGEST).any():
        column = int(largest.argmax())
        raise ValueError(
            f"the column {names[column]!r} of {source} holds {largest[column]:.3g}, whose square leaves the range of "
            "64-bit numbers: rescale it, or --drop it"
        )
    return bool(missing.any())


def _counts(counts: NDArray[np.int64], names: Sequence[str]) -> str:
    found = [f"{count} in {name!r}" for count, name in zip(counts.tolist(), names) if count]
    return ", ".join(found[:SHOWN]) + (f" and {len(found) - SHOWN} more columns" if len(found) > SHOWN else "")


def label_values(column: NDArray[Any], unknown: Iterable[str] = ()) -> NDArray[Any]:
    """Labels, None where unknown: missing cells, words that mean so, and -1 where all labels are whole numbers."""
    if column.dtype.kind != "O" and column.dtype.kind not in "US":
        return column
    absent = {*MISSING_WORDS, *unknown}
    words = [None if word is None or str(word).strip() in absent else str(word).strip() for word in column.tolist()]
    whole = all(word is None or word.lstrip("-").isdecimal() for word in words)
    return np.array([None if whole and word == "-1" else word for word in words], dtype=object)
