"""The page in a browser: whatever is in the table, on any screen, for everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser import launch
from tests.studio.browser import HOSTILE, Visit
from tests.studio.conftest import link, write_table
from tests.studio.test_page import TOOLS

NO_WEBGL = """const plain = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
  return kind.startsWith("webgl") ? null : plain.call(this, kind, ...rest);
};"""
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


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
        assert page.locator(".card .text").first.bounding_box()["width"] >= 160
        assert page.locator(".subject .text").bounding_box()["height"] <= height / 3
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


PLACE = """async (row) => {
    const { unpack } = await import("/page/map.js");
    const { places } = unpack(await (await fetch("/api/map")).arrayBuffer());
    const side = (axis, size) => {
        const all = [...places].filter((_, k) => k % 2 === axis);
        return [all[row ?? 0], (Math.min(...all) + Math.max(...all)) / 2, size / (Math.max(...all) - Math.min(...all))];
    };
    const { clientWidth, clientHeight } = document.querySelector(".points");
    const [x, left, wide] = side(0, clientWidth), [y, low, high] = side(1, clientHeight);
    const zoom = 0.92 * Math.min(wide, high);
    return { x: clientWidth / 2 + (x - left) * zoom, y: clientHeight / 2 - (y - low) * zoom };
}"""
COLOURED = f"""async ([row, x, y, colour]) => {{
    const place = await ({PLACE})(row);
    const canvas = document.querySelector(".points");
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {{ willReadFrequently: true }});
    copy.drawImage(canvas, 0, 0);
    const {{ data }} = copy.getImageData(Math.floor(place.x + x), Math.floor(place.y + y), 1, 1);
    return data[3] > 0 && colour.every((part, k) => Math.abs(part - data[k]) < 25);
}}"""
"""Whether the map has this colour beside a row."""
INK = """(k) => getComputedStyle(document.querySelectorAll(".legend .mark")[k])
    .color.match(/\\d+/g).map(Number)"""


def test_no_webgl(studio, tmp_path, enter):
    rows = np.random.default_rng(0).standard_normal((21_000, 3))
    np.save(tmp_path / "many.npy", rows)
    seen = enter(link(studio(tmp_path / "many.npy", ids=None)), script=NO_WEBGL)
    seen.wait_map(0)
    assert "no WebGL: the map shows a sample of 5,000 of 21,000 rows" in seen.page.locator(".map-note").inner_text()
    # Rows with a group are never left out of the sample; the first row may be one of them.
    groups = [{"number": 0, "shown": 2, "name": "", "rows": [0, 12_347], "confidence": [1, 1]}]
    seen.page.route("**/api/groups", lambda route: route.fulfill(json=groups))
    seen.page.reload()
    seen.page.wait_for_selector("[data-group]")
    seen.wait_map(0)
    seen.page.wait_for_function(COLOURED, arg=[12_347, 0, 0, [150, 65, 1]])


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
        page.route("**/page/app.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
        page.reload()
        assert page.locator("main").bounding_box()["y"] == pytest.approx(after, abs=1)
        page.unroute("**/page/app.js")
        page.reload()
        page.wait_for_selector("[data-testid=question][data-question]")


def test_a_new_map_does_not_move_where_motion_is_reduced(studio, table, enter):
    seen = enter(link(studio(table)), reduced_motion="reduce")
    seen.wait_map(0)
    seen.click("same")
    seen.wait_map(1)
    assert seen.page.get_attribute("[data-testid=map]", "data-morph") == "0"


def test_a_new_fit_morphs_in_and_the_map_can_be_used(studio, table, enter):
    seen = enter(link(studio(table)))
    page = seen.page
    seen.wait_map(0)
    for _ in range(3):
        seen.click("different")
    seen.wait_map(3)
    assert page.get_attribute("[data-testid=map]", "data-morph") == "400"
    box = page.locator(".points").bounding_box()
    found = False
    for step in range(60):
        page.mouse.move(
            box["x"] + box["width"] * (0.1 + 0.8 * (step % 10) / 10),
            box["y"] + box["height"] * (0.1 + 0.13 * (step // 10)),
        )
        found = found or page.locator(".tip").is_visible()
    page.get_by_role("button", name="Select").click()
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)]
    page.mouse.move(box["x"] + box["width"] * 0.02, box["y"] + box["height"] * 0.02)
    page.mouse.down()
    for x, y in corners[1:]:
        page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y, steps=4)
    page.mouse.up()
    page.get_by_role("heading", name="90 rows selected").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    assert page.evaluate("() => document.activeElement.className") == "points"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("+")
    assert page.inner_text("[data-testid=count]") == "3"


TOO_SMALL = """() => [...document.querySelectorAll("button, input, dialog a")]
    .filter((element) => element.checkVisibility() && element.getBoundingClientRect().height < 44)
    .map((element) => element.outerHTML)"""


def test_on_a_phone_every_group_and_button_is_in_reach(studio, table, enter):
    """Many groups: none is cut, all are behind one button, by touch and by keys, and it keeps the focus."""
    seen = enter(link(studio(table)), reduced_motion="reduce", **PHONE)
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

    page.wait_for_timeout(300)
    page.locator("[data-undo]").tap()
    page.locator("[data-undo]").wait_for(state="hidden")
    assert page.inner_text("[data-testid=count]") == "0"


def touch(page: Any, kind: str, *fingers: tuple[float, float]) -> None:
    """Fingers on the screen, by the browser's own protocol."""
    if not hasattr(page, "touches"):
        page.touches = page.context.new_cdp_session(page)
    points = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(fingers)]
    page.touches.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})


def test_two_fingers_zoom_the_map_and_one_moves_it(studio, table, enter):
    """A row is where the fingers have put it: a tap there shows it."""
    seen = enter(link(studio(table)), reduced_motion="reduce", **PHONE)
    page = seen.page
    seen.wait_map(0)
    page.locator(".points").scroll_into_view_if_needed()
    box = page.locator(".points").bounding_box()
    row = page.evaluate(PLACE)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    place = [box["x"] + row["x"], box["y"] + row["y"]]
    scrolled = page.evaluate("() => scrollY")

    # Twice as far apart, and the middle goes 10 pixels to the right and 20 down.
    touch(page, "Start", (x - 30, y), (x + 30, y))
    for share in (0.25, 0.5, 0.75, 1):
        half, right, down = 30 * (1 + share), 10 * share, 20 * share
        touch(page, "Move", (x - half + right, y + down), (x + half + right, y + down))
    touch(page, "End")
    place = [x + 10 + 2 * (place[0] - x), y + 20 + 2 * (place[1] - y)]
    # Then one finger brings the row to the middle of the map.
    touch(page, "Start", (x, y))
    for share in (0.5, 1):
        touch(page, "Move", (x + share * (x - place[0]), y + share * (y - place[1])))
    touch(page, "End")
    assert page.locator(".tip").is_hidden()
    touch(page, "Start", (x, y))
    touch(page, "End")
    page.locator(".tip", has_text="row-0").wait_for()
    assert page.locator(".tip h3").inner_text() == "row-0"
    assert page.evaluate("() => [scrollY, visualViewport.scale]") == [scrolled, 1]

    # A second finger ends a lasso that the first began: it zooms.
    page.get_by_role("button", name="Select").tap()
    touch(page, "Start", (x, y))
    touch(page, "Move", (x + 40, y + 40))
    touch(page, "Start", (x + 40, y + 40), (x, y))
    touch(page, "Move", (x + 60, y + 60), (x, y))
    touch(page, "End")
    assert page.locator("dialog").count() == 0
    assert page.get_by_role("button", name="Select").get_attribute("aria-pressed") == "true"
    corners = [(4, 4), (box["width"] - 4, 4), (box["width"] - 4, box["height"] - 4), (4, box["height"] - 4)]
    page.get_by_role("button", name="Whole map").tap()
    touch(page, "Start", (box["x"] + corners[0][0], box["y"] + corners[0][1]))
    for right, down in corners[1:]:
        touch(page, "Move", (box["x"] + right, box["y"] + down))
    touch(page, "End")
    page.get_by_role("heading", name="90 rows selected").wait_for()


def test_a_lasso_goes_when_it_is_closed(studio, table, playwright):
    """Where the page is put together by WebGL in software, Chromium keeps what an accelerated canvas has cleared."""
    seen = Visit.enter(launch(playwright, compositing=True), link(studio(table)), reduced_motion="reduce")
    page = seen.page
    seen.wait_map(0)
    page.get_by_role("button", name="Select").click()
    box = page.locator(".points").bounding_box()
    for k, (x, y) in enumerate([(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)]):
        page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y, steps=4)
        if k == 0:
            page.mouse.down()
    page.mouse.up()
    page.get_by_role("heading", name="90 rows selected").wait_for()
    # Read once: a canvas that is read again and again is no longer an accelerated one.
    left = page.evaluate("""async () => {
        for (let k = 0; k < 3; k++) await new Promise(requestAnimationFrame);
        const canvas = document.querySelector(".marks");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return data.filter((value) => value).length;
    }""")
    assert left == 0
    seen.leave()
    page.context.browser.close()


def test_what_the_map_says_of_a_row(studio, tmp_path, enter):
    """A picture is whole, beside its name, and goes when the map is moved under it."""
    rows = np.random.default_rng(0).integers(0, 255, (60, 64))
    np.save(tmp_path / "tiles.npy", rows)
    seen = enter(link(studio(tmp_path / "tiles.npy", ids=None)), reduced_motion="reduce")
    page = seen.page
    seen.wait_map(0)
    box, row = page.locator(".points").bounding_box(), page.evaluate(PLACE)
    page.mouse.move(box["x"] + row["x"], box["y"] + row["y"])
    page.locator(".tip h3", has_text="0").wait_for()
    tip, picture = (page.locator(name).bounding_box() for name in (".tip", ".tip .pixels"))
    assert picture["height"] == pytest.approx(picture["width"], abs=1)
    assert picture["width"] >= 80
    assert picture["y"] + picture["height"] <= tip["y"] + tip["height"]
    assert picture["y"] >= page.locator(".tip h3").bounding_box()["y"] + 10
    page.mouse.wheel(0, -200)
    page.locator(".tip").wait_for(state="hidden")

    # Nobody loses the map by turning the wheel.
    for _ in range(40):
        page.mouse.wheel(0, 400)
    inked = """() => {
        const canvas = document.querySelector(".points");
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
        copy.drawImage(canvas, 0, 0);
        const { data, width } = copy.getImageData(0, 0, canvas.width, canvas.height);
        const columns = new Set();
        data.forEach((value, k) => k % 4 === 3 && value && columns.add(((k - 3) / 4) % width));
        return Math.max(...columns) - Math.min(...columns) > width / 4;
    }"""
    page.wait_for_function(inked)


@pytest.mark.parametrize("script", ["", NO_WEBGL], ids=["webgl", "canvas"])
def test_groups_have_a_colour_and_a_shape(studio, table, enter, script):
    """The same on the map, in the dark too, in the legend and beside a row; and after the graphics card was away."""
    seen = enter(link(studio(table)), script=script, reduced_motion="reduce")
    page = seen.page
    seen.wait_map(0)
    # A square, a plus and a diamond, in three places far from each other.
    groups = [
        {"number": k, "shown": shown, "name": "", "rows": [k], "confidence": [1]} for k, shown in enumerate((2, 5, 11))
    ]
    page.route("**/api/groups", lambda route: route.fulfill(json=groups))
    page.reload()
    page.wait_for_selector("[data-group]")
    seen.wait_map(0)
    assert page.locator(".legend .mark").evaluate_all("all => all.map((mark) => mark.dataset.shape)") == ["1", "4", "3"]
    colours = {
        "light": [[150, 65, 1], [179, 140, 21], [0, 116, 105]],
        "dark": [[219, 100, 14], [219, 186, 102], [100, 250, 232]],
    }
    for paper, shown in colours.items():
        page.emulate_media(color_scheme=paper, reduced_motion="reduce")
        for row, colour in enumerate(shown):
            page.wait_for_function(COLOURED, arg=[row, 0, 0, colour])
            # Only the square reaches into its corner.
            assert page.evaluate(COLOURED, [row, -3, -3, colour]) == (row == 0)
            assert page.evaluate(INK, row) == colour
    if not script:
        page.evaluate("""async () => {
            const canvas = document.querySelector(".points");
            const card = canvas.getContext("webgl2").getExtension("WEBGL_lose_context");
            const lost = new Promise((resolve) => canvas.addEventListener("webglcontextlost", resolve, { once: true }));
            card.loseContext();
            await lost;
            setTimeout(() => card.restoreContext());
            await new Promise((resolve) => canvas.addEventListener("webglcontextrestored", resolve, { once: true }));
        }""")
        page.wait_for_function(COLOURED, arg=[2, 0, 0, colours["dark"][2]])
    box, place = page.locator(".points").bounding_box(), page.evaluate(PLACE, 2)
    page.mouse.move(box["x"] + place["x"], box["y"] + place["y"])
    page.locator(".tip .group-of", has_text="Group 11").wait_for()
    seen.troubles = [each for each in seen.troubles if "CONTEXT_LOST" not in each]


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
