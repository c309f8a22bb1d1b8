"""The studio in a notebook."""

from __future__ import annotations

import html
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from pairlens.studio.run import Studio
    from pairlens.supervision import Constraints, Preferences

__all__ = ["Shown", "show"]


class Shown:
    """A studio that runs in the background of a notebook; the value of the cell that shows it."""

    def __init__(self, studio: Studio, height: int) -> None:
        self._studio = studio
        self._height = height

    @property
    def url(self) -> str:
        """A link that opens the studio, once."""
        return next(iter(self._studio.urls.values()))

    def constraints(self) -> Constraints:
        """What the answers so far say, with all that follows from them; waits until the rows are read."""
        return self._told("constraints")

    def preferences(self) -> Preferences:
        """The same of a studio with ``question="prefer"``."""
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
        return f'<iframe src="{address}" width="100%" height="{self._height}" style="{style}"></iframe>'


def show(
    X: ArrayLike,
    *,
    ids: Sequence[Any] | None = None,
    cells: Mapping[str, Sequence[Any]] | None = None,
    texts: Mapping[str, Sequence[Any]] | None = None,
    images: Sequence[str] | None = None,
    files: str | PathLike[str] = ".",
    image_shape: tuple[int, int] | None = None,
    question: str = "same",
    store: str | PathLike[str] | None = None,
    notebook: str = "http://localhost:8888",
    height: int = 800,
) -> Shown:
    """Start a studio on the rows of an array, and show it in the cell of a notebook.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        What is learned from.
    ids : sequence, optional
        What the rows are called.
    cells, texts : mapping of sequences, optional
        What is shown of each row, by the name of the column: short cells, and long texts.
    images : sequence of str, optional
        Paths of pictures, relative to `files`.
    files : path, default="."
        Folder that the pictures lie in.
    image_shape : tuple of int, optional
        Height and width, if the numbers of a row are a picture.
    question : {"same", "place", "prefer"}, default="same"
        What is asked.
    store : path, optional
        File that keeps the answers; by default a new one in the folder for temporary files.
    notebook : str, default="http://localhost:8888"
        Origin of the notebook's page, the only one that may frame the studio.
    height : int, default=800
        Height of the frame in pixels.

    Returns
    -------
    Shown
        With ``url``, ``constraints()`` or ``preferences()``, and ``stop()``.
    """
    from pairlens.studio.rows import rows_from_array
    from pairlens.studio.run import Studio, open_store
    from pairlens.studio.security import is_loopback

    rows = rows_from_array(
        X,
        ids=ids,
        cells=dict(cells or {}),
        texts=dict(texts or {}),
        images=images,
        files=Path(files),
        image_shape=image_shape,
    )
    path = Path(tempfile.mkdtemp(prefix="pairlens-"), "rows.answers.db") if store is None else Path(store)
    # A browser takes other names of this machine for other sites, and keeps the cookie from their frames.
    host = urlsplit(notebook).hostname or "localhost"
    studio = Studio.prepare(
        rows,
        open_store(path, rows),
        question=question,
        host=host if is_loopback(host) else "localhost",
        ancestors=notebook,
    )
    if studio.left_out:
        warnings.warn(studio.left_out, stacklevel=2)
    return Shown(studio.start(), height)
