"""The studio in a notebook."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlens._optional import require
from pairlens._text import is_number
from pairlens.exceptions import InputError

if TYPE_CHECKING:
    from pairlens.studio.rows import Rows
    from pairlens.studio.widget import Widget


def widget(
    X: Any,
    *,
    ids: str | Sequence[Any] | None = None,
    drop: Sequence[str] = (),
    cells: Mapping[str, Sequence[Any]] | None = None,
    texts: Mapping[str, Sequence[Any]] | None = None,
    images: Sequence[str] | None = None,
    files: str | PathLike[str] = ".",
    image_shape: tuple[int, int] | None = None,
    question: str = "auto",
    store: str | PathLike[str] | None = None,
    height: int = 720,
) -> Widget:
    """Show the question, the map and the groups of a table in the cell of a notebook.

    The kernel is the back end: there is no server and no port. It works wherever anywidget does, as in Jupyter,
    VS Code, Colab and marimo.

    Parameters
    ----------
    X : data frame or array-like of shape (n_samples, n_features)
        What is learned from. A data frame is read as `pairlens studio` reads a file: it may hold words, dates, texts
        and paths of pictures, and cells may be missing.
    ids : str or sequence, optional
        What the rows are called: a column of the data frame, or names. By default the index of the data frame, if it
        is not numbered.
    drop : sequence of str
        Columns of the data frame that are neither learned from nor shown.
    cells, texts : mapping of sequences, optional
        What is shown of each row, by the name of the column: short cells, and long texts.
    images : sequence of str, optional
        Paths of pictures, relative to `files`.
    files : path, default="."
        Folder that the pictures lie in.
    image_shape : tuple of int, optional
        Height and width, if the numbers of a row are a picture.
    question : {"auto", "same", "place", "prefer"}, default="auto"
        What is asked; "auto" begins with two rows, and asks for the group of a row from three groups on.
    store : path, optional
        File that keeps the answers; by default one for these rows in the current folder, that of the notebook.
    height : int, default=720
        Height in pixels; a narrow cell takes what it needs.

    Returns
    -------
    Widget
        With ``constraints()`` or ``preferences()``, what was answered so far; ``groups()``, a data frame with the
        group of every row; ``selection()``, the rows that were drawn round last; ``model()``, the view of all answers,
        fitted now; ``store``, the file of the answers; and ``close()``.

    Examples
    --------
    >>> widget = pairlens.widget(frame, ids="name", drop=["species"])  # doctest: +SKIP
    >>> widget.constraints()  # doctest: +SKIP
    """
    require("anywidget", extra="notebook", purpose="the widget")
    require("starlette", extra="notebook", purpose="the widget")
    from pairlens.studio.widget import Desk, Widget

    X = X.collect() if hasattr(X, "collect") else X  # a lazy frame of polars
    if hasattr(X, "columns"):
        if cells or texts or image_shape is not None:
            raise InputError(
                "cells, texts and image_shape are for arrays: a data frame shows its own columns", argument="X"
            )
        rows = _from_frame(X, ids, drop, images, Path(files))
    else:
        from pairlens.studio.rows import rows_from_array

        rows = rows_from_array(
            X,
            ids=ids,
            cells=dict(cells or {}),
            texts=dict(texts or {}),
            images=images,
            files=Path(files),
            image_shape=image_shape,
        )
    path = Path(f"pairlens-{rows.fingerprint['content'][:8]}.answers.db" if store is None else store)
    desk = Desk.at(rows, path, question)
    left_out = desk.session.history.told()
    if left_out:
        warnings.warn(left_out, stacklevel=2)
    return Widget(desk, X if hasattr(X, "columns") else rows.frame(), height)


def _from_frame(
    frame: Any, ids: str | Sequence[Any] | None, drop: Sequence[str], images: Sequence[str] | None, files: Path
) -> Rows:
    """Read a data frame the way that files go."""
    from pairlens.studio.rows import rows_from_file
    from pairlens.tables.cells import as_frame, distinct_names

    frame = as_frame(frame)
    frame = frame.set_axis(distinct_names(list(frame.columns)), axis=1)
    column, numbered = ids if isinstance(ids, str) else None, frame.index.dtype.kind in "iu"
    added: dict[str, Any] = {"picture": images} if images is not None else {}
    # A file whose names are all numbers has no header.
    if column is None and (ids is not None or not numbered or all(map(is_number, frame.columns))):
        column = distinct_names([*frame.columns, str(frame.index.name or "id")])[-1]
        added[column] = ids if ids is not None else range(len(frame)) if numbered else frame.index
    for name, values in added.items():
        if len(values) != len(frame):
            argument = "images" if name == "picture" else "ids"
            raise InputError(f"{argument} must have one entry for each of {len(frame)} rows", argument=argument)
    with tempfile.TemporaryDirectory(prefix="pairlens-") as folder:
        path = Path(folder, "rows.csv")
        frame.assign(**{name: list(values) for name, values in added.items()}).to_csv(
            path, index=False, errors="replace"
        )
        image = "picture" if images is not None else None
        try:
            rows = rows_from_file(path, ids=column, drop=list(map(str, drop)), image=image, files=files)
        except InputError as error:
            # Nobody knows of this file.
            error.reason = error.reason.replace(path.name, "the frame")
            raise
    rows.source = "the rows"
    return rows
