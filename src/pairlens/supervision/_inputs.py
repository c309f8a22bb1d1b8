"""Whatever people hand over, as an array or with a reason why not."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

PairsLike = ArrayLike | Iterable[Iterable[int]]


def materialised(values: Any) -> Any:
    """The list of what an iterable gives (a generator, a zip, a set); what NumPy reads by itself stays as it is."""
    readable = isinstance(values, (Sequence, Mapping)) or any(
        hasattr(values, protocol) for protocol in ("__array__", "__array_interface__")
    )
    return list(values) if isinstance(values, Iterable) and not readable else values


def regular_array(values: Any, *, name: str) -> NDArray[Any]:
    """An array of whatever shape and type."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries: leave them out, for what they stand for is unknown")
    try:
        return np.asarray(values)
    except ValueError as error:
        why = _irregularity(values) if isinstance(values, Sequence) else str(error)
        raise ValueError(f"{name} must be a regular array: {why}") from error


def _irregularity(values: Sequence[Any]) -> str:
    sizes = [len(value) if isinstance(value, Sized) and not isinstance(value, str) else None for value in values]
    for position, size in enumerate(sizes):
        if size != sizes[0]:
            return f"entry 0 is {reprlib.repr(values[0])}, but entry {position} is {reprlib.repr(values[position])}"
    return "its entries differ in shape"


def refuse_set(pairs: Any, *, name: str, beside: str) -> None:
    if isinstance(pairs, (set, frozenset)):
        raise ValueError(
            f"{name} is a {type(pairs).__name__}, which has no order that {beside} could follow; give a list"
        )
