"""uvicorn's server, ended as a studio has to end, and connections that cannot keep people out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 20.0
"""Time in which a request has to arrive, with its body."""
MOST_STRANGERS = 64
"""Connections of nobody who was let in; of more, the oldest is closed."""
MOST_HEAD_BYTES = 256 * 1024
"""Length of the head of a request, with the cookies of all programs on this host."""
TELL_SECONDS = 60.0
"""Pause between two lines of the log about connections that could not be accepted."""

log = logging.getLogger("pairlens.studio")


def limits() -> dict[str, Any]:
    """Return the settings of ``uvicorn.Config`` that limit what connections may take."""
    return {
        "http": LimitedProtocol,
        "ws": "none",
        # asyncio accepts as many connections at a time before it reads from any of them.
        "backlog": MOST_STRANGERS,
        "h11_max_incomplete_event_size": MOST_HEAD_BYTES,
        "timeout_keep_alive": 30,
    }


class LimitedProtocol(H11Protocol):
    """A connection that is closed if a request does not arrive in time, or if too many strangers are connected.

    Without this, a request that is half sent keeps its connection for ever, and with it a file of the process, which
    may have as few as 256. A connection is a stranger's until a request on it has shown a valid cookie:
    :class:`~pairlens.studio.security.Guard` then names the annotator in its scope.
    """

    _late: asyncio.TimerHandle | None = None
    _let_in = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, and close the oldest connection of a stranger if there are too many."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._expect()
        strangers = [each for each in self.connections if isinstance(each, LimitedProtocol) and each.is_stranger]
        if len(strangers) > MOST_STRANGERS:
            min(strangers, key=lambda each: each._since).transport.abort()

    @property
    def is_stranger(self) -> bool:
        """Return whether this is an open connection of nobody who was let in."""
        return not (self._let_in or self._shows_annotator()) and not self.transport.is_closing()

    def _shows_annotator(self) -> bool:
        return self.scope is not None and self.scope.get("annotator") is not None

    def handle_events(self) -> None:
        """Handle what has come, and wait for the rest of a request that is not whole."""
        # A new request replaces the scope, and its cookie is checked later. Who was let in before stays so.
        self._let_in = self._let_in or self._shows_annotator()
        super().handle_events()
        theirs = self.conn.their_state
        if theirs is h11.SEND_BODY or (theirs is h11.IDLE and self.conn.trailing_data[0]):
            self._expect()
        elif theirs is not h11.IDLE:
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._forget()
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class QuietServer(uvicorn.Server):
    """A server whose streams end at once when it does, by `closing`, and which a signal ends with exit code 0."""

    def __init__(self, config: uvicorn.Config, closing: Callable[[], None]) -> None:
        super().__init__(config)
        self._closing = closing
        self._told = float("-inf")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        asyncio.get_running_loop().set_exception_handler(self._trouble)
        await super().startup(sockets)

    def _trouble(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log errors of the loop, those of accepting connections once in a while: there may be thousands a second."""
        if "socket.accept()" not in context["message"]:
            loop.default_exception_handler(context)
        elif loop.time() >= self._told + TELL_SECONDS:
            self._told = loop.time()
            log.warning("connections cannot be accepted at present: %s", context.get("exception"))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then the rest: no browser keeps the server waiting."""
        self._closing()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End by a signal; uvicorn would raise it once more afterwards, and the exit code would not be 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
