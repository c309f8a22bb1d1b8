"""NPY and NPZ files: arrays of numbers, with errors that say what is wrong with a file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def load_array(path: Path) -> NDArray[Any]:
    """A two-dimensional array of numbers from an NPY file."""
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        if isinstance(error, OSError) and not path.is_file():
            raise
        raise ValueError(f"{path.name} is not a NumPy array of numbers: {_short(error)}") from None
    if not isinstance(values, np.ndarray):
        raise ValueError(f"{path.name} is an NPZ archive: give it the ending .npz")
    return numeric_matrix(values, path.name)


def _short(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    # NumPy takes whatever it does not know for a pickle, and says how to load that.
    return "it is something else" if "pickle" in text and "Object arrays" not in text else text


def numeric_matrix(values: NDArray[Any], source: str) -> NDArray[Any]:
    """The array itself; ValueError if it is no matrix of numbers."""
    if values.ndim != 2:
        raise ValueError(f"{source} must be a table of rows and columns, but has the shape {values.shape}")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{source} must hold numbers, but holds {values.dtype}")
    return values


def as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """64-bit numbers: in 32 bits, scaling rows far from zero loses most of their digits."""
    return values.astype(np.float64, copy=False)


@contextmanager
def load_archive(path: Path) -> Iterator[Any]:
    """An NPZ archive, open; what is wrong with it is said as a ValueError."""
    try:
        archive = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path.name} is not an archive of NumPy arrays: {_short(error)}") from None
    if isinstance(archive, np.ndarray):
        raise ValueError(f"{path.name} is a single NumPy array: give it the ending .npy")
    try:
        with archive:
            yield archive
    except (EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path.name} is damaged: {_short(error) or 'it ends too early'}") from None


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an NPZ archive by name."""
    with load_archive(path) as archive:
        try:
            return {name: np.asarray(archive[name]) for name in archive.files}
        except ValueError as error:
            raise ValueError(f"{path.name} is not an archive of NumPy arrays: {_short(error)}") from None


def table_among(arrays: Mapping[str, tuple[int, np.dtype[Any]]], source: str) -> str:
    """The array of an archive that holds the rows, by the number of axes and the type of each."""
    matrices = [name for name, (axes, dtype) in arrays.items() if axes == 2 and dtype.kind in "biuf"]
    if "X" in matrices:
        return "X"
    if len(matrices) != 1:
        found = f"it has {listed_names(list(arrays))}" if arrays else "it is empty"
        raise ValueError(f"{source} must have one table of numbers, or one named X; {found}")
    return matrices[0]


def check_length(column: NDArray[Any], name: str, n_rows: int, source: str) -> NDArray[Any]:
    """The column itself; ValueError if it has not one entry for each row."""
    if column.shape != (n_rows,):
        raise ValueError(
            f"{name} of {source} must have one entry for each of the {n_rows} rows, but has the shape {column.shape}"
        )
    return column


def listed_names(names: Sequence[str]) -> str:
    """The first names for an error message."""
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
