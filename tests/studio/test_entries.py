"""Entries of a store that were changed from outside: told, left out, and in nobody's way."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pairlens.studio.entries import MOST_GAP, _digest, read_rows, write_row
from pairlens.studio.replay import History
from pairlens.studio.store import Event, Store, StoreError, backup
from tests.studio.writer import answered

FLIPS = 400 if os.environ.get("PAIRLENS_EXPLORE") else 40
CELL_HEADER = 12
"""Bytes before the values of a row: their lengths and its number."""


@pytest.fixture
def store(tmp_path) -> Path:
    path = tmp_path / "log.db"
    with Store(path) as kept:
        for number in range(60):
            kept.append(answered(number))
    return path


def spans(path: Path) -> list[tuple[int, int]]:
    """Where the bytes of each entry are in the file."""
    with Store(path) as kept:
        rows = read_rows(kept._connection).fetchall()
    content = path.read_bytes()
    found = []
    for row in rows:
        values = "".join(row[1:]).encode()
        start = content.index(values)
        found.append((start - CELL_HEADER, start + len(values)))
    return found


def test_no_bit_changes_unnoticed(store):
    """Whichever bit of an entry: the studio says that it is damaged, and all others count, at once or in a backup."""
    rng, places = random.Random(0), spans(store)
    content = store.read_bytes()
    with Store(store) as kept:
        before = History.of(kept.events()).answers
    for flip in range(FLIPS):
        at = rng.randrange(60)
        bit = rng.randrange(8 * places[at][0], 8 * places[at][1])
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path, saved = store.with_name(f"{flip}.db"), store.with_name(f"{flip}-saved.db")
        path.write_bytes(changed)
        refused = ""
        try:
            after = replayed(path)
        except StoreError as error:
            # The tree of rows itself is damaged: the words say what reads the others.
            refused = str(error)
            assert not backup(path, saved).whole
            after = replayed(saved)
        lost = [name for name in before if name not in after.answers]
        # Of the bytes before an entry, some are of the next one, and some are in no use.
        assert set(lost) <= {f"e{at}", f"e{at + 1}"}, (bit, lost)
        assert all(after.answers[name] == before[name] for name in after.answers), bit
        if lost:
            assert after.left_out or ("is damaged" in refused and "pairlens studio backup" in refused), bit


def replayed(path: Path) -> History:
    with Store(path) as kept:
        return History.of(kept.events())


def test_what_is_said_of_a_damaged_entry(store):
    with closing(Store(store)) as kept:
        kept._connection.execute("UPDATE events SET body = replace(body, 'same', 'some') WHERE seq = 17")
        kept._connection.execute("DELETE FROM events WHERE seq = 23")
    with Store(store) as kept:
        history = History.of(kept.events())
        at = next(event.at for event in kept.events() if event.seq == 17)
        assert history.left_out == [
            f"entry 17 of {at} (answer by ann): it was changed since it was written, so that it does not match its "
            "digest",
            "entry 23 of an unknown time: it is missing",
        ]
        assert len(history.answers) == 58
        # The log goes on, and what cannot be used is kept.
        assert kept.append(answered(60))[0].seq == 61
    with Store(store) as kept:
        assert [event.seq for event in kept.events()] == list(range(1, 62))
        assert len(History.of(kept.events()).left_out) == 2


def test_a_number_of_an_entry_that_is_taken_by_a_damaged_one(store):
    with Store(store) as kept:
        kept._connection.execute("UPDATE events SET seq = 61 WHERE seq = 60")
    with Store(store) as kept:
        assert kept.append(answered(100))[0].seq == 60
        assert kept.append(answered(101))[0].seq == 62
    with Store(store) as kept:
        assert sorted(event.seq for event in kept.events() if event.damage) == [61]


def test_entries_of_another_store(tmp_path, store):
    other = tmp_path / "other.db"
    with Store(other) as kept:
        for number in range(100, 170):
            kept.append(answered(number))
        rows = read_rows(kept._connection).fetchall()[60:]
    with Store(store) as kept:
        kept._connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    with Store(store) as kept:
        history = History.of(kept.events())
    assert list(history.answers) == [f"e{number}" for number in range(60)]
    assert [line.rpartition(": ")[2] for line in history.left_out] == ["it belongs to another store"] * 10


QUESTION = answered(1).body["question"]
CHOSEN = {"action": "together", "ids": ["x", "y"], "pairs": [[3, 4, 1, "x", "y"]], "changes": []}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("answer", {"question": {**QUESTION, "answers": ["foo"]}, "answer": "foo", "ids": ["x", "y"]}),
        ("answer", {"question": {**QUESTION, "kind": "else"}, "answer": "same", "ids": ["x", "y"]}),
        ("answer", {"question": {**QUESTION, "rows": [1, 1.5]}, "answer": "same", "ids": ["x", "y"]}),
        ("answer", {"question": {**QUESTION, "rows": [1]}, "answer": "same", "ids": ["x"]}),
        ("answer", {"question": QUESTION, "answer": "same", "ids": ["x"]}),
        ("answer", {"question": QUESTION, "answer": "same", "ids": None}),
        ("answer", {"question": "none", "answer": "same", "ids": ["x", "y"]}),
        ("answer", {}),
        ("change", {"target": "e1", "answer": "foo"}),
        ("change", {"target": "e1"}),
        ("undo", {"target": 3}),
        ("keep", {"target": None}),
        ("flag", {}),
        ("name", {"group": 3, "name": "x", "id": "y"}),
        ("annotator", {"name": ["x"]}),
        ("unheard of", {}),
        ("answer", ["same"]),
        ("chosen", {}),
        *(
            ("chosen", {**CHOSEN, "pairs": pairs})
            for pairs in (5, [5], [[1, 2]], [[1, 2, "x", "x", "y"]], [[1, 1, 1, "x", "x"]])
        ),
        ("chosen", {**CHOSEN, "ids": 5}),
        *(("chosen", {**CHOSEN, "changes": changes}) for changes in (5, [["e1"]], [["e1", "foo", "same"]])),
        ("chosen", {**CHOSEN, "changes": [["e1", "different", "foo"]]}),
    ],
)
def test_an_event_that_cannot_be_applied_is_stepped_over(kind, body):
    """In a store that was written by other means."""
    events = [answered(1), Event("bad", kind, "ann", body, "then", 2), answered(2)]
    history = History.of(events)
    assert list(history.answers) == ["e1", "e2"]
    assert history.answers["e1"].answer == "same"
    assert len(history.left_out) == 1
    assert history.left_out[0].startswith(f"entry 2 of then ({kind} by ann): ")


def written(store: Path, seq: int, body: str) -> None:
    """An entry with a digest that is right, which no studio has written."""
    with closing(sqlite3.connect(store)) as connection, connection:
        name = read_rows(connection).fetchone()[1]
        row = (seq, name, "forged", "undo", "me", "2026-01-01", body)
        write_row(connection, (*row, _digest(row)))


@pytest.mark.parametrize("body", ["", "{", "[" * 100_000, "9" * 5000], ids=["empty", "cut", "nested", "digits"])
def test_an_entry_that_is_not_json_is_stepped_over(body, store):
    written(store, 61, body)
    with Store(store) as kept:
        history = History.of(kept.events())
        assert kept.append(answered(60))[0].seq == 62
    assert len(history.answers) == 60
    assert "entry 61 of 2026-01-01 (undo by me): its content is not JSON" in history.told()


def test_an_entry_far_away_does_not_fill_the_memory(store):
    written(store, 10**12, "{}")
    with Store(store) as kept:
        events = list(kept.events())
        assert kept.append(answered(60))[1]
    assert sum(event.damage == "it is missing" for event in events) == MOST_GAP
    assert len(History.of(events).answers) == 60


def test_damage_of_which_the_words_are_not_text(store):
    """A bit of the name of a table, which SQLite repeats in its error."""
    content = bytearray(store.read_bytes())
    content[content.index(b"meta")] |= 0x80
    store.write_bytes(content)
    with pytest.raises(StoreError, match=r"log\.db is damaged"):
        Store(store)
    assert backup(store, store.with_name("saved.db")) == (60, {}, False)
