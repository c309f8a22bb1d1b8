"""Find columns of data files by name, and read them as plain values, as labels or as the numbers a model takes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens._text import listed_names
from pairlens.exceptions import ArgumentError, EndpointError, InputError
from pairlens.tables.cells import MISSING_WORDS, is_missing, read_numbers
from pairlens.tables.columns import LARGEST

SHOWN = 5


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Put the name of a file in front of the errors about its content."""
    try:
        yield
    except EndpointError:
        raise
    except InputError as error:
        reason = error.phrased(remedy="") if isinstance(error, ArgumentError) else error.reason
        given = {"argument": error.argument, "value": error.value, "remedy": error.remedy}
        raise InputError(f"{source}: {reason}", **given) from None
    except ValueError as error:
        raise InputError(f"{source}: {error}") from None


def check_column(name: str, names: Sequence[str], source: str) -> None:
    """Raise InputError with a suggestion if a file does not have such a column."""
    if name in names:
        return
    if not names:
        raise InputError(f"{source} is an array without named columns, so it has no column {name!r}", value=name)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; it has {listed_names(names)}"
    raise InputError(f"{source} has no column {name!r}{hint}", value=name)


def plain_column(column: Any) -> NDArray[Any]:
    """Return the values of a column; text with None where it is missing."""
    values = column.to_numpy()
    if values.dtype.kind in "biufmM":
        return np.asarray(values)
    return np.array([None if missing else value for value, missing in zip(values, column.isna())], dtype=object)


def label_values(column: NDArray[Any], unknown: Iterable[str] = ()) -> NDArray[Any]:
    """Return labels with None where unknown: missing cells, words that mean so, and -1 if all are whole numbers."""
    if column.dtype.kind != "O" and column.dtype.kind not in "US":
        return column
    absent = {*MISSING_WORDS, *unknown}
    words = [None if word is None or str(word).strip() in absent else str(word).strip() for word in column.tolist()]
    whole = all(word is None or word.lstrip("-").isdecimal() for word in words)
    return np.array([None if whole and word == "-1" else word for word in words], dtype=object)


def check_values(values: NDArray[Any], names: Sequence[str], source: str, *, fills_in: bool) -> None:
    """Refuse infinite and huge numbers, and missing ones unless they are filled in."""
    if not len(values):
        return
    infinite = np.isinf(values).sum(axis=0)
    if infinite.any():
        raise InputError(
            f"{source} has infinite values: {_counts(infinite, names)}",
            argument="drop",
            remedy="Replace them, or leave the columns out by drop=",
        )
    missing = np.isnan(values).sum(axis=0)
    if missing.any() and not fills_in:
        raise InputError(
            f"{source} has missing values: {_counts(missing, names)}",
            remedy="Fill them in; a model that was fitted to a table, or to rows with missing values, does so itself",
        )
    with np.errstate(invalid="ignore"):
        largest = np.fmax.reduce(np.abs(values), axis=0, initial=0)
    if (largest > LARGEST).any():
        column = int(largest.argmax())
        raise InputError(
            f"the column {names[column]!r} of {source} holds {largest[column]:.3g}, whose square leaves the range of "
            "64-bit numbers",
            argument="drop",
            remedy="Rescale it, or leave it out by drop=",
        )


def numeric_column(column: Any, name: str, source: str) -> NDArray[np.float64] | None:
    """Return a column as numbers; None if it holds words; InputError if it holds some text among numbers."""
    values = read_numbers(column)
    wrong = np.isnan(values) & ~is_missing(column)
    n_wrong = int(wrong.sum())
    if int((~np.isnan(values)).sum()) <= n_wrong:
        return None
    if n_wrong:
        row = int(wrong.argmax())
        others = "" if n_wrong == 1 else f", and {n_wrong - 1} more such cell{'s' if n_wrong > 2 else ''}"
        cell = repr(str(column.iloc[row])[:40])
        raise InputError(
            f"the column {name!r} of {source} holds text among numbers: {cell} in row {column.index[row]}{others}",
            argument="drop",
            value=name,
            remedy="Fix the cells, or leave the column out by drop=",
        )
    return values


def numeric_columns(frame: Any, source: str, *, fills_in: bool) -> Any:
    """Return the columns of a data frame as numbers, for a model that takes nothing else."""
    columns = {}
    for name in frame.columns:
        values = numeric_column(frame[name], name, source)
        if values is None and not is_missing(frame[name]).all():
            raise InputError(f"the column {name!r} of {source} must hold numbers, but holds text", value=name)
        columns[name] = np.full(len(frame), np.nan) if values is None else values
    rows = require("pandas", extra="cli", purpose="reading tables").DataFrame(columns, index=frame.index)
    check_values(rows.to_numpy(dtype=np.float64), list(columns), source, fills_in=fills_in)
    return rows


def _counts(counts: NDArray[np.int64], names: Sequence[str]) -> str:
    found = [f"{count} in {name!r}" for count, name in zip(counts.tolist(), names) if count]
    return ", ".join(found[:SHOWN]) + (f" and {len(found) - SHOWN} more columns" if len(found) > SHOWN else "")
