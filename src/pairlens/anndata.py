"""Make views of annotated data, after the conventions of scanpy: rows from `obsm`, answers from `obs`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from pairlens._text import listed_names
from pairlens.exceptions import ArgumentError, InputError
from pairlens.supervision import Constraints

__all__ = ["embed", "representation"]


def embed(
    adata: Any,
    constraints: Constraints | None = None,
    *,
    labels: str | None = None,
    unknown: str | Iterable[str] = "Unknown",
    rep: str | None = "X_pca",
    method: BaseEstimator | None = None,
    n_components: int = 2,
    key_added: str = "X_pairlens",
    random_state: Any = 0,
    copy: bool = False,
) -> Any:
    """Learn a view of cells from pairs and labels, and store it in the AnnData object.

    Parameters
    ----------
    adata : AnnData
        Annotated data, in memory or backed by a file.
    constraints : Constraints, optional
        Pairs of cells, by their position, that belong together or do not.
    labels : str, optional
        Column of `obs` with the labels of some cells. All pairs of labelled cells become constraints.
    unknown : str or iterable of str, default="Unknown"
        Labels that mean unknown. Missing labels always do.
    rep : str or None, default="X_pca"
        Key of `obsm` with the representation to learn from. "X" or None takes `X` itself, which may be sparse.
    method : estimator, optional
        A method of pairlens, not fitted. By default that of :func:`pairlens.view_pipeline`: PairMap in two dimensions,
        else PairLens. The default keeps the scale of the columns.
    n_components : int, default=2
        Number of columns of the view, where `method` is not given.
    key_added : str, default="X_pairlens"
        Key of `obsm` for the view. What was done is stored in `uns` under the same name without ``X_``: "params", and
        "auc" with "auc_error", the AUC of held-out pairs and its standard error, where the method finds them.
    random_state : int, RandomState or None, default=0
        For the default method.
    copy : bool, default=False
        Whether to return a changed copy instead of changing `adata`.

    Returns
    -------
    adata : AnnData or None
        The copy; None if `adata` itself was changed.

    Examples
    --------
    >>> import pairlens.anndata
    >>> pairlens.anndata.embed(adata, labels="cell_type", unknown="Unknown")  # doctest: +SKIP
    >>> scanpy.pl.embedding(adata, basis="pairlens", color="cell_type")  # doctest: +SKIP
    """
    from pairlens.pipeline import view_pipeline

    if constraints is None and labels is None:
        raise InputError(
            "embed needs something to learn from",
            argument="constraints",
            remedy="Give constraints=, or labels= with a column of obs",
        )
    if copy:
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    rows = representation(adata, rep)
    y = None if labels is None else _known_labels(adata, labels, unknown)
    # Genes and their components have one scale, which says how much each counts.
    default = view_pipeline(rows, n_components=n_components, scale="none", random_state=random_state)[-1]
    chosen = default if method is None else method
    chosen.fit(rows, y, constraints=constraints)
    adata.obsm[key_added] = np.asarray(chosen.transform(rows))
    adata.uns[key_added.removeprefix("X_")] = _record(chosen, rep, labels, constraints)
    return adata if copy else None


def representation(adata: Any, rep: str | None) -> NDArray[Any] | sparse.csr_matrix:
    """Return the rows to learn from: an array of `obsm`, or `X` as an array or CSR matrix, read if it is backed.

    Parameters
    ----------
    adata : AnnData
    rep : str or None
        Key of `obsm`; "X" or None for `X`.
    """
    if not hasattr(adata, "obsm"):
        raise TypeError(f"adata must be an AnnData object, got {type(adata).__name__}.")
    if rep is None or rep == "X":
        if adata.X is None:
            raise ArgumentError("rep", rep, f"must be one of obsm ({listed_names(adata.obsm)}), because adata has no X")
        rows = adata.X[:] if adata.isbacked else adata.X
        return rows.tocsr() if sparse.issparse(rows) else np.asarray(rows)
    if rep not in adata.obsm:
        hint = "; scanpy.pp.pca(adata) makes it" if rep == "X_pca" else ""
        remedy = f"Choose one of {listed_names(['X', *adata.obsm])}"
        raise InputError(f"obsm has no {rep!r}{hint}", argument="rep", value=rep, remedy=remedy)
    rows = adata.obsm[rep]
    if sparse.issparse(rows):
        return rows.tocsr()
    return np.asarray(rows.to_numpy() if hasattr(rows, "to_numpy") else rows)


def _known_labels(adata: Any, column: str, unknown: str | Iterable[str] = ()) -> NDArray[np.object_]:
    """Return a column of `obs` as text, None where it is missing or one of the words for unknown."""
    if column not in adata.obs:
        raise ArgumentError("labels", column, f"must be a column of obs, which has {listed_names(adata.obs)}")
    words = {unknown} if isinstance(unknown, str) else set(unknown)
    cells = adata.obs[column]
    absent = cells.isna().to_numpy(dtype=bool)
    labels = np.empty(len(cells), dtype=object)
    labels[:] = [
        None if missing or str(cell) in words else str(cell) for cell, missing in zip(cells.tolist(), absent.tolist())
    ]
    if all(label is None for label in labels):
        raise ArgumentError("labels", column, "must be a column of obs in which some cells have a known label")
    return labels


def _record(method: Any, rep: str | None, labels: str | None, constraints: Constraints | None) -> dict[str, Any]:
    """Return what a file of annotated data can store about the fit: numbers and text."""
    params: dict[str, Any] = {"method": type(method).__name__, "rep": rep or "X"}
    if labels is not None:
        params["labels"] = labels
    if constraints is not None:
        params |= {"n_must_link": int(constraints.n_must_link), "n_cannot_link": int(constraints.n_cannot_link)}
    for name, value in method.get_params(deep=False).items():
        if isinstance(value, (bool, int, float, str)):
            params[name] = value
    record: dict[str, Any] = {"params": params}
    for name in ("auc", "auc_error"):
        value = getattr(method, f"{name}_", None)
        if value is not None and np.isfinite(value):
            record[name] = float(value)
    return record
