"""Copies of a store: of one that is in use, of one that is damaged, of one whose file was removed."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from pairlens._atomic import atomic_path
from pairlens.studio.entries import (
    APPLICATION_ID,
    create,
    is_sound,
    read_events,
    read_meta,
    read_rows,
    write_meta,
    write_row,
)
from pairlens.studio.guard import Guard, StoreError, beside, check_beside

__all__ = ["Copied", "backup", "copy_database", "free_name"]

MOST_GAP = 10_000
"""Entries that are looked for one by one where some cannot be read."""


class Copied(NamedTuple):
    """What a copy holds: events that can be used, what is wrong with others by their position in the log.

    It is `whole` unless the file was so damaged that some of it could not be read.
    """

    n_events: int
    damages: dict[int, str]
    whole: bool


def free_name(path: Path) -> Path:
    """Return the path, or one beside it with a number if a file has its name."""
    names = (path if not number else path.with_stem(f"{path.stem}-{number}") for number in count())
    return next(name for name in names if not name.exists())


def copy_database(source: sqlite3.Connection, target: Path) -> None:
    """Copy a database that is open, as it is at this moment; the target is there whole or not at all."""
    with atomic_path(target) as partial, closing(sqlite3.connect(partial)) as copy:
        source.backup(copy)


def backup(source: Path, target: Path) -> Copied:
    """Copy a store, also one that a studio has open; of a damaged one, all that can be read.

    Parameters
    ----------
    source : path
        The store.
    target : path
        A new file.
    """
    if not source.is_file():
        raise StoreError(f"{source} is not there: give the file that keeps the answers, such as data.answers.db")
    if target.exists():
        raise StoreError(f"{target} is there already: give the name of a new file")
    place = source.resolve()
    guard = Guard()
    try:
        options = _claim(guard, place)
        with closing(sqlite3.connect(f"{place.as_uri()}?{options}", uri=True, isolation_level=None)) as connection:
            whole = _copy(connection, source, target)
    finally:
        guard.release()
    with closing(sqlite3.connect(target)) as copy:
        _, events = read_events(copy)
    damages = {event.seq: event.damage for event in events if event.damage}
    return Copied(len(events) - len(damages), damages, whole)


def _claim(guard: Guard, place: Path) -> str:
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
    try:
        known = connection.execute("PRAGMA application_id").fetchone()[0]
        sound = connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{source} cannot be read as a database ({error}); nothing was written") from None
    if known != APPLICATION_ID:
        raise StoreError(f"{source} is not a store of a studio; nothing was written")
    if sound:
        copy_database(connection, target)
        return True
    with atomic_path(target) as partial, closing(sqlite3.connect(partial, isolation_level=None)) as copy:
        create(copy)
        with suppress(sqlite3.Error):
            write_meta(copy, read_meta(connection))
        for row in _readable(connection):
            with suppress(sqlite3.Error):
                write_row(copy, row)
    return False


def _readable(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return the rows of a damaged log: from both ends up to what cannot be read, and one by one in between."""
    found: dict[int, tuple[Any, ...]] = {}
    for order in ("seq", "seq DESC"):
        with suppress(sqlite3.Error):
            for row in read_rows(connection, order=order):
                if row[0] not in found or is_sound(row):
                    found[row[0]] = row
    for seq in range(1, len(found) + MOST_GAP):
        if seq not in found:
            with suppress(sqlite3.Error):
                found.update((seq, row) for row in read_rows(connection, where=f"seq = {seq}"))
    return list(found.values())
