"""The page for those who listen: what is said, and where the focus is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.studio.browser import Visit
from tests.studio.conftest import link

pytestmark = pytest.mark.processes

HEAR = """
window.heard = [];
new MutationObserver((changes) => {
    for (const { target } of changes) {
        const element = target instanceof Element ? target : target.parentElement;
        const region = element?.closest("[aria-live], [role=status], [role=alert]");
        const modal = document.querySelector("dialog:modal");
        // What is behind a modal dialog is not there for a screen reader.
        if (region?.textContent && (!modal || modal.contains(region))) window.heard.push(region.textContent);
    }
}).observe(document, { subtree: true, childList: true, characterData: true });
"""
CANNOT_TELL = "can\u2019t tell"
FOCUS = """() => { const { dataset, tagName, id } = document.activeElement;
    return dataset.answer ?? dataset.event ?? dataset.outcome ?? dataset.keyOf ?? (id || tagName); }"""


class Listener:
    """Somebody at a page who hears what a screen reader would say by itself."""

    def __init__(self, seen: Visit) -> None:
        self.seen = seen
        self.page: Any = seen.page

    def hear(self, words: str) -> str:
        """What was said with these words in it; all that was said is forgotten then."""
        self.page.wait_for_function("(words) => heard.some((each) => each.includes(words))", arg=words)
        return " | ".join(self.page.evaluate("() => heard.splice(0)"))

    def focus(self, where: str) -> None:
        self.page.wait_for_function(f"(where) => ({FOCUS})() === where", arg=where)

    def question(self) -> str:
        """The question on the page as it should be said."""
        cells = self.page.locator("#question .cells tr").evaluate_all(
            "rows => rows.map((row) => [...row.children].map((cell) => cell.firstChild?.textContent ?? ''))"
        )
        sides = [", ".join(f"{line[0]} {line[side]}" for line in cells[1:]) for side in (1, 2)]
        return f"Same or different? {cells[0][1]}: {sides[0]}. {cells[0][2]}: {sides[1]}."

    @property
    def rows(self) -> str:
        return " and ".join(self.page.locator("#question .row h3").all_inner_texts())

    def answer(self, key: str) -> str:
        """Press a key, and give the rows that it was about."""
        rows = self.rows
        self.seen.press(key)
        return rows


@pytest.fixture
def listen(enter):
    return lambda url: Listener(enter(url, script=HEAR))


def test_an_answer_and_the_next_question_are_said_once(studio, table, listen):
    person = listen(link(studio(table)))
    page, seen = person.page, person.seen
    person.hear("No answer yet")
    seen.wait_map(0)
    # In a toolbar, screen readers let single letters through to the page.
    assert page.get_by_role("toolbar", name="Answer").get_by_role("button").count() == 3
    assert page.get_attribute("[data-answer=unsure]", "aria-keyshortcuts") == "Space"
    page.focus("[data-answer=different]")
    page.evaluate("() => { window.held = document.activeElement; heard.length = 0; }")
    person.answer("s")
    seen.wait_map(1)
    assert person.hear("Answer") == f"Answer: same. {person.question()}"
    # The very button: one that is made anew would be read out each time.
    assert page.evaluate("() => document.activeElement === window.held")
    rows = person.answer("d")
    person.hear("Answer: different.")
    seen.wait_count(2)
    page.keyboard.press("Backspace")
    assert person.hear("Taken back") == f"Taken back: {rows}, different. {person.question()}"


def test_space_and_enter_press_the_button_that_has_the_focus(studio, table, listen):
    person = listen(link(studio(table)))
    page, seen = person.page, person.seen
    for number, (key, answer) in enumerate((("Space", "same"), ("Enter", "different"), ("Space", "unsure")), 1):
        page.focus(f"[data-answer={answer}]")
        person.answer(key)
        seen.wait_chips(number)
        words = answer if answer != "unsure" else CANNOT_TELL
        assert page.get_attribute(".past li:first-child .chip", "title").startswith(f"{words} row-")
    # Enter that is held answers one question, and so does pressing a button twice at once.
    page.focus("[data-answer=different]")
    seen.settle()
    seen.act(lambda: page.keyboard.down("Enter"))
    page.wait_for_timeout(300)
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    seen.act(lambda: page.evaluate("() => [0, 1].forEach(() => document.activeElement.click())"))
    seen.wait_chips(5)
    page.wait_for_timeout(200)
    assert page.inner_text("[data-testid=count]") == "5"
    # After the mouse, Space is the key of "can't tell" again.
    seen.click("same")
    person.hear("Answer: same.")
    person.answer("Space")
    person.hear(f"Answer: {CANNOT_TELL}.")


def test_changing_an_answer_is_said_and_keeps_the_focus(studio, table, listen):
    person = listen(link(studio(table)))
    page, seen = person.page, person.seen
    rows = [person.answer("d") for _ in range(3)]
    seen.wait_chips(3)
    events = page.locator(".chip").evaluate_all("chips => chips.map((chip) => chip.dataset.event)")
    name = f"different {rows[1].replace(' and ', ' · ')}"
    assert page.get_by_role("button", name=name, exact=True).get_attribute("data-event") == events[1]

    def choose(event: str, choice: str, heard: str) -> None:
        page.focus(f".chip[data-event='{event}']")
        page.keyboard.press("Enter")
        page.focus(f".choices {choice}")
        page.keyboard.press("Enter")
        person.hear(heard)

    choose(events[1], "[data-change=same]", f"Changed: {rows[1]}, same.")
    person.focus(events[1])
    choose(events[1], "[data-flag]", f"Flagged: {rows[1]}, same.")
    person.focus(events[1])
    name = name.replace("different", "same (changed)") + ", flagged"
    assert page.get_by_role("button", name=name, exact=True).get_attribute("data-event") == events[1]
    choose(events[1], "[data-retract]", f"Taken back: {rows[1]}, same.")
    seen.wait_chips(2)
    person.focus(events[2])


def test_dialogs_begin_with_their_title_and_speak(studio, table, listen):
    person = listen(link(studio(table)))
    page, seen = person.page, person.seen
    rows = person.answer("d")
    seen.wait_chips(1)
    page.keyboard.press("f")
    person.hear(f"Flagged: {rows}, different.")
    page.click("[data-panel=review]")
    assert "1 answer worth a second look" in person.hear("Same or different?")
    page.wait_for_timeout(300)
    page.keyboard.press("s")
    assert "You answered before: different. You answer now: same. You flagged this answer." in person.hear("now: same")
    person.focus("keep")
    page.keyboard.press("Enter")
    person.hear("That was all.")
    person.focus("dialog-title")
    page.keyboard.press("Escape")

    page.keyboard.press("?")
    # What the page said last is not said again when the dialog has gone.
    assert page.evaluate("() => document.querySelector('#said').textContent") == ""
    person.focus("dialog-title")
    page.focus("[data-key-of=same]")
    page.keyboard.press("Enter")
    person.hear("Press the new key for: Same.")
    # Screen readers let keys through to a field.
    assert page.evaluate("() => document.activeElement.matches('input[aria-label*=Same]')")
    page.keyboard.press("j")
    assert person.hear("Same: j") == "Same: j"
    person.focus("same")
    page.keyboard.press("Escape")

    page.locator("[data-group]").first.focus()
    page.keyboard.press("Enter")
    person.focus("group-name")
    page.keyboard.type("Boats")
    page.keyboard.press("Enter")
    assert person.hear("Group named") == "Group named Boats."
    seen.wait_map(0)
    page.locator("[data-group]", has_text="Boats").wait_for()
    page.get_by_role("button", name="In words").click()
    page.get_by_role("dialog", name="The map in words").get_by_role("rowheader", name="Boats").wait_for()
    near = page.locator("dialog tbody td:nth-child(3)").all_inner_texts()
    assert sum(map(int, near)) == 90 - 2


def test_a_lost_connection_is_said_once_and_so_is_its_end(studio, table, listen):
    person = listen(link(studio(table)))
    page, seen = person.page, person.seen
    person.answer("d")
    person.hear("Answer")
    seen.wait_count(1)
    page.focus("[data-answer=different]")
    page.route("**/api/answer", lambda route: route.abort())
    while page.locator("[data-question]").count():
        page.wait_for_timeout(300)
        page.keyboard.press("d")
    said = person.hear("Waiting for the studio.")
    assert "The studio does not answer; perhaps it was stopped." in said
    # It tries again meanwhile, and says nothing.
    with page.expect_request("**/api/answer"):
        pass
    page.wait_for_timeout(200)
    assert page.evaluate("() => heard") == []
    person.focus("question")
    page.unroute("**/api/answer")
    assert "The studio is back." in person.hear("Same or different?")
    # Whoever answered by a button goes on at that button.
    person.focus("different")
    seen.troubles = [each for each in seen.troubles if "Failed to load resource" not in each]


def test_groups_of_a_placement_screen_have_names_of_their_own(studio, table, listen):
    person = listen(link(studio(table, question="place")))
    page, seen = person.page, person.seen
    while seen.kind == "same" or page.locator(".card").count() < 2:
        seen.press("d" if seen.kind == "same" else "0")
    names = [page.get_by_role("button", name=f", for example row-{row}", exact=False) for row in seen.rows[1:]]
    assert [each.get_attribute("data-answer") for each in names] == ["1", "2"]
    person.hear("Groups. 1: ")
    page.focus("[data-answer='2']")
    person.answer("Enter")
    person.hear("Answer: with row-")
    # The same group if it is there again, else the answers below the groups.
    person.focus("2" if page.locator("[data-answer='2']").count() else "none" if seen.kind == "place" else "same")
