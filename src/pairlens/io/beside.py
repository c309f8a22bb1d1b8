"""Features in one file, the rows that people know in another: embeddings and the table they were made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.io.pictures import PictureFolder, are_picture_paths
from pairlens.io.tables import Table, check_column, column_names, kind_of, read_columns, read_table


@dataclass(frozen=True)
class RowsBeside:
    """What people know of the rows of a table of features.

    Attributes
    ----------
    columns : dict of arrays
        Columns by name, in the order of the features; text stays text.
    folder : Path
        Folder of the file.
    n_unmatched : tuple of int
        Rows of the features, and of the file, that have no partner and are left out.
    """

    columns: dict[str, NDArray[Any]]
    folder: Path
    n_unmatched: tuple[int, int] = (0, 0)

    def pictures(self) -> tuple[str, PictureFolder] | None:
        """The column that names files of pictures, and these; None if there is none."""
        for name, column in self.columns.items():
            if are_picture_paths(column.tolist()):
                return name, PictureFolder(self.folder, ["" if cell is None else str(cell) for cell in column])
        return None


def read_beside(
    data: Path, rows: Path, *, ids: str | None = None, labels: Sequence[str] = ()
) -> tuple[Table, RowsBeside]:
    """Read features and the rows that belong to them.

    Where the features have a column or an array called `ids` too, rows are joined by it; otherwise both files must have
    as many rows, in the same order.

    Parameters
    ----------
    data : Path
        The features: NPY, NPZ, Parquet (numbers, or one column of lists), CSV or TSV.
    rows : Path
        What people know: CSV, TSV or Parquet.
    ids : str, optional
        Column of `rows` that names them.
    labels : sequence of str
        Columns of `rows` to hand over beside the features.

    Returns
    -------
    table : Table
        The features, with `ids` and `labels` beside them; of the kind of `rows`.
    beside : RowsBeside
    """
    if kind_of(rows) not in ("csv", "tsv", "parquet"):
        raise ValueError(f"{rows.name} must be a table with named columns: a CSV, TSV or Parquet file")
    names = column_names(rows)
    for name in [*([] if ids is None else [ids]), *labels]:
        check_column(name, names, rows.name)
    cells = read_columns(rows, names)
    joins = ids is not None and ids in column_names(data)
    table = read_table(data, ids=ids if joins else None)
    n_rows = len(next(iter(cells.values())))
    if joins and ids is not None:
        left, right = _joined(table.asked[ids], cells[ids], ids, data.name, rows.name)
    elif table.n_rows != n_rows:
        hint = "" if ids is None else f", or {data.name} a column {ids!r} to join them by"
        raise ValueError(
            f"{data.name} has {table.n_rows} rows and {rows.name} {n_rows}: both need the same rows in the same "
            f"order{hint}"
        )
    else:
        left = right = np.arange(n_rows)
    columns = {name: column[right] for name, column in cells.items()}
    features = table.rows.iloc[left].reset_index(drop=True) if table.is_frame else table.rows[left]
    asked = {name: columns[name] for name in [*([] if ids is None else [ids]), *labels]}
    unmatched = (table.n_rows - len(left), n_rows - len(right))
    return replace(table, rows=features, asked=asked, kind=kind_of(rows)), RowsBeside(columns, rows.parent, unmatched)


def _joined(
    known: NDArray[Any], wanted: NDArray[Any], ids: str, data: str, rows: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers of the features and of the table, row for row, in the order of the table."""
    places: dict[str, int] = {}
    for source, names in ((rows, wanted), (data, known)):
        places = {}
        for row, name in enumerate(_as_text(names)):
            if name in places:
                raise ValueError(f"the ids {ids!r} of {source} must differ, but {name!r} is there more than once")
            places[name] = row
    pairs = [(places[name], row) for row, name in enumerate(_as_text(wanted)) if name in places]
    if len(pairs) < 2:
        raise ValueError(
            f"{data} and {rows} have {'only one id' if pairs else 'no id'} in common: {ids!r} is "
            f"{_as_text(known)[0]!r} in the first row of {data} and {_as_text(wanted)[0]!r} in that of {rows}"
        )
    left, right = np.array(pairs, dtype=np.int64).T
    return left, right


def _as_text(ids: NDArray[Any]) -> list[str]:
    return [str(name).strip() for name in ids.tolist()]
