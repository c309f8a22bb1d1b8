"""NPY and NPZ files: arrays of numbers, with errors that say what is wrong with a file."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pairlens.io._damage import reading, short

KIND = "an archive of NumPy arrays"
MAX_HEADER = 10_000
"""Bytes of the header of an array."""
_STRING = r"""(?:'[^'\\]*+'|"[^"\\]*+")"""
_SHAPE = r"\(\s*+(?:\d++L?\s*+,?\s*+)*+\)"
_FIELD = rf"\(\s*+{_STRING}\s*+,\s*+{_STRING}\s*+(?:,\s*+{_SHAPE}\s*+)?+\)"
_VALUE = rf"(?:{_STRING}|True|False|{_SHAPE}|\[\s*+(?:{_FIELD}\s*+,?\s*+)*+\])"
HEADER = re.compile(rf"\{{\s*+(?:{_STRING}\s*+:\s*+{_VALUE}\s*+,?\s*+){{3}}\}}\s*+")
"""What the header of an array looks like: the parser of Python, which NumPy asks, takes for ever over some texts."""
MAX_EMPTY_AXIS = 1 << 24
"""Length of an axis of an array without entries, which no entry pays for."""


class Header(NamedTuple):
    """What stands before the numbers of an array in a file."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


def read_header(file: IO[bytes], source: str, size: int) -> Header:
    """Read what stands before the numbers of an array; ValueError if it is not a header, or promises too much.

    Parameters
    ----------
    file : binary file
        At its beginning.
    source : str
        What to call it in errors.
    size : int
        How many bytes the whole file has.
    """
    try:
        shape, fortran, dtype = _parsed_header(file)
    except Exception as error:
        # NumPy evaluates the header as Python text, which fails in many ways.
        raise ValueError(f"{source} is not a NumPy array of numbers, or is damaged: {short(error)}") from None
    if dtype.hasobject:
        raise ValueError(
            f"{source} is not a NumPy array of numbers: it holds pickled objects, which could execute code"
        )
    if min(shape, default=0) < 0 or dtype.itemsize == 0 or (0 in shape and max(shape) > MAX_EMPTY_AXIS):
        raise ValueError(f"{source} is damaged: its header promises {dtype} of the shape {shape}")
    if file.tell() + math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"{source} is cut short: its header promises the shape {shape}")
    return Header(shape, fortran, dtype)


def _parsed_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(file)
    width = 2 if version == (1, 0) else 4
    length = file.read(width)
    count = int.from_bytes(length, "little")
    if len(length) < width or count > MAX_HEADER:
        raise ValueError(f"its header has {count} bytes")
    content = file.read(count)
    if HEADER.fullmatch(content.decode("utf-8")) is None:
        raise ValueError("its header is odd")
    read = npy.read_array_header_1_0 if width == 2 else npy.read_array_header_2_0
    return read(io.BytesIO(length + content))


def load_array(path: Path) -> NDArray[Any]:
    """A two-dimensional array of numbers from an NPY file."""
    with path.open("rb") as file:
        if file.read(2) == b"PK":
            raise ValueError(f"{path.name} is an NPZ archive: give it the ending .npz")
        file.seek(0)
        read_header(file, path.name, path.stat().st_size)
        file.seek(0)
        with reading(path, "a NumPy array of numbers"):
            values = npy.read_array(file, allow_pickle=False)
    return numeric_matrix(values, path.name)


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


class Archive:
    """An open NPZ archive, whose arrays are read one by one.

    Attributes
    ----------
    headers : dict
        What stands before the numbers of each array, by its name.
    """

    def __init__(self, path: Path, zipped: zipfile.ZipFile) -> None:
        self._path, self._zipped = path, zipped
        self._members = {name.removesuffix(".npy"): name for name in zipped.namelist()}
        self.headers: dict[str, Header] = {}
        for name in self._members:
            with self.open(name):
                pass

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open the file of an array, at its first number."""
        info = self._zipped.getinfo(self._members[name])
        with reading(self._path, KIND):
            file = self._zipped.open(info)
        with file:
            self.headers[name] = read_header(file, f"{name} of {self._path.name}", info.file_size)
            yield file

    def read(self, name: str) -> NDArray[Any]:
        """Read an array."""
        with reading(self._path, KIND), self._zipped.open(self._members[name]) as file:
            return np.asarray(npy.read_array(file, allow_pickle=False))


@contextmanager
def load_archive(path: Path) -> Iterator[Archive]:
    """An NPZ archive, open; what is wrong with it is said as a ValueError."""
    with path.open("rb") as file:
        if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
            raise ValueError(f"{path.name} is a single NumPy array: give it the ending .npy")
        file.seek(0)
        with reading(path, KIND):
            zipped = zipfile.ZipFile(file)
        with zipped:
            yield Archive(path, zipped)


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an NPZ archive by name."""
    with load_archive(path) as archive:
        return {name: archive.read(name) for name in archive.headers}


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
