"""The studio as a widget: its page in one script, and the kernel of the notebook in place of a server."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote
from weakref import WeakSet

import anywidget
import pandas as pd
import traitlets

from pairlens.cluster.assigned import COLUMNS
from pairlens.exceptions import InputError
from pairlens.studio.files import find_groups, fit_view
from pairlens.studio.replay import OVERLAP, StudioSettings
from pairlens.studio.rows import Rows
from pairlens.studio.run import open_store
from pairlens.studio.server import build_app
from pairlens.studio.session import Session

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from pairlens.supervision import Constraints, Preferences

ANNOTATOR = "me"
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)

SHOWN = {"html": "index.html", "css": "style.css"}

log = logging.getLogger("pairlens.studio")


def bundle(entry: str = "widget") -> str:
    """Return the modules of the page as one script for anywidget, whose `entry` has the function ``render``.

    Each module becomes a function inside a function that runs once for each widget: what modules remember, two widgets
    of one page do not share. Only the forms of ``import`` and ``export`` that the page uses are understood.
    """
    page = files("pairlens.studio").joinpath("page")
    parts: dict[str, str] = {}

    def take(name: str) -> None:
        text = page.joinpath(f"{name}.js").read_text(encoding="utf-8")
        for _, other in IMPORT.findall(text):
            if other not in parts:
                take(other)
        exports = ", ".join(EXPORT.findall(text))
        text = IMPORT.sub(lambda found: f"const {{{found[1].replace(' as ', ': ')}}} = ${found[2]};\n", text)
        text = EXPORT.sub("", text)
        unknown = re.search(r"^(?:import|export)\b.*", text, re.MULTILINE)
        if unknown is not None:
            raise ValueError(f"{name}.js has a statement that cannot be bundled: {unknown[0]}")
        parts[name] = f"const ${name} = (() => {{\n{text}\nreturn {{ {exports} }};\n}})();\n"

    take(entry)
    shown = {kind: page.joinpath(name).read_text(encoding="utf-8") for kind, name in SHOWN.items()}
    return (
        f"const files = {json.dumps(shown)};\nfunction studio() {{\n{''.join(parts.values())}return ${entry};\n}}\n"
        "export default { render: (context) => studio().render(context, files) };\n"
    )


class Desk:
    """A session and the widgets that show it; requests are handled in threads of their own."""

    _open: ClassVar[dict[Path, Desk]] = {}

    @classmethod
    def at(cls, rows: Rows, path: Path, question: str) -> Desk:
        """Return the desk of a store. A cell that is run again finds that of its last run, if it asks the same."""
        known = cls._open.get(path.resolve())
        if known is not None and known.asks(rows, question):
            return known
        if known is not None:
            known.close()
        return cls(rows, path, question)

    def __init__(self, rows: Rows, path: Path, question: str) -> None:
        settings = StudioSettings(question)
        store = open_store(path, rows)
        self.widgets: WeakSet[Widget] = WeakSet()
        meta = store.meta()
        settings = replace(settings, seed=int(meta["seed"]), overlap=float(meta.get("overlap", OVERLAP)))
        self.session = Session(rows, store, settings, self._tell)
        self._app = build_app(self.session)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="pairlens-widget", daemon=True).start()
        self._place = path.resolve()
        self._open[self._place] = self
        self.session.start()

    def asks(self, rows: Rows, question: str) -> bool:
        """Return whether this is about the same rows, shown and asked in the same way."""
        mine = self.session.rows
        return self.session.settings.question == question and all(
            getattr(mine, name) == getattr(rows, name) for name in ("fingerprint", "ids", "id_column", "features")
        )

    def close(self) -> None:
        """End the session and its processes; the answers stay in the store."""
        if self._open.get(self._place) is self:
            del self._open[self._place]
            self.session.close()
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _tell(self, topic: str, content: Mapping[str, Any]) -> None:
        for widget in list(self.widgets):
            widget.tell({"topic": topic, "content": dict(content)})

    def request(self, path: str, method: str, body: str) -> Future[tuple[int, str, bytes]]:
        """Return the status, the type and the content that a server would send."""
        content = body.encode(errors="replace")
        return asyncio.run_coroutine_threadsafe(self._request(path, method, content), self._loop)

    async def _request(self, path: str, method: str, body: bytes) -> tuple[int, str, bytes]:
        name, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(name),
            "query_string": query.encode(errors="replace"),
            "headers": [],
            "annotator": ANNOTATOR,
        }
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        try:
            await self._app(scope, receive, send)
        except Exception:
            log.exception("a request of the widget failed")
        head = next((message for message in sent if message["type"] == "http.response.start"), None)
        if head is None:
            return 500, "application/json", json.dumps({"error": "the request failed"}).encode()
        kind = dict(head["headers"]).get(b"content-type", b"").decode()
        return head["status"], kind, b"".join(message.get("body", b"") for message in sent)

    def call(self, function: Callable[[Session], Any]) -> Any:
        """Return the result of a function of the session, run in the session's thread, once there are questions."""
        self.session.prepared.result()
        return self.session.thread.submit(function, self.session).result()


class Widget(anywidget.AnyWidget):
    """The studio in the output of a cell; made by :func:`pairlens.widget`.

    The map and the groups are fitted in processes of their own, and requests are answered in threads: the kernel is
    free for other cells. While a cell runs, what is answered waits in the browser.

    Attributes
    ----------
    selected : list of int
        Positions of the rows that were drawn round last; `observe` it to follow.
    store : Path
        File that keeps the answers.
    """

    _esm = bundle()
    selected = traitlets.List(traitlets.Int()).tag(sync=True)
    height = traitlets.Int(720).tag(sync=True)

    def __init__(self, desk: Desk, table: Any, height: int) -> None:
        super().__init__(height=height)
        self._desk = desk
        self._table = table
        self._asked: set[str] = set()
        # Two threads send: that of the session, and that of the replies.
        self._sending = threading.Lock()
        self.store = desk.session.store.path
        self.on_msg(self._heard)
        desk.widgets.add(self)

    def _heard(self, _: Any, content: dict[str, Any], __: Any) -> None:
        if not content.get("ask"):
            self.tell({"reply": "", "open": sorted(self._asked)})
            return
        parts: list[Any] = [content.get(name) for name in ("ask", "path", "method", "body")]
        ask, *request = parts
        if not all(isinstance(part, str) for part in request):
            self.tell(
                {"reply": ask, "status": 400, "type": "application/json"}, [b'{"error": "this is not a request"}']
            )
            return
        self._asked.add(ask)
        self._desk.request(*request).add_done_callback(partial(self._reply, ask))

    def _reply(self, ask: str, done: Future[tuple[int, str, bytes]]) -> None:
        status, kind, content = done.result()
        self.tell({"reply": ask, "status": status, "type": kind}, [content])
        self._asked.discard(ask)

    def tell(self, content: dict[str, Any], buffers: list[bytes] | None = None) -> None:
        """Send a message to the page; may be called from any thread."""
        with self._sending:
            self.send(content, buffers)

    def constraints(self) -> Constraints:
        """Return what the answers so far say, with all that follows; wait until the rows are read."""
        return self._told("constraints")

    def preferences(self) -> Preferences:
        """Return the same for a widget with ``question="prefer"``."""
        return self._told("preferences")

    def _told(self, what: str) -> Any:
        asker = self._desk.call(lambda session: session.asker)
        if not hasattr(asker, what):
            other = "preferences" if what == "constraints" else "constraints"
            raise InputError(f"the answers of this widget are {other}", argument=what, remedy=f"Call {other}()")
        return self._desk.call(lambda _: getattr(asker, what)())

    def selection(self) -> Any:
        """Return the rows that were drawn round last, as a data frame."""
        rows = list(self.selected)
        return self._table.iloc[rows] if hasattr(self._table, "iloc") else self._table[rows]

    def groups(self) -> pd.DataFrame:
        """Return the group of every row: the columns "id", "group", "probability" and "known".

        "known" is "placed" where a person put the row in its group, "answered" where it is in an answer, else
        "inferred". There is no row before the first answer that makes a group.
        """
        known = self._desk.call(lambda session: session.snapshot())
        if known.constraints is None or not any(known.labels):
            return pd.DataFrame(columns=list(COLUMNS))
        found = find_groups(known)
        names = [found.names[group] for group in found.group]
        return pd.DataFrame(dict(zip(COLUMNS, (known.ids, names, found.probability, found.known))))

    def model(self) -> Pipeline:
        """Fit the view of all answers so far and return it, a pipeline that takes rows of the same table."""
        known = self._desk.call(lambda session: session.snapshot())
        pairs = known.constraints if known.constraints is not None else known.preferences
        if pairs is None or not pairs.n_pairs:
            raise InputError("there is no answer yet to learn from", argument="constraints", remedy="Answer first")
        return fit_view(known)[0]

    def close(self) -> None:
        """Remove the widget, and end its session if no other widget shows it; the answers stay in the store."""
        super().close()
        self._desk.widgets.discard(self)
        if not self._desk.widgets:
            self._desk.close()
