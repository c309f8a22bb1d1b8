"""Read the cells of a column as numbers, dates or words, whatever type the column was stored with.

Each function takes a pandas Series and works on its different values only, so that a long column with few values costs
little.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.exceptions import InputError

MISSING_WORDS = (
    "",
    "NA",
    "N/A",
    "n/a",
    "na",
    "NaN",
    "nan",
    "NULL",
    "null",
    "None",
    "none",
    "?",
    "-nan",
    "#N/A",
    "<NA>",
)
"""Words that stand for a missing cell."""

CURRENCY = "$€£¥"
SPACES = "\u00a0\u2009\u202f '\u2019"
"""What may separate groups of three digits, besides comma and point."""

POINT_DECIMAL = re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d*)(\.\d+)?([eE][-+]?\d+)?")
COMMA_DECIMAL = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d*)(,\d+)?([eE][-+]?\d+)?")
SURELY_COMMA = re.compile(r"[-+]?(\d{1,3}(\.\d{3})*|\d+),(\d{1,2}|\d{4,})|[-+]?\d{1,3}(\.\d{3})+,\d+|[-+]?0,\d+")
"""Numbers whose comma cannot separate thousands."""

TIME = (
    r"(?:[T ,]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?)?"
    r"\s*(?:Z|UTC|[-+]\d{2}:?\d{2})?"
)
DATE_PATTERNS = (
    r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})" + TIME,
    r"(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})[-/.](?P<year>\d{4}|\d{2})" + TIME,
    r"(?P<day>\d{1,2})[-. ]+(?P<name>[A-Za-z]{3,9})[-., ]+(?P<year>\d{4})" + TIME,
    r"(?P<name>[A-Za-z]{3,9})[. ]+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{4})" + TIME,
)
"""Year first; numbers with the year last; day, name of the month, year; name of the month, day, year."""

NAMES_OF_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTHS = {name: i + 1 for i, name in enumerate(NAMES_OF_MONTHS)}


def is_missing(column: Any) -> NDArray[np.bool_]:
    """Return which cells of a Series are missing: null values, and words such as "NA" or "?"."""
    missing = column.isna().to_numpy(dtype=bool)
    if is_text(column):
        codes, values = _distinct(column)
        absent = np.array([_text(value) in MISSING_WORDS for value in values], dtype=bool)
        missing = missing | (np.append(absent, True)[codes])
    return missing


def read_numbers(column: Any, decimal_comma: bool | None = None) -> NDArray[np.float64]:
    """Return a column as float64; NaN where a cell is missing or is not a number.

    Text may be such as ``"1,234.5"``, ``"1.234,5"``, ``"1 234"``, ``"12 %"`` or ``"$ 3"``. Whether a comma separates
    decimals rather than thousands is decided by the column (:func:`has_decimal_comma`) unless it is given.
    """
    pandas = require("pandas", extra="io", purpose="reading tables")
    types = pandas.api.types
    if types.is_complex_dtype(column):
        raise InputError(
            f"the column {column.name!r} holds complex numbers", remedy="Give their real and imaginary parts as columns"
        )
    if types.is_bool_dtype(column) or types.is_numeric_dtype(column):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    if not is_text(column):
        return np.full(len(column), np.nan)
    codes, values = _distinct(column)
    cells = [_bare_number(_text(value)) for value in values]
    if decimal_comma is None:
        decimal_comma = any(SURELY_COMMA.fullmatch(cell) for cell in cells)
    numbers = np.array([_as_number(cell, decimal_comma) for cell in cells], dtype=np.float64)
    return np.append(numbers, np.nan)[codes]


def has_decimal_comma(column: Any) -> bool:
    """Return whether some cell of a column of text can only be read with a decimal comma."""
    if not is_text(column):
        return False
    return any(SURELY_COMMA.fullmatch(_bare_number(_text(value))) for value in _distinct(column)[1])


def _bare_number(cell: str) -> str:
    """Return the cell without currency, percent sign and spaces between digits; brackets become a minus."""
    cell = cell.strip().strip(CURRENCY + "%").strip()
    if cell.startswith("(") and cell.endswith(")"):
        cell = "-" + cell[1:-1]
    cell = cell.replace("\u2212", "-")
    for space in SPACES:
        if space in cell and re.fullmatch(rf"[-+]?\d{{1,3}}({re.escape(space)}\d{{3}})+([.,]\d+)?", cell):
            return cell.replace(space, "")
    return cell


def _as_number(cell: str, decimal_comma: bool) -> float:
    pattern = COMMA_DECIMAL if decimal_comma else POINT_DECIMAL
    if not any(character.isdigit() for character in cell):
        return np.nan
    if pattern.fullmatch(cell):
        thousands, decimal = (".", ",") if decimal_comma else (",", ".")
        return float(cell.replace(thousands, "").replace(decimal, "."))
    # A number that only the other convention can read, such as 1e-3 beside decimal commas.
    try:
        return float(cell) if "_" not in cell else np.nan
    except ValueError:
        return np.nan


@dataclass(frozen=True)
class Dates:
    """Hold a column read as dates, NaT where there is none; time zones are dropped, local times kept."""

    values: NDArray[np.datetime64]
    day_first: bool
    has_time: bool


def read_dates(column: Any, day_first: bool | None = None) -> Dates:
    """Return a column of a date type, or of text, as dates.

    Text may be 2020-01-31, 31.1.2020, 31/1/2020, 1/31/2020, 31 Jan 2020 or January 31, 2020, each also with a time;
    formats may be mixed. `day_first` is how to read 3/4/2020. By default the column decides: a first number above 12
    anywhere means day first, otherwise month first. Dates with points are always day first.
    """
    pandas = require("pandas", extra="io", purpose="reading tables")
    if pandas.api.types.is_datetime64_any_dtype(column):
        plain = column.dt.tz_localize(None) if getattr(column.dt, "tz", None) is not None else column
        values = plain.to_numpy().astype("datetime64[s]")
        present = values[~np.isnat(values)]
        return Dates(values, bool(day_first), bool((present != present.astype("datetime64[D]")).any()))
    if not is_text(column):
        return Dates(np.full(len(column), np.datetime64("NaT"), dtype="datetime64[s]"), bool(day_first), False)
    codes, values = _distinct(column)
    cells = pandas.Series([_text(value) for value in values], dtype=object)
    tables = [cells.str.extract(f"^{pattern}$") for pattern in DATE_PATTERNS] if len(cells) else []
    if day_first is None:
        day_first = bool(len(tables)) and bool((pandas.to_numeric(tables[1]["a"], errors="coerce") > 12).any())
    found = np.full(len(cells) + 1, np.datetime64("NaT"), dtype="datetime64[s]")
    has_time = False
    for parts in tables:
        dates, timed = _dates_of(pandas, parts, day_first)
        chosen = np.isnat(found[:-1]) & ~np.isnat(dates)
        found[:-1][chosen] = dates[chosen]
        has_time = has_time or bool((timed & chosen).any())
    return Dates(found[codes], day_first, has_time)


def _dates_of(pandas: Any, parts: Any, day_first: bool) -> tuple[NDArray[np.datetime64], NDArray[np.bool_]]:
    """Return dates from the groups of a pattern, NaT where it did not match or the day does not exist; and which have a
    time.
    """

    def number(name: str) -> Any:
        return pandas.to_numeric(parts[name], errors="coerce")

    year = number("year")
    year = year.where(year >= 100, year + np.where(year < 70, 2000, 1900))
    if "mark" in parts:
        a, b = number("a"), number("b")
        first = (parts["mark"] == ".") | day_first
        day, month = a.where(first, b), b.where(first, a)
    else:
        day = number("day")
        named = "name" in parts
        month = parts["name"].str[:3].str.lower().map(MONTHS) if named else number("month")
    hour = number("hour").fillna(0)
    half = parts["half"].astype(object).where(parts["half"].notna(), "").str.lower().str[:1]
    hour = hour.where(half != "p", hour % 12 + 12).where(half != "a", hour % 12)
    fields = {"year": year, "month": month, "day": day, "hour": hour, "minute": number("minute").fillna(0)}
    dates = pandas.to_datetime({**fields, "second": number("second").fillna(0)}, errors="coerce")
    return dates.to_numpy().astype("datetime64[s]"), parts["hour"].notna().to_numpy(dtype=bool)


def read_words(column: Any) -> NDArray[np.object_]:
    """Return a column as words without space around them; None where a cell is missing.

    Whole numbers read as float because cells are missing (``2.0``) are written without the point.
    """
    codes, values = _distinct(column)
    words = [_text(value) for value in values]
    listed = np.empty(len(words) + 1, dtype=object)
    listed[:-1] = [None if word in MISSING_WORDS else word for word in words]
    listed[-1] = None
    return listed[codes]


def is_text(column: Any) -> bool:
    """Return whether a column of a data frame may hold words: text, objects or categories."""
    pandas = require("pandas", extra="io", purpose="reading tables")
    types = pandas.api.types
    return bool(
        types.is_string_dtype(column)
        or types.is_object_dtype(column)
        or isinstance(column.dtype, pandas.CategoricalDtype)
    )


def _distinct(column: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return codes, -1 where missing, and the different values of a column."""
    pandas = require("pandas", extra="io", purpose="reading tables")
    try:
        codes, values = pandas.factorize(column)
    except TypeError:
        # Lists and the like have no hash: they are told apart by their text.
        codes, values = pandas.factorize(column.map(str, na_action="ignore"))
    return codes, np.asarray(values, dtype=object)


def holds_collections(column: Any) -> bool:
    """Return whether some cell of a column is a list, a dictionary or another collection, not one value."""
    if column.dtype != object:
        return False
    return any(isinstance(cell, (list, dict, set, np.ndarray)) for cell in column)


def as_frame(table: Any) -> Any:
    """Return a table with named columns (pandas, polars, Arrow, a mapping of columns) as a pandas DataFrame."""
    pandas = require("pandas", extra="io", purpose="reading tables")
    if isinstance(table, pandas.DataFrame):
        return table
    if isinstance(table, Mapping):
        return pandas.DataFrame(dict(table))
    if hasattr(table, "to_pydict"):
        return table.to_pandas()
    cells = {name: table[name].to_numpy() for name in table.columns}
    # Vectors in cells stay lists.
    return pandas.DataFrame({name: each if each.ndim == 1 else table[name].to_list() for name, each in cells.items()})


def _text(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def distinct_names(names: list[Any]) -> list[str]:
    """Return names as text, where the second ``a`` becomes ``a.2`` and an empty one ``(unnamed)``."""
    found: list[str] = []
    taken = {str(name) for name in names}
    for name in names:
        base = str(name) or "(unnamed)"
        chosen, count = base, 1
        while chosen in found or (count > 1 and chosen in taken):
            count += 1
            chosen = f"{base}.{count}"
        found.append(chosen)
    return found


def are_plain_numbers(frame: Any) -> bool:
    """Return whether all cells of a data frame are finite numbers, so that nothing has to be encoded."""
    pandas = require("pandas", extra="io", purpose="reading tables")
    types = pandas.api.types
    for name in frame.columns:
        column = frame[name]
        is_number = types.is_bool_dtype(column) or types.is_numeric_dtype(column)
        if not is_number or types.is_complex_dtype(column) or column.isna().any():
            return False
    return True
