"""Describe the rows on the page: which are drawn, their names, colours, cells and pictures."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._markup import Markup, joined, number, packed, plain, tag
from pairlens._text import count
from pairlens.engines import IntArray, evenly_spaced
from pairlens.exceptions import ArgumentError
from pairlens.report._sections import section, table
from pairlens.supervision.inputs import factorise, one_per_row
from pairlens.tables.pictures import PictureFolder

MAX_POINTS = 100_000
MAX_COLOURS = 10
NO_LABEL = "no label"
MOST_CLASSES = 50
"""Different whole numbers up to which they are classes and not a scale."""

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


def choose_rows(n_rows: int, kept: IntArray, seed: int) -> IntArray | None:
    """Return the rows to draw, sorted: all (None), or 100,000 of which `kept` are some."""
    if n_rows <= MAX_POINTS:
        return None
    chosen = np.zeros(n_rows, dtype=bool)
    chosen[kept] = True
    others = np.flatnonzero(~chosen)
    wanted = max(0, MAX_POINTS - int(chosen.sum()))
    chosen[np.random.default_rng(seed).choice(others, wanted, replace=False)] = True
    return np.flatnonzero(chosen)


@dataclass(frozen=True)
class Names:
    """The names of the rows, their ids or their numbers, and their pictures where they have some."""

    ids: NDArray[Any] | None
    pictures: Mapping[int, str] = field(default_factory=dict)
    """Data URIs by row."""

    def __call__(self, row: int) -> str:
        """Return the name of a row, as it is shown."""
        return plain(int(row) if self.ids is None else self.ids[row])

    def shown(self, row: int) -> Markup:
        """Return the name of a row with its picture."""
        return joined(self.picture(row), tag("bdi", self(row)))

    def picture(self, row: int) -> Markup | None:
        """Return the picture of a row."""
        uri = self.pictures.get(int(row))
        return None if uri is None else tag("img", src=uri, alt=f"picture of {self(row)}", class_="thumb")

    def as_text(self, rows: IntArray | None) -> list[str] | None:
        """Return the names of the drawn rows; None where they are numbers."""
        if self.ids is None:
            return None
        return [plain(name) for name in (self.ids if rows is None else self.ids[rows])]


def names(ids: ArrayLike | None, n_rows: int, pictures: Mapping[int, str]) -> Names:
    """Check the ids."""
    if ids is None:
        return Names(None, pictures)
    given, present = one_per_row(ids, name="ids")
    if len(present) != n_rows:
        raise ArgumentError("ids", len(present), f"must have {n_rows} entries, one for each row of X")
    found = np.full(n_rows, "", dtype=object)
    found[present] = given.astype(str) if given.dtype.kind in "mM" else given
    return Names(found, pictures)


@dataclass(frozen=True)
class Colours:
    """The labels or numbers that colour the rows.

    `codes` are the colour of each row, from 0; None for a scale, which is made by `numbers`, or no labels. The last
    `grey` entries of the legend stand for "others" and "no label".
    """

    codes: IntArray | None
    legend: list[str]
    grey: int
    numbers: NDArray[np.float64] | None
    _given: tuple[IntArray, NDArray[Any]] | None

    @property
    def given(self) -> bool:
        """Return whether there are labels."""
        return self._given is not None

    def text(self, row: int) -> str:
        """Return the label of a row."""
        if self._given is None:
            return ""
        codes, values = self._given
        return plain(_said(values[codes[row]])) if codes[row] >= 0 else NO_LABEL

    def payload(self, rows: IntArray | None) -> dict[str, Any] | None:
        """Return what the page needs to know."""
        chosen: Any = slice(None) if rows is None else rows
        if self.numbers is not None:
            return {"numbers": packed(self.numbers[chosen], "f4")}
        if self.codes is None:
            return None
        codes = self.codes[chosen]
        counts = np.bincount(codes, minlength=len(self.legend)).tolist()
        result: dict[str, Any] = {
            "codes": packed(codes, "u1"),
            "legend": self.legend,
            "counts": counts,
            "grey": self.grey,
        }
        given, values = self._given or (codes, np.empty(0))
        if len(values) > MAX_COLOURS:
            # The tooltip names the labels that share a colour.
            result["labels"] = [plain(_said(value)) for value in values.tolist()]
            result["label"] = packed(given[chosen], "i4")
        return result


def colours(labels: ArrayLike | None, n_rows: int) -> Colours:
    """Return a colour for each of the ten most frequent classes, or a scale for many different numbers."""
    if labels is None:
        return Colours(None, [], 0, None, None)
    codes, values = factorise(labels, name="labels")
    if len(codes) != n_rows:
        raise ArgumentError("labels", len(codes), f"must have {n_rows} entries, one for each row of X")
    if _is_scale(values):
        return Colours(None, [], 0, np.where(codes >= 0, values[codes].astype(np.float64), np.nan), (codes, values))
    known = _without_minus_one(codes, values)
    size = np.bincount(known[known >= 0], minlength=len(values))
    frequent = np.argsort(-size, kind="stable")[:MAX_COLOURS]
    frequent = frequent[size[frequent] > 0]
    frequent = frequent[np.argsort(_sort_keys(values[frequent]), kind="stable")]
    colour_of = np.full(len(values), len(frequent))
    colour_of[frequent] = np.arange(len(frequent))
    legend = [plain(_said(value)) for value in values[frequent].tolist()]
    colour = np.where(known >= 0, colour_of[known] if len(values) else 0, -1)
    n_grey = 0
    for what in ("others", NO_LABEL):
        place = (colour == len(frequent)) if what == "others" else (colour < 0)
        if place.any():
            colour = np.where(place, len(legend), colour)
            legend.append(what)
            n_grey += 1
    return Colours(colour, legend, n_grey, None, (known, values))


def _is_scale(values: NDArray[Any]) -> bool:
    if values.dtype.kind not in "iuf" or len(values) <= MAX_COLOURS:
        return False
    return len(values) > MOST_CLASSES or bool(np.any(values != np.round(values)))


def _without_minus_one(codes: IntArray, values: NDArray[Any]) -> IntArray:
    """Return labels without the -1 that scikit-learn writes for rows that have none."""
    missing = [k for k, value in enumerate(values.tolist()) if isinstance(value, (int, float)) and value == -1]
    return np.where(np.isin(codes, missing), -1, codes)


def _sort_keys(values: NDArray[Any]) -> NDArray[Any]:
    listed = values.tolist()
    if all(isinstance(value, (int, float)) for value in listed):
        return np.asarray(listed, dtype=np.float64)
    return np.asarray([str(value) for value in listed])


def _said(value: Any) -> Any:
    """Return 3.0 as 3, and other floats with few digits."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else number(value, 4)
    return value


@dataclass(frozen=True)
class Cards:
    """Texts of the cells of each column and data URIs of pictures, by row; and how many pictures could not be shown."""

    columns: dict[str, list[str]]
    pictures: dict[int, str]
    refused: int

    def payload(self, drawn: IntArray | None, n_rows: int) -> dict[str, Any]:
        """Return what the page needs for its tooltip: cells of the rows drawn, up to a bound, and pictures by place."""
        rows = np.arange(n_rows) if drawn is None else drawn
        place = {int(row): i for i, row in enumerate(rows.tolist())}
        return {
            "names": [plain(name) for name in self.columns],
            "cells": [[cells[row] for row in rows[:MOST_TOLD].tolist()] for cells in self.columns.values()],
            "pictures": {str(place[row]): uri for row, uri in self.pictures.items() if row in place},
        }

    def section(self, first: IntArray, names: Names, n_rows: int) -> Markup:
        """Return a table of some rows: those of pairs first, then evenly spaced ones."""
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
        return section("rows", "Rows", note, table(caption, head, body))


def cards(
    beside: Mapping[str, ArrayLike] | None, pictures: PictureFolder | None, first: IntArray, n_rows: int
) -> Cards | None:
    """Check and bound what is shown of the rows, None if nothing; those `first` get their picture before others."""
    if beside is None and pictures is None:
        return None
    columns: dict[str, list[str]] = {}
    for name, column in list((beside or {}).items())[:MOST_COLUMNS]:
        values = np.asarray(column, dtype=object).tolist()
        if len(values) != n_rows:
            reason = f"must have {n_rows} cells, one for each row of X"
            raise ArgumentError(f"beside[{name!r}]", len(values), reason)
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
    """Return at most `most` of n places: the given ones, then others evenly spaced."""
    chosen = first[:most].tolist()
    others = np.setdiff1d(np.arange(n), first)
    room = min(most - len(chosen), len(others))
    if room > 0:
        chosen += others[evenly_spaced(len(others), room)].tolist()
    return [int(place) for place in chosen]


def _data_uri(png: bytes) -> str:
    """Return a data URI of bounded size; a photograph that is large as PNG becomes JPEG."""
    if len(png) <= MOST_BYTES:
        return f"data:image/png;base64,{base64.b64encode(png).decode()}"
    from PIL import Image

    smaller = io.BytesIO()
    Image.open(io.BytesIO(png), formats=["PNG"]).convert("RGB").save(smaller, "JPEG", quality=80)
    content = smaller.getvalue()
    if len(content) > MOST_BYTES:
        raise ValueError("the picture takes too much room")
    return f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"
