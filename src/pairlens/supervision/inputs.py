"""Check what users pass: pairs, weights, counts, row numbers and labels, as arrays or with the reason why not."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens.exceptions import ArgumentError
from pairlens.supervision.pairs import MAX_ROWS, FloatArray, IntArray, freeze, group_rows, renumber

PairsLike = ArrayLike | Iterable[Iterable[int]]


def listed(values: Any) -> Any:
    """List what an iterable gives (a generator, a zip, a set); what NumPy can read stays as it is."""
    readable = isinstance(values, (Sequence, Mapping)) or any(
        hasattr(values, protocol) for protocol in ("__array__", "__array_interface__")
    )
    return list(values) if isinstance(values, Iterable) and not readable else values


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return an array of whatever shape and type."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ArgumentError(name, values, "must not have masked entries", "Leave them out")
    try:
        return np.asarray(values)
    except ValueError as error:
        offender = _irregular_entry(values) if isinstance(values, Sequence) else values
        raise ArgumentError(name, offender, f"must be a regular array, with entries of one shape ({error})") from error


def _irregular_entry(values: Sequence[Any]) -> Any:
    """Return the first entry that is not as long as the first one."""
    sizes = [len(value) if isinstance(value, Sized) and not isinstance(value, str) else None for value in values]
    return next((value for value, size in zip(values, sizes) if size != sizes[0]), values)


def row_numbers(rows: Any, name: str) -> IntArray:
    """Return whole numbers as int64, of whatever shape; empty input has no type of its own and passes."""
    array = as_array(listed(rows), name)
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if array.dtype == object:
        wrong = [not isinstance(value, (int, np.integer)) or isinstance(value, bool) for value in array.flat]
    else:
        wrong = [array.dtype.kind not in "iu"]
    if any(wrong):
        raise ArgumentError(name, array.flat[wrong.index(True)], "must hold row numbers, which are integers")
    # What does not fit into int64 is refused here, the rest where the number of rows is known.
    if array.dtype.kind in "uO":
        for extreme in (array.min(), array.max()):
            if not -MAX_ROWS <= extreme < MAX_ROWS:
                raise ArgumentError(name, int(extreme), "must hold row numbers from 0 to 2**31 - 1")
    return array.astype(np.int64, copy=False)


def answers_of_rows(
    given: PairsLike | None, weight: ArrayLike | None, *, width: int, name: str, weight_name: str, n_samples: int | None
) -> tuple[IntArray, FloatArray | None]:
    """Check answers about `width` rows each, and return them as an array with their weights, if they have any."""
    values = None if weight is None else _numbers(weight, weight_name)
    if values is not None and values.ndim and isinstance(given, (set, frozenset)):
        raise ArgumentError(name, given, f"must have an order, because {weight_name} follows it", "Pass a list")
    members = row_numbers(() if given is None else given, name)
    if members.size == 0 and members.ndim <= 2:
        members = members.reshape(0, width)
    if members.ndim != 2 or members.shape[1] != width:
        raise ArgumentError(name, members.shape, f"must have {width} columns of row numbers")
    if values is not None:
        values = _weight_per_answer(values, members, weight_name)
    check_rows(members, n_samples, name)
    return members, values


def _numbers(weight: ArrayLike, name: str) -> FloatArray:
    values = as_array(listed(weight), name)
    try:
        return values.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(name, weight, f"must hold numbers ({error})") from error


def _weight_per_answer(values: FloatArray, members: IntArray, name: str) -> FloatArray:
    if values.ndim == 0:
        values = np.broadcast_to(values, len(members))
    if values.shape != (len(members),):
        raise ArgumentError(name, values.shape, f"must hold {len(members)} weights, one for each answer")
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        position = int(wrong.argmax())
        raise ArgumentError(f"{name}[{position}]", float(values[position]), "must be finite and at least 0")
    return values


def check_rows(members: IntArray, n_samples: int | None, name: str) -> None:
    """Raise ArgumentError about the first answer with a row that does not exist."""
    if not len(members):
        return
    bound = MAX_ROWS if n_samples is None else n_samples
    if members.min() < 0 or members.max() >= bound:
        position = int(((members < 0) | (members >= bound)).any(axis=1).argmax())
        last = "2**31 - 1" if n_samples is None else f"{n_samples - 1}, because n_samples is {n_samples}"
        offender = tuple(members[position].tolist())
        raise ArgumentError(f"{name}[{position}]", offender, f"must hold row numbers from 0 to {last}")


def check_different(first: IntArray, second: IntArray, members: IntArray, name: str, what: str) -> None:
    """Raise ArgumentError about the first answer in which two rows (or two pairs) are the same."""
    same = first == second
    if same.any():
        position = int(same.argmax())
        offender = tuple(members[position].tolist())
        raise ArgumentError(f"{name}[{position}]", offender, f"must name two different {what}", "Leave it out")


def as_n_samples(n_samples: Any) -> int | None:
    """Return the number of rows, or None where it is unknown."""
    if n_samples is None:
        return None
    number = check_count(n_samples, "n_samples", least=0)
    if number > MAX_ROWS:
        raise ArgumentError("n_samples", number, "must be at most 2**31")
    return number


def common_n_samples(*sizes: int | None) -> int | None:
    """Return the number of rows on which all agree; None where it is unknown to all."""
    known = sorted({size for size in sizes if size is not None})
    if len(known) > 1:
        raise ArgumentError("n_samples", tuple(known), "must agree among answers about the same rows")
    return known[0] if known else None


def check_count(count: Any, name: str, *, least: int = 1, most: int | None = None, of: str = "") -> int:
    """Return an integer between `least` and `most`, which is the number of something."""
    try:
        number = operator.index(count)
    except TypeError:
        raise ArgumentError(name, count, "must be an integer") from None
    if number < least:
        raise ArgumentError(name, number, f"must be at least {least}")
    if most is not None and number > most:
        raise ArgumentError(name, number, f"must be at most {most}, the number of {of}")
    return number


def check_fraction(fraction: Any, *, zero: bool = False) -> float:
    """Return a share above 0, or from 0 on, and up to 1."""
    valid = isinstance(fraction, numbers.Real) and 0 <= float(fraction) <= 1 and (zero or fraction != 0)
    if not valid:
        raise ArgumentError("fraction", fraction, f"must be a number in {'[0' if zero else '(0'}, 1]")
    return float(fraction)


def as_rows(index: Any, n_samples: int) -> IntArray:
    """Return the row numbers, from 0 to n_samples - 1, that an index means; IndexError or TypeError if it is wrong."""
    if isinstance(index, tuple):
        if len(index) != 2 or index[1] is not Ellipsis:
            raise IndexError(f"rows must be a list or an array of row numbers; got a tuple of {len(index)}")
        index = index[0]
    if isinstance(index, slice):
        return np.arange(n_samples, dtype=np.int64)[index]
    try:
        rows = as_array(index, "rows")
    except ArgumentError as error:
        raise IndexError(str(error)) from error
    if rows.ndim == 0:
        raise TypeError(f"rows must be an array of row numbers, a boolean mask or a slice; got {index!r}")
    if rows.ndim != 1:
        raise IndexError(f"rows must be a one-dimensional array; got the shape {rows.shape}")
    if rows.dtype != bool and rows.size and rows.dtype.kind not in "iu":
        raise IndexError(f"rows must be row numbers or a boolean mask; got {rows.dtype}")
    # NumPy refuses what is out of range.
    return np.arange(n_samples, dtype=np.int64)[rows if rows.size else []]


def encode_labels(y: ArrayLike) -> IntArray:
    """Return labels as codes in order of first appearance; -1, NaN, None, pandas.NA, NaT and masked mean unlabelled."""
    codes, values = factorise(y, name="y")
    kind = values.dtype.kind
    numbers = (int, float, np.integer, np.floating)
    for value in values.tolist() if kind in "fO" else ():
        if isinstance(value, (float, np.floating)) and not float(value).is_integer():
            raise ArgumentError("y", float(value), "must hold classes, not measurements", "Bin y first")
    if kind in "ifO":
        unlabelled = [k for k, value in enumerate(values.tolist()) if isinstance(value, numbers) and value == -1]
        codes = np.where(np.isin(codes, unlabelled), -1, codes)
    return freeze(renumber(codes))


def chunklet_rows(groups: list[Any], n_samples: int | None) -> tuple[tuple[IntArray, IntArray, IntArray], int | None]:
    """Return the rows of chunklets one after the other, where each starts, how long it is, and the number of rows."""
    if groups and not any(isinstance(group, Iterable) and getattr(group, "ndim", 1) for group in groups):
        codes = row_numbers(groups, "chunklets")
        if n_samples is not None and n_samples != len(codes):
            raise ArgumentError("chunklets", len(codes), f"must have {n_samples} entries, one per row")
        if codes.min() < -1:
            raise ArgumentError("chunklets", int(codes.min()), "must hold numbers from 0 on, or -1 for rows in none")
        return group_rows(encode_labels(codes)), len(codes)
    members = [np.unique(row_numbers(group, f"chunklets[{k}]")) for k, group in enumerate(groups)]
    order = np.concatenate([*members, np.empty(0, dtype=np.int64)])
    limit = MAX_ROWS if n_samples is None else n_samples
    if len(order) and (order.min() < 0 or order.max() >= limit):
        row = order.min() if order.min() < 0 else order.max()
        raise ArgumentError("chunklets", int(row), f"must hold row numbers from 0 to {limit - 1}")
    length = np.array([len(group) for group in members], dtype=np.int64)
    return (order, np.cumsum(length) - length, length), n_samples


def factorise(values: ArrayLike, *, name: str) -> tuple[IntArray, NDArray[Any]]:
    """Return codes (-1 where missing: NaN, None, pandas.NA, NaT, masked) and the distinct value of each code."""
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
    """Return the values that are not masked, and for every row whether it has one."""
    masked = isinstance(values, np.ma.MaskedArray)
    array = np.ma.asarray(values) if masked else as_array(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ArgumentError(name, array.shape, "must be one-dimensional, with one value per row")
    present = ~np.ma.getmaskarray(array)
    return np.asarray(array)[present] if masked else array, present


def numbers_per_row(y: ArrayLike, *, meaning: str) -> FloatArray:
    """Return numbers, NaN where one is missing; `meaning` says in the error what they should be."""
    given, present = one_per_row(y, name="y")
    found = np.full(len(present), np.nan)
    try:
        if given.dtype.kind == "c":
            raise TypeError("they are complex")
        if given.dtype == object:
            codes, distinct = factorise(given, name="y")
            found[present] = np.append(distinct.astype(np.float64), np.nan)[codes]
        else:
            found[present] = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError("y", y, f"must hold numbers, {meaning} ({error})") from error
    return found


def _factorise_objects(array: NDArray[Any], *, name: str) -> tuple[IntArray, NDArray[Any]]:
    # A dictionary takes mixed types, which cannot be sorted.
    seen: dict[Any, int] = {}
    codes = np.empty(len(array), dtype=np.int64)
    for row, value in enumerate(array.tolist()):
        try:
            codes[row] = -1 if _is_missing(value) else seen.setdefault(value, len(seen))
        except TypeError as error:
            raise ArgumentError(f"{name}[{row}]", value, "must be one plain value") from error
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
