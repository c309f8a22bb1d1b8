"""Reading and writing data sets as .npz files, those of the repository among them, and telling a damaged one.

The repository has its sets as ``npz/NAME.npz``; CREDITS.md has their sources and terms. Most of these tables are
decimals of few digits. They are stored as whole numbers and, for each column, the number of decimals, which gives back
the very same floating-point numbers (:mod:`reproduction.datasets.bundle` writes them); others are stored as they are.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._atomic import atomic_path

Arrays = dict[str, NDArray[Any]]

RATINGS = ("user", "item", "rating")
"""The arrays of a set of ratings, one entry per rating."""
NUMERIC = "biuf"
ROW_ARRAYS = ("sample_id", "part", "pose", "row_index", "is_train", "y_halves")
"""Extra arrays with one entry per row."""


class DamagedDatasetError(ValueError):
    """A file or a download is not the data set that it should be."""


def array_digest(array: NDArray[Any]) -> str:
    """A checksum of an array's type, shape and values; -0 counts as 0 and every NaN as the same."""
    array = _canonical(array)
    digest = hashlib.blake2b(f"{array.dtype.str}{array.shape}".encode(), digest_size=16)
    digest.update(array.data if array.size else b"")
    return digest.hexdigest()


def rows_digest(X: NDArray[Any], y: NDArray[Any]) -> str:
    """A checksum of the rows with their targets, whatever their order."""
    X, y = _canonical(X), _canonical(y)
    rows = np.hstack([X.view(np.uint8).reshape(len(X), -1), y.view(np.uint8).reshape(len(y), -1)])
    digest = hashlib.blake2b(f"{X.dtype.str}{y.dtype.str}{X.shape}".encode(), digest_size=16)
    for row in sorted(map(bytes, rows)):
        digest.update(row)
    return digest.hexdigest()


def _canonical(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind == "f":
        array = array + array.dtype.type(0)
        array[np.isnan(array)] = np.nan
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def read(path: Path) -> Arrays:
    """All arrays of an .npz file.

    Raises
    ------
    DamagedDatasetError
        The file is truncated, altered, not an .npz file, or holds pickled objects.
    """
    try:
        stored = np.load(path, allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            raise ValueError("it holds one array, not named ones")
        with stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise DamagedDatasetError(f"{path} cannot be read as a data set: {error}. {advice(path)}") from error


def advice(path: Path) -> str:
    """What to do about a damaged file."""
    return (
        f"The file is damaged or not the one expected: delete {path.name} and copy or download it again, "
        "or pass verify=False if you changed it on purpose and it can be read."
    )


def write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an .npz file so that a reader sees all of it or nothing, even if this process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as partial:
        np.savez_compressed(partial, **dict(arrays))  # type: ignore[arg-type]


def check_structure(arrays: Mapping[str, NDArray[Any]], where: str) -> None:
    """Refuse what is not laid out as a data set: ``X`` with ``y``, or user, item and rating.

    Parameters
    ----------
    arrays : dict of arrays
        The data set.
    where : str
        What to call it in an error.
    """
    for name, array in arrays.items():
        if array.dtype.kind not in NUMERIC + "US":
            raise DamagedDatasetError(
                f"{where}: array {name!r} has type {array.dtype}; numbers or strings are expected."
            )
    if "X" not in arrays:
        _check_ratings(arrays, where)
        return
    X = arrays["X"]
    if X.ndim != 2 or X.dtype.kind not in NUMERIC:
        raise DamagedDatasetError(
            f"{where}: X must be a table of numbers; it is of shape {X.shape} and type {X.dtype}."
        )
    for name in ("y", *ROW_ARRAYS):
        if name in arrays and arrays[name].shape != (len(X),):
            raise DamagedDatasetError(
                f"{where}: {name} must have one entry for each of the {len(X)} rows of X; its shape is "
                f"{arrays[name].shape}."
            )
    if "feature_names" in arrays and arrays["feature_names"].shape != (X.shape[1],):
        raise DamagedDatasetError(
            f"{where}: feature_names must have one entry for each of the {X.shape[1]} columns of X; its shape is "
            f"{arrays['feature_names'].shape}."
        )


def _check_ratings(arrays: Mapping[str, NDArray[Any]], where: str) -> None:
    missing = [name for name in RATINGS if name not in arrays]
    if missing:
        raise DamagedDatasetError(
            f"{where}: there is no array X, nor the arrays {', '.join(RATINGS)} of a set of ratings "
            f"(found: {', '.join(arrays) or 'nothing'})."
        )
    shapes = {arrays[name].shape for name in RATINGS}
    if len(shapes) > 1 or len(shapes.pop()) != 1:
        raise DamagedDatasetError(f"{where}: {', '.join(RATINGS)} must be of one length.")


@cache
def names_bundled() -> frozenset[str]:
    """Return the names of the sets that are in the repository."""
    folder = files("reproduction.datasets").joinpath("npz")
    return frozenset(entry.name.removesuffix(".npz") for entry in folder.iterdir() if entry.name.endswith(".npz"))


def load_bundled(name: str) -> Arrays:
    """Return the arrays of a set that is in the repository."""
    with as_file(files("reproduction.datasets").joinpath("npz", f"{name}.npz")) as path:
        return decode(read(path))


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
