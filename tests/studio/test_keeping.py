"""What a studio makes of a store that is moved, copied, or started with another column of ids while answers count."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from pairlens.studio.store import Event, StoreError
from tests.studio.conftest import Person, link, truth, until


def test_an_answer_to_a_store_that_was_moved_is_sent_again(studio, table):
    running = studio(table)
    person = Person.enter(link(running))
    assert person.answer(truth).status_code == 200
    path, moved = table.with_name("things.answers.db"), table.with_name("moved.db")
    question = person.question()
    body = {"id": "mine", "question": question["raw"], "answer": truth(question)}
    path.rename(moved)
    refused = person.post("answer", body)
    assert refused.status_code == 500  # the page keeps the answer, and sends it again
    assert "was moved while the studio had it open: this answer is not stored" in refused.json()["error"]
    assert person.count == 1
    moved.rename(path)
    assert person.post("answer", body).status_code == 200
    assert person.count == 2
    running.stop()
    assert Person.enter(link(studio(table))).count == 2


def test_an_answer_that_was_stored_without_being_acknowledged_counts_when_it_comes_again(studio, table):
    running = studio(table)
    person = Person.enter(link(running))
    question = person.question()
    event = Event(
        "mine",
        "answer",
        "me",
        {"question": question["raw"], "answer": "same", "ids": [row["id"] for row in question["rows"]]},
    )
    running.call(lambda session: session.store.append(event))
    assert person.post("answer", {"id": "mine", "question": question["raw"], "answer": "same"}).status_code == 200
    assert person.count == 1
    assert running.call(lambda session: len(session.asker.log)) == 1
    assert running.call(lambda session: len(list(session.store.events()))) == 1


def test_a_copy_of_the_file_alone_has_all_answers(studio, table, tmp_path):
    """Also of a studio that runs, as soon as it had a moment."""
    person = Person.enter(link(studio(table)))
    for _ in range(12):
        assert person.answer(truth).status_code == 200
    path = table.with_name("things.answers.db")
    until(lambda: not Path(f"{path}-wal").stat().st_size)
    (tmp_path / "copy.db").write_bytes(path.read_bytes())
    assert Person.enter(link(studio(table, store=tmp_path / "copy.db"))).count == 12


def test_a_remapped_store_puts_answers_on_their_rows(studio, tmp_path):
    """Started with another --id or none, it refuses; with its own, every exported pair is right."""
    lines = ["number,name,a,b"]
    lines += [f"{k},row-{k},{k % 3},{k % 3 + 0.01 * k}" for k in range(60)]
    table, turned = tmp_path / "things.csv", tmp_path / "turned.csv"
    table.write_text("\n".join(lines) + "\n")
    turned.write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    store = tmp_path / "answers.db"
    running = studio(table, store=store, ids="number")
    person = Person.enter(link(running))
    for _ in range(15):
        assert person.answer(truth).status_code == 200
    wanted = exported(person)
    assert len(wanted) == 15
    running.stop()
    running = studio(turned, store=store, ids="number", remap=True)
    assert exported(Person.enter(link(running))) == wanted
    running.stop()
    for ids in ("name", None):
        with pytest.raises(StoreError, match="was made with ids='number'"):
            studio(turned, store=store, ids=ids)
    assert exported(Person.enter(link(studio(turned, store=store, ids="number")))) == wanted


def exported(person: Person) -> list[tuple[set[str], str]]:
    lines = csv.DictReader(io.StringIO(person.client.get("/api/export/answers.csv").text))
    return [({line["a"], line["b"]}, line["kind"]) for line in lines]
