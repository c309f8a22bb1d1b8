"""Files that take the place of others leave everything else as it was."""

from __future__ import annotations

import os
import stat
import sys

import pytest

from pairlens._atomic import atomic_path, write_atomically

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions and links")


@posix
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640, 0o666])
def test_the_permissions_of_the_file_that_was_there_stay(mode, tmp_path):
    path = tmp_path / "private.txt"
    path.write_text("old")
    path.chmod(mode)
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
def test_a_new_file_is_as_open_as_any_other(tmp_path):
    (tmp_path / "other.txt").write_text("")
    write_atomically(tmp_path / "new.txt", "new")
    assert (tmp_path / "new.txt").stat().st_mode == (tmp_path / "other.txt").stat().st_mode


@posix
@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_stays_and_its_target_is_written(there, tmp_path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target.txt", tmp_path / "link.txt"
    if there:
        target.write_text("old")
    link.symlink_to(os.path.join("far", "target.txt"))
    with atomic_path(link) as partial:
        partial.write_text("new")
        assert partial.parent == target.parent
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert [path.name for path in target.parent.iterdir()] == ["target.txt"]


@posix
def test_a_failure_behind_a_link_leaves_both(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    with pytest.raises(KeyError), atomic_path(link):
        raise KeyError
    assert link.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.txt", "target.txt"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_pipes_and_devices_are_not_replaced_by_files(tmp_path):
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a plain file"), atomic_path(pipe):
        pass
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_files_are_whole_or_not_there(tmp_path):
    path = tmp_path / "result.txt"

    def fail():
        with atomic_path(path) as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []
    with atomic_path(path) as partial:
        partial.write_text("whole")
    assert path.read_text() == "whole"
    plain = tmp_path / "plain.txt"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
