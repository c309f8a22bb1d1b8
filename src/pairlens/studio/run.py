"""Starting and ending a studio."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pairlens._optional import require
from pairlens.exceptions import InputError
from pairlens.studio.replay import OVERLAP, History, StudioSettings
from pairlens.studio.rows import Rows
from pairlens.studio.store import Event, Store, StoreError

DEFAULT_PORT = 8477
GRACE_SECONDS = 1
START_SECONDS = 30


class OtherTableError(StoreError):
    """Report a store that holds the answers about another table, or another state of it."""


def open_store(path: Path, rows: Rows, *, remap: bool = False) -> Store:
    """Open the store beside a table; OtherTableError if it belongs to another one.

    With `remap`, answers about another state of the table are taken over, by the ids of their rows.
    """
    store = Store(path)
    try:
        _claim(store, rows, remap)
    except BaseException:
        store.close()
        raise
    return store


def _claim(store: Store, rows: Rows, remap: bool) -> None:
    meta = store.meta()
    missing = [name for name in ("table", "id_column", "seed") if name not in meta]
    if len(missing) == 3 and not any(store.events()):
        store.set_meta({"table": rows.fingerprint, "id_column": rows.id_column, "seed": _seed()})
        return
    if missing and not remap:
        raise OtherTableError(
            f"{store.path} is damaged: what it says about {' and '.join(missing)} does not match its digest; nothing "
            "was changed",
            argument="remap",
            remedy="If its answers are about this table, remap= finds their rows by the same ids= as before",
        )
    known = meta.get("table")
    same = known is not None and (
        known["content"] == rows.fingerprint["content"] or known.get("file", "") == rows.fingerprint.get("file")
    )
    if known is not None and not same and not remap:
        columns = f"{', '.join(known['columns'][:4])}{' ...' if len(known['columns']) > 4 else ''}"
        raise OtherTableError(
            f"{store.path} holds the answers of another table or of another state of it ({known['rows']} rows, columns "
            f"{columns}); nothing was changed",
            store.path,
            remedy="Give that table, another file by store=, or, if rows have the same ids as before, remap=",
        )
    named = meta.get("id_column", rows.id_column)
    if named != rows.id_column:
        was, now = ("without ids=", "no ids=") if named is None else (f"with ids={named!r}", f"ids={named!r}")
        raise OtherTableError(
            f"{store.path} was made {was}, and finds the rows of its answers by that; nothing was changed",
            argument="ids",
            value=rows.id_column,
            remedy=f"Give {now} now too, or another file by store=",
        )
    if same and not missing:
        return
    if named is None:
        raise OtherTableError(
            f"remap= finds rows by their ids, and {store.path} was made without ids=", argument="remap", value=remap
        )
    history = History.of(store.events())
    if history.answers and not history.about(rows.ids).answers:
        raise OtherTableError(
            f"{rows.source} has none of the rows that the {len(history.answers)} answers of {store.path} are about, by "
            f"the column {named}; nothing was changed",
            store.path,
            remedy="Give a table with these rows, or another file by store=",
        )
    store.append(Event(secrets.token_hex(8), "remap", "", {"from": known, "to": rows.fingerprint}))
    store.set_meta({"table": rows.fingerprint, "id_column": named, "seed": meta.get("seed", _seed())})


def _seed() -> int:
    """Return what chooses the questions of a new store."""
    return secrets.randbelow(2**31)


@dataclass
class Studio:
    """A running studio: its links by person, and what of the store is `left_out` and why."""

    urls: dict[str, str]
    left_out: str
    _server: Any
    _session: Any
    _sockets: list[socket.socket]
    _links: Path | None = None
    _thread: threading.Thread | None = None

    @classmethod
    def prepare(
        cls,
        rows: Rows,
        store: Store,
        *,
        question: str = "auto",
        annotators: Sequence[str] = (),
        host: str = "127.0.0.1",
        port: int | None = None,
        token: str | None = None,
    ) -> Studio:
        """Bind the port and make the links; :meth:`serve` or :meth:`start` begins to answer."""
        require("starlette", extra="studio", purpose="the studio")
        require("uvicorn", extra="studio", purpose="the studio")
        import uvicorn

        from pairlens._endpoint import is_loopback
        from pairlens.studio.http import QuietServer, limits
        from pairlens.studio.security import Access, Guard, allowed_hosts
        from pairlens.studio.server import Hub, build_app
        from pairlens.studio.session import Session

        if not is_loopback(host) and token is None:
            raise InputError(
                f"host={host!r} would let other machines in",
                argument="token",
                remedy="Give a token= of your own of at least 16 characters too",
            )
        bound = _bind(host, port)
        number = bound.getsockname()[1]
        local = is_loopback(host)
        access = Access(number, reusable=local)
        people = list(dict.fromkeys(annotators)) or ["me"]
        tokens = {name: access.link(name, token if k == 0 else None) for k, name in enumerate(people)}
        hub = Hub()
        meta = store.meta()
        settings = StudioSettings(question, seed=int(meta["seed"]), overlap=float(meta.get("overlap", OVERLAP)))
        session = Session(rows, store, settings, hub.publish)
        guarded = Guard(build_app(session, access, hub), access, allowed_hosts(host, number))
        config = uvicorn.Config(
            guarded,
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            **limits(),
        )
        shown = host if host not in ("0.0.0.0", "::") else socket.gethostname()
        shown = f"[{shown}]" if ":" in shown else shown
        urls = {name: f"http://{shown}:{number}/?token={quote(secret, safe='')}" for name, secret in tokens.items()}
        server = QuietServer(config, hub.close)
        return cls(urls, session.history.told(), server, session, [bound], links_file(store.path) if local else None)

    def serve(self) -> None:
        """Answer until Ctrl-C or SIGTERM; everything acknowledged is in the store."""
        try:
            if self._links is not None:
                _keep_links(self._links, self.urls)
            with contextlib.suppress(KeyboardInterrupt):
                self._server.run(sockets=self._sockets)
        finally:
            self._session.close()
            if self._links is not None:
                self._links.unlink(missing_ok=True)

    def start(self) -> Studio:
        """Answer in a thread."""
        self._thread = threading.Thread(target=self.serve, name="pairlens-studio", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """End a studio that :meth:`start` began."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()

    def call(self, function: Callable[[Any], Any]) -> Any:
        """Return the result of a function of the session, run in the session's thread."""
        return self._session.thread.submit(function, self._session).result()


def links_file(store: Path) -> Path:
    """Return the name of the file that keeps the links of a studio while it runs."""
    return store.with_name(f"{store.name}-links")


def _keep_links(path: Path, urls: Mapping[str, str]) -> None:
    """Write links for :func:`running_links`; only their owner can read them."""
    # Without the file, the links are those that were printed.
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            json.dump(dict(urls), file)


def running_links(store: Path) -> dict[str, str]:
    """Return the links of the studio that runs on a store; InputError if none does."""
    try:
        urls = json.loads(links_file(store).read_text(encoding="utf-8"))
        where = urlsplit(next(iter(urls.values())))
        socket.create_connection((str(where.hostname), where.port or 0), timeout=2).close()
    except (OSError, ValueError):
        raise InputError(
            f"no studio of this machine has {store} open", argument="store", value=store, remedy="Start one first"
        ) from None
    return {str(name): str(url) for name, url in urls.items()}


def _bind(host: str, port: int | None) -> socket.socket:
    """Return a socket at the port asked for, at the usual one, or at a free one if that is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in [port] if port is not None else [DEFAULT_PORT, 0]:
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host.strip("[]"), number or 0))
            bound.listen(128)
            return bound
        except OSError as error:
            bound.close()
            reason = error.strerror
    raise InputError(
        f"port {port or DEFAULT_PORT} of {host} cannot be used ({reason})",
        argument="port",
        value=port,
        remedy="Choose another by port=",
    )
