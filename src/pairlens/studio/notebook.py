"""Show the studio in a notebook."""

from __future__ import annotations

import html
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pairlens.studio.rows import Rows
    from pairlens.studio.run import Studio
    from pairlens.supervision import Constraints, Preferences

__all__ = ["Shown", "show"]

USUAL = "http://localhost:8888"
"""Where Jupyter is unless it is told otherwise."""


class Shown:
    """Hold a studio that runs in the background of a notebook; the value of the cell that shows it.

    Attributes
    ----------
    store : Path
        File that keeps the answers.
    notebook : str
        Address of the notebook's page, which alone may frame the studio.
    """

    def __init__(self, studio: Studio, height: int, store: Path, notebook: str) -> None:
        self._studio = studio
        self._height = height
        self.store = store
        self.notebook = notebook

    @property
    def url(self) -> str:
        """Return a link that opens the studio."""
        return next(iter(self._studio.urls.values()))

    def constraints(self) -> Constraints:
        """Return what the answers so far say, with all that follows; wait until the rows are read."""
        return self._told("constraints")

    def preferences(self) -> Preferences:
        """Return the same for a studio with ``question="prefer"``."""
        return self._told("preferences")

    def _told(self, what: str) -> Any:
        self._studio.wait()
        asker = self._studio.call(lambda session: session.asker)
        if not hasattr(asker, what):
            other = "preferences" if what == "constraints" else "constraints"
            raise ValueError(f"the answers of this studio are {other}: call {other}()")
        return self._studio.call(lambda _: getattr(asker, what)())

    def stop(self) -> None:
        """End the studio; its answers stay in the store."""
        self._studio.stop()

    def _repr_html_(self) -> str:
        address = html.escape(self.url, quote=True)
        style = "border:0;border-radius:12px"
        frame = f'<iframe src="{address}" width="100%" height="{self._height}" style="{style}"></iframe>'
        return (
            f"{frame}<p>Answers are kept in {html.escape(str(self.store))}. If the frame stays empty, this notebook is "
            f"not at {html.escape(self.notebook)}: call show(..., notebook=) with the address of this page.</p>"
        )


def show(
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
    notebook: str | None = None,
    height: int = 800,
) -> Shown:
    """Start a studio on the rows of a data frame or an array, and show it in the cell of a notebook.

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
    notebook : str, optional
        Address of the notebook's page, the only one that may frame the studio. By default that of the Jupyter server
        that runs this notebook, or http://localhost:8888 if there is none.
    height : int, default=800
        Height of the frame in pixels.

    Returns
    -------
    Shown
        With ``url``, ``constraints()`` or ``preferences()``, and ``stop()``.
    """
    from pairlens.studio.run import Studio, open_store
    from pairlens.studio.security import is_loopback

    if hasattr(X, "columns"):
        if cells or texts or image_shape is not None:
            raise ValueError("cells, texts and image_shape are for arrays: a data frame shows its own columns")
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
    address = notebook or _running_notebook() or USUAL
    # A browser takes other names of this machine for other sites, and keeps the cookie from their frames.
    host = urlsplit(address).hostname or "localhost"
    studio = Studio.prepare(
        rows,
        open_store(path, rows),
        question=question,
        host=host if is_loopback(host) else "localhost",
        ancestors=address,
    )
    if studio.left_out:
        warnings.warn(studio.left_out, stacklevel=2)
    return Shown(studio.start(), height, path, address)


def _from_frame(
    frame: Any, ids: str | Sequence[Any] | None, drop: Sequence[str], images: Sequence[str] | None, files: Path
) -> Rows:
    """Read a data frame the way that files go."""
    from pairlens.studio.rows import rows_from_file

    frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    added: dict[str, Any] = {"picture": images} if images is not None else {}
    column = ids if isinstance(ids, str) else None
    if column is None and (ids is not None or frame.index.dtype.kind not in "iu"):
        column = str(frame.index.name or "id")
        added[column] = list(frame.index if ids is None else ids)
    with tempfile.TemporaryDirectory(prefix="pairlens-") as folder:
        path = Path(folder, "rows.csv")
        frame.assign(**added).to_csv(path, index=False)
        image = "picture" if images is not None else None
        rows = rows_from_file(path, ids=column, drop=drop, image=image, files=files)
    rows.source = "the rows"
    return rows


def _running_notebook() -> str | None:
    """Return the address of the Jupyter server that started this process; None if there is none."""
    parent = os.environ.get("JPY_PARENT_PID")
    try:
        running = import_module("jupyter_server.serverapp").list_running_servers()
    except ImportError:
        return None
    for server in running:
        if str(server.get("pid")) == parent:
            found = urlsplit(server["url"])
            return f"{found.scheme}://{found.netloc}"
    return None
