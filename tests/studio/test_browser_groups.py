"""Groups and rankings in a browser: what people do with rows on the map, cards that fit, all answers, the ranking."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.studio.browser import PHONE, PLACE, Visit
from tests.studio.conftest import Person, link, truth, until
from tests.studio.test_choosing import groups, wrong_answers

pytestmark = pytest.mark.processes

FITS = """() => {
    const panel = document.querySelector("#question"), page = document.documentElement;
    return [panel.scrollHeight <= panel.clientHeight, page.scrollHeight <= innerHeight];
}"""

READ = """() => {
    const text = document.querySelector(".subject .text"), panel = document.querySelector(".subject");
    const free = panel.getBoundingClientRect().bottom - text.getBoundingClientRect().bottom;
    return text.scrollHeight <= text.clientHeight + 1 && panel.scrollHeight <= panel.clientHeight + 1 && free < 8;
}"""


def draw_round(page: Any, *corners: tuple[float, float]) -> None:
    """Draw a lasso, by shares of the map's width and height."""
    page.get_by_role("button", name="Select").click()
    box = page.locator(".points").bounding_box()
    for k, (x, y) in enumerate(corners):
        page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y, steps=4)
        if k == 0:
            page.mouse.down()
    page.mouse.up()


def on_row(seen: Visit, row: int) -> tuple[float, float]:
    box, place = seen.page.locator(".points").bounding_box(), seen.page.evaluate(PLACE, row)
    return box["x"] + place["x"], box["y"] + place["y"]


def test_a_lasso_makes_a_group_and_undo_takes_it_back(studio, table, enter):
    running = studio(table)
    seen = enter(link(running))
    page = seen.page
    seen.wait_map(0)
    draw_round(page, (0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98))
    page.locator("[data-together]").click()
    seen.wait_count(1)
    assert max(map(len, groups(running))) == 90
    chip = page.locator(".chip", has_text="belong together")
    assert "90 rows" in chip.inner_text()
    page.keyboard.press("Backspace")
    seen.wait_count(0)
    assert max(map(len, groups(running))) == 1

    # The same by name.
    draw_round(page, (0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98))
    page.locator("[data-group-called]").fill("everything")
    page.locator("[data-one-group]").click()
    page.locator("[data-group]", has_text="everything").wait_for()


def test_a_row_is_placed_and_groups_are_merged_and_split_on_the_map(studio, table, enter):
    running = studio(table)
    person = Person.enter(link(running))
    person.question()
    person.post("choose", {"id": "a", "action": "group", "rows": [10, 13, 16], "name": "ones"})
    person.post("choose", {"id": "b", "action": "group", "rows": [11, 14, 17], "name": "twos"})
    seen = enter(link(running))
    page = seen.page
    seen.wait_map(2)
    page.locator("[data-group]", has_text="ones").wait_for()
    page.mouse.click(*on_row(seen, 40))
    page.get_by_role("heading", name="Where does this row belong?").wait_for()
    page.locator("dialog .thumbnail", has_text="row-").wait_for()
    chosen = page.locator("dialog .thumbnail h3").inner_text()
    page.locator("dialog [data-place]", has_text="ones").click()
    seen.wait_count(3)
    row = int(chosen.removeprefix("row-"))
    assert sorted([10, 13, 16, row]) in groups(running)

    page.locator("[data-group]", has_text=re.compile(r"ones\W+4 rows")).click()
    assert page.locator("[data-split]").is_disabled()
    page.locator(f"[data-member='{row}']").click()
    page.locator("[data-split]").click()
    seen.wait_count(4)
    assert [10, 13, 16] in groups(running)
    page.locator("[data-group]", has_text=re.compile(r"ones\W+3 rows")).click()
    page.locator("dialog select").select_option(label="twos")
    page.locator("[data-merge]").click()
    seen.wait_count(5)
    assert [10, 11, 13, 14, 16, 17] in groups(running)
    page.locator(".chip", has_text="two groups are one").click()
    page.click("[data-retract]")
    seen.wait_count(4)
    assert [10, 13, 16] in groups(running)


def test_rows_are_found_shown_and_coloured_on_the_map(studio, table, enter):
    running = studio(table)
    person = Person.enter(link(running))
    for _ in range(25):
        person.answer(truth)
    seen = enter(link(running))
    page = seen.page
    seen.wait_map(25)
    page.get_by_test_id("certainty").filter(has_text="of 90 rows").wait_for()
    page.locator("[data-find]").fill("row-7")
    page.locator(".found", has_text="11 rows found").wait_for()
    page.locator("[data-find]").fill("")
    page.locator(".found", has_text="rows found").wait_for(state="hidden")
    page.locator("[data-colour]").select_option(label="a")
    page.locator(".colour-key .dot").nth(4).wait_for()
    page.locator("[data-colour]").select_option(value="")
    page.locator("[data-show]").select_option(value="placed")
    # A row without an answer says which group it may be in, and how sure that is.
    free = next(row for row in range(90) if not any(row in rows for rows in groups(running)))

    def told() -> bool:
        """What the map knows of its rows comes with the groups, perhaps after the row was pointed at."""
        page.mouse.move(2, 2)
        page.mouse.move(*on_row(seen, free))
        page.locator(".tip h3").wait_for()
        return bool(page.locator(".tip .group-of", has_text="% sure").is_visible())

    until(told)

    page.click("[data-panel=progress]")
    page.locator("dialog .certainty", has_text="rows are sure of their group").wait_for()
    page.get_by_test_id("verdict").filter(has_text="Too early to tell").wait_for()
    least = page.locator("[data-least-sure]").first
    least.click()
    page.get_by_role("heading", name="Where does this row belong?").wait_for()


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Descriptions of fourteen kinds of things, which begin and end alike."""
    rng = np.random.default_rng(0)
    words = [[f"{stem}{end}" for end in ("graph", "meter", "scope", "phone", "gram", "logy")] for stem in STEMS]
    path = tmp_path / "texts.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "description"])
        for k in range(280):
            middle = " ".join(rng.choice(words[k % 14], size=12).tolist())
            writer.writerow([f"text-{k}", f"{SAME} It is about {middle}. {SAME}"])
    return path


SAME = "This is a description of something that many people use, written so that it begins and ends like the others."
STEMS = ["anemo", "baro", "calori", "dyna", "electro", "fluoro", "gonio"]
STEMS += ["helio", "iono", "kine", "litho", "micro", "nephelo", "opto"]


def test_eight_groups_of_texts_fit_on_the_screen(studio, texts, enter):
    """By default it asks for the group once there are three; the words that tell a card from others come first."""
    running = studio(texts, question="auto")
    person = Person.enter(link(running))
    kinds = []

    def right(question: dict[str, Any]) -> str:
        kinds.append(question["kind"])
        row, *others = (shown["row"] % 14 for shown in question["rows"])
        if question["kind"] == "same":
            return "same" if row == others[0] else "different"
        return next((str(k) for k, other in enumerate(others, start=1) if other == row), "none")

    for _ in range(70):
        person.answer(right)
    assert kinds[0] == "same"
    assert kinds.count("place") > 40
    seen = enter(link(running))
    page = seen.page
    while seen.kind != "place" or page.locator(".card").count() < 8:
        person.answer(right)
        page.reload()
        page.wait_for_selector("[data-testid=question][data-question]")
    assert page.evaluate(FITS) == [True, True]
    for card in page.locator(".card").all():
        stem = STEMS[int(card.get_attribute("data-row")) % 14]
        first = card.locator(".key-words").inner_text().split(" · ")[0]
        assert first.startswith(stem)
        assert card.locator(".excerpt").inner_text().startswith("…")
        button, frame = card.locator(".answer").bounding_box(), card.bounding_box()
        assert button["y"] + button["height"] <= frame["y"] + frame["height"]
    # The row in question takes the room it needs and no more. Words on the map tell the islands apart.
    assert page.evaluate(READ)
    seen.wait_map(60)
    page.locator(".islands span").nth(7).wait_for()
    named = page.locator(".islands span").all_inner_texts()
    assert len({words.split(" · ")[0] for words in named}) == len(named)
    assert all(any(words.startswith(stem) for stem in STEMS) for words in named)
    page.set_viewport_size({"width": 1280, "height": 1000})
    assert page.evaluate(FITS) == [True, True]


LONG = "words that are not a long text and yet too long for a card"
SEEN_CELLS = """card => {
    const body = card.querySelector(".card-body"), frame = body.getBoundingClientRect();
    const within = (part) => part.getBoundingClientRect().bottom <= frame.bottom + 1;
    const cells = [...card.querySelectorAll(".mini > div")].filter((cell) => cell.checkVisibility());
    return [cells.map((cell) => cell.innerText.split(/\\s+/)[0]),
        [...cells, card.querySelector(".card-foot")].every(within), card.querySelector(".row-id").innerText];
}"""
"""The columns on a card, whether all of it is seen, and the name of the row."""


def none_of_these(person: Person, until_it_is: Any) -> None:
    """Answer that nothing belongs together until a question is as wanted."""
    for _ in range(60):
        if until_it_is(person.question()):
            return
        person.answer(lambda q: "different" if q["kind"] == "same" else "none")
    raise AssertionError("no such question came")


def write_numbers(path: Path, columns: list[str], rows: Any) -> Path:
    lines = [",".join(["name", *columns]), *(",".join([f"row-{k}", *map(str, row)]) for k, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_five_numbers_and_the_name_of_a_row_are_seen_on_each_of_eight_cards(studio, tmp_path, enter):
    """A row that was none of eight groups comes again with those that are left; the page says so."""
    columns = ["FL", "RW", "CL", "CW", "BD"]
    rows = np.round(np.random.default_rng(0).normal(30, 9, size=(60, 5)), 1).tolist()
    running = studio(write_numbers(tmp_path / "crabs.csv", columns, rows), question="place")
    person = Person.enter(link(running))
    none_of_these(person, lambda q: len(q["rows"]) == 9)
    assert not person.question()["again"]
    page = enter(link(running)).page
    assert page.locator(".card").count() == 8
    for card in page.locator(".card").all():
        shown, seen, name = card.evaluate(SEEN_CELLS)
        assert sorted(shown) == sorted(columns)
        assert seen
        assert name == f"row-{card.get_attribute('data-row')}"
        assert card.locator(".more-cells").is_hidden()
    assert page.evaluate(FITS) == [True, True]

    none_of_these(person, lambda q: q["kind"] == "place" and q["again"])
    page.reload()
    page.locator(".shown-groups", has_text="None fitted so far.").wait_for()
    assert page.evaluate(FITS) == [True, True]


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}])
def test_cells_that_do_not_fit_on_a_card_are_counted_and_can_be_seen(studio, tmp_path, enter, options):
    columns = ["remark", *(f"always_the_same_{k}" for k in range(9)), "kind"]
    rows = [[LONG, *range(9), 10 * (k % 8)] for k in range(60)]
    running = studio(write_numbers(tmp_path / "things.csv", columns, rows), question="place")
    none_of_these(Person.enter(link(running)), lambda q: len(q["rows"]) == 9)
    page = enter(link(running), **options).page
    for card in page.locator(".card").all():
        shown, seen, _ = card.evaluate(SEEN_CELLS)
        assert seen
        assert shown[0] == "kind"
        assert len(shown) < len(columns)
        more = card.locator(".more-cells")
        assert more.inner_text() == f"{len(columns) - len(shown)} more"
        left_out = [name for name in columns if name not in shown or name == "remark"]
        assert [cell.split(" ")[0] for cell in more.get_attribute("title").split(", ")] == left_out
        assert LONG in more.get_attribute("title")
    assert page.evaluate(FITS) == [True, True]
    card = page.locator(".card").first
    card.locator(".more-cells").click()
    assert len(card.evaluate(SEEN_CELLS)[0]) == len(columns)
    assert card.get_by_text(LONG).evaluate("cell => cell.scrollWidth <= cell.clientWidth")
    card.get_by_role("button", name="Less").click()
    assert len(card.evaluate(SEEN_CELLS)[0]) < len(columns)
    # On a taller page there is room for more of them.
    before = len(card.evaluate(SEEN_CELLS)[0])
    page.set_viewport_size({"width": 1280, "height": 1000})
    until(lambda: len(card.evaluate(SEEN_CELLS)[0]), lambda number: number > before)


@pytest.mark.parametrize("options", [{}, PHONE])
def test_cells_of_groups_are_seen_beside_long_names(studio, tmp_path, enter, options):
    names = [f"a_name_of_a_column_that_is_long_{k}" for k in range(4)]
    rows = [[f"row-{k}", *np.eye(4)[k % 4] * 90 + 10] for k in range(40)]
    (tmp_path / "things.csv").write_text("\n".join(",".join(map(str, line)) for line in [["name", *names], *rows]))
    running = studio(tmp_path / "things.csv", question="place")
    person = Person.enter(link(running))
    while len(person.question()["rows"]) < 3:
        person.answer(lambda q: "different" if q["kind"] == "same" else "none")
    page = enter(link(running), **options).page
    hidden = """cells => cells.filter((cell) => {
        const frame = cell.closest(".card, .table-frame").getBoundingClientRect(), own = cell.getBoundingClientRect();
        return own.right > frame.right || cell.scrollWidth > cell.clientWidth;
    }).length"""
    assert page.locator(".card .mini dd, .subject td").count() >= 12
    assert page.locator(".card .mini dd, .subject td").evaluate_all(hidden) == 0


def test_few_pictures_of_groups_are_drawn_large(studio, tmp_path, enter):
    rows = np.random.default_rng(0).integers(0, 16, size=(40, 64))
    names = ["name", *(f"pixel{k}" for k in range(64))]
    lines = [",".join(names), *(",".join([f"row-{k}", *map(str, row)]) for k, row in enumerate(rows.tolist()))]
    (tmp_path / "pictures.csv").write_text("\n".join(lines) + "\n")
    running = studio(tmp_path / "pictures.csv", question="place")
    person = Person.enter(link(running))
    while len(person.question()["rows"]) < 3:
        person.answer(lambda q: "different" if q["kind"] == "same" else "none")
    seen = enter(link(running))
    assert seen.page.locator(".card").count() == 2
    box = seen.page.locator(".card .pixels").first.bounding_box()
    assert box["height"] < 2 * box["width"]
    assert seen.page.evaluate(FITS) == [True, True]


def test_the_second_look_and_all_answers(studio, table, enter):
    running = studio(table)
    person = Person.enter(link(running))
    for _ in range(30):
        person.answer(truth)
    first, second = (rows for rows in groups(running) if len(rows) > 2 and rows[0] % 3 < 2)
    wrong_answers(running, [(first[-1], second[-1])])
    assert person.get("doubts")["conflicts"] > 0
    seen = enter(link(running))
    page = seen.page
    page.keyboard.press("r")
    dialog = page.get_by_test_id("review")
    dialog.locator("[data-answer=same]").wait_for()
    assert "contradiction" in dialog.locator(".lead").first.inner_text()
    shown = dialog.locator(".again [data-row]").evaluate_all("all => all.map((each) => +each.dataset.row)")
    assert sorted(shown) == sorted([first[-1], second[-1]])
    page.wait_for_timeout(300)
    page.keyboard.press("s")
    dialog.locator(".chain .asked", has_text="asked again just now").wait_for()
    assert dialog.locator(".chain .thumbnail").count() >= 3
    # Keep it, and whatever else is asked: then what remains is said.
    unsure, remaining = dialog.locator(".again [data-answer=unsure]"), dialog.get_by_test_id("remaining")
    while not remaining.is_visible():
        if unsure.is_visible():
            unsure.click()
        with page.expect_response("**/api/doubts"):
            dialog.locator("[data-outcome=keep]").click()
        unsure.or_(remaining).wait_for()
    assert "remain" in remaining.inner_text()
    assert "pairlens pairs check" in remaining.inner_text()

    dialog.locator("[data-all-answers]").click()
    dialog.locator("[data-show-answers]").select_option(value="contradiction")
    dialog.locator("[data-answer-id=wrong0] .thumbnail").first.wait_for()
    dialog.locator("[data-change-of=wrong0]").select_option(value="different")
    dialog.get_by_text("0 answers, the newest first.", exact=True).wait_for()
    assert running.call(lambda session: session.history.answers["wrong0"].answer) == "different"
    dialog.locator("[data-show-answers]").select_option(value="")
    dialog.locator("[data-find-answers]").fill("row-1")
    dialog.locator("[data-answer-id]").nth(3).wait_for()
    dialog.locator("[data-all-answers]").click()
    remaining.filter(has_text="no answer contradicts another").wait_for()


def test_the_ranking_is_asked_for_when_there_is_one(studio, table, enter):
    """While the studio reads the rows there is none, and a request that fails is an error in the browser's console."""
    page = enter(link(studio(table, question="prefer"))).page

    def still_reading(route):
        reply = route.fetch()
        state = reply.json()
        route.fulfill(response=reply, json={**state, "status": {**state["status"], "ready": False}})

    page.route("**/api/state", still_reading)
    # Nobody tells the page that the rows were read.
    page.route("**/api/events*", lambda route: None)
    page.goto("about:blank")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.go_back()
    page.get_by_text("One moment").wait_for()
    page.wait_for_timeout(1500)
    assert any("/api/state" in url for url in asked)
    assert not any("/api/ranking" in url for url in asked)


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}}])
def test_the_ranking_has_a_screen_of_its_own(studio, table, enter, options):
    running = studio(table, question="prefer")
    person = Person.enter(link(running))
    for _ in range(40):
        person.answer(lambda q: "left" if q["rows"][0]["row"] % 3 >= q["rows"][1]["row"] % 3 else "right")
    seen = enter(link(running), **options)
    page = seen.page
    items = page.get_by_test_id("ranking").locator("li")
    items.nth(39).wait_for()
    assert items.first.get_attribute("data-rank") == "1"
    best = items.evaluate_all("all => all.slice(0, 20).map((each) => each.dataset.ranked % 3)")
    assert sum(best) > 30
    # Cells that do not fit end in an ellipsis.
    cells = items.first.locator(".mini").evaluate(
        "one => (({ display, textOverflow }) => [display, textOverflow])(getComputedStyle(one))"
    )
    assert cells == ["block", "ellipsis"]
    low, high = (int(part) for part in re.findall(r"\d+", items.first.locator("small").inner_text()))
    assert 1 == low <= high < 90
    page.locator(".ranking .map-words", has_text="% is sure").wait_for()
    page.get_by_role("button", name="Show more").click()
    items.nth(60).wait_for()
    assert page.locator(".points").is_hidden()
    page.locator("[data-map]").click()
    page.locator(".points").wait_for()
    seen.wait_map(40)
    page.click("[data-panel=progress]")
    page.locator("dialog .certainty", has_text="% is sure").wait_for()
    assert "for the left row" in page.locator("dialog").inner_text()
    assert "same" not in page.locator("dialog").inner_text().replace("the same answer", "")
    page.keyboard.press("Escape")
    page.click("[data-panel=export]")
    page.locator("dialog .files", has_text="ranking.csv").wait_for()
    text = page.locator("dialog .files").inner_text()
    assert "groups.csv" not in text
    assert "must-links" not in text
