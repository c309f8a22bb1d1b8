"""What people know of the rows, shown with them: some cells and a small picture each, within bounds."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from pairlens._markup import Markup, count, plain, tag
from pairlens.engines import IntArray, evenly_spaced
from pairlens.report import _sections as sections
from pairlens.report._points import Names

MOST_COLUMNS = 8
MOST_CHARACTERS = 80
"""Characters of a cell that are shown."""
MOST_TOLD = 20_000
"""Rows whose cells are on the page."""
MOST_PICTURES = 300
SIDE = 64
"""Longest side of a picture in pixels."""
MOST_BYTES = 16 << 10
"""Size of one picture; a larger one is left out."""
MOST_LISTED = 40


class Pictures(Protocol):
    """Pictures of rows, such as :class:`pairlens.io.pictures.PictureFolder`."""

    def has(self, row: int) -> bool:
        """Whether a row has one."""

    def encoded(self, row: int, side: int) -> bytes:
        """The picture as PNG, at most `side` pixels wide and high; ValueError if it cannot be shown."""


@dataclass(frozen=True)
class Cards:
    """Cells and pictures of the rows.

    Attributes
    ----------
    columns : dict of lists
        Texts of each column, for all rows.
    pictures : dict of str
        Data URIs of pictures by row.
    refused : int
        Pictures that could not be shown.
    """

    columns: dict[str, list[str]]
    pictures: dict[int, str]
    refused: int

    def payload(self, drawn: IntArray | None, n_rows: int) -> dict[str, Any]:
        """What the page needs for its tooltip: cells of the rows drawn, up to a bound, and pictures by place."""
        rows = np.arange(n_rows) if drawn is None else drawn
        place = {int(row): i for i, row in enumerate(rows.tolist())}
        return {
            "names": [plain(name) for name in self.columns],
            "cells": [[cells[row] for row in rows[:MOST_TOLD].tolist()] for cells in self.columns.values()],
            "pictures": {str(place[row]): uri for row, uri in self.pictures.items() if row in place},
        }

    def section(self, first: IntArray, names: Names, n_rows: int) -> Markup:
        """A table of some rows: those of pairs first, then evenly spaced ones."""
        listed = _first_then_even(first, n_rows, MOST_LISTED)
        head = ["row", *(["picture"] if self.pictures else []), *(plain(name) for name in self.columns)]
        body = []
        for row in listed:
            picture = [names.picture(row)] if self.pictures else []
            cells = (tag("bdi", column[row]) for column in self.columns.values())
            body.append([tag("bdi", names(row)), *picture, *cells])
        note = None
        if self.refused:
            note = tag("p", f"{count(self.refused, 'picture')} could not be shown.", class_="note")
        caption = f"{len(listed)} of {count(n_rows, 'row')}" + (", those in pairs first" if len(first) else "")
        return sections.section("rows", "Rows", note, sections.table(caption, head, body))


def cards(
    beside: Mapping[str, ArrayLike] | None, pictures: Pictures | None, first: IntArray, n_rows: int
) -> Cards | None:
    """Check and bound what is shown of the rows; None if there is nothing.

    Parameters
    ----------
    beside : mapping of str to array-like, optional
        Columns by name.
    pictures : Pictures, optional
    first : int array
        Rows that get their picture before others.
    n_rows : int
    """
    if beside is None and pictures is None:
        return None
    columns: dict[str, list[str]] = {}
    for name, column in list((beside or {}).items())[:MOST_COLUMNS]:
        values = np.asarray(column, dtype=object).tolist()
        if len(values) != n_rows:
            raise ValueError(
                f"beside[{name!r}] must have one cell for every row of X: expected {n_rows}, got {len(values)}."
            )
        columns[str(name)] = [_cell(value) for value in values]
    uris: dict[int, str] = {}
    refused = 0
    if pictures is not None:
        having = np.array([row for row in range(n_rows) if pictures.has(row)], dtype=np.int64)
        wanted = np.intersect1d(first, having)
        for k in _first_then_even(np.searchsorted(having, wanted), len(having), MOST_PICTURES):
            row = int(having[k])
            try:
                uris[row] = _data_uri(pictures.encoded(row, SIDE))
            except ValueError:
                refused += 1
    return Cards(columns, uris, refused)


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    text = plain(value)
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"


def _first_then_even(first: IntArray, n: int, most: int) -> list[int]:
    """At most `most` of n places: the given ones, then others evenly spaced."""
    chosen = first[:most].tolist()
    others = np.setdiff1d(np.arange(n), first)
    room = min(most - len(chosen), len(others))
    if room > 0:
        chosen += others[evenly_spaced(len(others), room)].tolist()
    return [int(place) for place in chosen]


def _data_uri(png: bytes) -> str:
    """A data URI of bounded size; a photograph that is large as PNG becomes JPEG."""
    if len(png) <= MOST_BYTES:
        return f"data:image/png;base64,{base64.b64encode(png).decode()}"
    from PIL import Image

    smaller = io.BytesIO()
    Image.open(io.BytesIO(png), formats=["PNG"]).convert("RGB").save(smaller, "JPEG", quality=80)
    content = smaller.getvalue()
    if len(content) > MOST_BYTES:
        raise ValueError("the picture takes too much room")
    return f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"
