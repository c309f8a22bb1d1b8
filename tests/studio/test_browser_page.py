"""The page in a browser: whatever is in the table, on any screen, for everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.studio.browser import HOSTILE, PHONE, PLACE
from tests.studio.conftest import link, write_table
from tests.studio.test_page import TOOLS

pytestmark = pytest.mark.processes


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A table whose pictures, texts, cells, ids and column names are whatever people put into tables."""
    image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'pairlens[studio]'")
    image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)).save(tmp_path / "good.png")
    files = ["good.png"] * 60 + ["gone.png"] * 29 + [""]
    text = ["A long story. " * 400 + HOSTILE[k % 5].replace('"', "") for k in range(90)]
    cells = [HOSTILE[k % 5] for k in range(90)]
    path = tmp_path / "odd.csv"
    write_table(path, extra={"picture": files, "story": text, "<b onclick=alert(1)>": cells})
    lines = path.read_text().splitlines()
    names = [line.replace(f"row-{k}", f"{HOSTILE[k % 5]} {k}", 1) for k, line in enumerate(lines[1:])]
    path.write_text("\n".join([lines[0], *names]) + "\n")
    return path


def test_pictures_long_texts_and_hostile_texts(studio, hostile, enter):
    seen = enter(link(studio(hostile)))
    page = seen.page
    for _ in range(6):
        page.wait_for_function("""() => [...document.querySelectorAll('#question .picture')].every(
            (frame) => frame.querySelector('img')?.complete || frame.textContent)""")
        for frame in page.locator("#question .picture").all():
            text = frame.inner_text()
            assert frame.locator("img").count() or "picture" in text.lower()
        assert page.locator("#question .text.folded").count() == 2
        assert "A long story." in page.locator("#question .text").first.inner_text()
        assert page.locator("#question .cells th", has_text="<b onclick=alert(1)>").count() == 1
        seen.click("different")
    page.locator("#question .fold").first.click()
    assert page.locator("#question .text.open").count() == 1
    # Two long texts scroll together.
    page.locator("#question .fold").first.click()
    page.evaluate("() => { const [a] = document.querySelectorAll('#question .text'); a.scrollTop = a.scrollHeight; }")
    page.wait_for_function("() => document.querySelectorAll('#question .text')[1].scrollTop > 100")
    page.locator(".chip").first.hover()
    assert page.evaluate("() => window.harmed") is None
    assert page.locator("iframe, object, embed, svg[onload], #question script").count() == 0
    handlers = """() => [...document.querySelectorAll("*")].flatMap((element) => [...element.attributes])
        .filter((attribute) => attribute.name.startsWith("on")).length"""
    # A picture that is not there is asked for, and the browser says so too.
    seen.troubles = [each for each in seen.troubles if "404 (Not Found)" not in each]
    assert page.evaluate(handlers) == 0
    seen.troubles = [each for each in seen.troubles if "404" not in each]


ORDER = """(selector) => {
    const text = document.querySelector(selector).firstChild;
    const x = (k) => { const range = document.createRange(); range.setStart(text, k); range.setEnd(text, k + 1);
        return range.getBoundingClientRect().x; };
    return [x(0), x(text.length - 1)];
}"""


def test_texts_read_in_their_own_direction(studio, tmp_path, enter):
    """The full stop of a Hebrew sentence is on its left, and Hebrew ids do not change places."""
    extra = {"title": ["שלום עולם."] * 90, "story": [" ".join(["שלום עולם"] * 10) + "." for _ in range(90)]}
    path = tmp_path / "right.csv"
    write_table(path, extra=extra)
    path.write_text(path.read_text(encoding="utf-8").replace("row-", "שורה "), encoding="utf-8")
    seen = enter(link(studio(path)))
    page = seen.page
    for place in ("#question .cells tbody tr:last-child td", "#question .text"):
        first, last = page.evaluate(ORDER, place)
        assert last < first, place
    names = page.locator("#question .row h3").all_inner_texts()
    seen.click("different")
    seen.wait_chips(1)
    # The left one first, each by itself.
    assert page.locator(".chip-rows").inner_text() == " · ".join(f"\u2068{name}\u2069" for name in names)


OVER = """(selector) => { const box = document.querySelector(selector).getBoundingClientRect();
    return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).closest(selector) !== null; }"""


def test_texts_on_a_placement_screen_can_be_read(studio, tmp_path, enter):
    words = [f"{('harbour boat', 'oven flour', 'judge clause')[k % 3]} " * 60 for k in range(90)]
    write_table(tmp_path / "notes.csv", extra={"story": words})
    seen = enter(link(studio(tmp_path / "notes.csv", question="place")))
    page = seen.page
    while seen.kind == "same":
        seen.press("d")
    for width, height in ((1280, 800), (820, 1180), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.locator(".card .excerpt").first.bounding_box()["width"] >= 130
        assert page.locator(".card .key-words").first.is_visible()
        shown = min(page.locator(name).bounding_box()["height"] for name in (".subject", ".subject .text"))
        assert shown <= height / 3
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        # What scrolls below the answers is not seen through them.
        page.locator(".card").last.scroll_into_view_if_needed()
        assert page.evaluate(OVER, "#question [data-answer=none]")


def test_the_numbers_of_a_line_can_be_read_and_stay_unfolded(studio, tmp_path, enter):
    names = [f"measure {k}" for k in range(9)]
    write_table(tmp_path / "wine.csv", extra={name: [str(k % 7) for k in range(90)] for name in names})
    seen = enter(link(studio(tmp_path / "wine.csv")))
    page = seen.page
    assert page.locator("#question .line").count() == 2
    page.set_viewport_size(PHONE["viewport"])
    assert page.get_by_text("The numbers").bounding_box()["height"] >= 44
    page.get_by_text("The numbers").click()
    assert page.locator("#question .numbers th[scope=row]").all_inner_texts() == ["a", "b", "c", "d", *names]
    assert page.locator("#question .differs").count() == 0
    seen.click("different")
    page.locator("#question .numbers th", has_text="measure 8").wait_for()


def test_a_reply_that_the_stream_has_overtaken_takes_nothing_back(studio, table, enter):
    seen = enter(link(studio(table)))
    page = seen.page
    seen.wait_map(0)

    def late(route: Any) -> None:
        reply = route.fetch()
        page.wait_for_selector("[data-testid=map][data-answers='1']")
        route.fulfill(response=reply)

    page.route("**/api/answer", late)
    seen.click("different")
    seen.wait_count(1)
    seen.wait_chips(1)
    assert "behind" not in page.locator(".map-words").inner_text()
    assert page.locator(".progress-words").is_hidden()


def test_nothing_moves_when_the_page_is_loaded(studio, table, enter):
    """The frame of the page is in its place before any of its scripts has run."""
    seen = enter(link(studio(table)))
    page = seen.page
    for width, height in ((1280, 800), (820, 1180), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function("() => document.documentElement.dataset.ready === '1'")
        after = page.locator("main").bounding_box()["y"]
        page.route("**/page/page.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
        page.reload()
        assert page.locator("main").bounding_box()["y"] == pytest.approx(after, abs=1)
        page.unroute("**/page/page.js")
        page.reload()
        page.wait_for_selector("[data-testid=question][data-question]")


TOO_SMALL = """() => [...document.querySelectorAll("button, input, dialog a")]
    .filter((element) => element.checkVisibility() && element.getBoundingClientRect().height < 44)
    .map((element) => element.outerHTML)"""


def test_on_a_phone_every_group_and_button_is_in_reach(studio, table, enter):
    """Many groups: none is cut, all are behind one button, by touch and by keys, and it keeps the focus."""
    seen = enter(link(studio(table)), **PHONE)
    page = seen.page
    # Nothing is a group before the first answer.
    assert page.locator("[data-group]").count() == 0
    assert page.locator("[data-undo]").is_hidden()
    seen.click("different")
    seen.wait_count(1)
    groups = [
        {
            "number": 2 * k,
            "shown": k + 1,
            "name": "a rather long name" if k == 3 else "",
            "rows": [k],
            "confidence": [1],
        }
        for k in range(30)
    ]
    page.route("**/api/groups", lambda route: route.fulfill(json=groups))
    page.reload()
    page.get_by_role("button", name="Show all 30 groups").wait_for()
    legend = """() => { const list = document.querySelector(".legend");
        return [list.querySelectorAll("[data-group]").length, list.scrollHeight <= list.clientHeight]; }"""
    assert page.evaluate(legend) == [12, True]
    page.get_by_role("button", name="Show all 30 groups").tap()
    assert page.evaluate(legend) == [30, True]
    page.get_by_role("button", name="Show fewer").focus()
    page.keyboard.press("Enter")
    assert page.evaluate(legend) == [12, True]
    assert page.evaluate("() => document.activeElement.textContent") == "Show all 30 groups"
    page.locator("[data-group]").nth(11).tap()
    page.get_by_label("Name of group 12 (1 row)").wait_for()
    assert page.evaluate(TOO_SMALL) == []
    page.keyboard.press("Escape")
    assert page.evaluate(TOO_SMALL) == []
    for panel in ("help", "export", "people"):
        page.locator(f"[data-panel={panel}]").tap()
        page.locator("dialog button:not(.close), dialog a").first.wait_for()
        assert page.evaluate(TOO_SMALL) == [], panel
        page.keyboard.press("Escape")
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390

    seen.wait_map(1)
    # The map: a tap shows a row, and the page can be scrolled over it until it is zoomed.
    touch = "() => getComputedStyle(document.querySelector('.points')).touchAction"
    page.locator(".points").tap(position=page.evaluate(PLACE))
    page.locator(".tip", has_text="row-").wait_for()
    assert page.evaluate(touch) == "pan-y"
    page.get_by_role("button", name="Zoom in").tap()
    assert page.evaluate(touch) == "none"
    page.get_by_role("button", name="Whole map").tap()
    assert page.evaluate(touch) == "pan-y"

    page.locator("[data-undo]").tap()
    page.locator("[data-undo]").wait_for(state="hidden")
    assert page.inner_text("[data-testid=count]") == "0"


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}}])
def test_no_serious_fault_for_those_who_do_not_see_or_use_a_mouse(studio, table, enter, options):
    script = TOOLS / "axe-core" / "axe.min.js"
    if not script.exists():
        pytest.skip("no axe-core: npm install --no-save --no-package-lock --prefix build/node axe-core")
    seen = enter(link(studio(table)), bypass_csp=True, **options)
    page = seen.page
    seen.click("same")
    seen.wait_map(1)
    page.add_script_tag(path=str(script))

    def faults() -> list[str]:
        found = page.evaluate("async () => (await axe.run()).violations")
        return [
            f"{each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in ("serious", "critical")
        ]

    assert faults() == []
    for panel in ("help", "progress", "review", "export", "people"):
        page.click(f"[data-panel={panel}]")
        page.locator("dialog .dialog-body > *").first.wait_for()
        page.wait_for_timeout(300)
        assert faults() == [], panel
        page.keyboard.press("Escape")
    page.locator(".chip").first.click()
    assert faults() == []
    menu = page.locator(".choices").bounding_box()
    assert menu["x"] >= 0
    assert menu["x"] + menu["width"] <= page.viewport_size["width"]
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_a_hundred_thousand_rows(studio, tmp_path, enter):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((100_000, 6)) + 4 * rng.standard_normal((5, 6))[rng.integers(5, size=100_000)]
    np.save(tmp_path / "many.npy", rows.astype(np.float32))
    seen = enter(link(studio(tmp_path / "many.npy", ids=None)))
    seen.wait_map(0)
    assert seen.page.get_attribute("[data-testid=map]", "data-points") == "100000"
    for _ in range(3):
        seen.click("different")
    seen.wait_count(3)
    assert seen.page.locator(".map-note").inner_text() == ""
