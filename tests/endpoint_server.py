"""Play a server of an OpenAI-compatible interface on the loopback, with every fault that one can have."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, dict[str, Any]], Any]


@dataclass
class Fault:
    """A reply that is not what was asked for.

    ``cut`` closes the connection after that many bytes, ``slow`` waits that many seconds before the reply, and ``drip``
    that many between its bytes.
    """

    status: int = 200
    content: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    cut: int | None = None
    slow: float = 0.0
    drip: float = 0.0


def refused(status: int, message: str = "no", **headers: str) -> Fault:
    """Return an error in OpenAI's form."""
    content = json.dumps({"error": {"message": message, "type": "test"}}).encode()
    return Fault(status, content, tuple((name.replace("_", "-"), value) for name, value in headers.items()))


class EndpointServer(ThreadingHTTPServer):
    """A server on the loopback that keeps every request and plays the faults, one for each request, before it answers.

    ``answer(path, body)`` returns what is sent as JSON.
    """

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.faults = answer, deque[Fault]()
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        """The address to give to a client."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    server: EndpointServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers), body))
        fault = self.server.faults.popleft() if self.server.faults else Fault()
        content = fault.content
        if content is None:
            content = json.dumps(self.server.answer(self.path, body)).encode()
        self.server.closing.wait(fault.slow)
        self.send_response(fault.status)
        for name, value in (("Content-Length", str(len(content))), *fault.headers):
            self.send_header(name, value)
        self.end_headers()
        if fault.drip:
            for k in range(len(content)):
                self.wfile.write(content[k : k + 1])
                if self.server.closing.wait(fault.drip):
                    return
        else:
            self.wfile.write(content[: fault.cut])

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def endpoint_server(answer: Answer = lambda _, body: {"echo": body}) -> Iterator[EndpointServer]:
    """Run a server in a thread."""
    with EndpointServer(answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()
