"""The studio in a browser: what a person does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pairlens.studio.rows import rows_from_file
from pairlens.studio.run import Studio, open_store
from pairlens.studio.store import Event
from tests.studio.browser import HOSTILE
from tests.studio.conftest import link, write_table

pytestmark = pytest.mark.processes


def test_answering(studio, table, enter):
    """By keys and by mouse; undo, change, retract; a reload in the middle; names; export."""
    running = studio(table)
    seen = enter(link(running), reduced_motion="no-preference")
    page = seen.page
    assert seen.kind == "same"
    assert len(seen.rows) == 2
    assert "token" not in page.url
    assert page.locator("#question [data-answer]").evaluate_all("all => all.map(x => x.dataset.answer)") == [
        "same",
        "different",
        "unsure",
    ]
    page.locator(".welcome", has_text="No answer yet").wait_for()

    # The first 250 ms take no key, and a held key is one press.
    first = seen.id
    seen.settle()
    seen.act(lambda: page.keyboard.down("s"))
    page.keyboard.down("s")
    page.keyboard.up("s")
    seen.wait_count(1)
    second = seen.id
    assert second != first
    seen.press("d")
    seen.click("same")
    seen.click("different")
    seen.press(" ")
    seen.wait_count(5)
    seen.wait_chips(5)

    current = seen.id
    page.keyboard.press("Backspace")
    page.wait_for_function(
        "(id) => document.querySelector('[data-testid=question]').dataset.question !== id", arg=current
    )
    seen.wait_count(4)
    current = seen.id
    page.keyboard.press("Control+z")
    page.wait_for_function(
        "(id) => document.querySelector('[data-testid=question]').dataset.question !== id", arg=current
    )
    seen.wait_count(3)
    seen.click("different")
    seen.wait_count(4)

    oldest = page.locator(".chip").last
    assert "same" in oldest.inner_text()
    oldest.click()
    page.click("[data-change=different]")
    page.wait_for_function("() => document.querySelector('.past li:last-child .chip').title.includes('changed')")
    assert "different (changed)" in page.locator(".chip").last.inner_text()
    page.locator(".chip").last.click()
    page.keyboard.press("Escape")
    assert page.locator(".choices").count() == 0
    assert page.evaluate("() => document.activeElement.className").startswith("chip")
    page.keyboard.press("Enter")
    page.click("[data-retract]")
    seen.wait_count(3)

    seen.wait_map(3)
    assert page.get_attribute("[data-testid=map]", "data-points") == "90"
    before = seen.id
    page.reload()
    page.wait_for_selector("[data-testid=question][data-question]")
    assert seen.id == before
    seen.wait_count(3)
    seen.wait_chips(3)

    page.locator("[data-group]").first.click()
    page.fill("#group-name", HOSTILE[0])
    page.click("dialog button[type=submit]")
    page.locator("[data-group]", has_text="window.harmed").wait_for()

    page.click("[data-panel=export]")
    with page.expect_download() as download:
        page.click("text=answers.csv")
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("a,b,kind")
    assert len(lines) >= 3
    assert page.evaluate("() => window.harmed") is None


def test_keys_can_be_changed_and_help_is_a_key(studio, table, enter):
    seen = enter(link(studio(table)))
    page = seen.page
    page.keyboard.press("?")
    page.click("[data-key-of=same]")
    page.keyboard.press("j")
    page.locator("dialog kbd", has_text="J").wait_for()
    page.keyboard.press("Escape")
    seen.settle()
    page.keyboard.press("s")
    page.wait_for_timeout(200)
    assert page.inner_text("[data-testid=count]") == "0"
    seen.press("j")
    seen.wait_count(1)
    page.reload()
    page.wait_for_selector("[data-testid=question][data-question]")
    assert page.locator("[data-answer=same] kbd").inner_text() == "J"

    # Practice stores nothing.
    page.keyboard.press("?")
    page.click("text=Practise with three questions")
    for _ in range(3):
        page.locator(".welcome", has_text="Practice").wait_for()
        seen.act(lambda: page.click("#question [data-answer=different]"))
    assert page.inner_text("[data-testid=count]") == "1"
    assert not seen.id.startswith("practice")


def test_review(studio, table, enter):
    """Three rows, of which two pairs are the same and the third is not: a contradiction with its chain."""
    running = studio(table)
    seen = enter(link(running))
    for number, (i, j, answer) in enumerate([(0, 3, "same"), (3, 6, "same"), (0, 6, "different")]):
        raw = {"id": f"x{number}", "kind": "same", "rows": [i, j], "answers": ["same", "different", "unsure"]}
        running.call(lambda session, raw=raw, a=answer: session.answer("me", raw["id"], {**raw, "annotator": "me"}, a))
    seen.wait_count(3)
    page = seen.page
    page.keyboard.press("r")
    dialog = page.locator("[data-testid=review]")
    dialog.locator("[data-answer=same]").wait_for()
    assert "different" not in dialog.locator(".lead").inner_text()
    page.wait_for_timeout(300)
    page.keyboard.press("s")
    dialog.locator("[data-outcome=flip]").wait_for()
    assert "You answered before" in dialog.inner_text()
    dialog.get_by_text("The chain: row-0 → row-3 → row-6").wait_for()
    dialog.locator(".thumbnail", has_text="row-3").wait_for()
    assert dialog.locator(".thumbnail h3").all_inner_texts() == ["row-0", "row-3", "row-6"]
    dialog.locator("[data-outcome=flip]").click()
    dialog.locator("[data-testid=remaining]", has_text="That was all").wait_for()
    page.keyboard.press("Escape")
    assert running.call(lambda session: session.history.answers["x2"].answer) == "same"


def test_placement(studio, table, enter):
    running = studio(table, question="place")
    seen = enter(link(running))
    for _ in range(12):
        kind, rows = seen.kind, seen.rows
        if kind == "same":
            seen.press("s" if rows[0] % 3 == rows[1] % 3 else "d")
            continue
        match = next((str(k) for k, row in enumerate(rows[1:], start=1) if row % 3 == rows[0] % 3), None)
        buttons = seen.page.locator("#question [data-answer]").evaluate_all("all => all.map(x => x.dataset.answer)")
        assert buttons == [*(str(k) for k in range(1, len(rows))), "none", "unsure"]
        seen.press(match or "0")
    seen.wait_count(12)
    groups = running.call(lambda session: session.asker.groups_)
    assert len(groups) == 3
    assert all(len({row % 3 for row in rows}) == 1 for rows in groups.values())
    # The whole card is its answer.
    while seen.kind == "same":
        seen.press("d")
    question = seen.id
    seen.act(lambda: seen.page.locator(".card .row-id").nth(1).click(force=True))
    told = running.call(lambda session: list(session.history.answers.values())[-1])
    assert (told.question["id"], told.answer) == (question, "2")


def test_a_card_shows_its_key_as_a_key_and_its_group_by_name_and_mark(studio, table, enter):
    """With more groups than keys a group's number is not its key."""
    seen = enter(link(studio(table, question="place")))
    page = seen.page
    while seen.kind == "same":
        seen.press("d")

    def many(route: Any) -> None:
        reply = route.fetch()
        told = reply.json()
        for question in told["questions"]:
            question["numbers"] = [number + 10 for number in question["numbers"]]
            question["n_groups"] = 21
        route.fulfill(response=reply, json=told)

    page.route("**/api/next", many)
    page.reload()
    page.wait_for_selector("[data-testid=question][data-question]")
    assert f"{page.locator('.card').count()} of 21 groups" in page.locator("#question .lead").inner_text()
    card = page.locator(".card").first
    assert card.locator("> kbd").inner_text() == "1"
    assert card.locator("[data-answer='1']").inner_text() == "Group 11"
    assert card.locator("[data-answer='1'] .mark").get_attribute("data-shape") == "3"
    # The key does not hide what the card shows.
    key, shown = card.locator("> kbd").bounding_box(), card.locator(".card-body").bounding_box()
    assert key["y"] + key["height"] <= shown["y"] + 1
    assert key["x"] < shown["x"]
    seen.press("1")
    page.locator(".chip", has_text="with row-").first.wait_for()


def test_preference(studio, table, enter):
    running = studio(table, question="prefer")
    seen = enter(link(running))
    assert seen.kind == "prefer"
    for key in ("ArrowLeft", "ArrowRight", "ArrowDown", " "):
        seen.press(key)
    seen.click("left")
    seen.wait_count(5)
    answers = running.call(lambda session: [answer.answer for answer in session.history.answers.values()])
    assert answers == ["left", "right", "equal", "unsure", "left"]
    seen.wait_map(5)


def test_three_rows_with_a_column_that_says_nothing(studio, tmp_path, enter):
    """Nothing is left soon; then nobody is told that going on pays. The help says what is learned from."""
    path = tmp_path / "three.csv"
    path.write_text("name,size,always,when\nx,1,yes,2024-01-05\ny,2,yes,2024-02-11\nz,9,yes,2024-06-30\n")
    seen = enter(link(studio(path)))
    page = seen.page
    finished = page.get_by_role("heading", name="Nothing is left to ask")
    while not finished.is_visible():
        page.wait_for_timeout(300)
        page.keyboard.press("d")
        page.wait_for_timeout(100)
    page.click("[data-panel=progress]")
    page.locator("dialog .hint", has_text="Nothing is left to ask").wait_for()
    assert page.locator("dialog", has_text="Going on still pays").count() == 0
    page.keyboard.press("Escape")
    page.click("[data-panel=help]")
    page.get_by_text("What the map learns from").click()
    rows = page.locator("dialog .columns tr").all_inner_texts()
    assert [row.split("\t") for row in rows] == [
        ["size", "number"],
        ["always", "not learned from: constant (one value)"],
        ["when", "date"],
    ]
    scale = page.locator("dialog .columns [data-scale]").inner_text()
    assert scale == "Every column of the table counts the same to begin with."


def test_two_people(studio, table, enter):
    running = studio(table, annotators=["ann", "ben"])
    ann, ben = (enter(link(running, name)) for name in ("ann", "ben"))
    for _ in range(4):
        assert set(map(tuple, [ann.rows])) != set(map(tuple, [ben.rows]))
        assert ann.id != ben.id
        ann.click("same")
        ben.click("different")
    for each in (ann, ben):
        each.wait_count(8)
        each.wait_chips(4)
    ann.page.click("[data-panel=people]")
    ann.page.get_by_text("ben").first.wait_for()
    ann.page.fill("#person", "cleo")
    ann.page.click("text=Make a link")
    url = ann.page.locator(".new-link code").inner_text()
    assert enter(url).id not in (ann.id, ben.id)


def test_two_tabs_of_one_person_show_the_same_question(studio, table, enter):
    seen = enter(link(studio(table)))
    first = seen.page
    second = first.context.new_page()
    second.goto(seen.base)
    second.wait_for_selector(f"[data-testid=question][data-question='{seen.id}']")
    seen.click("different")
    seen.wait_count(1)
    second.wait_for_selector(f"[data-testid=question][data-question='{seen.id}']")
    second.wait_for_function("() => document.querySelectorAll('.chip').length === 1")
    second.close()


def test_a_lost_connection_loses_no_answer(studio, table, enter):
    """The studio is stopped and started again at the same port, while a person goes on."""
    first = studio(table)
    url = link(first)
    seen = enter(url)
    seen.click("same")
    seen.wait_count(1)
    first.stop()
    page = seen.page
    page.locator("#banner", has_text="does not answer").wait_for()
    page.click("#question [data-answer=different]")
    page.locator("#banner", has_text="kept in this browser").wait_for()
    rows = rows_from_file(table, ids="name")
    port = int(url.split(":")[2].partition("/")[0])
    second = Studio.prepare(rows, open_store(table.with_name("things.answers.db"), rows), port=port).start()
    try:
        page.locator("#banner", has_text="Open the link that it printed last").wait_for()
        page.goto(link(second))
        seen.wait_count(2)
        page.wait_for_selector("[data-testid=question][data-question]")
        page.locator("#banner").wait_for(state="hidden")
    finally:
        page.goto("about:blank")
        second.stop()
    seen.troubles = [each for each in seen.troubles if "Failed to load resource" not in each]
    seen.foreign = [each for each in seen.foreign if each != "about:blank"]


def test_an_old_page_does_not_answer_in_another_studio(studio, table, tmp_path, enter):
    """Another table at the same address, and the person was let in there: the old page keeps its answer to itself."""
    first = studio(table)
    seen = enter(link(first))
    page = seen.page
    first.stop()
    page.locator("#banner", has_text="does not answer").wait_for()
    page.click("#question [data-answer=different]")
    write_table(tmp_path / "others.csv", seed=5)
    rows = rows_from_file(tmp_path / "others.csv", ids="name")
    port = int(seen.base.split(":")[2])
    second = Studio.prepare(rows, open_store(tmp_path / "others.db", rows), port=port).start()
    try:
        page.locator("#banner", has_text="started anew").wait_for()
        other = page.context.new_page()
        other.goto(link(second))
        other.wait_for_selector("[data-testid=question][data-question]")
        page.locator(
            "#banner", has_text="Another studio runs at this address now; this page is of things.csv"
        ).wait_for()
        assert "1 answer not stored yet" in page.locator("#banner").inner_text()
        assert second.call(lambda session: session.n_answers) == 0
        assert other.locator("[data-testid=count]").inner_text() == "0"
        other.close()
    finally:
        page.goto("about:blank")
        second.stop()
    seen.troubles = [each for each in seen.troubles if "Failed to load resource" not in each]
    seen.foreign = [each for each in seen.foreign if each != "about:blank"]


def test_what_is_left_out_of_the_store_is_on_the_page(studio, table, enter):
    rows = rows_from_file(table, ids="name")
    with open_store(table.with_name("things.answers.db"), rows) as store:
        store.append(Event("bad", "answer", "me", {"question": {}, "answer": "foo", "ids": []}))
    page = enter(link(studio(table))).page
    page.get_by_test_id("left-out").filter(has_text="1 entry of the store is not used, all others are").wait_for()
    assert page.locator("#banner").is_hidden()
