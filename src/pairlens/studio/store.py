"""The file that keeps every answer: an append-only log of events in SQLite."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from pairlens._atomic import atomic_path
from pairlens.studio import entries
from pairlens.studio.entries import UNREADABLE, VERSION, Event
from pairlens.studio.guard import ANOTHER, FileGuard, StoreError, StoreFullError, StoreMovedError, beside, check_beside

BUSY_SECONDS = 10.0
SETTLE_SECONDS = 1.0
"""Time after which an answer is in the file itself, and not only in the log of SQLite beside it."""


class Store:
    """An append-only log with one writer, in a file that is made if it is not there.

    An event is acknowledged only when it is on the disk: in the write-ahead log of SQLite (``FILE-wal``), written with
    ``synchronous=FULL``, and after a second in the file itself. Nothing is ever changed or removed: undoing is an event
    too. Every event has a digest, so that one that was changed from outside is noticed, and nothing is acknowledged
    when the file was moved or removed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(Path(folder, "answers.db")) as store:
    ...     first = store.append(Event("a1", "answer", "ann", {"answer": "same"}))
    ...     again = store.append(Event("a1", "answer", "ann", {"answer": "same"}))
    ...     [event.body["answer"] for event in store.events()], first[1], again[1]
    (['same'], True, False)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        # SQLite keeps its files beside the one that a symbolic link leads to.
        self._place = self.path.resolve()
        self._lock = threading.Lock()
        self._guard = FileGuard()
        self._settling: threading.Timer | None = None
        self._rescued: Path | None = None
        try:
            self._open()
        except BaseException as error:
            self._guard.release()
            if isinstance(error, UNREADABLE):
                raise self._explained(error) from error
            if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise self._unwritable() from error
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Opening

    def _open(self) -> None:
        if not self.path.parent.is_dir():
            raise StoreError(
                f"{self.path.parent} is not a folder, so {self.path.name} cannot be kept there",
                self.path,
            )
        if self.path.is_dir():
            raise StoreError(
                f"{self.path} is a folder; store= names the file that keeps the answers",
                self.path,
            )
        logs = beside(self._place)[:2]
        for held in (self._place, *logs):
            if held.exists():
                self._guard.hold(held)
        check_beside(self._place)
        self._check_header(self._guard.hold(self._place))
        self._connection = sqlite3.connect(
            f"{self._place.as_uri()}?mode=rw",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._prepare()
            for log in logs:
                if log.exists():
                    self._guard.hold(log)
        except BaseException:
            self._connection.close()
            raise

    def _check_header(self, descriptor: int) -> None:
        """Refuse what is not a store, before SQLite opens it."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        header = os.read(descriptor, 100)
        if not header:
            return
        if not header.startswith(b"SQLite format 3\0"):
            raise self._damaged("file is not a database")
        version, known = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
        if known != entries.APPLICATION_ID:
            raise StoreError(
                f"{self.path} is a database of another program; it was not touched",
                self.path,
                remedy=ANOTHER.capitalize(),
            )
        if version != VERSION:
            age = "a later" if version > VERSION else "an earlier"
            raise StoreError(
                f"{self.path} was written by {age} version of pairlens (format {version}, this one knows {VERSION})",
                self.path,
                remedy=f"Use that version, or {ANOTHER}",
            )

    def _prepare(self) -> None:
        execute = self._connection.execute
        found = execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise self._damaged(found)
        if execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            # Before there is a write-ahead log: the file is marked as a store from its first moment.
            execute("PRAGMA synchronous = EXTRA")
            with self._transaction():
                entries.create(self._connection)
        execute("PRAGMA journal_mode = WAL")
        # Only `_settle` writes into the file itself, so that it is noticed when somebody else does.
        execute("PRAGMA wal_autocheckpoint = 0")
        execute("PRAGMA synchronous = FULL")
        # A write each time: a read-only file or folder is found now, not at the first answer.
        with self._transaction():
            entries.write_meta(self._connection, {"opened": entries.now()})
        self._settle()
        self._meta = entries.read_meta(self._connection)
        store, self._events = entries.read_events(self._connection)
        self._name = store or secrets.token_hex(8)
        self._known = {event.id: event for event in self._events if not event.damage}
        self._last = max((event.seq for event in self._known.values()), default=0)
        self._spoiled = {event.seq for event in self._events if event.damage}

    # What went wrong

    def _damaged(self, reason: object) -> StoreError:
        words = " ".join(str(reason).split())
        return StoreError(
            f"{self.path} is damaged ({words}); it was not changed",
            self.path,
            remedy=f"Keep it; pairlens studio backup {self.path} NEW saves what can be read of it, and store= goes on "
            "with that copy",
        )

    def _unwritable(self) -> StoreError:
        return StoreError(
            f"{self.path} cannot be written: the file or its folder is read-only",
            self.path,
            remedy="Give another place by store=",
        )

    def _explained(self, error: Exception) -> StoreError:
        """Return what an error of SQLite means for the person."""
        name = getattr(error, "sqlite_errorname", "")
        kept = "this answer is not stored yet, all earlier ones are safe"
        if name.startswith("SQLITE_FULL"):
            return StoreFullError(
                f"the disk of {self.path.parent} is full: {kept}. Free some space; it is sent again by itself"
            )
        if name.startswith("SQLITE_IOERR"):
            return StoreFullError(
                f"{self.path} could not be written ({name}: the disk is full or fails, or a limit is reached): {kept}. "
                "When it can be written again, it is sent again by itself"
            )
        if name.startswith("SQLITE_BUSY"):
            return StoreFullError(f"{self.path.name} is in use by another program; close it, then answer again")
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return self._unwritable()
        return self._damaged(error)

    def _misplaced(self, error: StoreMovedError) -> StoreMovedError:
        """Return the error with what to do about it."""
        said = f"{error}: this answer is not stored"
        if error.path != self._place:
            words = f"{said}. Stop the studio, which writes all earlier ones into {self.path}, and start it again"
        elif not error.lost:
            words = (
                f"{said}, all earlier ones are in the file that was moved. Move it back, and it is sent again by "
                "itself; or stop the studio, and start it on the file where it is now"
            )
        elif self._rescue() is not None:
            words = (
                f"{said}, all earlier ones were saved as {self._rescued}. Stop the studio, give that file the name "
                f"{self.path.name}, and start the studio again"
            )
        else:
            words = f"{said}, and earlier ones are lost when the studio stops. Export them on the page first"
        error.reason = words
        return error

    def _rescue(self) -> Path | None:
        """Write a file that was removed or overwritten anew, under a name that is free, from what is known of it."""
        if self._rescued is None:
            stems = (f"{self._place.stem}.rescued{f'-{number}' if number else ''}" for number in count())
            target = next(name for stem in stems if not (name := self._place.with_stem(stem)).exists())
            with suppress(OSError, sqlite3.Error):
                with atomic_path(target) as partial, closing(sqlite3.connect(partial)) as copy, copy:
                    entries.create(copy)
                    entries.write_meta(copy, self._meta)
                    for event in self._events:
                        if not event.damage:
                            entries.write_event(copy, self._name, event.seq, event)
                self._rescued = target
        return self._rescued

    # Writing and reading

    def append(self, event: Event) -> tuple[Event, bool]:
        """Store an event, and return the stored one and whether it is new; the one of before, if its id is there
        already.
        """
        with self._lock:
            try:
                self._guard.check()
                if event.id in self._known:
                    return self._known[event.id], False
                self._write(event)
                # Once more: what was written into a file that has just been moved is not acknowledged either.
                self._guard.check()
            except StoreMovedError as error:
                raise self._misplaced(error) from None
            return self._known[event.id], True

    def _write(self, event: Event) -> None:
        seq = self._last + 1
        while seq in self._spoiled:
            seq += 1
        with self._transaction():
            stored = entries.write_event(self._connection, self._name, seq, event)
        self._events.append(stored)
        self._known[event.id], self._last = stored, seq
        # Into the file itself, but not while somebody waits for an answer.
        if self._settling is None:
            self._settling = threading.Timer(SETTLE_SECONDS, self._settle_now)
            self._settling.daemon = True
            self._settling.start()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise self._explained(error) from error
            raise

    def _settle_now(self) -> None:
        with self._lock:
            if self._settling is not None:
                self._settling = None
                self._settle()

    def _settle(self) -> None:
        # If it does not succeed, the answers are in the log, and the next one tries again. Nobody waits for a reader.
        if self._guard.overwritten(self._place):
            return
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self._guard.leave(self._place)
        self._connection.execute(f"PRAGMA busy_timeout = {round(1000 * BUSY_SECONDS)}")

    def events(self) -> Iterator[Event]:
        """Return all events in their order, with those that cannot be used: as they were read, and what came since."""
        with self._lock:
            return iter(list(self._events))

    def meta(self) -> dict[str, Any]:
        """Return what is known about the table and the settings."""
        with self._lock:
            return {key: value for key, value in entries.read_meta(self._connection).items() if key != "opened"}

    def set_meta(self, values: Mapping[str, Any]) -> None:
        """Write entries about the table and the settings."""
        with self._lock:
            with self._transaction():
                entries.write_meta(self._connection, values)
            self._meta.update(values)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._settling is not None:
                self._settling.cancel()
                self._settling = None
            self._settle()
            self._connection.close()
            self._guard.release()


class Copied(NamedTuple):
    """Content of a copy: events that can be used, what is wrong with others by their position in the log.

    It is `whole` unless the file was so damaged that some of it could not be read.
    """

    n_events: int
    damages: dict[int, str]
    whole: bool


def backup(source: Path, target: Path) -> Copied:
    """Copy a store to a new file, also one that a studio has open; of a damaged one, all that can be read."""
    if not source.is_file():
        raise StoreError(
            f"{source} is not there",
            argument="source",
            value=source,
            remedy="Give the file that keeps the answers, such as data.answers.db",
        )
    if target.exists():
        raise StoreError(
            f"{target} is there already", argument="target", value=target, remedy="Give the name of a new file"
        )
    place = source.resolve()
    guard = FileGuard()
    try:
        options = _claim(guard, place)
        with closing(sqlite3.connect(f"{place.as_uri()}?{options}", uri=True, isolation_level=None)) as connection:
            whole = _copy(connection, source, target)
    finally:
        guard.release()
    with closing(sqlite3.connect(target)) as copy:
        _, events = entries.read_events(copy)
    damages = {event.seq: event.damage for event in events if event.damage}
    return Copied(len(events) - len(damages), damages, whole)


def _claim(guard: FileGuard, place: Path) -> str:
    """Keep studios away, unless one has the store open already; how SQLite is to open it."""
    try:
        guard.hold(place)
    except StoreError:
        return "mode=rw"
    except OSError:  # on a disk that is read-only, nobody else writes either
        return "mode=rw" if any(each.exists() for each in beside(place)) else "immutable=1"
    check_beside(place)
    return "mode=rw"


def _copy(connection: sqlite3.Connection, source: Path, target: Path) -> bool:
    """Copy what can be read; whether that is all."""
    whole = _is_whole(connection)
    try:
        if not whole:
            # Without this, SQLite reads nothing of a file that was cut short.
            connection.execute("PRAGMA writable_schema = ON")
        known = connection.execute("PRAGMA application_id").fetchone()[0]
    except UNREADABLE as error:
        raise StoreError(f"{source} cannot be read as a database ({error}); nothing was written") from None
    if known != entries.APPLICATION_ID:
        raise StoreError(f"{source} is not a store of a studio; nothing was written")
    if whole:
        with atomic_path(target) as partial, closing(sqlite3.connect(partial)) as copy:
            connection.backup(copy)
        return True
    with atomic_path(target) as partial, closing(sqlite3.connect(partial, isolation_level=None)) as copy:
        entries.create(copy)
        with suppress(*UNREADABLE):
            entries.write_meta(copy, entries.read_meta(connection))
        for row in _readable(connection):
            with suppress(sqlite3.Error):
                entries.write_row(copy, row)
    return False


def _is_whole(connection: sqlite3.Connection) -> bool:
    """Return whether all of a store can be read."""
    try:
        entries.read_meta(connection)
        entries.read_events(connection)
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except UNREADABLE:
        return False


def _readable(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return the rows of a damaged log: from both ends up to what cannot be read, and one by one in between."""
    found: dict[int, tuple[Any, ...]] = {}
    for order in ("seq", "seq DESC"):
        with suppress(*UNREADABLE):
            for row in entries.read_rows(connection, order=order):
                if row[0] not in found or entries.is_sound(row):
                    found[row[0]] = row
    for seq in range(1, len(found) + entries.MOST_GAP):
        if seq not in found:
            with suppress(*UNREADABLE):
                found.update((seq, row) for row in entries.read_rows(connection, where=f"seq = {seq}"))
    return list(found.values())
