"""Progress: plain lines where there is no terminal, a bar where there is one."""

from __future__ import annotations

import io

import pytest

from reproduction import tasks as module
from reproduction.tasks import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
    out = io.StringIO()
    with progress(3, stream=out) as shown:
        shown.say("hello")
        for name in ("a", "b", "c"):
            shown.done(name)
    lines = out.getvalue().splitlines()
    assert lines[0] == "hello"
    assert lines[1].startswith("1 of 3 units, about 0 s left; last: a")
    assert lines[-1].startswith("3 of 3 units")


def test_few_lines():
    out = io.StringIO()
    with progress(100, stream=out) as shown:
        for i in range(100):
            shown.done(str(i))
    assert len(out.getvalue().splitlines()) == 2, "the first and the last"


def test_bar():
    pytest.importorskip("rich")
    out = Terminal()
    with progress(2, stream=out) as shown:
        shown.say("a line [with brackets]")
        shown.done("one")
        shown.done("two")
    assert "a line [with brackets]" in out.getvalue()


def test_no_rich(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    out = Terminal()
    with progress(1, stream=out) as shown:
        shown.done("one")
    assert "1 of 1 units" in out.getvalue()


def test_quiet(capsys):
    with progress(1, quiet=True) as shown:
        shown.say("nothing")
        shown.done("one")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("seconds", "words"), [(7, "7 s"), (90, "2 min"), (3600, "60 min"), (9000, "2.5 h")])
def test_durations(seconds, words):
    assert module._duration(seconds) == words
