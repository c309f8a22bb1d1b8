"""The code blocks of the pages run as they stand, and draw the pictures that the pages show."""

from __future__ import annotations

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

DOCS = Path(__file__).parents[2] / "docs"
if not (DOCS / "make_pages.py").exists():
    pytest.skip("the pages are not in this distribution", allow_module_level=True)
NEED_A_PERSON = {DOCS / "asking.md", DOCS / "studio.md"}  # somebody has to answer
NEEDS = {
    "recipes": ("sentence_transformers", "bertopic", "datamapplot", "scanpy", "splink", "typer"),
    "report": ("plotly",),
}
PAGES = sorted({*DOCS.glob("*.md"), *(DOCS / "guide").glob("*.md")} - NEED_A_PERSON)


@pytest.fixture(scope="module")
def make_pages():
    spec = importlib.util.spec_from_file_location("make_pages", DOCS / "make_pages.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_pages"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_the_blocks_of_a_page_run(page, make_pages):
    for name in NEEDS.get(page.stem, ()):
        pytest.importorskip(name)
    figures = make_pages.run_page(page)
    shown = make_pages.PICTURE.findall(page.read_text("utf-8"))
    assert shown == [f"{page.stem}-{number}.png" for number in range(1, len(figures) + 1)]


def test_a_failing_block_names_its_line(tmp_path, make_pages):
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\na = 1\nb = a / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        make_pages.run_page(page)
    assert caught.traceback[-1].lineno == 4  # counted from 0


def test_the_guide_teaches_in_order():
    order = (DOCS / "guide" / "index.md").read_text("utf-8").split("```{toctree}")[1].split("```")[0].split()[2:]
    for page, following in pairwise(order):
        assert f"({following}.md)" in (DOCS / "guide" / f"{page}.md").read_text("utf-8").rsplit("Next:", 1)[-1]
