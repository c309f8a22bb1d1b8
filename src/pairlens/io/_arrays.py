"""Matrices in NPY files and NPZ archives, some rows at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pairlens.io._numpy_files import check_length, load_archive, numeric_matrix, table_among
from pairlens.io.tables import check_column


class StoredRows(NamedTuple):
    """A matrix of numbers in an open file.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    read : callable
        ``read(first, count)`` gives `count` rows from `first` on. Rows have to be asked for from first to last.
    ids : array of shape (n_rows,), optional
        Their names, where they were asked for.
    """

    shape: tuple[int, int]
    read: Callable[[int, int], NDArray[Any]]
    ids: NDArray[Any] | None = None


class _Header(NamedTuple):
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


@contextmanager
def stored_npy(path: Path) -> Iterator[StoredRows]:
    """The matrix of an NPY file, by plain reads: pages of a memory map would count as memory of this process."""
    with path.open("rb") as file:
        header = _read_header(file, path.name, path.stat().st_size)
        # An empty array of the same kind stands for the one in the file.
        numeric_matrix(np.empty((0,) * len(header.shape), dtype=header.dtype), path.name)
        n_rows, width = header.shape
        dtype, start = header.dtype, file.tell()

        def by_rows(first: int, count: int) -> NDArray[Any]:
            file.seek(start + first * width * dtype.itemsize)
            return np.fromfile(file, dtype, count * width).reshape(count, width)

        def by_columns(first: int, count: int) -> NDArray[Any]:
            rows = np.empty((count, width), dtype=dtype)
            for column in range(width):
                file.seek(start + (column * n_rows + first) * dtype.itemsize)
                rows[:, column] = np.fromfile(file, dtype, count)
            return rows

        yield StoredRows((n_rows, width), by_columns if header.fortran else by_rows)


@contextmanager
def stored_npz(path: Path, ids: str | None) -> Iterator[StoredRows]:
    """The matrix of an NPZ archive as it is unpacked; one that is stored by columns is read whole."""
    with load_archive(path) as archive:
        members = {name: f"{name}.npy" if f"{name}.npy" in archive.zip.namelist() else name for name in archive.files}
        headers = {}
        for name, member in members.items():
            with archive.zip.open(member) as file:
                headers[name] = _read_header(file, f"{name} of {path.name}", archive.zip.getinfo(member).file_size)
        chosen = table_among({name: (len(header.shape), header.dtype) for name, header in headers.items()}, path.name)
        (n_rows, width), fortran, dtype = headers[chosen]
        names = None
        if ids is not None:
            check_column(ids, [name for name in headers if name not in (chosen, "feature_names")], path.name)
            names = check_length(archive[ids], ids, n_rows, path.name)
        if fortran:
            values = archive[chosen]
            yield StoredRows((n_rows, width), lambda first, count: values[first : first + count], names)
            return
        with archive.zip.open(members[chosen]) as file:
            _read_header(file, path.name, archive.zip.getinfo(members[chosen]).file_size)

            def next_rows(first: int, count: int) -> NDArray[Any]:  # noqa: ARG001
                return np.frombuffer(_read_all(file, count * width * dtype.itemsize), dtype).reshape(count, width)

            yield StoredRows((n_rows, width), next_rows, names)


def _read_header(file: IO[bytes], source: str, size: int) -> _Header:
    """What stands before the numbers; `size` is how many bytes the whole file has."""
    try:
        read = npy.read_array_header_1_0 if npy.read_magic(file) == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{source} is not a NumPy array of numbers: {error}") from None
    if not dtype.hasobject and file.tell() + math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"{source} is cut short: its header promises the shape {shape}")
    return _Header(shape, fortran, dtype)


def _read_all(file: IO[bytes], count: int) -> bytearray:
    """Exactly `count` bytes, whatever the file gives at a time."""
    found = bytearray(count)
    filled = 0
    with memoryview(found) as view:
        while filled < count:
            part = file.readinto(view[filled:])  # type: ignore[attr-defined]
            if not part:
                raise EOFError
            filled += part
    return found
