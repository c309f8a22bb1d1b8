"""The report in a browser: it draws, answers, stays offline, and no text of the data does harm."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from pairlens import LPP, WBDR, WSDR, Constraints, LinearPairLens, Preferences
from pairlens.report import Report, build_report
from tests.browser import launch
from tests.report.pages import HOSTILE

pytestmark = pytest.mark.processes

pytest.importorskip("plotly", reason="the report needs plotly: pip install 'pairlens[report]'")
api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")

PATIENCE = 120_000
DIGITS, CLASSES = load_digits(return_X_y=True)
PAIRS = Constraints.from_labels(CLASSES, per_class=3, random_state=0)
IDS = [f"digit-{i:04d}" for i in range(len(DIGITS))]

SCREEN_POSITION = """([panel, row, column]) => {
  const plot = document.getElementById(panel + "-plot"), full = plot._fullLayout, box = plot.getBoundingClientRect();
  const x = full.xaxis.d2p(column[0]) + full.xaxis._offset, y = full.yaxis.d2p(column[1]) + full.yaxis._offset;
  return [box.left + x, box.top + y];
}"""


@dataclass
class Visit:
    """A page in the browser, and what happened on it."""

    page: Any
    folder: Path
    troubles: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def listen(self) -> None:
        self.page.on(
            "console", lambda message: self._note("console", message.text, message.type in ("error", "warning"))
        )
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _note(self, kind: str, text: str, bad: bool) -> None:
        # Software rendering warns that reading pixels is slow.
        if bad and "GPU stall" not in text:
            self.troubles.append(f"{kind}: {text}")

    def _dialog(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, html: str) -> Visit:
        path = self.folder / "report.html"
        path.write_text(html, encoding="utf-8")
        self.page.goto(path.as_uri(), timeout=PATIENCE)
        self.page.wait_for_selector("html[data-ready]", timeout=PATIENCE)
        return self

    def points(self, panel: str = "view") -> int:
        """Number of points of rows that are drawn and not hidden."""
        script = """(panel) => document.getElementById(panel + "-plot").data
            .filter((trace) => trace.meta === "rows" && trace.visible)
            .reduce((sum, trace) => sum + trace.x.length, 0)"""
        return int(self.page.evaluate(script, panel))

    def lines(self, panel: str = "view") -> dict[str, int]:
        """Number of pairs drawn, by kind and status."""
        script = """(panel) => Object.fromEntries(document.getElementById(panel + "-plot").data
            .filter((trace) => trace.meta !== "rows" && trace.visible)
            .map((trace) => [trace.meta, trace.x.length / 3]))"""
        return dict(self.page.evaluate(script, panel))

    def hover(self, Z: Any, row: int, panel: str = "view") -> str:
        """Point at a row and read the tooltip."""
        self.page.mouse.move(2, 2)
        plot = self.page.locator(f"#{panel}-plot")
        plot.scroll_into_view_if_needed()
        x, y = self.page.evaluate(SCREEN_POSITION, [panel, row, Z[row].tolist()])
        self.page.mouse.move(x - 3, y)
        self.page.mouse.move(x, y)
        tip = self.page.locator("#tip")
        tip.wait_for(state="visible", timeout=10_000)
        return str(tip.inner_text())

    def title(self, axis: str, panel: str = "view") -> str:
        script = "([panel, axis]) => document.getElementById(panel + '-plot')._fullLayout[axis].title.text"
        return str(self.page.evaluate(script, [panel, axis]))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as playwright:
        instance = launch(playwright)
        yield instance
        instance.close()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Visit]]:
    visits: list[Visit] = []

    def start(**options: Any) -> Visit:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        new = Visit(context.new_page(), tmp_path)
        new.listen()
        visits.append(new)
        return new

    yield start
    for each in visits:
        each.page.context.close()
        assert each.troubles == []
        assert [url for url in each.requests if not re.match(r"file:///.*/report\.html$|data:|blob:|about:", url)] == []


@pytest.fixture(scope="module")
def digits() -> tuple[str, Any]:
    model = LinearPairLens(2, standardize=False, random_state=0).fit(DIGITS, constraints=PAIRS)
    html = build_report(model, DIGITS, constraints=PAIRS, labels=CLASSES, ids=IDS, n_splits=2)
    return html, model.transform(DIGITS)


def spread_out(Z: Any) -> int:
    """A row with no other row near it."""
    distance = np.linalg.norm(Z[:, None] - Z[None], axis=2) + np.diag(np.full(len(Z), np.inf))
    return int(distance.min(axis=1).argmax())


def test_the_scatter_and_its_answers(visit, digits):
    html, Z = digits
    seen = visit().open(html)
    assert seen.points("view") == seen.points("pca") == 1797
    assert seen.page.locator(".no-webgl").count() == 0
    assert seen.page.locator(".gl-container canvas").count() > 0
    # Points come first: only the pairs of the table are drawn.
    listed = seen.page.locator("button[data-pair]").count()
    assert 0 < sum(seen.lines().values()) == sum(seen.lines("pca").values()) == listed < 30

    row = spread_out(Z)
    told = seen.hover(Z, row)
    assert told.splitlines()[:2] == [IDS[row], str(CLASSES[row])]
    assert seen.page.locator("#view-overlay circle").count() == seen.page.locator("#pca-overlay circle").count() == 1
    P = PCA(2, random_state=0).fit_transform(DIGITS)
    row = spread_out(P)
    assert seen.hover(P, row, "pca").splitlines()[0] == IDS[row]
    seen.page.mouse.move(2, 2)
    seen.page.locator("#tip").wait_for(state="hidden")


def test_what_is_shown_can_be_chosen(visit, digits):
    seen = visit().open(digits[0])
    first = seen.lines()
    assert all(kind.endswith("listed") for kind in first)
    for label in ("all violated", "satisfied"):
        seen.page.get_by_label(label, exact=True).check()
    assert sum(seen.lines().values()) == 60
    seen.page.get_by_label("most violated", exact=True).uncheck()
    assert sum(seen.lines().values()) == 60
    seen.page.get_by_label("all violated", exact=True).uncheck()
    seen.page.get_by_label("cannot-links", exact=True).uncheck()
    assert set(seen.lines()) == {"must satisfied"}

    three = seen.page.locator("#legend button").nth(3)
    three.focus()
    seen.page.keyboard.press("Enter")
    assert three.get_attribute("aria-pressed") == "false"
    assert seen.points() == 1797 - np.sum(CLASSES == 3)

    seen.page.get_by_label("Find row").fill("digit-0100")
    assert seen.page.locator("#found").inner_text() == "digit-0100"
    assert seen.page.locator("#view-overlay circle").count() == 1
    seen.page.get_by_label("Find row").fill("nobody")
    assert seen.page.locator("#found").inner_text() == "no such row is drawn"

    button = seen.page.locator("button[data-pair]").first
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert seen.page.locator("#view-overlay circle").count() == 2
    assert seen.page.locator("#view-overlay line").count() == 1


def test_light_dark_and_paper(visit, digits):
    seen = visit(color_scheme="dark").open(digits[0])
    background = "() => getComputedStyle(document.body).backgroundColor"
    ink = "() => document.getElementById('view-plot')._fullLayout.font.color"
    assert seen.page.evaluate(background) == "rgb(17, 21, 28)"
    dark_ink = seen.page.evaluate(ink)
    seen.page.get_by_role("button", name="Switch to light colours").click()
    assert seen.page.evaluate(background) == "rgb(255, 255, 255)"
    assert seen.page.evaluate(ink) != dark_ink
    seen.page.get_by_role("button", name="Switch to dark colours").click()
    assert seen.page.evaluate(ink) == dark_ink

    seen.page.emulate_media(media="print")
    seen.page.wait_for_function("() => document.getElementById('view-plot')._fullLayout.width === 330")
    assert seen.page.evaluate(background) == "rgb(255, 255, 255)"
    assert seen.page.evaluate(ink) != dark_ink
    assert not seen.page.locator("#theme").is_visible()
    assert not seen.page.locator("#find").is_visible()
    assert seen.page.locator("#violated table").is_visible()
    assert len(seen.page.pdf(format="A4")) > 50_000
    seen.page.emulate_media(media="screen")
    seen.page.wait_for_function("() => document.getElementById('view-plot')._fullLayout.width > 400")
    assert seen.page.evaluate(ink) == dark_ink


def test_wide_tables_scroll_on_a_phone(visit, digits):
    seen = visit().open(digits[0])
    seen.page.set_viewport_size({"width": 390, "height": 844})
    table = "() => document.querySelector('#violated table').getBoundingClientRect().right"
    assert seen.page.evaluate(table) > 390
    seen.page.wait_for_function("() => document.documentElement.scrollWidth === 390")  # after the plots


def test_words_in_tables_stay_whole_on_a_phone(visit):
    rows, labels = DIGITS[:150], np.array(["Canadian", "Kama", "Rosa"])[CLASSES[:150] % 3]
    pairs = Constraints.from_labels(labels, n_pairs=60, random_state=0)
    model = LinearPairLens(2, standardize=False, random_state=0).fit(rows, constraints=pairs)
    seen = visit().open(build_report(model, rows, constraints=pairs, labels=labels, n_splits=2))
    seen.page.set_viewport_size({"width": 390, "height": 844})
    lines = seen.page.locator("#violated td bdi").evaluate_all(
        "all => all.filter((each) => each.textContent === 'Canadian').map((each) => each.getClientRects().length)"
    )
    assert lines
    assert set(lines) == {1}


def test_axes_can_be_chosen(visit):
    model = WBDR(4).fit(DIGITS, constraints=PAIRS)
    seen = visit().open(build_report(model, DIGITS, n_splits=0))
    assert (seen.title("xaxis"), seen.title("yaxis")) == ("direction 1", "direction 2")
    seen.page.locator("#view-y").select_option("3")
    seen.page.wait_for_function(
        "() => document.getElementById('view-plot')._fullLayout.yaxis.title.text === 'direction 4'"
    )
    drawn = seen.page.evaluate("() => Array.from(document.getElementById('view-plot').data[0].y)")
    np.testing.assert_allclose(drawn, model.transform(DIGITS)[:, 3], rtol=1e-5, atol=1e-6)
    assert seen.title("yaxis", "pca").startswith("component 2 (")


def test_one_direction_and_preferences(visit):
    rows, labels = DIGITS[:200], CLASSES[:200]
    answers = Preferences.from_scores(labels, n_pairs=50, random_state=0)
    model = WSDR(1, random_state=0).fit(rows, preferences=answers)
    seen = visit().open(build_report(model, rows, preferences=answers, labels=labels, n_splits=2))
    assert seen.points() == 200
    assert seen.lines() == {"prefer listed": 15}
    for label in ("all violated", "satisfied"):
        seen.page.get_by_label(label, exact=True).check()
    assert sum(seen.lines().values()) == 50
    drawn = seen.page.evaluate(
        "() => document.getElementById('view-plot').data.flatMap((trace) => trace.meta === 'rows' ? [...trace.y] : [])"
    )
    assert len(np.unique(np.round(drawn))) == 10
    assert seen.page.get_by_label("same scale on both axes").is_hidden()


class OnePicture:
    """A picture of one row, as a folder of pictures gives it."""

    def __init__(self, row: int) -> None:
        self.row = row

    def has(self, row: int) -> bool:
        return row == self.row

    def encoded(self, row: int, side: int) -> bytes:
        assert side == 64
        pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        return base64.b64decode(pixel)


def test_rows_with_cells_and_pictures(visit, digits):
    Z = digits[1]
    row = spread_out(Z)
    model = LinearPairLens(2, standardize=False, random_state=0).fit(DIGITS, constraints=PAIRS)
    html = build_report(
        model,
        DIGITS,
        constraints=PAIRS,
        ids=IDS,
        beside={"written by": [f"writer {i}" for i in range(len(DIGITS))]},
        pictures=OnePicture(row),
        n_splits=0,
    )
    seen = visit().open(html)
    told = seen.hover(Z, row)
    assert f"written by: writer {row}" in told
    assert seen.page.evaluate("() => document.querySelector('#tip img').naturalWidth") == 1
    assert "40 of 1,797 rows" in seen.page.locator("#rows").inner_text()
    assert seen.page.locator("#rows tbody tr").count() == 40


def test_words_tell_islands_of_texts_apart(visit):
    rng = np.random.default_rng(0)
    topic = np.arange(120) % 3
    rows = 20 * np.eye(3)[topic][:, :2] + rng.standard_normal((120, 2))
    words = ["violin", "stadium", "<b>flour</b>"]
    texts = [f"It is {' '.join(rng.choice(['about', 'for', 'with'], 5))} a {words[k]}." for k in topic]
    model = LPP(2).fit(rows)
    seen = visit().open(build_report(model, rows, texts=texts, n_splits=0))
    shown = seen.page.locator("#view-plot .annotation-text").all_text_contents()
    assert sorted(text.split(" · ")[0] for text in shown) == ["flour", "stadium", "violin"]
    assert seen.page.locator("#pca-plot .annotation-text").count() == 0
    assert "tell the texts of an island" in seen.page.locator("body").inner_text()
    places = model.transform(rows)
    for k, word in enumerate(["violin", "stadium", "flour"]):
        box = seen.page.locator("#view-plot .annotation-text", has_text=word).bounding_box()
        middle = places[topic == k].mean(axis=0)
        x, y = seen.page.evaluate(SCREEN_POSITION, ["view", 0, middle.tolist()])
        assert abs(box["x"] + box["width"] / 2 - x) < 20
        assert abs(box["y"] + box["height"] / 2 - y) < 20


def test_hostile_texts_do_no_harm(visit):
    rows = np.random.default_rng(0).standard_normal((len(HOSTILE) * 2, len(HOSTILE)))
    pairs = Constraints([(0, 1), (2, 3)], [(k, k + len(HOSTILE)) for k in range(len(HOSTILE))], n_samples=len(rows))
    texts = HOSTILE * 2
    model = LPP(2).fit(rows)
    html = build_report(
        model,
        rows,
        constraints=pairs,
        ids=texts,
        labels=texts,
        beside={HOSTILE[3]: texts},
        texts=texts,
        feature_names=HOSTILE,
        title=HOSTILE[1],
        run={HOSTILE[0]: HOSTILE[2], "texts": dict(zip(HOSTILE, HOSTILE))},
        n_splits=0,
    )
    seen = visit().open(html)
    Z = model.transform(rows)
    told = [seen.hover(Z, row) for row in range(len(HOSTILE))]
    assert any("<script>window.harmed = 1; alert(1)</script>" in text for text in told)
    assert any("<img src=x onerror" in text for text in told)
    seen.page.get_by_label("Find row").fill(HOSTILE[2])
    assert HOSTILE[2] in seen.page.locator("#found").inner_text()
    seen.page.wait_for_timeout(200)
    assert seen.page.evaluate("() => window.harmed") is None
    assert seen.page.locator("img, iframe, object, embed, a[href^=http], svg[onload]").count() == 0
    assert seen.page.locator("script").count() == 4
    handlers = """() => [...document.querySelectorAll("*")].flatMap((element) => [...element.attributes])
        .filter((attribute) => attribute.name.startsWith("on")).length"""
    assert seen.page.evaluate(handlers) == 0


def test_a_page_that_was_tampered_with_still_runs_no_foreign_script(visit, digits):
    """The policy holds where escaping would have failed."""
    seen = visit()
    seen.open(
        digits[0].replace("</main>", "<img src=x onerror='window.harmed=1'><script>window.harmed=2</script></main>")
    )
    assert seen.page.evaluate("() => window.harmed") is None
    assert len(seen.troubles) == 3
    assert all("Content Security Policy" in trouble for trouble in seen.troubles)
    seen.troubles.clear()
    seen.requests.clear()


def test_a_hundred_thousand_points(visit):
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), 10_000)
    rows = generator.standard_normal((100_000, 4)) + 3 * generator.standard_normal((10, 4))[labels]
    rows[7] = [25, 25, 25, 25]
    model = PCA(2, random_state=0).fit(rows)
    pairs = Constraints.from_labels(labels, n_pairs=200, random_state=0)
    seen = visit()
    start = time.perf_counter()
    seen.open(build_report(model, rows, constraints=pairs, labels=labels, n_splits=0))
    # A software renderer on a busy machine; with a graphics card this takes about a second.
    assert time.perf_counter() - start < 60
    assert seen.points() == 100_000
    assert seen.hover(model.transform(rows), 7).splitlines()[0] == "7"


def test_the_frame_of_a_notebook(visit):
    seen = visit()
    path = seen.folder / "notebook.html"
    frame = Report(LPP(2).fit(DIGITS), DIGITS, labels=CLASSES)._repr_html_()
    path.write_text(f"<!doctype html><title>notebook</title>{frame}", encoding="utf-8")
    seen.page.goto(path.as_uri(), timeout=PATIENCE)
    seen.page.frame_locator("iframe").locator("html[data-ready]").wait_for(state="attached", timeout=PATIENCE)
    assert seen.page.frame_locator("iframe").locator(".gl-container canvas").count() > 0
    seen.requests.clear()
