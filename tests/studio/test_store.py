"""The file that keeps the answers: nothing acknowledged is lost, nothing foreign is touched."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from pairlens.studio.replay import History
from pairlens.studio.rows import rows_from_file
from pairlens.studio.run import open_store
from pairlens.studio.store import Event, Store, StoreError, StoreFullError
from tests.studio.conftest import write_table


def answered(number: int, answer: str = "same", annotator: str = "ann") -> Event:
    question = {"id": f"q{number}", "kind": "same", "rows": [number, number + 1], "answers": ["same", "different"]}
    return Event(f"e{number}", "answer", annotator, {"question": question, "answer": answer, "ids": ["x", "y"]})


def test_events_come_back_in_order_and_once(tmp_path):
    with Store(tmp_path / "log.db") as store:
        for number in (1, 2, 1, 3, 2):
            store.append(answered(number))
        assert [event.id for event in store.events()] == ["e1", "e2", "e3"]
        assert store.append(answered(1, "different"))[0].body["answer"] == "same"
    with Store(tmp_path / "log.db") as store:
        assert [event.seq for event in store.events()] == [1, 2, 3]


def test_settings_of_the_database(tmp_path):
    with Store(tmp_path / "log.db") as store:
        pragma = lambda name: store._connection.execute(f"PRAGMA {name}").fetchone()[0]  # noqa: E731
        assert (pragma("journal_mode"), pragma("synchronous"), pragma("busy_timeout")) == ("wal", 2, 10_000)


def test_history_is_a_replay_of_the_log(tmp_path):
    events = [
        *(answered(number) for number in range(6)),
        Event("u", "undo", "ann", {"target": "e5"}),
        Event("c", "change", "ann", {"target": "e2", "answer": "different"}),
        Event("r", "retract", "ann", {"target": "e0"}),
        Event("f", "flag", "ann", {"target": "e1", "flagged": True}),
        Event("n", "name", "ann", {"group": "3", "name": "cats", "id": "x"}),
        Event("late", "change", "ann", {"target": "e0", "answer": "same"}),
    ]
    with Store(tmp_path / "log.db") as store:
        live = History()
        for event in events:
            live.apply(store.append(event)[0])
        again = History.of(store.events())
    assert again == live
    assert list(again.answers) == ["e1", "e2", "e3", "e4"]
    assert again.answers["e2"].answer == "different"
    assert again.answers["e2"].changed
    assert again.answers["e1"].flagged
    assert again.names == {"3": "cats"}


def test_a_foreign_database_is_not_touched(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="database of another program; it was not touched"):
        Store(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["words", "middle"])
def test_a_damaged_store_is_told_and_left_alone(tmp_path, damage):
    path = tmp_path / "log.db"
    with Store(path) as store:
        for number in range(80):
            store.append(answered(number))
    content = bytearray(path.read_bytes())
    if damage == "words":
        content = bytearray(b"this is no database at all, but a text" * 50)
    else:
        content[4096 * 3 : 4096 * 5] = os.urandom(4096 * 2)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"log\.db is damaged .* It was not changed"):
        Store(path)
    assert path.read_bytes() == bytes(content)


def test_a_later_format_is_refused(tmp_path):
    path = tmp_path / "log.db"
    with Store(path) as store:
        store._connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="later version of pairlens"):
        Store(path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(StoreError, match=r"is no folder.*see --store"):
        Store(tmp_path / "nowhere" / "log.db")


def test_two_studios_on_one_store(tmp_path):
    with Store(tmp_path / "log.db"), pytest.raises(StoreError, match=r"another studio has log\.db open"):
        Store(tmp_path / "log.db")
    Store(tmp_path / "log.db").close()


def test_a_read_only_store(tmp_path, monkeypatch):
    """As root, permissions do not hold; SQLite is told to open the file read-only instead."""
    path = tmp_path / "log.db"
    Store(path).close()
    plain = Store._connect
    monkeypatch.setattr(Store, "_connect", lambda self, uri: plain(self, uri.replace("mode=rwc", "mode=ro")))
    with pytest.raises(StoreError, match=r"cannot be written: the file or its folder is read-only.*--store"):
        Store(path)


def test_a_full_disk_loses_nothing(tmp_path):
    with Store(tmp_path / "log.db") as store:
        store.append(answered(1))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        big = Event("big", "answer", "ann", {**answered(2).body, "note": "x" * 50_000})
        with pytest.raises(StoreFullError, match=r"disk .* is full: this answer is not stored yet, all earlier ones"):
            store.append(big)
        assert [event.id for event in store.events()] == ["e1"]
        store._connection.execute("PRAGMA max_page_count = 100000")
        assert store.append(big)[1]
        assert [event.id for event in store.events()] == ["e1", "big"]


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    write_table(tmp_path / "one.csv", seed=0)
    write_table(tmp_path / "two.csv", seed=1)
    return tmp_path / "one.csv", tmp_path / "two.csv"


def test_a_store_belongs_to_its_table(tables, tmp_path):
    one, two = (rows_from_file(path, ids="name") for path in tables)
    path = tmp_path / "log.db"
    open_store(path, one).close()
    open_store(path, one).close()
    with pytest.raises(StoreError, match=r"another table or of another state of it .*nothing was changed.*--remap"):
        open_store(path, two)
    # Other columns of the same file are still the same rows.
    open_store(path, rows_from_file(tables[0], ids="name", drop=["d"])).close()
    # And so is the same table written anew.
    copy = tmp_path / "copy.csv"
    copy.write_text(tables[0].read_text().replace("\n", "\r\n"), encoding="utf-8", newline="")
    open_store(path, rows_from_file(copy, ids="name")).close()


def test_remapping_by_id(tables, tmp_path):
    path = tmp_path / "log.db"
    rows = rows_from_file(tables[0], ids="name")
    with open_store(path, rows) as store:
        for i, j in ((0, 5), (7, 9)):
            body = dict(answered(i).body, ids=[rows.ids[i], rows.ids[j]])
            body["question"] = {**body["question"], "rows": [i, j]}
            store.append(Event(f"e{i}", "answer", "ann", body))
        store.append(Event("n", "name", "ann", {"group": "7", "name": "cats", "id": "row-7"}))
    lines = tables[0].read_text().splitlines()
    shuffled = tmp_path / "shuffled.csv"
    shuffled.write_text("\n".join([lines[0], *lines[:1:-1]]) + "\n")  # reversed, and row-0 is gone
    new = rows_from_file(shuffled, ids="name")
    with pytest.raises(StoreError, match="--remap needs --id"):
        open_store(path, rows_from_file(shuffled), remap=True)
    with open_store(path, new, remap=True) as store:
        history = History.of(store.events()).translated(new.ids)
    assert {name: answer.question["rows"] for name, answer in history.answers.items()} == {
        "e7": [new.ids.index("row-7"), new.ids.index("row-9")]
    }
    assert history.names == {str(new.ids.index("row-7")): "cats"}
    open_store(path, new).close()
