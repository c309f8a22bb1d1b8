"""The routes of the studio."""

from __future__ import annotations

import asyncio
import json
import math
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import asdict
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from pairlens.studio.overview import EXPORTS, export, list_answers, progress, ranking, review
from pairlens.studio.security import Access
from pairlens.studio.session import BadRequestError, Session
from pairlens.studio.store import StoreError, StoreFullError
from pairlens.studio.worker import WorkerError
from pairlens.tables.pictures import PictureError

TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
STUDY = "x-pairlens-study"
"""Names the rows and the store that a page was opened on; a script may leave it out."""
BEAT_SECONDS = 15.0
MOST_WAITING = 200
MOST_ID = 64
MOST_ROWS = 32
MOST_LISTED = 60
"""Entries of a list that are sent at once."""
MOST_FOUND = 5000
"""Rows that are shown as found on the map."""

Handler = Callable[[Request], Awaitable[Response]]


class Hub:
    """Hands what happens to all streams; one that does not keep up loses the oldest events, which are superseded."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queues: set[asyncio.Queue[str | None]] = set()
        self._closed = False

    def attach(self) -> None:
        """Say which loop the streams run in."""
        self._loop = asyncio.get_running_loop()

    def publish(self, topic: str, content: Mapping[str, Any]) -> None:
        """Tell all streams; may be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put, _event(topic, content))

    def _put(self, text: str | None) -> None:
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(text)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        self._put(None)

    async def stream(self, status: Callable[[], Awaitable[Mapping[str, Any]]]) -> AsyncIterator[str]:
        """Yield what one browser reads; a beat now and then shows both sides that the other is there.

        It begins with the status, found when the stream listens already: between the page that was loaded and its
        stream the first map may have been made, and nothing else would tell of it.
        """
        queue: asyncio.Queue[str | None] = asyncio.Queue(MOST_WAITING)
        self._queues.add(queue)
        try:
            yield "retry: 1000\n\n"
            yield _event("status", await status())
            while not self._closed:
                try:
                    text = await asyncio.wait_for(queue.get(), BEAT_SECONDS)
                except TimeoutError:
                    text = ": beat\n\n"
                if text is None:
                    return
                yield text
        finally:
            self._queues.discard(queue)


def _event(topic: str, content: Mapping[str, Any]) -> str:
    return f"event: {topic}\ndata: {json.dumps(dict(content))}\n\n"


def _review(session: Session, annotator: str, body: dict[str, Any]) -> bool:
    """Take the outcome of a second look: keep the answer, change it, or take it back."""
    event, target, outcome = _text(body, "id"), _text(body, "target"), _text(body, "outcome")
    if outcome == "keep":
        return session.keep(annotator, event, target)
    if outcome == "flip":
        return session.change(annotator, event, target, _text(body, "answer"), review=True)
    if outcome == "retract":
        return session.retract(annotator, event, target, review=True)
    raise BadRequestError("outcome must be keep, flip or retract")


def _choose(session: Session, annotator: str, body: dict[str, Any]) -> bool:
    """Take in what was done with rows on the map."""
    event, action, rows = _text(body, "id"), _text(body, "action"), _rows(body)
    group, other = (None if body.get(key) is None else _number(body, key) for key in ("group", "other"))
    name = _text(body, "name", 1000, empty=True) if "name" in body else ""
    return session.choose(annotator, event, action, rows, group, other, name)


CHANGES: dict[str, Callable[[Session, str, dict[str, Any]], Any]] = {
    "next": lambda session, who, body: None,
    "answer": lambda session, who, body: session.answer(
        who, _text(body, "id"), _dict(body, "question"), _text(body, "answer")
    ),
    "undo": lambda session, who, body: session.undo(who, _text(body, "id")),
    "change": lambda session, who, body: session.change(
        who, _text(body, "id"), _text(body, "target"), _text(body, "answer")
    ),
    "retract": lambda session, who, body: session.retract(who, _text(body, "id"), _text(body, "target")),
    "flag": lambda session, who, body: session.flag(
        who, _text(body, "id"), _text(body, "target"), body.get("flagged") is True
    ),
    "name": lambda session, who, body: session.name(
        who, _text(body, "id"), _number(body, "group"), _text(body, "name", 1000, empty=True)
    ),
    "review": _review,
    "choose": _choose,
}
"""What a person does, by the name of the route; the reply has the questions in hand, missing ones being leased."""

LISTS: dict[str, Callable[[Session, Request], Any]] = {
    "answers": lambda session, request: list_answers(
        session, _query(request, "find"), _query(request, "show"), *_span(request)
    ),
    "groups": lambda session, request: session.groups(),
    "progress": lambda session, request: progress(session),
    "ranking": lambda session, request: ranking(session, *_span(request), _query(request, "find")),
}
"""What is read from the session, by the name of the route."""


class Routes:
    """Routes of the page; what touches the session runs in its thread."""

    def __init__(self, session: Session) -> None:
        self.session = session
        # The rows as they are, and the store by the seed that it got at random.
        self.study = sha256(f"{session.rows.fingerprint['content']} {session.settings.seed}".encode()).hexdigest()

    def _route(self, path: str, act: Handler, method: str = "GET") -> Route:
        """Return a route that turns away a page of other rows or another store, at this address and with its cookie."""

        async def checked(request: Request) -> Response:
            meant = request.headers.get(STUDY) or request.query_params.get("study", self.study)
            if meant != self.study:
                raise BadRequestError("another studio runs at this address now", 410)
            return await act(request)

        return Route(f"/api/{path}", checked, methods=[method])

    async def _do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.session.thread, function, *arguments)

    def _change(self, act: Callable[[Session, str, dict[str, Any]], Any]) -> Handler:
        async def changed(request: Request) -> Response:
            annotator, body, session = request.scope["annotator"], await _json(request), self.session

            def work() -> dict[str, Any]:
                act(session, annotator, body)
                questions = session.questions(annotator) if session.ready else []
                return {"status": session.status(), "recent": session.recent(annotator), "questions": questions}

            return JSONResponse(await self._do(work))

        return changed

    def _list(self, read: Callable[[Session, Request], Any]) -> Handler:
        async def listed(request: Request) -> Response:
            return JSONResponse(await self._do(read, self.session, request))

        return listed

    async def state(self, request: Request) -> Response:
        """Send all that the page shows at its beginning, less the question."""
        return JSONResponse(await self._do(self._state, request.scope["annotator"]))

    def _state(self, annotator: str) -> dict[str, Any]:
        session = self.session
        return {
            "annotator": annotator,
            "table": session.rows.describe(),
            "store": session.store.path.name,
            "study": self.study,
            "question": session.settings.question,
            "status": session.status(),
            "recent": session.recent(annotator),
        }

    async def doubts(self, request: Request) -> Response:
        """Send what is worth a second look."""
        try:
            wrong = await asyncio.wrap_future(await self._do(self.session.judged))
        except WorkerError:
            wrong = {}
        return JSONResponse(await self._do(review, self.session, wrong))

    async def find(self, request: Request) -> Response:
        """Find the rows that contain a text."""
        text = _query(request, "text")
        found = await asyncio.to_thread(self.session.rows.find, text) if text else []
        return JSONResponse({"found": len(found), "rows": found[:MOST_FOUND]})

    async def column(self, request: Request) -> Response:
        """Return the values of a column, to colour the map by."""
        values = await asyncio.to_thread(self.session.rows.column, _query(request, "name"))
        if values is None:
            raise BadRequestError("there is no such column", 404)
        return JSONResponse(values)

    async def export(self, request: Request) -> Response:
        """Send a file to keep."""
        name = request.path_params["name"]
        if name not in EXPORTS:
            raise BadRequestError("there is no such file", 404)
        content = await self._do(export, self.session, name)
        if isinstance(content, Future):
            try:
                content = await asyncio.wrap_future(content)
            except WorkerError as error:
                raise BadRequestError(f"the file could not be made: {error}", 500) from None
        return Response(
            content, media_type=EXPORTS[name], headers={"content-disposition": f'attachment; filename="{name}"'}
        )

    async def rows(self, request: Request) -> Response:
        """Send some rows as they are shown."""
        numbers = _query(request, "rows").split(",")
        if len(numbers) > MOST_ROWS or not all(number.isdecimal() and len(number) < 12 for number in numbers):
            raise BadRequestError(f"rows must be up to {MOST_ROWS} row numbers, with commas between them")
        chosen = [int(number) for number in numbers]
        if max(chosen) >= self.session.rows.n_rows:
            raise BadRequestError("there is no such row", 404)
        return JSONResponse([self.session.rows.shown(row) for row in chosen])

    async def picture(self, request: Request) -> Response:
        """Send the picture of a row, as PNG."""
        pictures = self.session.rows.pictures
        if pictures is None:
            raise BadRequestError("the rows have no pictures", 404)
        try:
            content = await asyncio.to_thread(pictures.encoded, request.path_params["row"])
        except PictureError as error:
            raise BadRequestError(str(error), 404) from None
        return Response(content, media_type="image/png")

    async def map(self, request: Request) -> Response:
        """Send the places of all rows: length of the head, head as JSON, then 32-bit numbers."""
        state = self.session.map
        points = np.zeros((0, 2)) if state.points is None else state.points
        head = json.dumps({"version": state.version, "answers": state.n_answers, "n": len(points)}).encode()
        head += b" " * (-len(head) % 4)
        return Response(
            struct.pack("<I", len(head)) + head + points.astype("<f4").tobytes(), media_type="application/octet-stream"
        )

    async def islands(self, request: Request) -> Response:
        """Return where words stand on the map: those that tell the texts of an island from the others."""
        points, rows = self.session.map.points, self.session.rows

        def found() -> list[dict[str, Any]]:
            if points is None or rows.text_index is None or self.session.settings.question == "prefer":
                return []
            return [asdict(island) for island in rows.text_index.islands(points)]

        return JSONResponse(await asyncio.to_thread(found))

    async def certain(self, request: Request) -> Response:
        """Return the group of every row: its number in 16 bits, 0 for none, then how sure it is in 8 bits."""
        number, probability = await self._do(self.session.shown_groups)
        content = number.astype("<u2").tobytes() + np.round(255 * probability).astype("u1").tobytes()
        return Response(content, media_type="application/octet-stream")

    def routes(self) -> list[Route]:
        """Return all of them."""
        reads = (self.state, self.rows, self.map, self.islands, self.certain, self.find, self.column, self.doubts)
        return [
            *(self._route(read.__name__, read) for read in reads),
            *(self._route(name, self._list(read)) for name, read in LISTS.items()),
            *(self._route(name, self._change(act), "POST") for name, act in CHANGES.items()),
            self._route("picture/{row:int}", self.picture),
            self._route("export/{name}", self.export),
        ]


class ServedRoutes(Routes):
    """The same with what a server has beside them: the page, its stream, and links for people."""

    def __init__(self, session: Session, access: Access, hub: Hub) -> None:
        super().__init__(session)
        self.access = access
        self.hub = hub

    async def home(self, request: Request) -> Response:
        """Send the page; with a token, the cookie."""
        if request.scope["annotator"] is not None:
            return RedirectResponse("/", 303) if "token" in request.query_params else _asset("index.html")
        session = self.access.redeem(_query(request, "token")) if request.method == "GET" else None
        if session is None:
            return _asset("refused.html", 403)
        return RedirectResponse("/", 303, headers={"set-cookie": self.access.set_cookie(session)})

    async def asset(self, request: Request) -> Response:
        """Send a file of the page."""
        return _asset(request.path_params["name"])

    async def link(self, request: Request) -> Response:
        """Make a link for one more person, or for another browser of one."""
        annotator, body = request.scope["annotator"], await _json(request)
        name = _text(body, "name", 80).strip()
        await self._do(self.session.join, annotator, _text(body, "id"), name)
        return JSONResponse({"name": name, "url": f"http://{request.headers['host']}/?token={self.access.link(name)}"})

    async def events(self, request: Request) -> Response:
        """Send the stream of what happens."""
        stream = self.hub.stream(lambda: self._do(self.session.status))
        return StreamingResponse(stream, media_type="text/event-stream")

    def routes(self) -> list[Route]:
        """Return all of them."""
        own = (Route("/", self.home), Route("/page/{name}", self.asset))
        return [*own, *super().routes(), self._route("events", self.events), self._route("link", self.link, "POST")]


def build_app(session: Session, access: Access | None = None, hub: Hub | None = None) -> Starlette:
    """Return the application, not yet guarded (see :class:`~pairlens.studio.security.Guard`).

    Without `access` and `hub` it is that of a widget, which has no server: requests come as messages.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if hub is not None:
            hub.attach()
        session.start()
        yield

    routes = Routes(session) if access is None or hub is None else ServedRoutes(session, access, hub)
    return Starlette(
        routes=routes.routes(),
        exception_handlers={
            BadRequestError: _explained,
            StoreError: _explained,
            ValueError: _explained,
            404: _missing,
        },
        lifespan=lifespan,
    )


async def _explained(_: Request, error: Exception) -> Response:
    code = error.code if isinstance(error, BadRequestError) else 400
    if isinstance(error, StoreError):
        code = 507 if isinstance(error, StoreFullError) else 500
    return JSONResponse({"error": str(error)}, code)


async def _missing(*_: Any) -> Response:
    return JSONResponse({"error": "there is nothing here"}, 404)


def _asset(name: str, status: int = 200) -> Response:
    """Return a file of the page by its bare name."""
    resource = next((each for each in files("pairlens.studio").joinpath("page").iterdir() if each.name == name), None)
    kind = TYPES.get(PurePosixPath(name).suffix)
    if resource is None or kind is None:
        return JSONResponse({"error": "there is nothing here"}, 404)
    return Response(resource.read_bytes(), status, media_type=kind)


async def _json(request: Request) -> dict[str, Any]:
    """Return the body: an object of finite numbers and of texts that can be stored."""
    try:
        body = json.loads(await request.body(), parse_float=_finite, parse_constant=_finite)
        json.dumps(body, ensure_ascii=False).encode()
    except BadRequestError:
        raise
    except UnicodeEncodeError:
        raise BadRequestError("a text has half of a surrogate pair, which is not a character") from None
    except (ValueError, RecursionError):
        raise BadRequestError("the body is not JSON") from None
    if not isinstance(body, dict):
        raise BadRequestError("the body must be a JSON object")
    return body


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise BadRequestError(f"numbers must be finite, got {text[:40]}")
    return value


def _text(body: dict[str, Any], key: str, most: int = MOST_ID, empty: bool = False) -> str:
    value = body.get(key)
    if not isinstance(value, str) or len(value) > most or (not value and not empty):
        raise BadRequestError(f"{key} must be a text of 1 to {most} characters")
    return value


def _dict(body: dict[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key)
    if not isinstance(value, dict):
        raise BadRequestError(f"{key} must be an object")
    return value


def _rows(body: dict[str, Any]) -> list[int]:
    value = body.get("rows")
    if not isinstance(value, list) or not all(type(row) is int for row in value):
        raise BadRequestError("rows must be a list of row numbers")
    return value


def _query(request: Request, name: str) -> str:
    return str(request.query_params.get(name, ""))


def _span(request: Request) -> tuple[int, int]:
    """Return where a list is to begin, and how many entries are asked for."""
    numbers = [request.query_params.get(name, "0") for name in ("start", "most")]
    if not all(number.isdecimal() and len(number) < 12 for number in numbers):
        raise BadRequestError("start and most must be whole numbers")
    start, most = map(int, numbers)
    return start, min(most or MOST_LISTED, MOST_LISTED)


def _number(body: dict[str, Any], key: str) -> int:
    value = body.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadRequestError(f"{key} must be a whole number")
    return value
