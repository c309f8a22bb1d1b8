"""Check the built pages: links, anchors, pictures and notebooks exist, nothing is loaded from a network, search works.

``make docs`` runs it after the build: ``python docs/check_site.py build/docs``.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

EXAMPLES = Path(__file__).parent.parent / "examples"
LOADING = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
NOT_LOADED = ("canonical", "next", "prev", "search", "index")
SEARCHED = {
    "text": "tables",
    "images": "tables",
    "missing values": "tables",
    "preferences": "guide/preferences",
    "noisy answers": "guide/noise",
    "large data": "guide/scaling",
}
"""What users search for, and the page whose heading it has to find."""


class Page(HTMLParser):
    """What a page links to, what it loads, and where one can link to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.anchors.update(filter(None, (known.get("id"), known.get("name"))))
        if tag == "a" and known.get("href"):
            self.links.append(known["href"] or "")
        if tag in LOADING and known.get(LOADING[tag]) and known.get("rel") not in NOT_LOADED:
            self.loads.append(known[LOADING[tag]] or "")


@cache
def read(path: Path) -> Page:
    return Page(path.read_text("utf-8"))


def missing(page: Path, address: str) -> bool:
    """Whether the file or the anchor of an internal address does not exist."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return False
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return True
    anchor = unquote(parts.fragment)
    return bool(anchor) and target.suffix == ".html" and anchor not in read(target).anchors


def problems(site: Path, examples: Path | None = None) -> list[str]:
    """Everything that is wrong with the pages below a folder, one line each."""
    found = []
    pages = [page for page in sorted(site.rglob("*.html")) if page.parent.name != "_static"]  # templates of the theme
    if not pages:
        return [f"no pages in {site}"]
    for page in pages:
        name = page.relative_to(site)
        content = read(page)
        found += [
            f"{name}: {address} does not exist" for address in content.links + content.loads if missing(page, address)
        ]
        found += [f"{name}: loads {address}" for address in content.loads if urlsplit(address).netloc]
    if examples is not None:
        notebooks = {path.stem for path in (site / "_downloads").rglob("*.ipynb")}
        found += [f"{path.name} is no notebook" for path in examples.glob("plot_*.py") if path.stem not in notebooks]
    return sorted(set(found))


def not_found(site: Path) -> list[str]:
    """Return what users search for in vain, one line each.

    The search of Sphinx puts a heading first that contains the words and is at most twice as long.
    """
    text = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    found = []
    for words, page in SEARCHED.items():
        headings = [title for title in index["alltitles"] if words in title.lower() and len(title) <= 2 * len(words)]
        pages = {index["docnames"][place[0]] for title in headings for place in index["alltitles"][title]}
        found += [] if page in pages else [f"searching for {words!r} does not find {page}"]
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]), EXAMPLES) + not_found(Path(sys.argv[1]))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    raise SystemExit(bool(wrong))
