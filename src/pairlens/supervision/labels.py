"""Labels as codes: one integer per row, -1 where the label is missing."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.supervision._inputs import regular_array
from pairlens.supervision._pairs import FloatArray, IntArray, freeze, renumber


def encode_labels(y: ArrayLike) -> IntArray:
    """Codes in order of first appearance; -1, NaN, None, pandas.NA, NaT and masked mean unlabelled."""
    codes, values = factorise(y, name="y")
    kind = values.dtype.kind
    if kind == "i" or kind == "f" or kind == "O":
        if kind == "f" or kind == "O":
            _check_discrete(values)
        unlabelled = np.flatnonzero([_is_minus_one(value) for value in values.tolist()])
        codes = np.where(np.isin(codes, unlabelled), -1, codes)
    return freeze(renumber(codes))


def factorise(values: ArrayLike, *, name: str) -> tuple[IntArray, NDArray[Any]]:
    """Codes (-1 where missing: NaN, None, pandas.NA, NaT, masked) and the distinct value of each code."""
    given, present = one_per_row(values, name=name)
    if given.dtype.kind in "US" and not hasattr(values, "dtype"):
        # In a list NumPy has turned what is not text (-1, NaN) into text.
        given = np.asarray(values, dtype=object).reshape(-1)
    codes = np.full(len(present), -1, dtype=np.int64)
    if given.dtype.kind == "T":
        # Its mark of what is missing may be anything, and cannot always be compared.
        given = given.astype(object)
        given[given == "nan"] = None
    if given.dtype == object:
        codes[present], distinct = _factorise_objects(given, name=name)
        return codes, distinct
    if given.dtype.kind == "f":
        missing = np.isnan(given)
    elif given.dtype.kind in "mM":
        missing = np.isnat(given)
    elif given.dtype.kind in "US":
        # NumPy writes NaN like this into an array of text.
        missing = given == np.array("nan", dtype=given.dtype.kind)
    else:
        missing = np.zeros(len(given), dtype=bool)
    kept = np.flatnonzero(present)[~missing]
    distinct, codes[kept] = np.unique(given[~missing], return_inverse=True)
    return codes, distinct


def one_per_row(values: ArrayLike, *, name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values that are not masked, and for every row whether it has one."""
    masked = isinstance(values, np.ma.MaskedArray)
    array = np.ma.asarray(values) if masked else regular_array(values, name=name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one value per row; got the shape {array.shape}")
    present = ~np.ma.getmaskarray(array)
    return np.asarray(array)[present] if masked else array, present


def numbers_per_row(y: ArrayLike, *, meaning: str) -> FloatArray:
    """Numbers, NaN where one is missing; `meaning` says in the error what they should be."""
    given, present = one_per_row(y, name="y")
    numbers = np.full(len(present), np.nan)
    try:
        if given.dtype.kind == "c":
            raise TypeError("they are complex")
        if given.dtype == object:
            codes, distinct = factorise(given, name="y")
            numbers[present] = np.append(distinct.astype(np.float64), np.nan)[codes]
        else:
            numbers[present] = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"y must hold numbers, {meaning}: {error}") from error
    return numbers


def _factorise_objects(array: NDArray[Any], *, name: str) -> tuple[IntArray, NDArray[Any]]:
    # A dictionary takes mixed types, which cannot be sorted.
    seen: dict[Any, int] = {}
    codes = np.empty(len(array), dtype=np.int64)
    for row, value in enumerate(array.tolist()):
        try:
            codes[row] = -1 if _is_missing(value) else seen.setdefault(value, len(seen))
        except TypeError as error:
            raise ValueError(
                f"{name} must hold one plain value per row, got {reprlib.repr(value)} among them"
            ) from error
    distinct = np.empty(len(seen), dtype=object)
    distinct[:] = list(seen)
    return codes, distinct


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def _is_minus_one(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and value == -1


def _check_discrete(values: NDArray[Any]) -> None:
    numbers = [value for value in values.tolist() if isinstance(value, (float, np.floating))]
    for number in numbers:
        if not float(number).is_integer():
            raise ValueError(
                f"y holds the number {number!r}, which looks like a measurement and not like a class; "
                "give class labels, or bin y first (Preferences.from_scores takes scores as they are)"
            )
