"""``pairlens ask``: a session from a pipe, resumed, undone, and fitted with."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pairlens.asking import Asker
from pairlens.cli.ask import _say_how_it_goes
from pairlens.studio.store import Event, Store
from tests.cli.conftest import CLASSES, COMMAND, IDS
from tests.endpoint_server import endpoint_server, refused

ASK = ("ask", "data.csv", "--id", "id", "--drop", "class", "--out", "answers.csv")


class Person:
    """Somebody who answers in a pipe, one question at a time, by the true classes."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        if not COMMAND.exists():
            pytest.skip("the command pairlens is not installed beside this Python")
        self.process = subprocess.Popen(
            [COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=folder,
            env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"},
        )
        self.rows: list[int] = []
        self.said = ""

    def next(self) -> bool:
        """Read up to the next question; False at the end."""
        for line in self.process.stdout:
            self.said += line
            if re.match(r"\d+\. ", line):
                head = next(self.process.stdout)
                self.said += head
                self.rows = [IDS.index(name) for name in re.findall(r"\d{3}", head)]
                return True
        return False

    def true(self) -> str:
        same = [at for at, row in enumerate(self.rows[1:], start=1) if CLASSES[row] == CLASSES[self.rows[0]]]
        if "To which" in self.said.rsplit("\n\n", 1)[-1]:
            return str(same[0]) if same else "0"
        return "s" if same else "d"

    def say(self, word: str) -> None:
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def end(self) -> int:
        self.process.stdin.close()
        self.said += self.process.stdout.read()
        self.errors = self.process.stderr.read()
        return self.process.wait(timeout=60)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def events(path: Path) -> list[Event]:
    with Store(path) as store:
        return list(store.events())


@pytest.mark.parametrize("question", ["same", "place"])
def test_answers_are_written_resumed_and_fitted_with(table, cli, question):
    arguments = (*ASK, "--question", question)
    person = Person(table, *arguments)
    for _ in range(12):
        assert person.next()
        person.say(person.true())
    assert person.next()
    person.say("q")
    assert person.end() == 0, person.errors
    first = lines(table / "answers.csv")
    assert first[0] == "a,b,kind"
    assert len(first) > 12
    for line in first[1:]:
        a, b, kind = line.split(",")
        assert kind == ("must-link" if CLASSES[IDS.index(a)] == CLASSES[IDS.index(b)] else "cannot-link")

    again = Person(table, *arguments, "--closure", "closure.csv", "--groups", "groups.csv")
    assert again.next()
    assert "12 answers so far" in again.said
    again.say(again.true())
    assert again.end() == 0, again.errors
    assert len(lines(table / "answers.csv")) > len(first)
    assert lines(table / "closure.csv")[0] == "a,b,kind,weight"
    groups = [line.split(",") for line in lines(table / "groups.csv")]
    assert groups[0] == ["id", "group", "probability", "known"]
    assert [line[0] for line in groups[1:]] == list(IDS)
    assert {line[3] for line in groups[1:]} >= {"placed", "inferred"}
    for pairs in ("answers.csv", "closure.csv"):
        fit = ("fit", "data.csv", "--pairs", pairs, "--id", "id", "--drop", "class", "--method", "wbdr")
        outcome = cli(*fit, "--out", pairs[:-4])
        assert outcome.code == 0, outcome.err


@pytest.mark.processes
def test_undo_shows_the_question_again(table):
    person = Person(table, *ASK)
    person.next()
    asked = person.rows
    person.say("s")
    person.next()
    person.say("u")
    person.next()
    assert person.rows == asked
    person.say("d")
    person.next()
    person.say("nonsense")
    person.say("?")
    person.next()
    person.say("x")
    assert person.end() == 0
    assert "'nonsense' is not an answer" in person.said
    a, b = (IDS[row] for row in sorted(asked))
    assert lines(table / "answers.csv") == ["a,b,kind", f"{a},{b},cannot-link"]
    # All of it is in the store, also what was taken back.
    assert [event.kind for event in events(table / "answers.store.db")] == ["answer", "undo", *["answer"] * 3]


def test_preferences(table, cli):
    person = Person(table, *ASK, "--question", "prefer", "--questions", "12")
    while person.next():
        a, b = person.rows
        person.say("l" if a > b else "r")
    assert person.end() == 0, person.errors
    written = [line.split(",") for line in lines(table / "answers.csv")[1:]]
    assert len(written) == 12
    assert all(kind == "prefer" and a > b for a, b, kind in written)
    assert "wrote answers.csv: 12 answers\n" in person.said
    fit = ("fit", "data.csv", "--pairs", "answers.csv", "--id", "id", "--drop", "class")
    outcome = cli(*fit, "--method", "wsdr", "--out", "ranked")
    assert outcome.code == 0, outcome.err


@pytest.mark.parametrize(
    ("question", "words", "counted"),
    [("prefer", "lre", "2 preferences from 3 answers"), ("same", "sd?", "2 pairs from 3 answers")],
)
def test_every_answer_is_counted(table, question, words, counted):
    """Two rows that are equally good, or of which nobody can tell, are no pair of the file."""
    person = Person(table, *ASK, "--question", question)
    for word in words:
        assert person.next()
        person.say(word)
    assert person.next()
    assert person.end() == 0, person.errors
    assert len(lines(table / "answers.csv")) == 3
    assert f"wrote answers.csv: {counted}\n" in person.said


@pytest.mark.processes
def test_a_killed_session_loses_nothing(table):
    person = Person(table, *ASK)
    for _ in range(5):
        person.next()
        person.say(person.true())
    person.next()
    person.process.kill()
    person.end()
    again = Person(table, *ASK)
    assert again.next()
    assert "5 answers so far" in again.said
    again.say(again.true())
    assert again.end() == 0, again.errors
    assert len(events(table / "answers.store.db")) == 6


@pytest.mark.processes
def test_nothing_left(table):
    (table / "small.csv").write_text("x,y\n1,2\n1,3\n9,9\n8,9\n")
    person = Person(table, "ask", "small.csv", "--out", "small_answers.csv")
    while person.next():
        person.say("?")
    assert person.end() == 0, person.errors
    assert "Nothing is left to ask." in person.said


@pytest.mark.processes
def test_errors(table, cli):
    (table / "answers.csv").write_text("a,b,kind\n")
    assert "with no answers.store.db beside it" in cli(*ASK).error
    (table / "answers.csv").unlink()
    assert "must end in .csv" in cli(*ASK[:-1], "answers.xls").error
    assert "--groups is about groups" in cli(*ASK, "--question", "prefer", "--groups", "groups.csv").error
    assert "--strategy place is about groups" in cli(*ASK, "--question", "prefer", "--strategy", "place").error
    store = table / "answers.store.db"
    store.unlink(missing_ok=True)
    store.write_text("something else")
    assert "file is not a database" in cli(*ASK).error
    store.unlink()
    person = Person(table, *ASK)
    person.next()
    person.say("s")
    assert person.end() == 0
    assert "is about question 'same', not 'place'" in cli(*ASK, "--question", "place").error
    (table / "data.csv").write_text((table / "data.csv").read_text().replace("remark", "REMARK").replace(",2.", ",3."))
    assert "holds the answers of another table" in cli(*ASK).error
    assert np.unique(IDS).size == 60


def test_dropped_columns_are_not_shown(table, cli, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
    outcome = cli("ask", "data.csv", "--id", "id", "--drop", "class,note", "--out", "told.csv")
    assert outcome.code == 0, outcome.err
    assert re.search(r"^\*? *w ", outcome.out, re.MULTILINE)
    assert "class" not in outcome.out
    assert "note" not in outcome.out
    assert not re.search(r"^\*? *id ", outcome.out, re.MULTILINE)


def test_marked_is_what_differs_unusually(tmp_path, cli, monkeypatch):
    """As in the studio: measured numbers nearly always differ, and a mark on every cell would say nothing."""
    lines = [f"r{i},{i % 10},{i / 7},{'red' if i % 6 else 'blue'}" for i in range(60)]
    table = tmp_path / "mixed.csv"
    table.write_text("name,size,weight,colour\n" + "\n".join(lines) + "\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("d\ns\n" * 20))
    outcome = cli("ask", table, "--id", "name", "--out", tmp_path / "told.csv")
    assert outcome.code == 0, outcome.err
    shown = re.findall(r"^([* ]) (size|weight|colour) +(\S+) +(\S+)$", outcome.out, re.MULTILINE)
    assert len(shown) >= 90
    for mark, name, *cells in shown:
        first, second = cells
        differ = first != second if name == "colour" else abs(float(first) - float(second)) > 5
        assert mark == " " or differ
    marks = [mark for mark, *_ in shown]
    assert 0 < marks.count("*") < len(shown) / 3


# Machines


JUDGE = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["instruction"] == "fail":
        sys.exit("out of order")
    one, *others = asked.get("rows") or [asked["row"], *(group["row"] for group in asked["groups"])]
    near = [at for at, other in enumerate(others, 1) if other["class"] == one["class"]]
    if asked["kind"] == "place":
        print(json.dumps({"answer": near[0] if near else "none"}), flush=True)
    else:
        print(json.dumps({"answer": "same" if near else "different"}), flush=True)
"""
SHOWN = ("ask", "data.csv", "--id", "id", "--drop", "class", "--show", "class")


@pytest.fixture
def judge(table):
    (table / "judge.py").write_text(JUDGE)
    return f"{sys.executable} {table / 'judge.py'}"


@pytest.mark.processes
@pytest.mark.parametrize("question", ["same", "place"])
def test_a_command_answers_and_a_person_audits(table, cli, judge, question):
    asked = (*SHOWN, "--out", "answers.csv", "--question", question)
    outcome = cli(*asked, "--by", judge, "--questions", "30", "--audit", "0.3")
    assert outcome.code == 0, outcome.err
    assert "machine:judge.py: 30 answers" in outcome.out
    assert "wait for a person" in outcome.out
    questions = [event.body["question"] for event in events(table / "answers.store.db")]
    assert {each["annotator"] for each in questions} == {"machine:judge.py"}
    assert lines(table / "answers.csv")[0] == "a,b,kind,weight"

    person = Person(table, *asked)
    assert person.next()
    machine_rows = {tuple(each["rows"]) for each in questions}
    first = tuple(person.rows[: 2 if question == "same" else None])
    assert any(set(first) <= set(rows) for rows in machine_rows)
    person.say(person.true())
    assert person.end() == 0, person.errors
    assert "0 of 1 audits disagree" in person.said
    last = events(table / "answers.store.db")[-1]
    assert last.body["question"]["purpose"] == "overlap"
    assert last.annotator == "me"


@pytest.mark.processes
def test_answers_go_to_the_studio_and_its_people_are_asked_the_same(table, cli, judge):
    from pairlens.studio.replay import History
    from pairlens.studio.store import Store

    outcome = cli(*SHOWN, "--by", judge, "--questions", "25", "--audit", "0.4")
    assert outcome.code == 0, outcome.err
    assert "pairlens studio data.csv asks the same questions" in outcome.out
    with Store(table / "data.answers.db") as store:
        assert store.meta()["overlap"] == 0.4
        history = History.of(store.events())
    assert len(history.answers) == 25
    assert {answer.annotator for answer in history.answers.values()} == {"machine:judge.py"}
    again = cli(*SHOWN, "--by", judge, "--questions", "5")
    assert "25 answers so far" in again.out
    assert "30 answers" in again.out


@pytest.mark.processes
def test_what_cannot_be_used_of_a_store_is_told_and_the_rest_goes_on(table, cli, judge):
    from pairlens.studio.store import Event, Store

    assert cli(*SHOWN, "--by", judge, "--questions", "3").code == 0
    with Store(table / "data.answers.db") as store:
        first = next(event for event in store.events() if event.kind == "answer")
        store.append(Event("again", "answer", "me", first.body))
        store.append(Event("odd", "chosen", "me", {"pairs": 5}))
    outcome = cli(*SHOWN, "--by", judge, "--questions", "2")
    assert outcome.code == 0, outcome.err
    assert "2 entries of the store are not used, all others are" in outcome.err
    assert "3 answers so far" in outcome.out


@pytest.mark.processes
def test_what_a_failing_machine_answered_is_kept(table, cli, judge):
    asked = (*SHOWN, "--out", "answers.csv", "--by", judge)
    assert cli(*asked, "--questions", "7").code == 0
    outcome = cli(*asked, "--instruction", "fail")
    assert outcome.code == 2
    assert "ended with status 1: out of order" in outcome.err
    assert "wrote answers.csv: 7 answers" in outcome.out
    assert "7 answers so far" in cli(*asked, "--questions", "1").out


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("place", [("--out", "answers.csv"), ()], ids=["file", "store"])
def test_ctrl_c_loses_no_answer(table, cli, judge, place):
    """The signal goes to the command and to the machine, as from a terminal."""
    if not COMMAND.exists():
        pytest.skip("the command pairlens is not installed beside this Python")
    asked = table / "asked.txt"
    count = f"    import time; time.sleep(0.02); open({str(asked)!r}, 'a').write('x')\n"
    (table / "judge.py").write_text(JUDGE.replace("    asked = json", f"{count}    asked = json"))
    process = subprocess.Popen(
        [COMMAND, *SHOWN, *place, "--by", judge, "--questions", "1000"],
        cwd=table,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.poll() is None and (not asked.exists() or asked.stat().st_size < 8):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    n_asked = asked.stat().st_size
    again = cli(*SHOWN, *place, "--by", judge, "--questions", "1")
    assert again.code == 0, again.err
    kept = int(re.search(r"(\d+) answers so far", again.out)[1])
    # The last one may have been under way.
    assert n_asked - 1 <= kept <= n_asked


def test_an_endpoint_answers_within_a_budget_and_the_key_is_written_nowhere(table, cli, monkeypatch):
    key = "sk-very-secret-1234567890"
    monkeypatch.setenv("MY_KEY", key)

    def reply(_, body):
        classes = {row["class"] for row in json.loads(body["messages"][1]["content"])["rows"]}
        text = json.dumps({"answer": "same" if len(classes) == 1 else "different"})
        return {
            "choices": [{"message": {"content": text}}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 0},
        }

    with endpoint_server(reply) as server:
        asked = (*SHOWN, "--by", server.url, "--model", "small", "--key-variable", "MY_KEY", "--price-in", "0.1")
        for more in (("--out", "answers.csv"), ()):
            outcome = cli(*asked, *more, "--budget", "1", "--instruction", "same class?")
            assert outcome.code == 0, outcome.err
            assert "10 answers; cost 1; the budget is spent" in outcome.out
        server.faults.extend([refused(401, f"wrong key {key}")])
        outcome = cli(*asked, "--questions", "3")
        assert outcome.code == 2
        assert "status 401" in outcome.err
        assert key not in outcome.out + outcome.err
    assert server.requests[0][1]["Authorization"] == f"Bearer {key}"
    for path in table.rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--by", "http://127.0.0.1:1/v1"), "--model must name the model"),
        (("--model", "small"), "--model is about a machine"),
        (("--by", "judge 'open"), "--by must be an address or a command"),
        (("--by", "judge", "--budget", "1", "--out", "a.csv"), "--budget needs prices"),
        (("--out", "a.csv", "--store", "a.db"), "give one of them"),
    ],
)
def test_what_does_not_go_together_is_said(table, cli, arguments, words):
    outcome = cli(*SHOWN, *arguments)
    assert outcome.code == 2
    assert words in outcome.err


def test_a_machine_that_tells_nothing_is_named(capsys):
    asker = Asker(np.random.default_rng(0).normal(size=(40, 2)), strategy="random", random_state=0, overlap=0.3)
    for _ in range(100):
        asker.tell(asker.ask("machine:eager"), "same")
    for at in range(len(asker.audits_due())):
        asker.tell(asker.ask("ann"), "same" if at % 4 == 0 else "different")
    _say_how_it_goes(asker)
    out, err = capsys.readouterr()
    assert "machine:eager are left out" in out + err
