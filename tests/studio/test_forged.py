"""Answers that the page would never send, from somebody who has a cookie: refused, or harmless for ever after."""

from __future__ import annotations

import json
from typing import Any

from pairlens.studio.rows import rows_from_file
from pairlens.studio.run import open_store
from pairlens.studio.store import Event
from tests.studio.conftest import CHANGE, Person, link, truth

RAW = {"id": "9-same-0-1", "kind": "same", "rows": [0, 1], "purpose": "pair", "groups": [], "annotator": "me"}
PLACE = {**RAW, "kind": "place", "rows": [0, 1, 2], "groups": [0, 1]}

REFUSED: list[dict[str, Any]] = [
    {"question": {**RAW, "answers": ["foo"]}, "answer": "foo"},
    {"question": {**RAW, "answers": ["left"]}, "answer": "left"},
    {"question": {**RAW, "kind": "place", "answers": ["same"]}, "answer": "same"},
    {"question": {**RAW, "kind": "place", "answers": ["7"]}, "answer": "7"},
    {"question": {**RAW, "kind": "place"}, "answer": "0"},
    {"question": {**RAW, "kind": "place"}, "answer": "²"},
    {"question": RAW, "answer": "Same"},
    {"question": {**RAW, "kind": "else"}, "answer": "same"},
    {"question": {**RAW, "kind": None}, "answer": "same"},
    {"question": {**RAW, "kind": ["same"]}, "answer": "same"},
    {"question": {**RAW, "kind": "skip", "rows": [0], "answers": ["skip"]}, "answer": "skip"},
    {"question": {**RAW, "kind": "prefer"}, "answer": "left"},
    *({"question": {**RAW, "rows": rows}, "answer": "same"} for rows in ([], [0], [0, 1, 2], [0, 0], None, "01", 3)),
    *({"question": {**RAW, "rows": [0, row]}, "answer": "same"} for row in (-1, 90, 10**30, 1.0, 1.5, "1", True, None)),
    *({"question": {**RAW, "rows": [0, row]}, "answer": "same"} for row in (float("nan"), float("inf"), [1], {})),
    {"question": {**PLACE, "rows": list(range(10)), "groups": []}, "answer": "9"},
    *({"question": {**PLACE, "groups": groups}, "answer": "1"} for groups in ([0], [0, 1, 2], [0, -1], [0, 10**30])),
    *({"question": {**PLACE, "groups": groups}, "answer": "1"} for groups in ([0, 1.5], ["0", "1"], 7, [[0], [1]])),
    {"question": {**RAW, "groups": [0]}, "answer": "same"},
    *({"question": {**RAW, "purpose": purpose}, "answer": "same"} for purpose in ("else", None, ["pair"], 5)),
    *({"question": {**RAW, "id": name}, "answer": "same"} for name in ("", None, 7, ["x"], "1" * 5000)),
    *({"question": {**RAW, "annotator": name}, "answer": "same"} for name in ("ben", None, 5, ["me"])),
    {"question": {}, "answer": "same"},
    {"question": [RAW], "answer": "same"},
    {"question": RAW, "answer": ["same"]},
    {"question": RAW, "answer": None},
    {"question": {**RAW, "id": "\ud800"}, "answer": "same"},
]
TAKEN: list[dict[str, Any]] = [
    {"question": {**RAW, "id": "forged"}, "answer": "same"},
    {"question": {**RAW, "id": "9" * 190, "rows": [1, 2]}, "answer": "different"},
    {"question": {**RAW, "id": "٣-same", "rows": [4, 3], "purpose": "audit"}, "answer": "same"},
    {"question": {**RAW, "id": "999999999999999-x", "rows": [5, 6], "purpose": "repeat"}, "answer": "unsure"},
    {"question": {**RAW, "id": "m", "rows": [7, 8], "purpose": "merge"}, "answer": "same"},
    {"question": {**RAW, "id": "s", "rows": [7, 9], "purpose": "skip", "more": 1}, "answer": "same"},
    {"question": {**PLACE, "id": "p", "groups": [5000, 6000], "purpose": "audit"}, "answer": "2"},
    {"question": {**PLACE, "id": "q", "rows": [11, 12], "groups": []}, "answer": "none"},
]
"""Questions that could have been put; an id is any text."""


def works(person: Person) -> None:
    """All that a page needs."""
    assert person.answer(truth).status_code == 200
    for route in ("state", "groups", "progress", "doubts"):
        person.get(route)
    for name in ("answers.csv", "answers.jsonl", "groups.csv"):
        assert person.client.get(f"/api/export/{name}").status_code == 200


def test_a_forged_answer_is_refused_or_harmless(studio, table):
    running = studio(table)
    person = Person.enter(link(running))
    works(person)
    for number, body in enumerate(REFUSED):
        content = json.dumps({"id": f"r{number}", **body})  # as the standard library writes NaN
        reply = person.client.post("/api/answer", content=content, headers=CHANGE)
        assert reply.status_code in (400, 403, 409), (body, reply.text)
        assert reply.json()["error"], body
    assert person.count == 1
    assert running.call(lambda session: len(list(session.store.events()))) == 1
    for number, body in enumerate(TAKEN):
        assert person.post("answer", {"id": f"t{number}", **body}).status_code == 200, body
    # The answers that may be given are those of the question, not those that came with it.
    stored = running.call(lambda session: session.history.answers["t0"].question)
    assert stored["answers"] == ["same", "different", "unsure"]
    assert person.post("change", {"id": "c", "target": "t0", "answer": "foo"}).status_code == 400
    assert person.post("name", {"id": "n", "group": 10**30, "name": "x"}).status_code == 409
    open_question = person.question()["raw"]
    turned = {**open_question, "rows": open_question["rows"][::-1]}
    assert person.post("answer", {"id": "x", "question": turned, "answer": "same"}).status_code == 409
    assert person.post("answer", {"id": "t0", "question": open_question, "answer": "same"}).status_code == 409
    works(person)
    running.stop()
    again = studio(table)
    person = Person.enter(link(again))
    works(person)
    assert person.count == 3 + len(TAKEN)
    assert person.get("state")["status"]["left_out"] == ""


def test_a_store_with_answers_that_cannot_be_applied_goes_on(studio, table, caplog):
    """As one that was forged before they were refused, or written by other means."""
    rows = rows_from_file(table, ids="name")
    ids = rows.ids[:2]
    bodies = {
        "before": {"question": RAW, "answer": "different", "ids": ids},
        "foo": {"question": {**RAW, "id": "f", "answers": ["foo"]}, "answer": "foo", "ids": ids},
        "twice": {"question": RAW, "answer": "same", "ids": ids},
        "gone": {"question": {**RAW, "id": "g"}, "answer": "same", "ids": ["row-0", "nobody"]},
        "after": {"question": {**RAW, "id": "h", "rows": [1, 2]}, "answer": "different", "ids": rows.ids[1:3]},
    }
    with open_store(table.with_name("things.answers.db"), rows) as store:
        for name, body in bodies.items():
            store.append(Event(name, "answer", "me", body))
    running = studio(table)
    assert running.left_out.startswith("2 entries of the store are not used, all others are; nothing was removed. ")
    person = Person.enter(link(running))
    works(person)
    assert set(running.call(lambda session: session.history.answers)) > {"before", "after"}
    said = person.get("state")["status"]["left_out"]
    assert said.startswith("3 entries of the store are not used")
    for words in (
        "answer='foo' to question f must be one of same, different, unsure",
        "no row 'nobody'",
        "was answered",
    ):
        assert words in said
    assert "was answered before" in caplog.text
    assert person.count == 3
    assert running.call(lambda session: len(list(session.store.events()))) == 6
