"""Decide what a column is: a number, a category, a date, a text, or nothing to learn from."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.engines import evenly_spaced
from pairlens.tables.cells import (
    are_plain_numbers,
    holds_collections,
    is_missing,
    read_dates,
    read_numbers,
    read_words,
)

READABLE = 0.95
"""Share of the present cells that must be numbers, or dates, for a column of text to be read as such."""
MAX_CATEGORIES = 40
"""Different words beyond which the rare ones of a category are pooled."""
REPEATED = 2.0
"""Rows per different word from which a column of words is a category."""
COVERED = 0.5
"""Share of the rows that the words of a category must cover that are not pooled; otherwise it is a short text."""
LONG_TEXT = 5.0
"""Mean number of words in a cell from which a text is long."""
LOOKED_AT = 20_000
"""Cells, evenly spaced, by which the role of a column is decided."""

ID_NAME = re.compile(r"(?i)(.*[_\s.-])?(id|ids|uid|uuid|guid|index|key|row|rowid|rownames?)|unnamed: \d+|\(unnamed\)")
CODE = re.compile(r"(?=.*\d)[\w.:/#-]+")
"""One word with a digit in it, such as N12A3 or a UUID."""


class Role(StrEnum):
    """Name what a column is read as."""

    number = "number"
    boolean = "yes/no"
    category = "category"
    date = "date"
    short_text = "short text"
    long_text = "long text"
    picture = "picture"
    identifier = "identifier"
    constant = "constant"
    dropped = "dropped"

    @property
    def is_used(self) -> bool:
        """Return whether columns of this role become features."""
        return self not in (Role.identifier, Role.constant, Role.dropped)


@dataclass(frozen=True)
class ColumnSummary:
    """Hold what was done with a column.

    Attributes
    ----------
    name : str
    role : str
        One of the values of :class:`Role`.
    weight : float
        1, or what was given; 0 if it is left out.
    n_features : int
        Features that it became.
    n_missing : int
        Missing cells among the rows of fit.
    note : str
        What else a reader should know.
    """

    name: str
    role: str
    weight: float
    n_features: int
    n_missing: int
    note: str = ""


def role_of(column: Any, name: str | None) -> tuple[Role, str]:
    """Return the role of a column and a note on what decided it; a column without a `name` is never an identifier."""
    missing = is_missing(column)
    if missing.all():
        return Role.constant, "empty"
    if len(column) > LOOKED_AT:
        chosen = evenly_spaced(len(column), LOOKED_AT)
        if (~missing[chosen]).any():
            column, missing = column.iloc[chosen], missing[chosen]
    present = column[~missing]
    pandas = require("pandas", extra="io", purpose="reading tables")
    if pandas.api.types.is_datetime64_any_dtype(column):
        return (Role.constant, "one value") if present.nunique() < 2 else (Role.date, "")
    if pandas.api.types.is_timedelta64_dtype(column):
        return Role.dropped, "durations are not read; give them as a number of seconds"
    if holds_collections(present):
        return Role.dropped, "lists and other collections are not read; give their entries as columns"
    numbers = read_numbers(present)
    readable = 1 - np.isnan(numbers).mean()
    if readable >= READABLE:
        return _role_of_numbers(numbers[~np.isnan(numbers)], name, bool(missing.any()), readable)
    dates = read_dates(present).values
    if (~np.isnat(dates)).mean() >= READABLE:
        return (Role.constant, "one value") if len(np.unique(dates)) < 2 else (Role.date, "")
    return _role_of_words(read_words(present), name, bool(missing.any()))


def _role_of_numbers(
    numbers: NDArray[np.float64], name: str | None, some_missing: bool, readable: float
) -> tuple[Role, str]:
    note = "" if readable == 1 else "cells that are not numbers count as missing"
    values = np.unique(numbers)
    if len(values) == 1:
        return Role.constant, "one value"
    if values.tolist() == [0.0, 1.0]:
        return Role.boolean, note
    whole = bool((values == np.floor(values)).all())
    if name is not None and whole and len(values) == len(numbers) and not some_missing:
        if ID_NAME.fullmatch(name):
            return Role.identifier, "whole numbers, all different"
        if len(numbers) >= REPEATED * 10 and (np.diff(numbers) == 1).all():
            return Role.identifier, "counts the rows"
    return Role.number, note


def _role_of_words(words: NDArray[np.object_], name: str | None, some_missing: bool) -> tuple[Role, str]:
    distinct = set(words.tolist())
    if len(distinct) == 1:
        # A lone word beside missing cells tells which are missing.
        return (Role.boolean, "present or missing") if some_missing else (Role.constant, "one value")
    if len(distinct) == 2:
        return Role.boolean, ""
    length = float(np.mean([len(word.split()) for word in distinct]))
    repeated = len(words) / len(distinct)
    n_covered = sum(count for _, count in Counter(words.tolist()).most_common(MAX_CATEGORIES))
    if repeated >= REPEATED and length < LONG_TEXT and n_covered / len(words) >= COVERED:
        return Role.category, ""
    if len(distinct) == len(words) and name is not None and length < LONG_TEXT:
        if ID_NAME.fullmatch(name):
            return Role.identifier, "all different"
        if all(CODE.fullmatch(word) for word in distinct):
            return Role.identifier, "codes, all different"
    return (Role.long_text if length >= LONG_TEXT else Role.short_text), ""


def is_all_numbers(frame: Any) -> bool:
    """Return whether every column of a data frame holds numbers without gaps, and none of them names the rows."""
    if not are_plain_numbers(frame):
        return False
    whole = [name for name in frame.columns if (frame[name] % 1 == 0).all()]
    return all(role_of(frame[name], name)[0] is not Role.identifier for name in whole)
