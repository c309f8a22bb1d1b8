"""What people do with rows on the map, and the second look: everything is an answer, and can be taken back."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pairlens.studio.groups import chosen_pairs
from pairlens.studio.overview import contradictions, weakest_answers
from pairlens.studio.replay import Answer
from pairlens.studio.session import GROUP_EVERY
from tests.studio.conftest import Person, link, truth, until
from tests.studio.test_session import settled


@pytest.fixture
def running(studio, table):
    return studio(table)


def groups(running) -> list[list[int]]:
    return sorted(sorted(rows) for rows in running.call(lambda session: session.asker.groups_).values())


def number_of(running, row: int) -> int:
    found = running.call(lambda session: session.asker.groups_)
    return next(number for number, rows in found.items() if row in rows)


def choose(person: Person, action: str, rows: list[int], **more):
    reply = person.post("choose", {"id": person.event(), "action": action, "rows": rows, **more})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_rows_that_belong_together_are_one_group_and_one_undo(running):
    person = Person.enter(link(running))
    person.question()
    first = groups(running)
    reply = choose(person, "together", [10, 13, 16, 19])
    assert [10, 13, 16, 19] in groups(running)
    assert reply["status"]["answers"] == 1
    (told,) = reply["recent"]
    assert (told["kind"], told["answer"], told["ids"]) == (
        "chosen",
        "together",
        ["row-10", "row-13", "row-16", "row-19"],
    )
    exported = person.client.get("/api/export/answers.csv").text.splitlines()
    assert len(exported) == 4
    assert all(",must-link,same," in line for line in exported[1:])
    assert person.post("undo", {"id": "u"}).json()["status"]["answers"] == 0
    assert groups(running) == first


def test_one_event_is_taken_in_once(running):
    person = Person.enter(link(running))
    person.question()
    body = {"id": "mine", "action": "together", "rows": [10, 13, 16]}
    assert person.post("choose", body).status_code == person.post("choose", body).status_code == 200
    assert person.count == 1
    assert len(running.call(lambda session: session.asker.log)) == 2


def test_groups_are_merged_and_named_at_once(running):
    person = Person.enter(link(running))
    person.question()
    choose(person, "group", [10, 13, 16])
    choose(person, "group", [11, 14, 17])
    choose(person, "merge", [], group=number_of(running, 10), other=number_of(running, 11), name="both")
    (named,) = [group for group in person.get("groups") if group["name"]]
    assert (named["name"], sorted(named["rows"])) == ("both", [10, 11, 13, 14, 16, 17])


def test_no_answer_is_replaced_by_one_of_the_same_id(running):
    person = Person.enter(link(running))
    assert person.answer(truth, event="mine.0").status_code == 200
    body = {"id": "mine", "action": "together", "rows": [10, 13]}
    assert person.post("choose", body).status_code == 409
    assert person.post("choose", {**body, "id": "other"}).status_code == 200
    assert person.count == 2


def test_place_name_split_and_merge(running):
    person = Person.enter(link(running))
    person.question()
    choose(person, "group", [10, 13, 16, 19], name="ones")
    choose(person, "group", [11, 14, 17, 20], name="twos")
    assert {group["name"] for group in person.get("groups")} >= {"ones", "twos"}
    choose(person, "group", [22], group=number_of(running, 10))
    assert [10, 13, 16, 19, 22] in groups(running)
    # The first row held the group together; what was said of it is changed, and the others stay together.
    choose(person, "split", [10, 13], group=number_of(running, 10))
    assert [10, 13] in groups(running)
    assert [16, 19, 22] in groups(running)
    changed = running.call(lambda session: [answer for answer in session.history.answers.values() if answer.changed])
    assert changed
    person.post("undo", {"id": person.event()})
    assert [10, 13, 16, 19, 22] in groups(running)
    assert not any(doubt["kind"] == "contradiction" for doubt in person.get("doubts")["doubts"])
    choose(person, "apart", [22], group=number_of(running, 10))
    assert [10, 13, 16, 19] in groups(running)
    choose(person, "merge", [], group=number_of(running, 10), other=number_of(running, 11))
    assert [10, 11, 13, 14, 16, 17, 19, 20] in groups(running)
    person.post("undo", {"id": person.event()})
    assert [10, 13, 16, 19] in groups(running)
    choose(person, "group", [19])
    assert [19] in groups(running)
    before, history = settled(running)
    assert person.post("retract", {"id": person.event(), "target": "nothing"}).status_code == 409
    assert len(history.batches) == 5
    assert before


def test_a_restart_has_what_was_chosen(studio, table):
    first = studio(table)
    person = Person.enter(link(first))
    person.question()
    choose(person, "group", [10, 13, 16, 19], name="ones")
    choose(person, "split", [10], group=number_of(first, 10))
    choose(person, "together", [11, 14])
    person.post("undo", {"id": "u"})
    for _ in range(6):
        person.answer(truth)
    before, history = settled(first)
    first.stop()
    after, restored = settled(studio(table))
    assert restored == history
    assert after == before


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"action": "together", "rows": [3]}, "must say something new"),
        ({"action": "together", "rows": []}, "must name a row"),
        ({"action": "paint", "rows": [1, 2]}, "must be one of"),
        ({"action": "split", "rows": [1], "group": 999}, "must be a group that is there"),
        ({"action": "together", "rows": [1, 10**6]}, "no such row"),
        ({"action": "together", "rows": [1, "2"]}, "list of row numbers"),
        ({"action": "group", "rows": [1, 2], "name": "x" * 81}, "at most 80 characters"),
    ],
)
def test_what_cannot_be_done_is_said(shared_studio, tmp_path_factory, body, words):
    from tests.studio.conftest import write_table

    path = tmp_path_factory.mktemp("t") / "things.csv"
    write_table(path)
    running = shared_studio(path)
    person = Person.enter(link(running))
    person.question()
    reply = person.post("choose", {"id": "x", **body})
    assert reply.status_code in (400, 404)
    assert words in reply.json()["error"]
    assert person.count == 0


def test_a_whole_group_cannot_be_split_off():
    with pytest.raises(ValueError, match="must say something new"):
        chosen_pairs("split", [1, 2], {0: [1, 2]}, {(1, 2): 1}, group=0)


def wrong_answers(running, pairs: list[tuple[int, int]]) -> None:
    for number, (i, j) in enumerate(pairs):
        raw = {"id": f"wrong{number}", "kind": "same", "rows": [i, j], "annotator": "me"}
        running.call(lambda session, raw=raw: session.answer("me", raw["id"], raw, "same"))


def test_the_weakest_link_of_a_chain_is_asked_again(running, table, tmp_path):
    """Three wrong "same" among right answers: they are asked about, and what is kept remains, as `pairs check` says."""
    person = Person.enter(link(running))
    for _ in range(45):
        person.answer(truth)
    asked = running.call(lambda s: sorted({row for e in s.asker.log for row in e.question.rows}))
    by_group = [[row for row in asked if row % 3 == k] for k in range(3)]
    wrong_answers(running, [(by_group[0][-1], by_group[1][-1]), (by_group[1][0], by_group[2][0])])
    found = person.get("doubts")
    assert found["conflicts"] > 0
    assert found["kept"] == 0
    doubts = [doubt for doubt in found["doubts"] if doubt["kind"] == "contradiction"]
    assert {doubt["answer"]["id"] for doubt in doubts} <= {"wrong0", "wrong1"}
    assert sum(doubt["conflicts"] for doubt in doubts) == found["conflicts"]
    first = doubts[0]
    assert sum(each["asked"] for each in first["links"]) == 1
    assert {row for each in first["links"] for row in each["rows"]} == set(first["chain"])

    # Who keeps all of them is told that contradictions remain, as many as the export has.
    while doubts:
        reply = person.post("review", {"id": person.event(), "target": doubts[0]["answer"]["id"], "outcome": "keep"})
        assert reply.status_code == 200
        found = person.get("doubts")
        doubts = [doubt for doubt in found["doubts"] if doubt["kind"] == "contradiction"]
    assert found["conflicts"] == found["kept"] > 0
    (tmp_path / "answers.csv").write_text(person.client.get("/api/export/answers.csv").text)
    code = "import sys; from pairlens.cli import main; sys.exit(main())"
    check = [sys.executable, "-c", code, "pairs", "check", str(tmp_path / "answers.csv"), "--data", str(table)]
    done = subprocess.run([*check, "--id", "name"], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == f"{found['conflicts']} conflict{'' if found['conflicts'] == 1 else 's'}"

    for target in ("wrong0", "wrong1"):
        person.post("review", {"id": person.event(), "target": target, "outcome": "flip", "answer": "different"})
    assert person.get("doubts")["conflicts"] == 0


def test_one_wrong_answer_explains_all_that_it_contradicts():
    """Rows 0 to 3 and 4 to 7 are chains of "same", each row differs from its counterpart, and one "same" joins them."""
    pairs = [*((i, i + 1, "same") for i in (0, 1, 2, 4, 5, 6)), *((i, i + 4, "different") for i in range(4))]
    answers = [
        Answer(f"{i}-{j}", {"id": f"{i}-{j}", "kind": "same", "rows": [i, j]}, said, "me", "", seq=seq)
        for seq, (i, j, said) in enumerate([(1, 6, "same"), *pairs])
    ]
    found = contradictions(answers, 8)
    assert len(found) == 4
    # Even where the views doubt others a little more, and the wrong answer is the oldest.
    doubts = {(1, 6, 1): 0.3, (1, 2, 1): 0.35, (0, 1, 1): 0.32}
    assert {name: len(of) for name, of in weakest_answers(found, doubts, set()).items()} == {"1-6": 4}
    kept = weakest_answers(found, doubts, {"1-6"})
    assert kept.keys().isdisjoint({"1-6"})
    assert sum(map(len, kept.values())) == 4
    assert weakest_answers(found, doubts, {answer.id for answer in answers}) == {}


def test_all_answers_can_be_found_and_changed(running):
    person = Person.enter(link(running))
    events = [person.event() for _ in range(20)]
    for event in events:
        person.answer(truth, event)
    listed = person.get("answers?most=60")
    assert listed["found"] == 20
    assert [answer["id"] for answer in listed["answers"]] == events[::-1]
    different = person.get("answers?show=different")
    assert 0 < different["found"] < 20
    assert {answer["answer"] for answer in different["answers"]} == {"different"}
    name = listed["answers"][0]["ids"][0]
    found = person.get(f"answers?find={name}")["answers"]
    assert found
    assert all(any(name in each for each in answer["ids"]) for answer in found)
    oldest = person.get("answers?start=19")["answers"]
    assert [answer["id"] for answer in oldest] == [events[0]]
    person.post("change", {"id": person.event(), "target": events[0], "answer": "unsure"})
    assert [answer["id"] for answer in person.get("answers?show=changed")["answers"]] == [events[0]]
    assert person.get("answers?show=contradiction")["found"] == 0
    assert person.client.get("/api/answers?start=x").status_code == 400


def test_every_row_has_a_group_and_it_is_said_how_many_are_sure(running):
    person = Person.enter(link(running))
    assert person.get("state")["status"]["certainty"] is None
    assert person.client.get("/api/certain").content == b""
    for _ in range(30):
        person.answer(truth)
    # Rows are grouped in the background, every few answers: the last time that is due is awaited.
    certainty = until(
        lambda: person.get("state")["status"]["certainty"], lambda seen: seen and seen["answers"] > 30 - GROUP_EVERY
    )
    assert 60 < certainty["sure"] <= certainty["rows"] == 90
    content = person.client.get("/api/certain").content
    numbers = [int.from_bytes(content[2 * row : 2 * row + 2], "little") for row in range(90)]
    shown = {row: group["shown"] for group in person.get("groups") for row in group["rows"]}
    assert all(numbers[row] == number for row, number in shown.items() if numbers[row])
    right = {k: {number for row, number in enumerate(numbers) if row % 3 == k} for k in range(3)}
    assert sum(len(each) for each in right.values()) <= 5
    progress = person.get("progress")
    assert progress["certainty"]["sure"] == certainty["sure"]
    least = progress["least_sure"]
    assert [row["probability"] for row in least] == sorted(row["probability"] for row in least)
    assert not {row["row"] for row in least} & set(shown)


def test_the_pace_says_how_many_rows_more_answers_may_settle(running):
    def words(pace):
        def work(session):
            session.grouped, session._pace = object(), pace
            found = session.certainty()
            session.grouped = None
            return found

        return running.call(work)

    person = Person.enter(link(running))
    person.answer(truth)
    assert words([(10, 20)])["more"] is None
    assert words([(10, 20), (15, 24)])["more"] is None
    assert words([(10, 20), (20, 30)])["more"] == 40
    assert words([(10, 20), (20, 85)])["more"] == 5
    assert words([(10, 20), (20, 15)])["more"] == 0
