"""The session over HTTP: answers count once, can be taken back and changed, and a restart gives the same state."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from pairlens import Constraints, load
from pairlens._text import csv_text
from pairlens.asking import Asker, Question
from pairlens.studio.replay import History
from pairlens.studio.store import Event
from pairlens.supervision import read_answers
from tests.asking.people import plain
from tests.studio.conftest import Person, link, truth, until


@pytest.fixture
def person(studio, table):
    return Person.enter(link(studio(table)))


def settled(running):
    """The state when all fits that are due are done."""
    until(lambda: running.call(lambda s: s.ready and s.asker.fit_job() is None and not s._maps.fitting))
    return running.call(lambda session: (plain(session.asker), session.history))


def test_a_stream_begins_with_the_status(studio, table):
    """A page whose stream opens after all that there is to tell knows it nevertheless."""
    running = studio(table)
    person = Person.enter(link(running))
    settled(running)
    with person.client.stream("GET", "/api/events") as reply:
        lines = [line for line, _ in zip(reply.iter_lines(), range(4))]
    assert lines[:3] == ["retry: 1000", "", "event: status"]
    status = json.loads(lines[3].removeprefix("data: "))
    assert status["ready"]
    assert status["map"]["version"] > 0
    later = person.get("state")["status"]
    assert later.pop("order") > status.pop("order") > 0
    assert status == later


def test_a_repeated_request_is_one_answer(person):
    question = person.question()
    body = {"id": "mine", "question": question["raw"], "answer": "same"}
    first, second = person.post("answer", body), person.post("answer", body)
    assert first.status_code == second.status_code == 200
    assert person.count == 1
    other = person.post("answer", {**body, "id": "other"})
    assert other.status_code == 409
    assert "answered before" in other.json()["error"]
    assert person.post("undo", {"id": "mine"}).status_code == 409
    assert person.count == 1


@pytest.mark.parametrize("route", ["undo", "retract"])
def test_what_was_taken_back_can_be_sent_again(person, route):
    """As a page does that was reloaded before it heard that it was stored."""
    given = person.event()
    person.answer("same", given)
    body = {"id": person.event(), **({"target": given} if route == "retract" else {})}
    replies = [person.post(route, body) for _ in range(2)]
    assert [reply.status_code for reply in replies] == [200, 200]
    assert person.count == 0
    # An id that stands for something else is still refused.
    other = "retract" if route == "undo" else "undo"
    assert person.post(other, {**body, "target": given}).status_code == 409


def test_undo_brings_the_question_back(person):
    question = person.question()
    person.answer("same")
    reply = person.post("undo", {"id": "u1"}).json()
    assert reply["status"]["answers"] == 0
    assert reply["questions"][0]["id"] == question["id"]
    assert person.post("undo", {"id": "u1"}).status_code in (200, 409)
    assert person.post("undo", {"id": "u2"}).status_code == 409
    person.answer("different")
    assert person.count == 1


def test_what_was_taken_back_is_asked_of_nobody_else(studio, table):
    running = studio(table, annotators=["ann", "ben"])
    ann, ben = (Person.enter(link(running, name)) for name in ("ann", "ben"))
    questions = []
    for _ in range(3):
        questions.append(ann.question()["id"])
        ann.answer("different")
    for number, expected in enumerate(reversed(questions)):
        back = ann.post("undo", {"id": f"u{number}"}).json()["questions"]
        assert back[0]["id"] == expected
        others = ben.post("next").json()["questions"]
        assert not {q["id"] for q in others} & {q["id"] for q in back}
    assert ann.count == 0


def test_preferences_make_no_groups(studio, table):
    """Nothing that is asked of groups fails without them."""
    person = Person.enter(link(studio(table, question="prefer")))
    assert person.answer("left").status_code == 200
    assert person.post("name", {"id": "n", "group": 0, "name": "first"}).status_code == 409
    assert person.post("choose", {"id": "c", "action": "together", "rows": [0, 3]}).status_code == 409
    progress = person.get("progress")
    assert progress["counts"] == {"left": 1}
    assert progress["hint"]["reasons"]
    assert "placed" not in progress
    assert person.get("groups") == []
    assert person.get("doubts") == {"doubts": [], "conflicts": 0, "kept": 0}


def test_preferences_make_a_ranking(studio, table):
    """By the column a: its order is found, each rank has an interval, and the file has all rows."""
    running = studio(table, question="prefer")
    person = Person.enter(link(running))
    size = [row.tolist()[0] for row in running.call(lambda session: session.rows.X)]
    for _ in range(40):
        reply = person.answer(lambda q: "left" if size[q["rows"][0]["row"]] > size[q["rows"][1]["row"]] else "right")
        assert reply.status_code == 200
    settled(running)
    progress = person.get("progress")
    assert sum(progress["counts"].values()) == 40
    assert 0 < progress["share_sure"] < 1
    first = person.get("ranking?most=10")
    assert (first["rows"], first["found"], len(first["ranked"])) == (90, 90, 10)
    assert all(row["low"] <= row["rank"] <= row["high"] for row in first["ranked"])
    assert len({row["row"] for row in first["ranked"]} & set(np.argsort(size)[-15:].tolist())) >= 7
    assert [row["rank"] for row in person.get("ranking?start=88")["ranked"]] == [89, 90]
    found = person.get("ranking?find=row-7&most=60")
    assert {row["id"] for row in found["ranked"]} == {"row-7", *(f"row-7{k}" for k in range(10))}
    lines = list(csv.DictReader(io.StringIO(person.client.get("/api/export/ranking.csv").text)))
    assert [line["rank"] for line in lines] == [str(k) for k in range(1, 91)]
    assert [line["id"] for line in lines[:10]] == [row["id"] for row in first["ranked"]]
    assert sum(int(line["comparisons"]) for line in lines) == 80


def test_only_preferences_make_a_ranking(person):
    person.question()
    assert person.client.get("/api/ranking").status_code == 404
    assert person.client.get("/api/export/ranking.csv").status_code == 404


def test_answers_of_another_kind_are_left_alone(studio, table):
    first = studio(table)
    Person.enter(link(first)).answer("same", "old")
    first.stop()
    person = Person.enter(link(studio(table, question="prefer")))
    assert person.question()["kind"] == "prefer"
    assert person.post("undo", {"id": "u"}).status_code == 409
    assert person.post("retract", {"id": "r", "target": "old"}).status_code == 409
    raw = {"id": "z", "kind": "same", "rows": [0, 1], "answers": ["same", "different", "unsure"], "annotator": "me"}
    assert person.post("answer", {"id": "a", "question": raw, "answer": "same"}).status_code == 409
    assert person.answer("left").status_code == 200
    assert person.count == 2


def test_state_after_a_restart_is_that_of_a_fresh_replay(studio, table):
    """With undo, change and retract on the way; the oracle is an Asker that is told the effective log."""
    running = studio(table)
    person = Person.enter(link(running))
    events = []
    for k in range(24):
        events.append(person.event())
        assert person.answer(truth, events[-1]).status_code == 200
        if k == 7:
            person.post("undo", {"id": person.event()})
        if k == 12:
            person.post("change", {"id": person.event(), "target": events[3], "answer": "unsure"})
        if k == 15:
            person.post("retract", {"id": person.event(), "target": events[5]})
    assert person.post("retract", {"id": person.event(), "target": events[5]}).status_code == 409
    before, history = settled(running)
    assert len(history.answers) == person.count == 22
    seed = running.call(lambda session: session.settings.seed)
    X = running.call(lambda session: session.rows.X)
    run = running.call(lambda session: session.status()["run"])
    running.stop()

    fresh = Asker(X, random_state=seed, audit=0.15, repeat=0.03)
    for answer in history.answers.values():
        fresh.tell(Question.from_dict(answer.question), answer.answer)
    assert plain(fresh) == before

    again = studio(table)
    after, restored = settled(again)
    assert restored == history
    assert after == before
    assert again.call(lambda session: session.status()["run"]) != run


def test_a_person_changes_their_own_answers_alone(studio, table):
    running = studio(table, annotators=["ann", "ben"])
    ann, ben = (Person.enter(link(running, name)) for name in ("ann", "ben"))
    ann.answer("same", "first")
    assert ben.post("change", {"id": "c", "target": "first", "answer": "different"}).status_code == 403
    assert ben.post("retract", {"id": "r", "target": "first"}).status_code == 403
    assert ben.post("undo", {"id": "u"}).status_code == 409
    assert ben.get("state")["recent"] == []
    assert ben.post("answer", {"id": "b", "question": ann.question()["raw"], "answer": "same"}).status_code == 403
    # In a review, what others answered can be mended.
    assert (
        ben.post("review", {"id": "v", "target": "first", "outcome": "flip", "answer": "different"}).status_code == 200
    )
    assert running.call(lambda session: session.history.answers["first"].answer) == "different"


def test_no_pair_is_open_twice(studio, table):
    running = studio(table, annotators=["ann", "ben", "cleo"])
    people = [Person.enter(link(running, name)) for name in ("ann", "ben", "cleo")]
    people[0].question()
    for _ in range(8):
        opened = [tuple(sorted(q["raw"]["rows"])) for p in people for q in p.post("next").json()["questions"]]
        assert len(opened) == len(set(opened)) == 6
        for person in people:
            person.answer(truth)


def test_names_flags_and_groups(person):
    for _ in range(12):
        person.answer(truth)
    group = person.get("groups")[0]
    name = "=cats<script>"
    assert person.post("name", {"id": "n", "group": group["number"], "name": name}).status_code == 200
    assert person.get("groups")[0]["name"] == name
    assert person.post("name", {"id": "m", "group": 10**6, "name": "x"}).status_code == 409
    assert person.post("name", {"id": "l", "group": 0, "name": "x" * 81}).status_code == 400
    newest = person.get("state")["recent"][0]
    person.post("flag", {"id": "f", "target": newest["id"], "flagged": True})
    assert person.get("state")["recent"][0]["flagged"]
    doubts = person.get("doubts")["doubts"]
    assert [doubt["answer"]["id"] for doubt in doubts if doubt["kind"] == "flagged"] == [newest["id"]]
    lines = list(csv.DictReader(io.StringIO(person.client.get("/api/export/groups.csv").text)))
    placed = {line["id"]: line["group"] for line in lines if line["known"] == "placed"}
    assert {placed[f"row-{row}"] for row in group["rows"]} == {"'" + name}
    assert len(lines) > len(placed)
    assert {line["known"] for line in lines} <= {"placed", "answered", "inferred"}
    assert all(0 < float(line["probability"]) <= 1 for line in lines)


@pytest.mark.parametrize("question", ["same", "prefer"])
def test_two_rows_have_a_map_a_model_and_a_report(studio, tmp_path, question):
    (tmp_path / "two.csv").write_text("name,a\nx,1\ny,2\n")
    person = Person.enter(link(studio(tmp_path / "two.csv", question=question)))
    person.answer("same" if question == "same" else "left")
    shown = until(lambda: person.get("state")["status"]["map"], lambda seen: seen["answers"] >= 1)
    assert (shown["name"], shown["points"], shown["error"]) == ("Principal components", 2, "")
    for name in ("map.csv", "groups.csv", "model.pairlens", "report.html"):
        assert person.client.get(f"/api/export/{name}").status_code == 200, name


def test_exports_are_what_the_command_line_reads(studio, table, tmp_path):
    running = studio(table)
    person = Person.enter(link(running))
    for _ in range(14):
        person.answer(truth)
    said = running.call(lambda session: [v for e in session.asker.log for v in e.question.verdicts(e.answer)])
    expected = Constraints([(i, j) for i, j, v in said if v > 0], [(i, j) for i, j, v in said if v < 0], 90)
    ids = [f"row-{k}" for k in range(90)]
    for name in ("answers.csv", "answers.jsonl"):
        reply = person.client.get(f"/api/export/{name}")
        assert reply.headers["content-disposition"] == f'attachment; filename="{name}"'
        (tmp_path / name).write_text(reply.text)
        found = read_answers(tmp_path / name, ids=np.array(ids, dtype=object), n_samples=90).constraints
        assert found == expected
    until(lambda: person.get("state")["status"]["map"]["answers"] >= 14)
    lines = list(csv.DictReader(io.StringIO(person.client.get("/api/export/map.csv").text)))
    assert [line["id"] for line in lines] == ids
    (tmp_path / "model.pairlens").write_bytes(person.client.get("/api/export/model.pairlens").content)
    import pandas

    assert load(tmp_path / "model.pairlens").transform(pandas.read_csv(table)).shape == (90, 2)
    report = person.client.get("/api/export/report.html")
    assert report.text.startswith("<!doctype html>")
    assert person.client.get("/api/export/secrets").status_code == 404
    progress = person.get("progress")
    assert progress["people"] == {"me": 14}
    assert progress["hint"]["stop"] is False


def test_people_and_machines_apart_and_audits_first(studio, table):
    """A person gets the questions that a machine answered first, without its answers; the page lists who answered."""
    running = studio(table)
    person = Person.enter(link(running))
    settled(running)

    def by_machine(session):
        for k in range(60):
            question = session.asker.ask("machine:small")
            shown = {"kind": question.kind, "rows": [{"row": row} for row in question.rows]}
            session.answer("machine:small", f"m{k}", question.to_dict(), truth(shown))
        return [question.rows for question in session.asker.audits_due()]

    due = running.call(by_machine)
    assert due
    running.call(lambda session: [session.asker.release(q) for q in session.asker.pending("me")])
    progress = person.get("progress")
    assert progress["people"] == {}
    assert progress["audits_due"] == len(due)
    assert progress["machines"]["machine:small"]["answers"] == 60
    assert tuple(row["row"] for row in person.question()["rows"]) == due[0]
    person.answer(truth(person.question()))
    progress = person.get("progress")
    assert progress["people"] == {"me": 1}
    rate = progress["machines"]["machine:small"]
    assert (rate["audits"], rate["wrong"]) == (1, 0)
    assert 0 <= rate["low"] <= rate["rate"] <= rate["high"] <= 1
    assert person.get("answers?show=machines&most=5")["found"] == 60
    (mine,) = person.get("answers?show=people&most=5")["answers"]
    assert mine["annotator"] == "me"


def test_exports_are_harmless():
    text = csv_text(("=name", "b"), [("=cmd|' /C calc'!A0", 3), ("-7", "x")])
    assert list(csv.reader(io.StringIO(text))) == [["'=name", "b"], ["'=cmd|' /C calc'!A0", "3"], ["-7", "x"]]


def test_a_failed_fit_keeps_the_old_map(studio, table, monkeypatch):
    running = studio(table)
    person = Person.enter(link(running))
    until(lambda: person.get("state")["status"]["map"]["points"])
    broken = lambda session: setattr(session._maps.worker, "submit", _failing)  # noqa: E731
    running.call(broken)
    person.answer("same")
    status = until(lambda: person.get("state")["status"], lambda seen: seen["map"]["error"])
    assert "no memory for this" in status["map"]["error"]
    assert status["answers"] == 1
    assert status["map"]["points"] == 90
    assert person.question()


def _failing(*_):
    from concurrent.futures import Future

    future: Future[None] = Future()
    future.set_exception(MemoryError("no memory for this"))
    return future


def test_a_full_disk_is_told_and_the_answer_can_be_sent_again(studio, table):
    running = studio(table)
    person = Person.enter(link(running))
    question = person.question()
    full = lambda session, pages: session.store._connection.execute(f"PRAGMA max_page_count = {pages}")  # noqa: E731
    pages = running.call(lambda s: s.store._connection.execute("PRAGMA page_count").fetchone()[0])
    running.call(lambda session: full(session, pages))
    body = {"question": question["raw"], "answer": "same"}
    codes = set()
    group = running.call(lambda session: next(iter(session.asker.groups_)))
    for number in range(60):
        reply = person.post("name", {"id": f"n{number}", "group": group, "name": "x" * 80})
        codes.add(reply.status_code)
        if reply.status_code == 507:
            break
    assert 507 in codes
    assert "is full" in reply.json()["error"]
    stored = running.call(lambda session: len(list(session.store.events())))
    running.call(lambda session: full(session, 10**6))
    assert person.post("answer", {"id": "later", **body}).status_code == 200
    assert running.call(lambda session: len(list(session.store.events()))) == stored + 1


def test_a_hidden_purpose_survives_the_log():
    """An event is JSON, and comes back as the question that it was."""
    question = Question("3-1-2", "same", (1, 2), "audit", (), "ann")
    body = json.loads(json.dumps({"question": question.to_dict(), "answer": "same", "ids": ["a", "b"]}))
    history = History.of([Event("e", "answer", "ann", body)])
    assert Question.from_dict(history.answers["e"].question) == question
