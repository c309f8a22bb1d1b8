"""The points of the page: which rows are drawn, what they are called, what colours them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._markup import Markup, joined, number, packed, plain, tag
from pairlens.engines import IntArray
from pairlens.supervision.inputs import factorise, one_per_row

MAX_POINTS = 100_000
MAX_COLOURS = 10
NO_LABEL = "no label"
MOST_CLASSES = 50
"""Different whole numbers up to which they are classes and not a scale."""


def choose_rows(n_rows: int, kept: IntArray, seed: int) -> IntArray | None:
    """The rows to draw, sorted: all (None), or 100,000 of which `kept` are some."""
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
    """What rows are called, their ids or their numbers, and their pictures where they have some."""

    ids: NDArray[Any] | None
    pictures: Mapping[int, str] = field(default_factory=dict)
    """Data URIs by row."""

    def __call__(self, row: int) -> str:
        """The name of a row, as it is shown."""
        return plain(int(row) if self.ids is None else self.ids[row])

    def shown(self, row: int) -> Markup:
        """The name of a row with its picture."""
        return joined(self.picture(row), tag("bdi", self(row)))

    def picture(self, row: int) -> Markup | None:
        """The picture of a row."""
        uri = self.pictures.get(int(row))
        return None if uri is None else tag("img", src=uri, alt=f"picture of {self(row)}", class_="thumb")

    def as_text(self, rows: IntArray | None) -> list[str] | None:
        """The names of the drawn rows; None where they are numbers."""
        if self.ids is None:
            return None
        return [plain(name) for name in (self.ids if rows is None else self.ids[rows])]


def names(ids: ArrayLike | None, n_rows: int, pictures: Mapping[int, str]) -> Names:
    """Check the ids."""
    if ids is None:
        return Names(None, pictures)
    given, present = one_per_row(ids, name="ids")
    if len(present) != n_rows:
        raise ValueError(f"ids must name every row of X: expected {n_rows}, got {len(present)}.")
    found = np.full(n_rows, "", dtype=object)
    found[present] = given.astype(str) if given.dtype.kind in "mM" else given
    return Names(found, pictures)


@dataclass(frozen=True)
class Colours:
    """What colours the rows.

    Attributes
    ----------
    codes : int array or None
        The colour of each row, from 0; None for a scale or no labels.
    legend : list of str
        What the colours mean.
    numbers : array or None
        Numbers that make a scale of colours.
    grey : int
        How many colours at the end of the legend stand for "others" and "no label".
    """

    codes: IntArray | None
    legend: list[str]
    grey: int
    numbers: NDArray[np.float64] | None
    _given: tuple[IntArray, NDArray[Any]] | None

    @property
    def given(self) -> bool:
        """Whether there are labels."""
        return self._given is not None

    def text(self, row: int) -> str:
        """The label of a row."""
        if self._given is None:
            return ""
        codes, values = self._given
        return plain(_said(values[codes[row]])) if codes[row] >= 0 else NO_LABEL

    def payload(self, rows: IntArray | None) -> dict[str, Any] | None:
        """What the page needs to know."""
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
    """Classes get a colour each, the ten most frequent of them; many different numbers make a scale."""
    if labels is None:
        return Colours(None, [], 0, None, None)
    codes, values = factorise(labels, name="labels")
    if len(codes) != n_rows:
        raise ValueError(f"labels must hold one label for every row of X: expected {n_rows}, got {len(codes)}.")
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
    """Scikit-learn writes -1 for rows without a label."""
    missing = [k for k, value in enumerate(values.tolist()) if isinstance(value, (int, float)) and value == -1]
    return np.where(np.isin(codes, missing), -1, codes)


def _sort_keys(values: NDArray[Any]) -> NDArray[Any]:
    listed = values.tolist()
    if all(isinstance(value, (int, float)) for value in listed):
        return np.asarray(listed, dtype=np.float64)
    return np.asarray([str(value) for value in listed])


def _said(value: Any) -> Any:
    """3.0 is written 3, and other floats with few digits."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else number(value, 4)
    return value
