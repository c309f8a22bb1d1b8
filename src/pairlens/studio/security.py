"""Who may talk to the studio: links, the cookies that they become, and what every request must show."""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
from dataclasses import dataclass, field

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pairlens._endpoint import is_loopback
from pairlens.exceptions import InputError

HEADER = "x-pairlens"
"""Every change carries this header, which no form and no foreign page can send unasked."""
MOST_BYTES = 64 * 1024
LEAST_TOKEN = 16
COOKIE_SECONDS = 30 * 24 * 3600
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def allowed_hosts(host: str, port: int) -> frozenset[str]:
    """Return the values of the Host header under which the studio answers.

    Examples
    --------
    >>> sorted(allowed_hosts("127.0.0.1", 8000))
    ['127.0.0.1:8000', '[::1]:8000', 'localhost:8000']
    """
    names = {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) or host in ("0.0.0.0", "::") else set()
    if host in ("0.0.0.0", "::"):
        own = socket.gethostname()
        names |= {own.lower(), socket.getfqdn().lower()}
        with contextlib.suppress(OSError):
            names |= {str(entry[4][0]) for entry in socket.getaddrinfo(own, None, socket.AF_INET)}
    else:
        names.add(f"[{host}]" if ":" in host and not host.startswith("[") else host.lower())
    return frozenset(f"{name}:{port}" for name in names)


@dataclass
class Access:
    """Links and the cookies they became. Both are made anew at each start.

    The port is part of the name of the cookie, because browsers send cookies to all ports of a host. A `reusable` link
    may be opened again, as it may where only this machine is let in.
    """

    port: int
    reusable: bool = False
    _links: dict[str, str] = field(default_factory=dict)
    _sessions: dict[str, str] = field(default_factory=dict)

    @property
    def cookie(self) -> str:
        """Return the name of the cookie."""
        return f"pairlens_{self.port}"

    def link(self, annotator: str, token: str | None = None) -> str:
        """Return a token that lets a person in: a random one, or the one given."""
        if token is not None and len(token) < LEAST_TOKEN:
            raise InputError(
                f"token= must have at least {LEAST_TOKEN} characters, got {len(token)}", argument="token", value=token
            )
        chosen = secrets.token_urlsafe(24) if token is None else token
        for name, text in (("annotators", annotator), ("token", chosen)):
            if not text.isprintable():
                raise InputError(f"{name}= must be printable text, got {text!r}", argument=name, value=text)
        self._links[chosen] = annotator
        return chosen

    def redeem(self, token: str) -> str | None:
        """Return the value of the cookie for a token; None if no link has it, or it was used and must not be again."""
        found = next((known for known in self._links if hmac.compare_digest(known.encode(), token.encode())), None)
        if found is None:
            return None
        session = secrets.token_urlsafe(32)
        self._sessions[session] = self._links[found] if self.reusable else self._links.pop(found)
        return session

    def annotator(self, header: str) -> str | None:
        """Return who sends this Cookie header; None if nobody who was let in.

        All ports of a host share their cookies. Those of other programs may hold anything, so they are not parsed.
        """
        parts = (part.strip().partition("=") for part in header.split(";"))
        values = [value for name, _, value in parts if name == self.cookie]
        return next(
            (
                name
                for known, name in self._sessions.items()
                if any(hmac.compare_digest(known.encode(), value.encode()) for value in values)
            ),
            None,
        )

    def set_cookie(self, session: str) -> str:
        """Return the Set-Cookie header of a session, which lasts as long as the studio where its link does."""
        lasting = f"; Max-Age={COOKIE_SECONDS}" if self.reusable else ""
        return f"{self.cookie}={session}; Path=/; HttpOnly; SameSite=Strict{lasting}"


class Guard:
    """Check every request before any route sees it.

    - ``Host`` is one of ours (a foreign page that had its name point to this machine is turned away).
    - Without a valid cookie only ``/`` is answered, where a token may be exchanged for one.
    - A change has our exact ``Origin``, is JSON, carries the header ``X-Pairlens``, and has at most 64 KB.
    - GET and HEAD change nothing, and no other method but POST exists.

    All answers carry the content security policy and are kept out of caches and of foreign pages.
    """

    def __init__(self, app: ASGIApp, access: Access, hosts: frozenset[str]) -> None:
        self.app = app
        self.access = access
        self.hosts = hosts
        self.headers = [
            (b"content-security-policy", POLICY.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, hand it on, and add the headers to its answer."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [(k, v) for k, v in message.get("headers", []) if k.lower() not in dict(self.headers)]
                message = {**message, "headers": [*kept, *self.headers]}
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await _refused(*refusal)(scope, receive, guarded)
            return
        if scope["method"] != "POST":
            await self.app(scope, receive, guarded)
            return
        body = await _body(receive)
        if body is None:
            await _refused(413, f"a request has at most {MOST_BYTES} bytes")(scope, receive, guarded)
            return

        async def replayed() -> Message:
            nonlocal body
            if body is None:
                return await receive()
            message, body = {"type": "http.request", "body": body, "more_body": False}, None
            return message

        await self.app(scope, replayed, guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return status and reason, if a request is turned away."""
        headers = _single(scope["headers"])
        if headers is None or headers.get("host", "").lower() not in self.hosts:
            return 421, "the studio does not answer under this name"
        method, path = scope["method"], scope["path"]
        if method not in ("GET", "HEAD", "POST"):
            return 405, "only GET and POST are known here"
        annotator = self.access.annotator(headers.get("cookie", ""))
        scope["annotator"] = annotator
        if method != "POST":
            if annotator is None and path != "/":
                return 401, "open the studio by the link that it printed"
            return None
        if headers.get("origin") != f"http://{headers['host']}":
            return 403, "changes are taken from the studio's own page alone"
        if annotator is None:
            return 401, "open the studio by the link that it printed"
        if headers.get(HEADER) != "1":
            return 403, f"changes need the header {HEADER}: 1"
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 415, "changes are sent as application/json"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return 413, f"a request has at most {MOST_BYTES} bytes"
        return None


def _single(headers: list[tuple[bytes, bytes]]) -> dict[str, str] | None:
    """Return headers by name; None if one that decides is there twice."""
    found: dict[str, str] = {}
    for key, value in headers:
        name = key.decode("latin-1").lower()
        if name in found and name in ("host", "origin", "content-length", "content-type", HEADER):
            return None
        found[name] = value.decode("latin-1") if name not in found else f"{found[name]}; {value.decode('latin-1')}"
    return found


async def _body(receive: Receive) -> bytes | None:
    """Return the whole body, or None if it is too long."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        part = message.get("body", b"")
        size += len(part)
        if size > MOST_BYTES:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _refused(status: int, reason: str) -> JSONResponse:
    return JSONResponse({"error": reason}, status, headers={"connection": "close"} if status == 413 else None)
