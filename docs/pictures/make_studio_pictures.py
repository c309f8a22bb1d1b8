"""Makes the pictures of the studio: digits, with answers by their labels, in an installed Chromium.

Run ``python docs/pictures/make_studio_pictures.py``; ``--out`` is the folder, by default that of this file.

===================  ==================================================
studio.png           a comparison beside the map, after 180 answers
studio-phone.png     the same at the width of a phone
studio-progress.png  the learning curve after 300 answers
studio-place.png     a placement screen in the dark, after 48 answers
===================  ==================================================
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright
from sklearn.datasets import load_digits

from pairlens.studio.rows import Rows, rows_from_file
from pairlens.studio.run import Studio, open_store

SEED = 2
"""Of 0, 1 and 2 the one with which the map and both lines of the learning curve are seen best.

The pictures show what the page looks like; how good the methods are is measured elsewhere.
"""
PATIENCE = 300
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    out = parser.parse_args().out
    browser_path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser_path is None:
        parser.error("no browser found: install chromium")

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        table, compared, placed = (Path(folder) / name for name in ("digits.csv", "compared.db", "placed.db"))
        labels = write_digits(table)
        rows = rows_from_file(table, ids="id", drop=["digit"])
        browser = playwright.chromium.launch(
            executable_path=browser_path,
            args=["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
        )

        answer_questions(rows, compared, labels, 180)
        with opened(browser, rows, compared) as page:
            page.screenshot(path=out / "studio.png")
            page.set_viewport_size(PHONE)
            drawn(page)
            page.screenshot(path=out / "studio-phone.png", full_page=True)
        answer_questions(rows, compared, labels, 120)
        with opened(browser, rows, compared) as page:
            page.click("[data-panel=progress]")
            page.wait_for_selector("dialog .curve")
            page.screenshot(path=out / "studio-progress.png")

        answer_questions(rows, placed, labels, 48, question="place")
        with opened(browser, rows, placed, question="place", color_scheme="dark") as page:
            page.screenshot(path=out / "studio-place.png")
        browser.close()


def write_digits(path: Path) -> list[int]:
    """The table that ``pairlens demo`` writes; returns the digit of each row."""
    frame = load_digits(as_frame=True).frame.astype(int).rename(columns={"target": "digit"})
    frame.insert(0, "id", [f"scan-{number:04d}" for number in range(len(frame))])
    frame.to_csv(path, index=False)
    return list(frame["digit"])


@contextmanager
def running(rows: Rows, store: Path, question: str = "same") -> Iterator[Studio]:
    """A studio on a free port of this machine, which goes on with the answers of its store."""
    kept = open_store(store, rows)
    kept.set_meta({"seed": SEED})
    studio = Studio.prepare(rows, kept, question=question, port=0).start()
    try:
        yield studio
    finally:
        studio.stop()


def answer_questions(rows: Rows, store: Path, labels: list[int], n_answers: int, question: str = "same") -> None:
    """Answer by the labels.

    Each question waits for the view that chooses it, so that the questions do not depend on the speed of the machine.
    """

    def answer(session: Any) -> None:
        asked = session.questions("me")[0]
        session.answer("me", asked["id"], asked["raw"], true_answer(asked, labels))

    with running(rows, store, question) as studio:
        for _ in range(n_answers):
            wait(studio, view_is_new)
            studio.call(answer)


def true_answer(question: dict[str, Any], labels: list[int]) -> str:
    """What somebody answers who reads the digits."""
    one, *others = (labels[row["row"]] for row in question["rows"])
    if question["kind"] == "place":
        return str(others.index(one) + 1) if one in others else "none"
    return "same" if others == [one] else "different"


@contextmanager
def opened(browser: Browser, rows: Rows, store: Path, question: str = "same", **options: Any) -> Iterator[Page]:
    """The page of a studio that knows all answers of its store, with its last map.

    The map is made by a studio that has just been started: one that was open all the time begins each map from the one
    before, and which ones there were depends on the speed of the machine.
    """
    with running(rows, store, question) as studio:
        wait(studio, view_is_new)
        wait(studio, map_is_new)
        page = browser.new_page(viewport=DESKTOP, reduced_motion="reduce", **options)
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(next(iter(studio.urls.values())))
        page.wait_for_selector("[data-testid=question][data-question]")
        page.wait_for_selector("[data-testid=map][data-points] [data-group]")
        page.wait_for_selector("[data-testid=certainty]:not(:empty)")
        drawn(page)
        try:
            yield page
        finally:
            page.close()


def drawn(page: Page) -> None:
    """Wait for the map: it is drawn in the frame after the one in which it, or the size of the page, changed."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def view_is_new(session: Any) -> bool:
    """Whether the view that chooses questions knows all answers that it should."""
    return session.ready and session.asker.fit_job() is None


def map_is_new(session: Any) -> bool:
    """Whether the map knows all answers, and none is being made."""
    status = session.status()
    return status["map"]["answers"] == status["answers"] and not status["map"]["fitting"]


def wait(studio: Studio, condition: Callable[[Any], bool]) -> None:
    """Wait until something holds of the session."""
    deadline = time.monotonic() + PATIENCE
    while not studio.call(condition):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not so after {PATIENCE} s: {condition.__doc__}")
        time.sleep(0.02)


if __name__ == "__main__":
    main()
