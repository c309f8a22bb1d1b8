"""``pairlens studio backup``: a copy that is whole, of a store that is open, closed, killed, read-only or damaged."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from pairlens.cli.app import run
from pairlens.studio.store import Store, StoreError, backup
from tests.studio.test_guard import abandoned, ids
from tests.studio.writer import answered


def test_a_store_is_copied_while_it_is_open(tmp_path):
    path, target = tmp_path / "log.db", tmp_path / "copy.db"
    with Store(path) as store:
        for number in range(60):
            store.append(answered(number))
        assert backup(path, target) == (60, {}, True)
        assert store.append(answered(60))[1]
    assert ids(target) == [f"e{number}" for number in range(60)]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "log.db"]


def test_what_a_killed_studio_left_is_copied(tmp_path):
    abandoned(tmp_path / "log.db", range(60), settled=40)
    assert backup(tmp_path / "log.db", tmp_path / "copy.db") == (60, {}, True)
    assert ids(tmp_path / "copy.db") == ids(tmp_path / "log.db") == [f"e{number}" for number in range(60)]


def test_a_store_on_a_read_only_disk_is_copied(disk, tmp_path):
    with Store(disk.folder / "log.db") as store:
        store.append(answered(1))
    with disk.read_only():
        backup(disk.folder / "log.db", tmp_path / "copy.db")
    assert ids(tmp_path / "copy.db") == ["e1"]


def test_of_a_damaged_store_the_rest_is_saved(tmp_path):
    path, target = tmp_path / "log.db", tmp_path / "copy.db"
    with Store(path) as store:
        store.set_meta({"seed": 5})
        for number in range(300):
            store.append(answered(number))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    content = bytearray(path.read_bytes())
    content[4096 * (pages // 2) : 4096 * (pages // 2) + 64] = bytes(64)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"is damaged .*pairlens studio backup .* saves what can be read"):
        Store(path)
    copied = backup(path, target)
    assert not copied.whole
    assert copied.n_events > 250
    assert set(copied.damages.values()) == {"it is missing"}
    assert copied.n_events + len(copied.damages) == 300
    with Store(target) as store:
        assert store.meta() == {"seed": 5}
        assert store.append(answered(300))[0].seq == 301
    assert path.read_bytes() == bytes(content)


def test_of_a_store_that_was_cut_short_the_beginning_is_saved(tmp_path):
    path, target = tmp_path / "log.db", tmp_path / "copy.db"
    with Store(path) as store:
        for number in range(300):
            store.append(answered(number))
    content = path.read_bytes()
    path.write_bytes(content[: 2 * len(content) // 3])
    with pytest.raises(StoreError, match=r"pairlens studio backup .* saves what can be read"):
        Store(path)
    copied = backup(path, target)
    assert not copied.whole
    assert copied.n_events > 100
    assert ids(target)[:50] == [f"e{number}" for number in range(50)]


@pytest.mark.parametrize("table", ["events", "meta"])
def test_of_a_store_without_one_of_its_tables_the_other_is_saved(tmp_path, table):
    path, target = tmp_path / "log.db", tmp_path / "copy.db"
    with Store(path) as store:
        store.append(answered(1))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DROP TABLE {table}")
    with pytest.raises(StoreError, match=rf"no such table: {table}.*pairlens studio backup"):
        Store(path)
    assert backup(path, target) == (int(table == "meta"), {}, False)
    Store(target).close()


def test_what_it_refuses(tmp_path):
    path, other = tmp_path / "log.db", tmp_path / "other.db"
    Store(path).close()
    with pytest.raises(StoreError, match="is there already"):
        backup(path, path)
    with pytest.raises(StoreError, match="is not there"):
        backup(tmp_path / "nothing.db", other)
    (tmp_path / "text.db").write_text("no database " * 400)
    with pytest.raises(StoreError, match="cannot be read as a database"):
        backup(tmp_path / "text.db", other)
    with sqlite3.connect(tmp_path / "foreign.db") as foreign:
        foreign.execute("CREATE TABLE mine (x)")
    foreign.close()
    with pytest.raises(StoreError, match="is not a store of a studio"):
        backup(tmp_path / "foreign.db", other)
    assert not other.exists()


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with Store(tmp_path / "log.db") as store:
        for number in range(3):
            store.append(answered(number))
        assert run(["studio", "backup", "log.db", "copy.db"]) == 0
        store._connection.execute("DELETE FROM events WHERE seq = 2")
        assert run(["studio", "backup", "log.db", "damaged.db"]) == 0
    said = capsys.readouterr()
    assert said.out == "3 entries of log.db are in copy.db\n2 entries of log.db are in damaged.db\n"
    assert said.err == "pairlens: warning: entry 2: it is missing\n"
    assert run(["studio", "backup", "--help"]) == 0
    assert re.search(r"pairlens studio backup \[OPTIONS\] \W*STORE\W+TARGET", capsys.readouterr().out)
    # A table of this name is given by its path, or after an option.
    for arguments in (["./backup"], ["--no-browser", "backup"]):
        assert run(["studio", *arguments]) == 2
        assert "backup must end in .csv" in capsys.readouterr().err
