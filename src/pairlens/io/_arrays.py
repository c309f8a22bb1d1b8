"""Matrices in NPY files and NPZ archives, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairlens.io._damage import reading
from pairlens.io._numpy_files import KIND, check_length, load_archive, numeric_matrix, read_header, table_among
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


@contextmanager
def stored_npy(path: Path) -> Iterator[StoredRows]:
    """The matrix of an NPY file, by plain reads: pages of a memory map would count as memory of this process."""
    with path.open("rb") as file:
        header = read_header(file, path.name, path.stat().st_size)
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
        headers = archive.headers
        chosen = table_among({name: (len(header.shape), header.dtype) for name, header in headers.items()}, path.name)
        (n_rows, width), fortran, dtype = headers[chosen]
        names = None
        if ids is not None:
            check_column(ids, [name for name in headers if name not in (chosen, "feature_names")], path.name)
            names = check_length(archive.read(ids), ids, n_rows, path.name)
        if fortran:
            values = archive.read(chosen)
            yield StoredRows((n_rows, width), lambda first, count: values[first : first + count], names)
            return
        with archive.open(chosen) as file:

            def next_rows(first: int, count: int) -> NDArray[Any]:  # noqa: ARG001
                with reading(path, KIND):
                    content = _read_all(file, count * width * dtype.itemsize)
                return np.frombuffer(content, dtype).reshape(count, width)

            yield StoredRows((n_rows, width), next_rows, names)


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
