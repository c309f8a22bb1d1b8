"""The file that keeps the answers: nothing acknowledged is lost, nothing foreign is touched."""

from __future__ import annotations

import math
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pairlens.studio.replay import History
from pairlens.studio.rows import rows_from_file
from pairlens.studio.run import open_store
from pairlens.studio.store import Event, Store, StoreError, StoreFullError
from tests.studio.conftest import until, write_table
from tests.studio.writer import answered


def test_events_come_back_in_order_and_once(tmp_path):
    with Store(tmp_path / "log.db") as store:
        for number in (1, 2, 1, 3, 2):
            store.append(answered(number))
        assert [event.id for event in store.events()] == ["e1", "e2", "e3"]
        assert store.append(answered(1, "different"))[0].body["answer"] == "same"
    with Store(tmp_path / "log.db") as store:
        assert [event.seq for event in store.events()] == [1, 2, 3]


def test_a_write_that_fails_leaves_nothing_open(tmp_path):
    """Whatever fails: half of a surrogate pair cannot be stored, and is not an error of SQLite."""
    with Store(tmp_path / "log.db") as store:
        with pytest.raises(UnicodeEncodeError):
            store.append(Event("e1", "annotator", "ann", {"name": "\ud83d"}))
        with pytest.raises(TypeError):
            store.set_meta({"table": object()})
        assert store.append(answered(1))[1]
        assert [event.id for event in store.events()] == ["e1"]


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
    with pytest.raises(StoreError, match=r"log\.db is damaged .*; it was not changed"):
        Store(path)
    assert path.read_bytes() == bytes(content)


@pytest.mark.parametrize(("version", "age"), [(99, "a later"), (1, "an earlier")])
def test_another_format_is_refused(tmp_path, version, age):
    path = tmp_path / "log.db"
    with Store(path) as store:
        store._connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match=f"was written by {age} version of pairlens"):
        Store(path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(StoreError, match=r"is not a folder"):
        Store(tmp_path / "nowhere" / "log.db")


def test_two_studios_on_one_store(tmp_path):
    with Store(tmp_path / "log.db"), pytest.raises(StoreError, match=r"another studio has log\.db open"):
        Store(tmp_path / "log.db")
    Store(tmp_path / "log.db").close()


def test_a_read_only_store(disk):
    path = disk.folder / "log.db"
    with Store(path) as store:
        store.append(answered(1))
    before = path.read_bytes()
    with disk.read_only(), pytest.raises(StoreError, match=r"cannot be written: the file or its folder is read-only"):
        Store(path)
    assert path.read_bytes() == before
    with Store(path) as store:
        assert [event.id for event in store.events()] == ["e1"]


@pytest.mark.parametrize("where", ["disk", "limit", "pages"])
def test_a_full_disk_loses_nothing(where, disk):
    path = disk.folder / "log.db"
    with Store(path) as store:
        store.append(answered(1))
        full = {"disk": disk.full, "limit": disk.limited, "pages": lambda: few_pages(store)}[where]
        big = Event("big", "answer", "ann", {**answered(2).body, "note": "x" * 50_000})
        with full(), pytest.raises(StoreFullError, match=r"this answer is not stored yet, all earlier ones are safe"):
            store.append(big)
        assert [event.id for event in store.events()] == ["e1"]
        assert store.append(big)[1]
        assert [event.id for event in store.events()] == ["e1", "big"]
    with Store(path) as store:
        assert [(event.id, event.damage) for event in store.events()] == [("e1", ""), ("big", "")]


@contextmanager
def few_pages(store: Store) -> Iterator[None]:
    execute = store._connection.execute
    execute(f"PRAGMA max_page_count = {execute('PRAGMA page_count').fetchone()[0]}")
    yield
    execute("PRAGMA max_page_count = 100000")


@pytest.mark.parametrize("bad", ["a\ud800", math.nan])
def test_what_cannot_be_written_leaves_the_store_as_it_was(tmp_path, bad):
    with Store(tmp_path / "log.db") as store:
        with pytest.raises(ValueError, match=r"surrogates|JSON"):
            store.append(Event("e", "name", "ann", {"name": bad}))
        assert store.append(answered(1))[1]
        assert [event.seq for event in store.events()] == [1]


def test_answers_are_soon_in_the_file_itself(tmp_path):
    """Whoever copies the file alone has all of them; the log of SQLite is empty again."""
    path, copy = tmp_path / "log.db", tmp_path / "copy.db"
    with Store(path) as store:
        for number in range(60):
            store.append(answered(number))
        until(lambda: not (tmp_path / "log.db-wal").stat().st_size)
        shutil.copyfile(path, copy)
        with Store(copy) as copied:
            assert [event.id for event in copied.events()] == [f"e{number}" for number in range(60)]


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
    with pytest.raises(StoreError, match=r"another table or of another state of it .*nothing was changed.*remap="):
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
    with open_store(path, new, remap=True) as store:
        history = History.of(store.events()).about(new.ids)
    assert {name: answer.question["rows"] for name, answer in history.answers.items()} == {
        "e7": [new.ids.index("row-7"), new.ids.index("row-9")]
    }
    assert history.names == {str(new.ids.index("row-7")): "cats"}
    assert "the table has no row 'row-0'" in history.told()
    open_store(path, new).close()


def test_a_store_knows_by_which_column_rows_are_named(tmp_path):
    """Whole-number ids are taken for row numbers otherwise, and answers go to other rows."""
    table, path = tmp_path / "one.csv", tmp_path / "log.db"
    write_table(table, extra={"number": [str(100 + k) for k in range(90)]})
    rows = rows_from_file(table, ids="number")
    with open_store(path, rows) as store:
        for k in range(15):
            body = {**answered(k).body, "ids": [rows.ids[k], rows.ids[k + 1]]}
            store.append(Event(f"e{k}", "answer", "ann", body))
    before = path.read_bytes()
    for ids in (None, "name"):
        for remap in (False, True):
            with pytest.raises(
                StoreError, match=r"was made with ids='number', .*nothing was changed. Give ids='number'"
            ):
                open_store(path, rows_from_file(table, ids=ids), remap=remap)
    other = tmp_path / "other.csv"
    write_table(other, extra={"number": [str(k) for k in range(90)]})
    with pytest.raises(StoreError, match=r"other\.csv has none of the rows that the 15 answers of .* are about"):
        open_store(path, rows_from_file(other, ids="number"), remap=True)
    assert _events(path.read_bytes()) == _events(before)
    with open_store(path, rows) as store:
        assert len(History.of(store.events()).about(rows.ids).answers) == 15
    # And the other way round: the rows of a store without ids are numbers.
    open_store(tmp_path / "bare.db", rows_from_file(table)).close()
    with pytest.raises(StoreError, match=r"was made without ids=, .* Give no ids="):
        open_store(tmp_path / "bare.db", rows)


def _events(content: bytes) -> list[bytes]:
    return re.findall(rb"e\d+answerann", content)


def test_an_answer_is_about_its_rows_or_none(tmp_path):
    """The ids are what counts, whatever row numbers an event has."""
    body = {**answered(3).body, "ids": ["b", "a"]}
    history = History.of([Event("e", "answer", "ann", body, "now", 1)])
    assert history.about(["a", "b", "c"]).answers["e"].question["rows"] == [1, 0]
    gone = history.about(["a", "c"])
    assert gone.answers == {}
    assert gone.told() == (
        "1 entry of the store is not used, all others are; nothing was removed. "
        "entry 1 of now (answer by ann): the table has no row 'b'"
    )


def test_a_damaged_note_about_the_table(tables, tmp_path):
    path, rows = tmp_path / "log.db", rows_from_file(tables[0], ids="name")
    with open_store(path, rows) as store:
        store.append(Event("e", "answer", "ann", {**answered(3).body, "ids": rows.ids[3:5]}))
        seed = store.meta()["seed"]
        store._connection.execute("UPDATE meta SET value = replace(value, 'rows', 'rots') WHERE key = 'table'")
    with pytest.raises(StoreError, match="what it says about table does not match its digest"):
        open_store(path, rows)
    with open_store(path, rows, remap=True) as store:
        assert store.meta()["seed"] == seed
    with open_store(path, rows) as store:
        assert list(History.of(store.events()).about(rows.ids).answers) == ["e"]
