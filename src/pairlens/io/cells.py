"""Annotated data of single cells in h5ad files: rows from `obsm` or `X`, names and labels from `obs`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pairlens._optional import require
from pairlens.anndata import representation
from pairlens.io._damage import reading
from pairlens.io._numpy_files import as_floats
from pairlens.io.tables import Table, check_column, check_values, plain_column

CELL_NAMES = "cell"
"""What the names of the cells are called where the file does not say."""


def are_cells(path: Path) -> bool:
    """Whether a file holds annotated data, by its ending."""
    return path.suffix.lower() == ".h5ad"


def check_rep(path: Path, rep: str | None) -> None:
    """ValueError if a representation is chosen of a file that has none."""
    if rep is not None and not are_cells(path):
        raise ValueError(f"--rep chooses among the representations of an h5ad file, which {path.name} is not")


def read_cells(path: Path, *, rep: str = "X_pca", ids: str | None = None, labels: Sequence[str] = ()) -> Table:
    """Read the cells of an h5ad file.

    Parameters
    ----------
    path : Path
    rep : str, default="X_pca"
        Key of `obsm` with the rows; "X" takes X itself, which may be sparse.
    ids : str, optional
        Column of `obs` that names the cells; their names by default.
    labels : sequence of str
        Other columns of `obs` to hand over.
    """
    anndata = require("anndata", extra="anndata", purpose="reading h5ad files")
    with reading(path, "an h5ad file of annotated data"):
        adata = anndata.read_h5ad(path, backed="r")
        try:
            rows: Any = _stored_rows(adata, rep, path.name)
            for name in [*([] if ids is None else [ids]), *labels]:
                check_column(name, [str(column) for column in adata.obs.columns], f"obs of {path.name}")
            id_column = ids or str(adata.obs_names.name or CELL_NAMES)
            asked = {name: plain_column(adata.obs[name]) for name in labels}
            asked[id_column] = (
                np.asarray(adata.obs_names, dtype=object) if ids is None else plain_column(adata.obs[ids])
            )
            genes = rep == "X"
            numbers = tuple(str(name) for name in adata.var_names) if genes else _numbered(rep, rows.shape[1])
        finally:
            adata.file.close()
    rows = rows.astype(np.float64) if sparse.issparse(rows) else as_floats(rows)
    if rows.shape[0] < 2:
        raise ValueError(f"{path.name} has {rows.shape[0]} cells; at least 2 are needed")
    stored = rows.data[:, None] if sparse.issparse(rows) else rows
    check_values(stored, [rep] if sparse.issparse(rows) else numbers, path.name, impute=False)
    return Table(path.name, "csv", rows, False, numbers, (), (), asked, False, id_column, own_scale=True)


def _stored_rows(adata: Any, rep: str, source: str) -> Any:
    """The rows of an open file; the places of sparse entries are checked, because compiled code trusts them."""
    try:
        rows: Any = representation(adata, rep)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    if sparse.issparse(rows):
        rows.check_format(full_check=True)
    return rows


def _numbered(rep: str, count: int) -> tuple[str, ...]:
    return tuple(f"{rep.removeprefix('X_')}{j + 1}" for j in range(count))
