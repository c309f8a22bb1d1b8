"""The data sets that are in the repository, as ``npz/NAME.npz``; CREDITS.md has their sources and terms.

Most tables are decimals of few digits. They are stored as whole numbers and, for each column, the number of decimals,
which gives back the very same floating-point numbers; other tables are stored as they are.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

from reproduction.datasets.files import Arrays, read

MOST_DECIMALS = 10


@cache
def names_bundled() -> frozenset[str]:
    """Return the names of the sets that are in the repository."""
    folder = files("reproduction.datasets").joinpath("npz")
    return frozenset(entry.name.removesuffix(".npz") for entry in folder.iterdir() if entry.name.endswith(".npz"))


def load_bundled(name: str) -> Arrays:
    """Return the arrays of a set that is in the repository."""
    with as_file(files("reproduction.datasets").joinpath("npz", f"{name}.npz")) as path:
        return decode(read(path))


def encode(arrays: Arrays) -> Arrays:
    """The compact form of a set with X and y."""
    stored = {name: array for name, array in arrays.items() if name != "X"}
    if stored["y"].dtype == np.int64:
        stored["y"] = _smallest(stored["y"])
    X = arrays["X"]
    decimals = [_decimals(column) for column in X.T]
    if any(count is None for count in decimals):
        return {**stored, "X": X}
    powers = 10.0 ** np.array(decimals, dtype=np.float64)
    return {
        **stored,
        "digits": np.asfortranarray(_smallest(np.rint(X.astype(np.float64) * powers))),
        "decimals": np.array(decimals, dtype=np.uint8),
        "dtype": np.array(X.dtype.str),
    }


def decode(stored: Arrays) -> Arrays:
    """The set that was encoded, bit by bit."""
    arrays = {name: array for name, array in stored.items() if name not in ("digits", "decimals", "dtype")}
    if arrays["y"].dtype.kind in "iu":
        arrays["y"] = arrays["y"].astype(np.int64)
    if "digits" in stored:
        powers = 10.0 ** stored["decimals"].astype(np.float64)
        X = np.ascontiguousarray(stored["digits"] / powers).astype(str(stored["dtype"]))
        return {"X": X, **arrays}
    return arrays


def _decimals(column: NDArray[np.floating]) -> int | None:
    """How many decimals give back the column exactly; None if none do, or cells are missing."""
    if np.isnan(column).any():
        return None
    exact = column.astype(np.float64)
    for count in range(MOST_DECIMALS + 1):
        digits = np.rint(exact * 10.0**count)
        if np.abs(digits).max() < 2**53 and np.array_equal((digits / 10.0**count).astype(column.dtype), column):
            return count
    return None


def _smallest(numbers: NDArray[np.generic]) -> NDArray[np.integer]:
    """Whole numbers in the smallest type that holds them."""
    low, high = int(numbers.min()), int(numbers.max())
    kinds = ("u1", "u2", "u4", "u8") if low >= 0 else ("i1", "i2", "i4", "i8")
    kind = next(kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return numbers.astype(kind)
