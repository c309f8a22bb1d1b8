"""The file that keeps every answer: an append-only log of events in SQLite."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["Event", "Store", "StoreError", "StoreFullError"]

VERSION = 1
BUSY_SECONDS = 10.0
APPLICATION_ID = 0x504C4E53
"""Marks the file as ours in its header, so that no other program's database is taken for a store."""
TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, "
    "annotator TEXT NOT NULL, at TEXT NOT NULL, body TEXT NOT NULL)",
)


class StoreError(ValueError):
    """The file with the answers cannot be used; the message says why and what to do."""


class StoreFullError(StoreError):
    """An event could not be written for now; what was written before is safe, and it may be sent again."""


@dataclass(frozen=True)
class Event:
    """One line of the log.

    Attributes
    ----------
    id : str
        Made by whoever sends the event, so that sending it twice stores it once.
    kind : str
        "answer", "undo", "change", "retract", "flag", "name", "annotator", "remap".
    annotator : str
        Who did it.
    body : dict
        What was done; JSON.
    at : str
        When it was stored, ISO 8601 in UTC.
    seq : int
        Position in the log from 1 on; 0 before it is stored.
    """

    id: str
    kind: str
    annotator: str
    body: Mapping[str, Any]
    at: str = ""
    seq: int = 0


class Store:
    """An append-only log with one writer.

    An event is acknowledged only when it is on the disk (write-ahead log, ``synchronous=FULL``). Nothing is ever
    changed or removed: undoing is an event too.

    Parameters
    ----------
    path : str or path
        The file; made if it is not there. Its folder must exist.

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
        self._lock = threading.Lock()
        self._open()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.path.parent} is no folder, so {self.path.name} cannot be kept there; see --store")
        if self.path.is_dir():
            raise StoreError(f"{self.path} is a folder; --store names the file that keeps the answers")
        try:
            fresh = self._check() if self.path.exists() else True
            self._connection = self._connect(f"{self.path.absolute().as_uri()}?mode=rwc")
            self._guard = _Guard(self.path)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            # A write each time: a read-only file or folder is found now, not at the first answer.
            self._connection.execute("BEGIN IMMEDIATE")
            if fresh:
                for statement in TABLES:
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._connection.execute(f"PRAGMA user_version = {VERSION}")
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('opened', ?)", (_now(),))
            self._connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            raise self._explained(error) from error

    def _connect(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)

    def _check(self) -> bool:
        """Look at a file that is there without changing it; whether it is empty."""
        with closing(self._connect(f"{self.path.absolute().as_uri()}?mode=ro")) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise self._damaged(found)
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                return True
            known = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
        if known != APPLICATION_ID:
            raise StoreError(
                f"{self.path} is a database of another program; it was not touched. Give another file by --store"
            )
        if version > VERSION:
            raise StoreError(
                f"{self.path} was written by a later version of pairlens (format {version}, this one knows {VERSION}): "
                "update pairlens, or give another file by --store"
            )
        return False

    def _damaged(self, reason: object) -> StoreError:
        words = " ".join(str(reason).split())
        return StoreError(
            f"{self.path} is damaged ({words}). It was not changed. Keep it, restore a copy under this name, or begin "
            "a new one with --store; sqlite3's .recover often saves the answers of a damaged file"
        )

    def _explained(self, error: sqlite3.Error) -> StoreError:
        """What an error of SQLite means for the person."""
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_FULL") or (name.startswith("SQLITE_IOERR") and "disk" in str(error)):
            return StoreFullError(
                f"the disk of {self.path.parent} is full: this answer is not stored yet, all earlier ones are safe. "
                "Free some space; it is sent again by itself"
            )
        if name.startswith("SQLITE_BUSY"):
            return StoreFullError(f"{self.path.name} is in use by another program; close it, then answer again")
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return StoreError(
                f"{self.path} cannot be written: the file or its folder is read-only. Give another place by --store"
            )
        return self._damaged(error)

    def append(self, event: Event) -> tuple[Event, bool]:
        """Store an event; returns when it is on the disk.

        Returns
        -------
        event : Event
            The stored one: that of the first time, if its id is there already.
        new : bool
            Whether it was stored now.
        """
        with self._lock, self._transaction():
            return self._insert(event)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise self._explained(error) from error

    def _insert(self, event: Event) -> tuple[Event, bool]:
        known = self._connection.execute(
            "SELECT id, kind, annotator, body, at, seq FROM events WHERE id = ?", (event.id,)
        ).fetchone()
        if known is not None:
            return _event(known), False
        at = _now()
        body = json.dumps(event.body, ensure_ascii=False, separators=(",", ":"))
        cursor = self._connection.execute(
            "INSERT INTO events (id, kind, annotator, at, body) VALUES (?, ?, ?, ?, ?)",
            (event.id, event.kind, event.annotator, at, body),
        )
        return Event(event.id, event.kind, event.annotator, event.body, at, int(cursor.lastrowid or 0)), True

    def events(self) -> Iterator[Event]:
        """All events in their order."""
        try:
            rows = self._connection.execute(
                "SELECT id, kind, annotator, body, at, seq FROM events ORDER BY seq"
            ).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._explained(error) from error
        return (_event(row) for row in rows)

    def meta(self) -> dict[str, Any]:
        """What is known about the table and the settings."""
        rows = self._connection.execute("SELECT key, value FROM meta WHERE key != 'opened'").fetchall()
        return {key: json.loads(value) for key, value in rows}

    def set_meta(self, values: Mapping[str, Any]) -> None:
        """Write entries about the table and the settings."""
        with self._lock, self._transaction():
            self._connection.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)",
                [(key, json.dumps(value, ensure_ascii=False)) for key, value in values.items()],
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
            self._guard.release()


class _Guard:
    """Keeps a second studio away from the file, and lets readers be.

    The lock is `flock`'s, which SQLite does not use, and the system lifts it when the process ends in whatever way.
    """

    def __init__(self, path: Path) -> None:
        try:
            import fcntl
        except ImportError:  # Windows, where two studios on one table are left to the person
            self._file = None
            return
        self._file = path.open("rb")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise StoreError(
                f"another studio has {path.name} open: use that one, stop it, or give another file by --store"
            ) from None

    def release(self) -> None:
        if self._file is not None:
            self._file.close()


def _event(row: tuple[Any, ...]) -> Event:
    identity, kind, annotator, body, at, seq = row
    return Event(identity, kind, annotator, json.loads(body), at, seq)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
