"""The widget in real notebooks: JupyterLab and marimo in headless Chromium, each with a kernel of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.studio.browser import PATIENCE
from tests.studio.test_page import TOOLS

pytest.importorskip("anywidget", reason="the widget needs anywidget: pip install 'pairlens[notebook]'")

pytestmark = [pytest.mark.slow, pytest.mark.processes]

TOKEN = "token-of-the-tests"
DIGITS = """\
import pairlens
from sklearn.datasets import load_digits
digits = pairlens.widget(load_digits().data[:200], image_shape=(8, 8), question="same")
digits"""
TEXTS = """\
import inspect, math, os, statistics
import pandas
known = [(f"{m.__name__}.{n}", inspect.getdoc(getattr(m, n))) for m in (math, os, statistics, str) for n in dir(m)
         if not n.startswith("_") and callable(getattr(m, n))]
frame = pandas.DataFrame(known, columns=["name", "says"]).drop_duplicates("says").head(120)
texts = pairlens.widget(frame, ids="name", question="same")
texts"""
TOLD = """\
import json
print("told", json.dumps([digits.constraints().n_pairs, len(digits.selection()), list(digits.groups()),
                          texts.constraints().n_pairs, type(texts.selection()).__name__]), "end")"""
MARIMO = """\
import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import pairlens
    from sklearn.datasets import load_iris

    widget = pairlens.widget(load_iris(as_frame=True).data, question="same")
    widget
    return


if __name__ == "__main__":
    app.run()
"""


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextlib.contextmanager
def serving(folder: Path, port: int, command: list[str]) -> Iterator[str]:
    """A notebook server on loopback, with its settings in a folder of its own; it ends with its kernels."""
    places = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    own = {f"JUPYTER_{name}": str(folder / ".jupyter" / name) for name in places}
    own |= {f"JUPYTERLAB_{name}_DIR": str(folder / ".jupyter" / name) for name in ("SETTINGS", "WORKSPACES")}
    own |= {"IPYTHONDIR": str(folder / ".ipython"), "XDG_CONFIG_HOME": str(folder / ".config")}
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *command],
            env={**os.environ, **own},
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    base = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + PATIENCE / 1000
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{base}/?token={TOKEN}", timeout=5).close()
                break
            assert server.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < deadline, (folder / "server.log").read_text()
            time.sleep(0.1)
        yield base
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    pytest.importorskip("jupyterlab", reason="no JupyterLab: pip install jupyterlab")
    folder, port = tmp_path_factory.mktemp("lab"), free_port()
    options = {
        "ServerApp.root_dir": folder,
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "ServerApp.terminals_enabled": False,
        "IdentityProvider.token": TOKEN,
        "LabApp.expose_app_in_browser": True,
        "LabApp.extension_manager": "readonly",
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
    }
    # It asks whether it may fetch news.
    for place in ("JUPYTER_CONFIG_DIR", "CONFIG_DIR"):
        disabled = folder / ".jupyter" / place / "labconfig" / "page_config.json"
        disabled.parent.mkdir(parents=True)
        disabled.write_text(json.dumps({"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}))
    with serving(folder, port, ["jupyterlab", *(f"--{name}={value}" for name, value in options.items())]) as base:
        yield base, folder


@dataclass
class Notebook:
    """A notebook in a browser, and what went wrong there or left it."""

    page: Any
    base: str
    troubles: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    @classmethod
    def visit(cls, browser: Any, base: str, **options: Any) -> Notebook:
        context = browser.new_context(viewport={"width": 1280, "height": 1000}, **options)
        context.set_default_timeout(PATIENCE)
        seen = cls(context.new_page(), base)
        seen.page.on("pageerror", lambda error: seen.troubles.append(str(error)))
        seen.page.on("request", lambda request: seen._request(request.url))
        seen.page.on("websocket", lambda line: seen._request(line.url.replace("ws:", "http:", 1)))
        return seen

    def _request(self, url: str) -> None:
        if not url.startswith((f"{self.base}/", f"blob:{self.base}/", "data:")):
            self.foreign.append(url)

    def ready(self) -> None:
        """Wait until the notebook has its kernel."""
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        self.page.evaluate("async () => jupyterapp.shell.currentWidget.context.ready")
        self.page.evaluate("async () => jupyterapp.shell.currentWidget.sessionContext.ready")

    def command(self, name: str, *, wait: bool = True, **given: Any) -> None:
        """Do what a menu of JupyterLab does, and wait until it is done, as for the cells that it runs."""
        script = (
            "([name, given, wait]) => { const done = jupyterapp.commands.execute(name, given); if (wait) return done; }"
        )
        self.page.evaluate(f"async (given) => {{ await ({script})(given); }}", [name, given, wait])

    def activate(self, number: int) -> None:
        self.page.evaluate("(k) => { jupyterapp.shell.currentWidget.content.activeCellIndex = k; }", number)

    def widget(self, number: int) -> Shown:
        return Shown(self.page, self.page.locator("[data-lm-suppress-shortcuts]").nth(number))


@dataclass
class Shown:
    """One widget of a notebook."""

    page: Any
    host: Any

    def find(self, selector: str) -> Any:
        return self.host.locator(selector)

    def wait(self, test: str, argument: Any = None) -> None:
        """Wait until a function of its shadow root is true."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not self.host.evaluate(f"(host, given) => ({test})(host.shadowRoot, given)", argument):
            assert time.monotonic() < deadline, f"{test}: {self.find('.screen').inner_text()}"
            self.page.wait_for_timeout(20)

    @property
    def question(self) -> str:
        return str(self.find("[data-testid=question]").get_attribute("data-question"))

    def next(self, act: Callable[[], Any]) -> None:
        """Answer, and wait for the next question; one that is not yet 250 ms old takes no key."""
        self.page.wait_for_timeout(270)
        old = self.question
        act()
        test = "(root, old) => { const id = root.querySelector('[data-testid=question]').dataset.question;"
        self.wait(f"{test} return id !== undefined && id !== old; }}", old)

    def press(self, key: str) -> None:
        self.next(lambda: self.page.keyboard.press(key))

    def click(self, answer: str) -> None:
        self.next(lambda: self.find(f"#question [data-answer={answer}]").click())

    def counts(self, number: int) -> None:
        self.wait("(root, n) => root.getElementById('count').textContent === String(n)", number)

    def listen(self) -> None:
        """Keep what is said from now on. Words that come more than a moment apart are said one after the other."""
        self.host.evaluate(
            """(host) => {
              const said = host.shadowRoot.getElementById("said");
              host.heard = [];
              new MutationObserver(() => host.heard.push(said.textContent)).observe(said, { childList: true });
            }"""
        )

    def hear(self, words: str) -> None:
        """Wait until it has been said."""
        deadline = time.monotonic() + PATIENCE / 1000
        while words not in (heard := " ".join(self.host.evaluate("(host) => host.heard"))):
            assert time.monotonic() < deadline, f"{words!r} was not said, but: {heard}"
            self.page.wait_for_timeout(20)

    def background(self) -> list[int]:
        style = self.find(".ask").evaluate("(element) => getComputedStyle(element).backgroundColor")
        return [int(part) for part in re.findall(r"\d+", style)]

    def faults(self) -> list[str]:
        """What keeps those from it who do not see or use a mouse."""
        script = TOOLS / "axe-core" / "axe.min.js"
        if not script.exists():
            pytest.skip("no axe-core: npm install --no-save --no-package-lock --prefix build/node axe-core")
        self.page.add_script_tag(path=str(script))
        found = self.host.evaluate("async (host) => (await axe.run(host)).violations")
        return [
            f"{each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in ("serious", "critical")
        ]

    def lasso(self) -> int:
        """Draw round most of the map; return how many rows the dialog speaks of."""
        self.find(".map-tools >> text=Select").click()
        box = self.find(".points").bounding_box()
        corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)]
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
        self.page.mouse.move(*places[0])
        self.page.mouse.down()
        for place in places[1:]:
            self.page.mouse.move(*place, steps=4)
        self.page.mouse.up()
        return int(self.find("dialog h2").inner_text().split()[0])


def write_notebook(path: Path, *sources: str) -> None:
    cells = [
        {"cell_type": "code", "id": f"c{k}", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
        for k, source in enumerate(sources)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(book), encoding="utf-8")


def test_digits_and_texts_in_jupyterlab(lab, browser):
    base, folder = lab
    write_notebook(folder / "answers.ipynb", DIGITS, TEXTS, TOLD)
    seen = Notebook.visit(browser, base)
    page = seen.page
    page.goto(f"{base}/doc/tree/answers.ipynb?token={TOKEN}")
    seen.ready()
    # The first two cells; what is told comes later.
    for _ in range(2):
        seen.command("notebook:run-cell-and-select-next")
    digits, texts = seen.widget(0), seen.widget(1)
    for each in (digits, texts):
        each.wait("(root) => root.querySelector('[data-testid=question]').dataset.question")
    assert digits.find("canvas.pixels").count() >= 2
    assert texts.find("#question .text").count() == 2

    # Keys count where the focus is, and not as shortcuts of the notebook: "d d" would remove the cell, "r" make it raw.
    digits.listen()
    digits.find("#question h2").click()
    for key in ("d", "d", "s", "d", " ", "d", "s", "d", "d", "d"):
        digits.press(key)
    for answer in ("same", "different") * 5:
        digits.click(answer)
    digits.counts(20)
    digits.hear("Answer: different.")
    digits.hear("Same or different?")
    assert texts.find("#count").inner_text() == "0"
    texts.find("[data-answer=different]").focus()
    texts.press("Enter")
    texts.press("d")
    texts.counts(2)
    digits.counts(20)
    assert page.locator(".jp-CodeCell").count() == 3

    # Undo, by its key.
    digits.find("#question h2").click()
    page.keyboard.press("Backspace")
    digits.counts(19)

    # What is drawn round on the map is selected in Python, and named as a group, and undone as a whole.
    digits.wait("(root) => +root.querySelector('[data-testid=map]').dataset.points === 200")
    digits.find(".points").scroll_into_view_if_needed()
    n_selected = digits.lasso()
    assert n_selected > 150
    digits.find("[data-group-called]").fill("all of them")
    digits.find("[data-one-group]").click()
    digits.find(".legend").get_by_text("all of them").wait_for()
    seen.activate(2)
    seen.command("notebook:run-cell")
    words = re.compile(r"told (.*) end")
    told = json.loads(words.search(page.locator(".jp-OutputArea").nth(2).get_by_text(words).inner_text())[1])
    assert told[0] >= n_selected - 1
    assert told[1] == n_selected
    # A question may come back with its sides swapped: two answers are one pair or two.
    assert told[2:] in [[["id", "group", "probability", "known"], n_pairs, "DataFrame"] for n_pairs in (1, 2)]
    digits.find("[data-undo]").click()
    digits.counts(19)

    # The theme is that of the notebook, with no wish of the system.
    assert min(digits.background()) > 200
    assert digits.faults() == []
    seen.command("apputils:change-theme", theme="JupyterLab Dark")
    digits.wait("(root) => root.host.style.colorScheme === 'dark'")
    assert max(digits.background()) < 60
    assert max(texts.background()) < 60
    assert texts.faults() == []

    # A kernel that was restarted knows all when the cells are run again.
    seen.activate(2)
    before = texts.host.element_handle()
    seen.command("notebook:restart-and-run-to-selected", wait=False)
    page.click(".jp-Dialog button.jp-mod-accept")
    page.wait_for_function("(old) => !old.isConnected", arg=before)
    for each, number in ((digits, 19), (texts, 2)):
        each.wait("(root) => root.querySelector('[data-testid=question]').dataset.question")
        each.counts(number)
    digits.find("#question h2").click()
    digits.press("s")
    digits.counts(20)
    page.context.close()
    assert seen.troubles == []
    assert seen.foreign == []


def test_marimo_draws_it(tmp_path, browser):
    pytest.importorskip("marimo", reason="no marimo: pip install marimo")
    (tmp_path / "answers.py").write_text(MARIMO, encoding="utf-8")
    port = free_port()
    options = ["--headless", "--host", "127.0.0.1", "--port", str(port), "--token-password", TOKEN]
    with serving(tmp_path, port, ["marimo", "-q", "run", "answers.py", *options]) as base:
        seen = Notebook.visit(browser, base)
        seen.page.goto(f"{base}/?access_token={TOKEN}")
        seen.page.wait_for_selector("[data-testid=question][data-question]")
        shown = seen.widget(0)
        shown.wait("(root) => +root.querySelector('[data-testid=map]').dataset.points === 150")
        shown.find("#question h2").click()
        shown.press("s")
        shown.counts(1)
        seen.page.context.close()
        assert seen.troubles == []
        assert seen.foreign == []
