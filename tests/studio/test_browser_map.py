"""The map in a browser: drawn with and without WebGL, moved by mouse, keys and fingers, and what it says of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.browser import launch
from tests.studio.browser import PHONE, PLACE, Visit
from tests.studio.conftest import link

pytestmark = pytest.mark.processes

NO_WEBGL = """const plain = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
  return kind.startsWith("webgl") ? null : plain.call(this, kind, ...rest);
};"""
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


def test_a_new_map_does_not_move_where_motion_is_reduced(studio, table, enter):
    seen = enter(link(studio(table)), reduced_motion="reduce")
    seen.wait_map(0)
    seen.click("same")
    seen.wait_map(1)
    assert seen.page.get_attribute("[data-testid=map]", "data-morph") == "0"


def test_a_new_fit_morphs_in_and_the_map_can_be_used(studio, table, enter):
    seen = enter(link(studio(table)), reduced_motion="no-preference")
    page = seen.page
    seen.wait_map(0)
    for _ in range(3):
        seen.click("different")
    seen.wait_map(3)
    assert page.get_attribute("[data-testid=map]", "data-morph") == "400"
    box = page.locator(".points").bounding_box()
    for step in range(60):
        page.mouse.move(
            box["x"] + box["width"] * (0.1 + 0.8 * (step % 10) / 10),
            box["y"] + box["height"] * (0.1 + 0.13 * (step // 10)),
        )
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


def touch(page: Any, kind: str, *fingers: tuple[float, float]) -> None:
    """Fingers on the screen, by the browser's own protocol."""
    if not hasattr(page, "touches"):
        page.touches = page.context.new_cdp_session(page)
    points = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(fingers)]
    page.touches.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})


def test_two_fingers_zoom_the_map_and_one_moves_it(studio, table, enter):
    """A row is where the fingers have put it: a tap there shows it."""
    seen = enter(link(studio(table)), **PHONE)
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
    seen = Visit.enter(launch(playwright, compositing=True), link(studio(table)))
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
    seen = enter(link(studio(tmp_path / "tiles.npy", ids=None)))
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
    seen = enter(link(studio(table)), script=script)
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
