"""A Sphinx extension: runs the guide for its pictures and writes a page for each method.

Both kinds of output are made when they are older than what they are made from, and are not kept in the repository.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import sklearn

HERE = Path(__file__).parent
GUIDE = HERE / "guide"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
BACKLINK = re.compile(r'<a class="viewcode-back" href="[^"#]*#([^"]+)">.*?</a>')
PICTURE = re.compile(r"!\[[^\]]*\]\(pictures/([a-z_]+-\d+\.png)\)")


def code_blocks(text: str) -> list[str]:
    """The Python blocks of a Markdown page, each after as many empty lines as stand before it on the page."""
    return ["\n" * text.count("\n", 0, found.start(1)) + found.group(1) for found in BLOCK.finditer(text)]


def run_page(page: Path) -> list[Any]:
    """Run the blocks of a page in order in one namespace and an empty folder; the figures that they draw."""
    plt.close("all")
    blocks = code_blocks(page.read_text("utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
        sklearn.config_context(),
    ):
        for block in blocks:
            exec(compile(block, os.fspath(page), "exec"), namespace)
    return [plt.figure(number) for number in plt.get_fignums()]


def draw_page(page: Path) -> None:
    """Write the pictures of a page of the guide, if they are older than the page."""
    targets = [GUIDE / "pictures" / name for name in PICTURE.findall(page.read_text("utf-8"))]
    if all(target.exists() and target.stat().st_mtime > page.stat().st_mtime for target in targets):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pages on noise and conflicts provoke them
        figures = run_page(page)
    if len(figures) != len(targets):
        raise RuntimeError(f"{page.name} draws {len(figures)} figures and shows {len(targets)} pictures")
    for target, figure in zip(targets, figures, strict=True):
        target.parent.mkdir(exist_ok=True)
        figure.savefig(target, dpi=110, metadata={"Software": None})
    plt.close("all")


def draw_guide(app: Any) -> None:
    """Write the pictures of all pages of the guide."""
    with ProcessPoolExecutor(app.parallel) as pool:
        list(pool.map(draw_page, sorted(GUIDE.glob("*.md"))))


def drop_lost_backlinks(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:  # noqa: ARG001
    """Drop links from source to documentation that name an object by a module under which it is not documented.

    viewcode assumes one public module for each source file; names here are public where users look for them.
    """
    if page.startswith("_modules/"):
        known = app.env.domains.python_domain.objects
        context["body"] = BACKLINK.sub(lambda found: found[0] if found[1] in known else "", context["body"])


def setup(app: Any) -> dict[str, Any]:
    from method_pages import write_method_pages

    app.connect("builder-inited", draw_guide)
    app.connect("builder-inited", write_method_pages, priority=100)
    app.connect("html-page-context", drop_lost_backlinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
