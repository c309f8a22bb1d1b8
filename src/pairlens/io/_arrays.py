"""Read NPY and NPZ files, with errors that say what is wrong with a file."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pairlens._text import listed_names
from pairlens.exceptions import InputError, MissingExtraError

KIND = "an archive of NumPy arrays"
MAX_HEADER = 10_000
"""Bytes of the header of an array."""
_STRING = r"""(?:'[^'\\]*+'|"[^"\\]*+")"""
_SHAPE = r"\(\s*+(?:\d++L?\s*+,?\s*+)*+\)"
_FIELD = rf"\(\s*+{_STRING}\s*+,\s*+{_STRING}\s*+(?:,\s*+{_SHAPE}\s*+)?+\)"
_VALUE = rf"(?:{_STRING}|True|False|{_SHAPE}|\[\s*+(?:{_FIELD}\s*+,?\s*+)*+\])"
HEADER = re.compile(rf"\{{\s*+(?:{_STRING}\s*+:\s*+{_VALUE}\s*+,?\s*+){{3}}\}}\s*+")
"""What the header of an array looks like: the parser of Python, which NumPy uses, does not end on some texts."""
MAX_EMPTY_AXIS = 1 << 24
"""Length of an axis of an array without entries, which no entry pays for."""


class FileError(InputError):
    """Report that the file at `path` cannot be read as what it should be."""

    def __init__(self, reason: str, value: Any = None, remedy: str | None = None) -> None:
        super().__init__(reason, argument="path", value=value, remedy=remedy)


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a library raises while it reads a file into an error that names the file.

    `kind` is what the file should be, with its article, such as "a Parquet file".
    """
    try:
        yield
    except MissingExtraError:
        raise
    except MemoryError:
        raise FileError(f"{path.name} needs more memory than there is, or is damaged") from None
    except Exception as error:
        if isinstance(error, ValueError) and path.name in str(error) and "\n" not in str(error):
            raise
        # Files that are missing or not allowed raise errors with a number; those of libraries have none.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FileError(f"{path.name} is not {kind}, or is damaged: {short(error)}") from None


def short(error: Exception) -> str:
    """Return the first line of what an error says."""
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error).strip().partition("\n")[0]
    # NumPy takes whatever it does not know for a pickle, and says how to load that.
    if ("pickle" in text and "Object arrays" not in text) or "magic string" in text:
        return "it is something else"
    return text.rstrip(".") or "it ends too early"


def read_header(file: IO[bytes], source: str, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape of an array, whether it is in the order of Fortran, and its type, as a file says first.

    InputError if the file does not, or promises too much. It is at its beginning and has `size` bytes; `source` names
    it in errors.
    """
    try:
        shape, fortran, dtype = _parsed_header(file)
    except Exception as error:
        # NumPy evaluates the header as Python text, which fails in many ways.
        raise FileError(f"{source} is not a NumPy array of numbers, or is damaged: {short(error)}") from None
    if dtype.hasobject:
        raise FileError(f"{source} is not a NumPy array of numbers: it holds pickled objects, which could execute code")
    if min(shape, default=0) < 0 or dtype.itemsize == 0 or (0 in shape and max(shape) > MAX_EMPTY_AXIS):
        raise FileError(f"{source} is damaged: its header promises {dtype} of the shape {shape}")
    if file.tell() + math.prod(shape) * dtype.itemsize > size:
        raise FileError(f"{source} is cut short: its header promises the shape {shape}")
    return shape, fortran, dtype


def _parsed_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(file)
    width = 2 if version == (1, 0) else 4
    length = file.read(width)
    count = int.from_bytes(length, "little")
    if len(length) < width or count > MAX_HEADER:
        raise ValueError(f"its header has {count} bytes")
    content = file.read(count)
    if HEADER.fullmatch(content.decode("utf-8")) is None:
        raise ValueError("its header is malformed")
    read = npy.read_array_header_1_0 if width == 2 else npy.read_array_header_2_0
    return read(io.BytesIO(length + content))


def load_array(path: Path) -> NDArray[Any]:
    """Return the two-dimensional array of numbers of an NPY file."""
    with path.open("rb") as file:
        if file.read(2) == b"PK":
            raise FileError(f"{path.name} is an NPZ archive: give it the ending .npz")
        file.seek(0)
        read_header(file, path.name, path.stat().st_size)
        file.seek(0)
        with reading(path, "a NumPy array of numbers"):
            values = npy.read_array(file, allow_pickle=False)
    return numeric_matrix(values, path.name)


@contextmanager
def stored_rows(path: Path) -> Iterator[tuple[int, int, Callable[[int, int], NDArray[Any]]]]:
    """Open the matrix of an NPY file: its rows, its columns, and ``read(first, count)``.

    By plain reads: pages of a memory map would count as memory of this process.
    """
    with path.open("rb") as file:
        shape, fortran, dtype = read_header(file, path.name, path.stat().st_size)
        # An array without memory stands for the one in the file.
        numeric_matrix(np.broadcast_to(np.empty((), dtype=dtype), shape), path.name)
        n_rows, width = shape
        start = file.tell()

        def by_rows(first: int, count: int) -> NDArray[Any]:
            file.seek(start + first * width * dtype.itemsize)
            return np.fromfile(file, dtype, count * width).reshape(count, width)

        def by_columns(first: int, count: int) -> NDArray[Any]:
            rows = np.empty((count, width), dtype=dtype)
            for column in range(width):
                file.seek(start + (column * n_rows + first) * dtype.itemsize)
                rows[:, column] = np.fromfile(file, dtype, count)
            return rows

        yield n_rows, width, by_columns if fortran else by_rows


def numeric_matrix(values: NDArray[Any], source: str) -> NDArray[Any]:
    """Return the array; InputError if it is not a matrix of numbers."""
    if values.ndim != 2:
        raise FileError(f"{source} must be a table of rows and columns, but has the shape {values.shape}")
    if values.dtype.kind not in "biuf":
        raise FileError(f"{source} must hold numbers, but holds {values.dtype}")
    return values


def as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return 64-bit numbers: in 32 bits, scaling rows far from zero loses most of their digits."""
    return values.astype(np.float64, copy=False)


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return all arrays of an NPZ archive by name; the headers of all are checked before anything is unpacked."""
    with path.open("rb") as file:
        if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
            raise FileError(f"{path.name} is a single NumPy array: give it the ending .npy")
        file.seek(0)
        with reading(path, KIND):
            archive = zipfile.ZipFile(file)
        with archive:
            for member in archive.infolist():
                with reading(path, KIND):
                    content = archive.open(member)
                with content:
                    name = member.filename.removesuffix(".npy")
                    read_header(content, f"{name} of {path.name}", member.file_size)
            arrays = {}
            for name in archive.namelist():
                with reading(path, KIND), archive.open(name) as content:
                    arrays[name.removesuffix(".npy")] = npy.read_array(content, allow_pickle=False)
            return arrays


def table_among(arrays: Mapping[str, NDArray[Any]], source: str) -> str:
    """Return the array of an archive that holds the rows."""
    matrices = [name for name, values in arrays.items() if values.ndim == 2 and values.dtype.kind in "biuf"]
    if "X" in matrices:
        return "X"
    if len(matrices) != 1:
        found = f"it has {listed_names(list(arrays))}" if arrays else "it is empty"
        raise FileError(f"{source} must have one table of numbers, or one named X; {found}")
    return matrices[0]


def check_length(column: NDArray[Any], name: str, n_rows: int, source: str) -> NDArray[Any]:
    """Return the column; InputError unless it has one entry for each row."""
    if column.shape != (n_rows,):
        raise FileError(
            f"{name} of {source} must have one entry for each of the {n_rows} rows, but has the shape {column.shape}"
        )
    return column


def check_sparse(matrix: Any) -> None:
    """Raise ValueError if entries of a CSR or CSC matrix lie outside, because compiled code trusts their places."""
    matrix.check_format(full_check=True)
    # Where the last pointer is 0 or below, SciPy sees no entries and does not look at the others.
    if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
        raise ValueError("the pointers of a sparse matrix must not decrease")
