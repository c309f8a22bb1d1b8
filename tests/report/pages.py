"""Reading a page without a browser, and texts that would like to do harm."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_iris

from pairlens import Constraints
from pairlens.report import build_report

HOSTILE = [
    "<script>window.harmed = 1; alert(1)</script>",
    "</script><script>window.harmed = 2</script>",
    '<img src=x onerror="window.harmed = 3">',
    '"><svg onload=window.harmed=4>',
    "' onmouseover='window.harmed=5",
    "<!-- <script>",
    "]]>&lt;b&gt;&amp;&#60;",
    '<b>bold</b><br><a href="https://example.org">link</a>',
    "%{x} ${y} {{body}} {{data}}",
    "line\u2028paragraph\u2029end\r\nnew",
    "null\x00bell\x07lone\ud800surrogate",
    "\u202egnp.exe",
    "javascript:window.harmed=6",
    "x" * 5000,
]


class Page(HTMLParser):
    """The elements of a page, its texts, and the data its scripts read."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = text
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._inside: list[str] = []
        self.feed(text)
        self.close()
        self.data: dict[str, Any] = json.loads(self.scripts[1])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.texts.append(data)
        elif self._inside[-1] == "script":
            self.scripts.append(data)

    @property
    def words(self) -> str:
        """All that can be read, with single spaces."""
        return " ".join(" ".join(self.texts).split())

    def column(self, view: int, axis: int) -> NDArray[np.floating[Any]]:
        """The points of a view along an axis."""
        ((kind, text),) = self.data["views"][view]["columns"][axis].items()
        return unpacked(text, f"<{kind}")


def unpacked(text: str, kind: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


X, y = load_iris(return_X_y=True)
PAIRS = Constraints.from_labels(y, n_pairs=60, random_state=0)


def page(model: Any, rows: Any = X, **options: Any) -> Page:
    """The report of a model, read."""
    return Page(build_report(model, rows, **options))
