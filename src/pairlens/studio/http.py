"""uvicorn's server, ended as a studio has to end."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn

__all__ = ["QuietServer"]


class QuietServer(uvicorn.Server):
    """A server whose streams end at once when it does, and which a signal ends with exit code 0.

    Parameters
    ----------
    config : uvicorn.Config
    closing : callable
        Ends the streams.
    """

    def __init__(self, config: uvicorn.Config, closing: Callable[[], None]) -> None:
        super().__init__(config)
        self._closing = closing

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
