"""The built pages hang together: links, anchors and pictures exist, and nothing is fetched from elsewhere.

They are read from build/docs, where ``make docs`` puts them; without them there is nothing to test.
"""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parents[2] / "build" / "docs"
EXAMPLES = Path(__file__).parents[2] / "examples"
PAGES = sorted(SITE.rglob("*.html"))
needs_site = pytest.mark.skipif(not PAGES, reason="no pages in build/docs: run `make docs`")
LOADING = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "audio": "src", "video": "src"}


class Page(HTMLParser):
    """What a page links to, what it loads, and where one can link to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.anchors.update(filter(None, (known.get("id"), known.get("name"))))
        if tag == "a" and known.get("href"):
            self.links.append(known["href"])
        if tag in LOADING and known.get(LOADING[tag]) and known.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(known[LOADING[tag]])


@cache
def read(path: Path) -> Page:
    return Page(path.read_text("utf-8"))


def missing(page: Path, address: str) -> bool:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return False
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return True
    return bool(parts.fragment) and target.suffix == ".html" and unquote(parts.fragment) not in read(target).anchors


@needs_site
def test_every_internal_link_and_anchor_resolves():
    broken = [f"{page.relative_to(SITE)}: {a}" for page in PAGES for a in read(page).links if missing(page, a)]
    assert not broken


@needs_site
def test_every_picture_script_and_style_exists():
    broken = [f"{page.relative_to(SITE)}: {a}" for page in PAGES for a in read(page).loads if missing(page, a)]
    assert not broken


@needs_site
def test_pages_load_nothing_from_a_network():
    remote = [f"{page.relative_to(SITE)}: {a}" for page in PAGES for a in read(page).loads if urlsplit(a).netloc]
    assert not remote


@needs_site
def test_every_example_is_a_notebook_too():
    names = {path.stem for path in EXAMPLES.glob("plot_*.py")}
    assert names <= {path.stem for path in (SITE / "_downloads").rglob("*.ipynb")}


@pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not in this distribution")
def test_examples_are_short_and_numbered():
    examples = sorted(EXAMPLES.glob("plot_*.py"))
    assert [path.name[5:7] for path in examples] == [f"{number:02}" for number in range(1, len(examples) + 1)]
    assert all(len(path.read_text("utf-8").splitlines()) <= 60 for path in examples)


def test_the_parser_sees_what_is_broken(tmp_path):
    page = tmp_path / "a.html"
    page.write_text('<a href="b.html#there">x</a><a href="b.html#not">y</a><img src="c.png">')
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1>')
    assert [missing(page, address) for address in read(page).links] == [False, True]
    assert [missing(page, address) for address in read(page).loads] == [True]
