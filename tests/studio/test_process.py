"""The studio as a process: Ctrl-C, kill -9 in the middle of answering, and what it says when it cannot start."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from pairlens.cli.app import run
from pairlens.studio.replay import History
from pairlens.studio.rows import rows_from_file
from pairlens.studio.run import Studio, open_store
from pairlens.studio.store import Event, Store
from tests.studio.conftest import Person, truth, write_table

EXPLORE = bool(os.environ.get("PAIRLENS_EXPLORE"))
MOMENTS, WRITER_MOMENTS = (100, 100) if EXPLORE else (6, 10)
"""How often a whole studio is killed, which takes seconds each time, and a process that does nothing but write."""


def test_ctrl_c_ends_it_in_time_with_everything_stored(process, table):
    """Within 3 s, with a page open; the best of three, because a busy machine only ever adds."""
    running, taken = process(table, "--port", "0"), []
    for attempt in range(3):
        if attempt:
            running.start()
        person = Person.enter(running.urls[0])
        for _ in range(3):
            assert person.answer(truth).status_code == 200
        threading.Thread(target=_listen, args=(person,), daemon=True).start()
        time.sleep(0.5)
        began = time.monotonic()
        assert running.end(signal.SIGINT) == 0
        taken.append(time.monotonic() - began)
        with Store(table.with_name("things.answers.db")) as store:
            assert len(History.of(store.events()).answers) == 3 * (attempt + 1)
        if taken[-1] < 3:
            break
    assert min(taken) < 3


def _listen(person: Person) -> None:
    try:
        with httpx.stream("GET", f"{person.base}/api/events", cookies=person.client.cookies, timeout=60) as reply:
            for _ in reply.iter_lines():
                pass
    except httpx.HTTPError:
        return


def test_one_link_for_each_person(process, table):
    running = process(table, "--port", "0", "--annotators", "ann,ben")
    assert len(running.urls) == 2
    names = {Person.enter(url).get("state")["annotator"] for url in running.urls}
    assert names == {"ann", "ben"}


@pytest.mark.processes
def test_the_link_of_a_running_studio_is_printed_again(process, table):
    """As long as it runs, and it opens the studio a second time."""
    running = process(table)
    code = "import sys; from pairlens.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "studio", str(table), "--link"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[1:]) == (0, running.urls)
    assert Person.enter(running.urls[0]).count == Person.enter(done.stdout.split()[1]).count == 0
    running.end()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no studio of this machine has" in done.stderr


def test_killed_in_any_step_of_writing_a_store_loses_nothing(tmp_path):
    """Answers and checkpoints without a pause, so that each kill is in the middle of one of them."""
    rng, path, known = random.Random(1), tmp_path / "log.db", 0
    for _ in range(WRITER_MOMENTS):
        command = [sys.executable, "-m", "tests.studio.writer", str(path), str(known), str(10**9), "-1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            acknowledged = [int(child.stdout.readline()) for _ in range(rng.randint(1, 30))]
            time.sleep(rng.uniform(0.0, 0.02))
            child.kill()
            acknowledged += [int(line) for line in child.stdout if line.endswith("\n")]
        with Store(path) as store:
            assert store._connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            stored = [(event.id, event.damage) for event in store.events()]
        # At most the one answer that was on its way is there without having been acknowledged.
        assert len(stored) - 1 <= acknowledged[-1] + 1 <= len(stored)
        assert stored == [(f"e{number}", "") for number in range(len(stored))]
        known = len(stored)


@pytest.mark.processes
def test_killed_at_any_moment_it_loses_nothing(process, table):
    """Every acknowledged answer is there after the restart, the store is sound, and the replay is what was said."""
    rng = random.Random(0)
    running = process(table, "--port", "0")
    acknowledged: dict[str, str] = {}
    for moment in range(MOMENTS):
        if moment:
            running.start()
        person = Person.enter(running.urls[0])
        person.number = 1000 * (moment + 1)
        said = threading.Thread(target=_answer, args=(person, acknowledged), daemon=True)
        person.question()
        said.start()
        time.sleep(rng.uniform(0.0, 0.6))
        running.end(signal.SIGKILL)
        said.join(timeout=30)
        with Store(table.with_name("things.answers.db")) as store:
            assert store._connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            stored = History.of(store.events()).answers
        assert {name: stored[name].answer for name in acknowledged} == acknowledged
        # At most the one answer that was on its way is there without having been acknowledged.
        assert len(stored) - len(acknowledged) <= moment + 1
    assert len(acknowledged) >= MOMENTS


def _answer(person: Person, acknowledged: dict[str, str]) -> None:
    try:
        while True:
            question = person.post("next").json()["questions"][0]
            event, answer = person.event(), truth(question)
            if person.post("answer", {"id": event, "question": question["raw"], "answer": answer}).status_code == 200:
                acknowledged[event] = answer
    except (httpx.HTTPError, ValueError, KeyError):
        return


@pytest.fixture
def failing(capsys, monkeypatch) -> Callable[..., str]:
    """What the command, run in this process, says on its way out, with exit code 2."""

    def serve(studio: Studio) -> None:
        raise AssertionError(f"the studio has started: {studio.urls}")

    monkeypatch.setattr(Studio, "serve", serve)

    def call(*arguments: Any) -> str:
        assert run(["studio", *map(str, arguments), "--no-browser"]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        return said.err

    return call


def test_an_error_ends_the_process(table):
    code = "import sys; from pairlens.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "studio", str(table), "--id", "nothing", "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "has no column 'nothing'" in done.stderr


def test_what_it_says_when_it_cannot_start(failing, table, tmp_path):
    other = tmp_path / "other.csv"
    write_table(other, seed=5)
    store = tmp_path / "one.db"
    Store(store).close()
    assert "would let other machines in" in failing(table, "--host", "0.0.0.0")
    assert "is not a folder" in failing(table, "--store", tmp_path / "no" / "where.db")
    (tmp_path / "bad.db").write_text("no database " * 400)
    assert "is damaged" in failing(table, "--store", tmp_path / "bad.db")


@pytest.mark.skipif(os.name != "posix", reason="chmod")
def test_a_store_of_another_table(process, failing, table, tmp_path):
    running = process(table, "--port", "0")
    running.end(signal.SIGINT)
    other = Path(tmp_path, "other.csv")
    write_table(other, seed=5)
    assert "holds the answers of another table" in failing(
        other, "--id", "name", "--store", table.with_name("things.answers.db")
    )


def test_what_it_says_of_entries_that_it_does_not_use(table, monkeypatch, capsys):
    rows = rows_from_file(table, ids="name")
    with open_store(table.with_name("things.answers.db"), rows) as store:
        store.append(Event("bad", "answer", "me", {"question": {}, "answer": "foo", "ids": []}))
    monkeypatch.setattr(Studio, "serve", lambda studio: studio._session.close())
    assert run(["studio", str(table), "--id", "name", "--port", "0", "--no-browser"]) == 0
    said = capsys.readouterr().err
    assert said.startswith("pairlens: warning: 1 entry of the store is not used, all others are; nothing was removed. ")
    assert "entry 1 of " in said
