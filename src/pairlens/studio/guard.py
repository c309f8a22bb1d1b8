"""The files of a store from outside: who holds them, whether they are still there, and what lies beside them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

from pairlens.exceptions import InputError
from pairlens.studio.entries import UNREADABLE, read_events

ANOTHER = "give another file by store="


class StoreError(InputError):
    """Report that the file with the answers cannot be used."""

    def __init__(self, reason: str, value: Any = None, *, argument: str = "store", remedy: str | None = None) -> None:
        super().__init__(reason, argument=argument, value=value, remedy=remedy)


class StoreFullError(StoreError):
    """Report an event that could not be written for now; earlier ones are safe, and it may be sent again."""


class StoreMovedError(StoreError):
    """Report a file of the store that was moved, removed or overwritten while it was open.

    What was sent is not acknowledged.
    """

    def __init__(self, path: Path, words: str) -> None:
        super().__init__(f"{path} was {words} while the studio had it open", path)
        self.path = path
        self.lost = words != "moved"


class FileGuard:
    """Lock on the files of a store, which also notices when one of them is moved or removed.

    The lock is `flock`'s, which SQLite does not use, and the system lifts it when the process ends in whatever way.
    Readers are let be. The files are held under the name that they have now: the log of a store that was moved away
    is not taken for that of another store with its old name.
    """

    _held: ClassVar[set[tuple[int, int]]] = set()
    """The files that this process holds. To open and close one of them once more would lift SQLite's own locks."""

    def __init__(self) -> None:
        self._files: dict[Path, int] = {}
        self._left: dict[Path, tuple[tuple[int, int], bytes]] = {}

    def hold(self, path: Path) -> int:
        """Lock a file, which is made if it is not there; returns its descriptor."""
        if path in self._files:
            self._let_go(path)
        if path.exists() and _identity(path.stat()) in self._held:
            raise self._taken(path)
        number = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            import fcntl

            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows, where studios of several processes on one table are left to the person
            pass
        except OSError:
            os.close(number)
            raise self._taken(path) from None
        self._held.add(_identity(os.fstat(number)))
        self._files[path] = number
        return number

    @staticmethod
    def _taken(path: Path) -> StoreError:
        if path.name.endswith(("-wal", "-shm")):
            reason = f"another studio is still writing to {path.name}, although its store was moved away from this name"
            return StoreError(reason, path, remedy=f"Stop it first, or {ANOTHER}")
        reason = f"another studio has {path.name} open"
        return StoreError(reason, path, remedy=f"Use that one, stop it, or {ANOTHER}")

    def check(self) -> None:
        """Raise StoreMovedError if a name is not that of the file that is held."""
        for path, number in self._files.items():
            held = os.fstat(number)
            try:
                found = _identity(path.stat())
            except OSError:
                found = None
            if found != _identity(held):
                raise StoreMovedError(path, "moved" if held.st_nlink else "removed")
            if self.overwritten(path):
                raise StoreMovedError(path, "overwritten")

    def leave(self, path: Path) -> None:
        """Remember what a file holds, which nobody else may change from now on."""
        number = self._files[path]
        written, digest = _written(number), blake2b()
        os.lseek(number, 0, os.SEEK_SET)
        while part := os.read(number, 1 << 20):
            digest.update(part)
        self._left[path] = written, digest.digest()

    def overwritten(self, path: Path) -> bool:
        """Return whether somebody else has changed what a file holds since :meth:`leave`."""
        before = self._left.get(path)
        if before is None or before[0] == _written(self._files[path]):
            return False
        self.leave(path)
        if self._left[path][1] == before[1]:
            return False
        self._left[path] = before
        return True

    def release(self) -> None:
        """Let all files go."""
        for path in list(self._files):
            self._let_go(path)

    def _let_go(self, path: Path) -> None:
        number = self._files.pop(path)
        self._left.pop(path, None)
        self._held.discard(_identity(os.fstat(number)))
        os.close(number)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _written(number: int) -> tuple[int, int]:
    status = os.fstat(number)
    return status.st_size, status.st_mtime_ns


def beside(path: Path) -> list[Path]:
    """Return the names of files that SQLite keeps beside a database while it is open, or after a crash."""
    return [path.with_name(path.name + ending) for ending in ("-wal", "-shm", "-journal")]


def check_beside(path: Path) -> None:
    """Raise StoreError if a file beside the store is not its own, before SQLite mixes the two or removes one."""
    log, _, journal = beside(path)
    if not path.exists() or path.stat().st_size == 0:
        # A store has a journal in the moment in which it is made, and then it holds no answer.
        if log.exists() and log.stat().st_size:
            raise StoreError(
                f"{path} is not there, but {log.name} is, which may hold the last answers of a store that was; nothing "
                "was changed",
                path,
                remedy=f"Put that store back under this name, move {log.name} away, or {ANOTHER}",
            )
        return
    logs = [each for each in (log, journal) if each.exists() and each.stat().st_size]
    if logs and not _belong(path, logs):
        raise StoreError(
            f"{_names(logs)} does not belong to {path}; nothing was changed",
            path,
            remedy=f"If a copy was restored under this name, move {_names(logs)} away: it may hold the last answers of "
            "the store that was here before",
        )


def _names(paths: Iterable[Path]) -> str:
    return " and ".join(path.name for path in paths)


def _belong(path: Path, logs: list[Path]) -> bool:
    """Return whether the store with its logs is at least as sound as without them; tried on a copy."""
    with tempfile.TemporaryDirectory(prefix="pairlens-") as folder:
        alone, both = Path(folder, "alone"), Path(folder, "both")
        for copy in (alone, both):
            shutil.copyfile(path, copy)
        for log in logs:
            shutil.copyfile(log, both.with_name(both.name + log.name.removeprefix(path.name)))
        before, after = _counts(alone), _counts(both)
    return after is not None and (before is None or (after[0] >= before[0] and after[1] <= before[1]))


def _counts(path: Path) -> tuple[int, int] | None:
    """Return how many events can be used and how many cannot; None if the database is damaged."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            ask = lambda question: connection.execute(question).fetchone()[0]  # noqa: E731
            if ask("PRAGMA quick_check(1)") != "ok":
                return None
            # The log says how long the file is with it; where it is another one's, the first page says otherwise.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if ask("PRAGMA page_count") * ask("PRAGMA page_size") != path.stat().st_size:
                return None
            if not ask("SELECT count(*) FROM sqlite_master WHERE name = 'events'"):
                return 0, 0
            _, events = read_events(connection)
    except UNREADABLE:
        return None
    damaged = sum(bool(event.damage) for event in events)
    return len(events) - damaged, damaged
