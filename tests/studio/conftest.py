"""Small tables, and studios on them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import httpx
import numpy as np
import pytest

from tests.browser import launch
from tests.studio.browser import Visit
from tests.studio.children import Nursery

pytest.importorskip("starlette", reason="the studio needs starlette: pip install 'pairlens[studio]'")
pytest.importorskip("uvicorn", reason="the studio needs uvicorn: pip install 'pairlens[studio]'")

CHANGE = {"content-type": "application/json", "x-pairlens": "1"}
PATIENCE = 60
T = TypeVar("T")


def until(look: Callable[[], T], holds: Callable[[T], object] = bool) -> T:
    """Return the first of what is seen for which it holds, which may take a while on a busy machine."""
    deadline = time.monotonic() + PATIENCE
    while not holds(seen := look()):
        assert time.monotonic() < deadline, f"did not come: {seen!r} is the last that was seen"
        time.sleep(0.01)
    return seen


def write_table(path: Path, n_rows: int = 90, seed: int = 0, extra: dict[str, list[str]] | None = None) -> list[int]:
    """Three clear groups with names and four numbers; returns the group of each row."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n_rows) % 3
    rows = np.round(rng.standard_normal((n_rows, 4)) + 6 * np.eye(4)[groups], 3)
    columns = ["name", "a", "b", "c", "d", *(extra or {})]
    lines = [",".join(columns)]
    for k, row in enumerate(rows.tolist()):
        more = [f'"{column[k]}"' for column in (extra or {}).values()]
        lines.append(",".join([f"row-{k}", *map(str, row), *more]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return groups.tolist()


@dataclass
class Person:
    """Somebody who talks to the studio without a browser."""

    base: str
    client: httpx.Client
    number: int = 0

    @classmethod
    def enter(cls, url: str) -> Person:
        base = url.partition("/?")[0]
        client = httpx.Client(base_url=base, timeout=PATIENCE, headers={"origin": base})
        assert client.get(url).status_code == 303
        return cls(base, client)

    def post(self, route: str, body: dict[str, Any] | None = None, **options: Any) -> httpx.Response:
        return self.client.post(f"/api/{route}", json=body or {}, headers={**CHANGE, **options.pop("headers", {})})

    def get(self, route: str) -> Any:
        reply = self.client.get(f"/api/{route}")
        assert reply.status_code == 200, reply.text
        return reply.json()

    def event(self) -> str:
        self.number += 1
        return f"{id(self):x}-{self.number}-{time.monotonic_ns():x}"

    def question(self) -> dict[str, Any]:
        """The question on the screen, as soon as there is one."""
        return dict(until(lambda: self.post("next").json()["questions"])[0])

    def answer(self, answer: str | Callable[[dict[str, Any]], str], event: str | None = None) -> httpx.Response:
        question = self.question()
        chosen = answer if isinstance(answer, str) else answer(question)
        body = {"id": event or self.event(), "question": question["raw"], "answer": chosen}
        return self.post("answer", body)

    @property
    def count(self) -> int:
        return int(self.get("state")["status"]["answers"])


@dataclass
class Disk:
    """A folder on a small disk of its own where this process may mount one, else with limits that act like one."""

    folder: Path
    mounted: bool

    @contextmanager
    def full(self) -> Iterator[None]:
        """No space is left."""
        if not self.mounted:
            with self.limited():
                yield
            return
        filler = self.folder / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        yield
        filler.unlink()

    @contextmanager
    def limited(self) -> Iterator[None]:
        """No file may grow beyond the largest that is there."""
        resource = pytest.importorskip("resource")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        largest = max(file.stat().st_size for file in self.folder.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
        yield
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Nothing can be written."""
        if self.mounted:
            _mount("-o", "remount,ro", str(self.folder))
            yield
            _mount("-o", "remount,rw", str(self.folder))
        elif os.geteuid():
            files = [self.folder, *self.folder.iterdir()]
            for file in files:
                file.chmod(0o555)
            yield
            for file in files:
                file.chmod(0o755)
        else:  # permissions do not hold for root
            with patch("os.open", side_effect=OSError(errno.EROFS, "Read-only file system")):
                yield


def _mount(*arguments: str) -> bool:
    try:
        return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = sys.platform == "linux" and _mount("-t", "tmpfs", "-o", "size=512k", "none", str(folder))
    yield Disk(folder, mounted)
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "things.csv"
    write_table(path)
    return path


def truth(question: dict[str, Any]) -> str:
    """The right answer on the tables of :func:`write_table`."""
    i, *others = (row["row"] % 3 for row in question["rows"])
    if question["kind"] == "place":
        return next((str(k + 1) for k, j in enumerate(others) if j == i), "none")
    return "same" if i == others[0] else "different"


@pytest.fixture(scope="session")
def quick_children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Studios of this process get children that have imported everything."""
    if sys.platform != "linux":  # elsewhere a fork of libraries with threads is not safe
        yield
        return
    nursery = Nursery(tmp_path_factory.mktemp("nursery"))
    with patch("pairlens.studio.worker.start_child", nursery.child):
        yield
    nursery.close()


def _studios(quick_children: None) -> Iterator[Callable[..., Any]]:
    """Starts studios in this process, and ends them."""
    from pairlens.studio.rows import rows_from_file
    from pairlens.studio.run import Studio, open_store

    running: list[Studio] = []

    def start(path: Path, *, store: Path | None = None, remap: bool = False, **options: Any) -> Studio:
        options.setdefault("question", "same")
        shown = {
            name: options.pop(name) for name in ("drop", "show", "image", "text", "files", "rows") if name in options
        }
        rows = rows_from_file(path, ids=options.pop("ids", "name"), **shown)
        # The seed of a new store, so that the same questions come each time.
        with patch("pairlens.studio.run.secrets.randbelow", return_value=len(running)):
            kept = open_store(store or path.with_name(f"{path.stem}.answers.db"), rows, remap=remap)
        running.append(Studio.prepare(rows, kept, port=0, **options).start())
        return running[-1]

    yield start
    for each in running:
        each.stop()


studio = pytest.fixture(_studios)
# A start takes seconds, so tests that leave a studio as they find it share one.
shared_studio = pytest.fixture(_studios, scope="module")


@pytest.fixture(scope="module")
def playwright() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    with api.sync_playwright() as instance:
        yield instance


@pytest.fixture(scope="module")
def browser(playwright: Any) -> Iterator[Any]:
    instance = launch(playwright)
    yield instance
    instance.close()


@pytest.fixture
def enter(browser: Any) -> Iterator[Callable[..., Visit]]:
    visits: list[Visit] = []

    def start(url: str, **options: Any) -> Visit:
        visits.append(Visit.enter(browser, url, **options))
        return visits[-1]

    yield start
    for visit in visits:
        visit.leave()


def link(studio: Any, name: str | None = None) -> str:
    return str(studio.urls[name] if name else next(iter(studio.urls.values())))


@dataclass
class Process:
    """``pairlens studio`` as a person starts it."""

    command: list[str]
    child: subprocess.Popen[str] | None = None
    urls: list[str] = field(default_factory=list)

    def start(self) -> Process:
        self.child = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        assert self.child.stdout is not None
        self.urls = []
        for line in self.child.stdout:
            if line.startswith("studio: "):
                self.urls.append(line.split()[1])
            elif self.urls:
                break
        assert self.urls, f"the studio did not start (code {self.child.wait()})"
        return self

    def end(self, number: int = signal.SIGKILL) -> int:
        assert self.child is not None
        if self.child.poll() is None:
            os.kill(self.child.pid, number)
        return self.child.wait(timeout=30)


@pytest.fixture
def process() -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(path: Path, *options: str) -> Process:
        code = "import sys; from pairlens.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", code, "studio", str(path), "--id", "name", "--no-browser", *options]
        started.append(Process(command).start())
        return started[-1]

    yield start
    for each in started:
        each.end()
