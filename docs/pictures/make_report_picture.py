"""Makes report.png: the report of penguins by sex from 60 answered pairs, in an installed Chromium.

Run ``python docs/pictures/make_report_picture.py``; ``--dark`` and ``--print`` show how it looks otherwise, in a folder
of your choice (``--out``).
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from pairlens import Constraints, PairMap
from pairlens.datasets import load_penguins
from pairlens.report import write_report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--print", action="store_true", dest="paper")
    options = parser.parse_args()
    browser_path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser_path is None:
        parser.error("no browser found: install chromium")

    penguins = load_penguins()
    known = np.array([sex is not None for sex in penguins.sex])
    X, sex = penguins.data[known], penguins.sex[known]
    pairs = Constraints.from_labels(sex, n_pairs=60, random_state=0)
    model = PairMap(random_state=0).fit(X, constraints=pairs)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_path = Path(folder) / "report.html"
        write_report(
            page_path,
            model,
            X,
            constraints=pairs,
            labels=sex,
            feature_names=penguins.feature_names,
            title="Penguins by sex, from 60 answered pairs",
        )
        browser = playwright.chromium.launch(
            executable_path=browser_path,
            args=["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
        )
        page = browser.new_page(
            viewport={"width": 720 if options.paper else 1200, "height": 916},
            color_scheme="dark" if options.dark else "light",
        )
        page.goto(page_path.as_uri())
        page.wait_for_selector("html[data-ready]")
        name = "report.png"
        if options.paper:
            page.emulate_media(media="print")
            page.wait_for_function("() => document.getElementById('view-plot')._fullLayout.width < 400")
            name = "report-print.png"
        elif options.dark:
            name = "report-dark.png"
        page.screenshot(path=options.out / name, full_page=options.paper)
        browser.close()


if __name__ == "__main__":
    main()
