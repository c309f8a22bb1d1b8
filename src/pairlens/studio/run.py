"""Starting and ending a studio."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairlens._optional import require
from pairlens.studio.rows import Rows
from pairlens.studio.store import Event, Store, StoreError

__all__ = ["DEFAULT_PORT", "Studio", "open_store"]

DEFAULT_PORT = 8477
GRACE_SECONDS = 1
START_SECONDS = 30


def open_store(path: Path, rows: Rows, *, remap: bool = False) -> Store:
    """The store beside a table; StoreError if it belongs to another one.

    Parameters
    ----------
    path : path
    rows : Rows
    remap : bool, default=False
        Whether answers about another state of the table are taken over, by the ids of their rows.
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
    known = meta.get("table")
    if known is None:
        store.set_meta({"table": rows.fingerprint, "id_column": rows.id_column, "seed": secrets.randbelow(2**31)})
        return
    same_file = known.get("file") is not None and known.get("file") == rows.fingerprint.get("file")
    if same_file or known["content"] == rows.fingerprint["content"]:
        return
    was = (
        f"{known['rows']} rows, columns {', '.join(known['columns'][:4])}{' ...' if len(known['columns']) > 4 else ''}"
    )
    if not remap:
        raise StoreError(
            f"{store.path} holds the answers of another table or of another state of it ({was}); nothing was changed. "
            "Give that table, another file by --store, or, if rows have the same ids as before, --remap"
        )
    if rows.id_column is None or meta.get("id_column") is None:
        raise StoreError("--remap needs --id, now and when the answers were given: it finds rows by their ids")
    store.append(Event(secrets.token_hex(8), "remap", "", {"from": known, "to": rows.fingerprint}))
    store.set_meta({"table": rows.fingerprint, "id_column": rows.id_column})


@dataclass
class Studio:
    """A running studio.

    Attributes
    ----------
    urls : dict of str
        One link for each person; it works once.
    """

    urls: dict[str, str]
    _server: Any
    _session: Any
    _sockets: list[socket.socket]
    _thread: threading.Thread | None = None

    @classmethod
    def prepare(
        cls,
        rows: Rows,
        store: Store,
        *,
        question: str = "same",
        annotators: Sequence[str] = (),
        host: str = "127.0.0.1",
        port: int | None = None,
        token: str | None = None,
        ancestors: str = "'none'",
    ) -> Studio:
        """Bind the port and make the links; :meth:`serve` or :meth:`start` begins to answer."""
        require("starlette", extra="studio", purpose="the studio")
        require("uvicorn", extra="studio", purpose="the studio")
        import uvicorn

        from pairlens.studio.http import QuietServer
        from pairlens.studio.live import Hub
        from pairlens.studio.security import Access, Guard, allowed_hosts, is_loopback
        from pairlens.studio.server import build_app
        from pairlens.studio.session import Session
        from pairlens.studio.settings import Settings

        if not is_loopback(host) and token is None:
            raise ValueError(
                f"--host {host} would let other machines in: give a --token of your own of at least 16 characters too"
            )
        bound = _bind(host, port)
        number = bound.getsockname()[1]
        access = Access(number)
        people = list(dict.fromkeys(annotators)) or ["me"]
        tokens = {name: access.link(name, token if k == 0 else None) for k, name in enumerate(people)}
        hub = Hub()
        settings = Settings(question, seed=int(store.meta()["seed"]))
        session = Session(rows, store, settings, hub.publish)
        guarded = Guard(build_app(session, access, hub), access, allowed_hosts(host, number), ancestors)
        config = uvicorn.Config(
            guarded,
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=30,
        )
        shown = host if host not in ("0.0.0.0", "::") else socket.gethostname()
        shown = f"[{shown}]" if ":" in shown else shown
        urls = {name: f"http://{shown}:{number}/?token={secret}" for name, secret in tokens.items()}
        return cls(urls, QuietServer(config, hub.close), session, [bound])

    def serve(self) -> None:
        """Answer until Ctrl-C or SIGTERM; everything acknowledged is in the store."""
        try:
            with contextlib.suppress(KeyboardInterrupt):
                self._server.run(sockets=self._sockets)
        finally:
            self._session.close()

    def start(self) -> Studio:
        """Answer in a thread, as a notebook needs it."""
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

    def wait(self) -> None:
        """Wait until the rows are read and there are questions."""
        self._session.prepared.result()

    def call(self, function: Callable[[Any], Any]) -> Any:
        """The result of a function of the session, run in the session's thread."""
        return self._session.thread.submit(function, self._session).result()


def _bind(host: str, port: int | None) -> socket.socket:
    """A socket at the port asked for, at the usual one, or at a free one if that is taken."""
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
    raise ValueError(f"port {port or DEFAULT_PORT} of {host} cannot be used ({reason}): choose another by --port")
