"""Write files whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name beside `path` to write to; it replaces `path` at the end, or is removed after an error.

    A file that is there keeps its permissions, and a symbolic link stays: the file that it leads to is replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "result.txt")
    ...     with atomic_path(target) as partial:
    ...         _ = partial.write_text("done")
    ...         before = target.exists()
    ...     before, target.read_text()
    (False, 'done')
    """
    target = Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; give the name of a file", str(target))
    if target.exists() and not target.is_file():
        raise FileExistsError(errno.EEXIST, "is not a plain file, and is not replaced by one", str(target))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder to write to", str(target.parent))
    # The ending stays, because writers choose the format by it.
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.stem}.", suffix=f".part{target.suffix}", dir=target.parent)
    except OSError as error:
        # A reader knows the name that was asked for, not the temporary one.
        raise OSError(error.errno, error.strerror, str(target)) from None
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        # mkstemp makes files for the owner alone.
        partial.chmod(_permissions(target))
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write text as UTF-8, or bytes, whole or not at all; create missing folders."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def _permissions(target: Path) -> int:
    """Return the permissions of the existing file, or those of any new file."""
    try:
        return target.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
