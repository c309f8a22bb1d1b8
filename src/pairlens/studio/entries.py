"""The entries of a store: each is written with a digest of its own, and read with what has happened to it since."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from typing import Any

VERSION = 2
APPLICATION_ID = 0x504C4E53
"""Marks the file as ours in its header, so that no other program's database is taken for a store."""
COLUMNS = ("seq", "store", "id", "kind", "annotator", "at", "body", "digest")
TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE events (seq INTEGER PRIMARY KEY, store TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, "
    "annotator TEXT NOT NULL, at TEXT NOT NULL, body TEXT NOT NULL, digest TEXT NOT NULL)",
)

MOST_GAP = 10_000
"""Entries that are looked for one by one where some are missing or cannot be read."""
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged file raises; also the words of SQLite about it may not be text."""

_DIGESTED = json.JSONEncoder(default=repr)


@dataclass(frozen=True)
class Event:
    """One entry of the log.

    Whoever sends an event makes its `id`, so that sending it twice stores it once. `at` and `seq`, the position from 1
    on, are known once it is stored. `damage` says why it cannot be used, if so; then the other attributes are what is
    left of it.
    """

    id: str
    kind: str
    annotator: str
    body: Mapping[str, Any]
    at: str = ""
    seq: int = 0
    damage: str = ""


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of a store."""
    for statement in TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _digest(values: Sequence[Any]) -> str:
    """Compute what a row must have as its digest."""
    return sha256(_DIGESTED.encode(list(values)).encode()).hexdigest()


def _json(value: Any) -> str:
    """Return a value as it is written; ValueError if JSON has no word for it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def now() -> str:
    """Return the time as it is written."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def write_event(connection: sqlite3.Connection, store: str, seq: int, event: Event) -> Event:
    """Insert an event at this position of the log; returns it as it was stored."""
    at = event.at or now()
    values = (seq, store, event.id, event.kind, event.annotator, at, _json(event.body))
    write_row(connection, (*values, _digest(values)))
    return Event(event.id, event.kind, event.annotator, event.body, at, seq)


def write_row(connection: sqlite3.Connection, row: Sequence[Any]) -> None:
    """Insert a row of the log as it is."""
    connection.execute(f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", tuple(row))


def write_meta(connection: sqlite3.Connection, values: Mapping[str, Any]) -> None:
    """Write entries about the table and the settings."""
    rows = [(key, _json(value)) for key, value in values.items()]
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", [(*row, _digest(row)) for row in rows])


def read_meta(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the entries about the table and the settings, less those that do not match their digest."""
    connection.text_factory = _text
    rows = connection.execute("SELECT key, value, digest FROM meta").fetchall()
    return {key: json.loads(value) for key, value, digest in rows if digest == _digest((key, value))}


def _text(raw: bytes) -> str:
    """Read text also where it is not UTF-8 any more; then it does not match its digest."""
    return raw.decode(errors="replace")


def read_rows(connection: sqlite3.Connection, where: str = "true", order: str = "seq") -> sqlite3.Cursor:
    """Return the rows of the log as they are."""
    connection.text_factory = _text
    return connection.execute(f"SELECT {', '.join(COLUMNS)} FROM events WHERE {where} ORDER BY {order}")


def is_sound(row: Sequence[Any]) -> bool:
    """Return whether a row is as it was written."""
    return bool(row[-1] == _digest(row[:-1]))


def read_events(connection: sqlite3.Connection) -> tuple[str, list[Event]]:
    """Return the name that the store gave itself, "" if it has no entry, and all events in their order.

    An event whose row does not match its digest, or is of another store, has its damage, and one that is missing
    stands in its place; all others are as they were written.
    """
    rows = read_rows(connection).fetchall()
    sound = {row[0]: row[1] for row in rows if is_sound(row)}
    ((store, _),) = Counter(sound.values()).most_common(1) or [("", 0)]
    events = {row[0]: _event(row, _damage(row, sound, store)) for row in rows}
    missing = (seq for seq in range(1, max(sound, default=0)) if seq not in events)
    for seq in list(islice(missing, MOST_GAP)):
        events[seq] = Event("", "", "", {}, seq=seq, damage="it is missing")
    return store, [events[seq] for seq in sorted(events)]


def _damage(row: Sequence[Any], sound: Mapping[int, str], store: str) -> str:
    if row[0] not in sound:
        return "it was changed since it was written, so that it does not match its digest"
    return "" if sound[row[0]] == store else "it belongs to another store"


def _event(row: Sequence[Any], damage: str) -> Event:
    seq, _, name, kind, annotator, at, body, _ = row
    try:
        content = {} if damage else json.loads(body)
    except (ValueError, RecursionError):
        content, damage = {}, "its content is not JSON"
    return Event(str(name), str(kind), str(annotator), content, str(at), seq, damage)
