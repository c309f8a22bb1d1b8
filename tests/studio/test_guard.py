"""A store that is moved, removed, replaced or copied while it is open, and files of other stores beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pairlens.studio.guard import beside
from pairlens.studio.store import Store, StoreError, StoreMovedError
from tests.studio.writer import answered

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be moved there")


def ids(path: Path) -> list[str]:
    with Store(path) as store:
        return [event.id for event in store.events()]


def test_a_store_that_is_moved_acknowledges_nothing_until_it_is_back(tmp_path):
    path, moved = tmp_path / "log.db", tmp_path / "moved.db"
    with Store(path) as store:
        store.append(answered(1))
        path.rename(moved)
        for _ in range(2):
            with pytest.raises(StoreMovedError, match=r"was moved while .*this answer is not stored, .*Move it back"):
                store.append(answered(2))
        moved.rename(path)
        assert store.append(answered(2))[1]
    assert ids(path) == ["e1", "e2"]


def test_a_store_that_was_moved_has_all_answers_when_the_studio_ends(tmp_path):
    path, moved = tmp_path / "log.db", tmp_path / "moved.db"
    with Store(path) as store:
        for number in range(60):
            store.append(answered(number))
        path.rename(moved)
    assert ids(moved) == [f"e{number}" for number in range(60)]
    # Nothing that is left under the old name is in the way of a new store.
    assert ids(path) == []


def test_a_store_that_is_removed_is_written_anew_under_another_name(tmp_path):
    path = tmp_path / "log.db"
    with Store(path) as store:
        for number in range(60):
            store.append(answered(number))
        path.unlink()
        with pytest.raises(
            StoreMovedError, match=r"was removed while .* saved as .*log\.rescued\.db\. Stop the studio"
        ):
            store.append(answered(60))
        with pytest.raises(StoreMovedError, match=r"log\.rescued\.db"):
            store.append(answered(61))
    (tmp_path / "log.rescued.db").rename(path)
    assert ids(path) == [f"e{number}" for number in range(60)]


def test_another_file_in_the_place_of_the_store(tmp_path):
    path, other = tmp_path / "log.db", tmp_path / "other.db"
    with Store(other) as store:
        store.append(answered(7))
    with Store(path) as store:
        store.append(answered(1))
        path.rename(tmp_path / "moved.db")
        shutil.copyfile(other, path)
        with pytest.raises(StoreMovedError, match=r"was moved while the studio had it open"):
            store.append(answered(2))
    assert ids(path) == ["e7"]
    assert ids(tmp_path / "moved.db") == ["e1"]


@pytest.mark.parametrize("content", ["other", "older", "text", "nothing"])
def test_a_store_that_is_overwritten_acknowledges_nothing_and_is_saved(tmp_path, content):
    """By `cp`, which keeps the file and writes another content into it."""
    path, other, older = (tmp_path / name for name in ("log.db", "other.db", "older.db"))
    with Store(other) as store:
        for number in range(100, 140):
            store.append(answered(number))
    with Store(path) as store:
        store.set_meta({"seed": 5})
        for number in range(20):
            store.append(answered(number))
        store._settle()
        shutil.copyfile(path, older)
        for number in range(20, 60):
            store.append(answered(number))
        store._settle()
        if content in ("other", "older"):
            shutil.copyfile(tmp_path / f"{content}.db", path)
        else:
            path.write_text("no database " * 400 if content == "text" else "")
        for number in (60, 61):
            with pytest.raises(StoreMovedError, match=r"was overwritten while .* saved as .*log\.rescued\.db"):
                store.append(answered(number))
    with Store(tmp_path / "log.rescued.db") as store:
        assert store.meta() == {"seed": 5}
        assert [(event.id, event.damage) for event in store.events()] == [(f"e{n}", "") for n in range(60)]


def test_a_store_that_is_touched_goes_on(tmp_path):
    path = tmp_path / "log.db"
    with Store(path) as store:
        store.append(answered(1))
        for time in (0, 10**9, 2 * 10**18):
            os.utime(path, ns=(time, time))
            assert store.append(answered(time))[1]


def test_the_log_of_sqlite_is_removed(tmp_path):
    path = tmp_path / "log.db"
    with Store(path) as store:
        store.append(answered(1))
        Path(f"{path}-wal").unlink()
        with pytest.raises(
            StoreMovedError, match=r"log\.db-wal was removed .*Stop the studio, which writes all earlier"
        ):
            store.append(answered(2))
    assert ids(path) == ["e1"]


def test_what_was_written_while_the_file_was_moved_is_not_acknowledged_and_stored_once(tmp_path, monkeypatch):
    path, moved = tmp_path / "log.db", tmp_path / "moved.db"
    with Store(path) as store:
        write = Store._write

        def write_and_move(self, event):
            write(self, event)
            path.rename(moved)

        monkeypatch.setattr(Store, "_write", write_and_move)
        with pytest.raises(StoreMovedError):
            store.append(answered(1))
        monkeypatch.undo()
        moved.rename(path)
        store.append(answered(1))
    assert ids(path) == ["e1"]


def test_a_store_behind_a_symbolic_link(tmp_path):
    path, name = tmp_path / "log.db", tmp_path / "name.db"
    name.symlink_to(path)
    with Store(name) as store:
        assert store.append(answered(1))[1]
        with pytest.raises(StoreError, match="another studio has"):
            Store(path)
        path.rename(tmp_path / "moved.db")
        with pytest.raises(StoreMovedError, match=r"log\.db was moved"):
            store.append(answered(2))
    assert ids(tmp_path / "moved.db") == ["e1"]


def abandoned(path: Path, numbers: range, settled: int) -> None:
    """A store as a killed studio leaves it: `settled` answers are in the file, the others in SQLite's log alone."""
    arguments = map(str, (path, numbers.start, numbers.stop, settled))
    command = [sys.executable, "-m", "tests.studio.writer", *arguments]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 9
    assert Path(f"{path}-wal").stat().st_size > 0


def test_what_a_killed_studio_left_is_taken_in(tmp_path):
    abandoned(tmp_path / "log.db", range(60), settled=40)
    assert ids(tmp_path / "log.db") == [f"e{number}" for number in range(60)]


def test_the_log_of_a_store_that_is_not_there(tmp_path):
    """Killed, moved, started under the old name: the answers in the log are not removed with it."""
    path, moved = tmp_path / "log.db", tmp_path / "moved.db"
    abandoned(path, range(60), settled=40)
    left = Path(f"{path}-wal").read_bytes()
    path.rename(moved)
    with pytest.raises(StoreError, match=r"is not there, but log\.db-wal is, which may hold the last answers"):
        Store(path)
    assert not path.exists()
    assert Path(f"{path}-wal").read_bytes() == left
    moved.rename(path)
    assert ids(path) == [f"e{number}" for number in range(60)]


@pytest.mark.parametrize("numbers", [range(3), range(100, 160), range(100, 400)])
def test_the_log_of_another_store(tmp_path, numbers):
    """Restored under a name where a killed studio left its log."""
    path, other = tmp_path / "log.db", tmp_path / "other.db"
    abandoned(path, numbers, settled=len(numbers) - 2)
    with Store(other) as store:
        for number in range(60):
            store.append(answered(number))
    other.replace(path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(StoreError, match=r"log\.db-wal does not belong to .*log\.db; nothing was changed"):
        Store(path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    Path(f"{path}-wal").rename(tmp_path / "kept-wal")
    assert ids(path) == [f"e{number}" for number in range(60)]


def test_an_older_copy_beside_a_newer_log_is_whole_or_refused(tmp_path):
    path, old = tmp_path / "log.db", tmp_path / "old.db"
    with Store(old) as store:
        for number in range(20):
            store.append(answered(number))
    for n_more in (2, 200):
        shutil.copyfile(old, path)
        abandoned(path, range(100, 100 + n_more), settled=n_more - 1)
        shutil.copyfile(old, path)
        wanted = [f"e{number}" for number in (*range(20), *range(100, 100 + n_more))]
        try:
            assert ids(path) == wanted
        except StoreError as error:
            assert "does not belong to" in str(error)  # noqa: PT017
        for file in (path, *beside(path)):
            file.unlink(missing_ok=True)


def test_the_log_of_a_studio_that_runs_on_a_moved_store(tmp_path):
    path = tmp_path / "log.db"
    with Store(path) as store:
        store.append(answered(1))
        path.rename(tmp_path / "moved.db")
        with pytest.raises(StoreError, match=r"another studio is still writing to log\.db-wal"):
            Store(path)
    assert ids(tmp_path / "moved.db") == ["e1"]
