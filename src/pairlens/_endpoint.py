"""Post JSON to an address that the user named, with a key from the environment, retries and bounds."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import Future
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import IO, Any
from urllib.parse import urlsplit

from pairlens._version import __version__
from pairlens.exceptions import ArgumentError, EndpointError

KEY_VARIABLE = "PAIRLENS_API_KEY"
"""The environment variable whose value is sent as the key, if it is set."""

_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT = 60.0
_CHUNK = 1 << 16
_GRACE = 0.5
"""Seconds after the timeout of an attempt in which what the server said until then is reported."""


class Endpoint:
    """A server that takes and returns JSON, such as one that is compatible with OpenAI's interface.

    The key is read from the environment at each request. It is in no attribute, text or error of this class. Redirects
    are not followed, so that neither the key nor the rows go to an address that the user has not named.

    Requests carry no key if `key_variable` is not set; any other variable than the default must be set. One attempt may
    take `timeout` seconds. `retries` is how often a request is repeated after a failure that may pass: no connection, a
    timeout, a reply that was cut off or is not JSON, too many requests, an error of the server. The first pause is
    `backoff` seconds, and each is twice as long as the one before; a ``Retry-After`` of the server takes precedence, up
    to a minute. At most `limit` bytes of a reply are read.

    Examples
    --------
    >>> Endpoint("http://127.0.0.1:8000/v1/")
    Endpoint('http://127.0.0.1:8000/v1')
    """

    def __init__(
        self,
        url: str,
        *,
        key_variable: str = KEY_VARIABLE,
        timeout: float = 60.0,
        retries: int = 3,
        backoff: float = 0.5,
        limit: int = 1 << 28,
    ) -> None:
        self.url = checked_url(url)
        self.key_variable = key_variable
        self.timeout, self.retries, self.backoff, self.limit = timeout, retries, backoff, limit
        # A proxy of the environment could not reach this machine, and need not know what is sent here.
        proxies = urllib.request.ProxyHandler({} if is_loopback(urlsplit(self.url).hostname or "") else None)
        self._opener = urllib.request.OpenerDirector()  # without a handler that follows redirects
        for handler in (
            proxies,
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(),
            urllib.request.HTTPErrorProcessor(),
            urllib.request.HTTPDefaultErrorHandler(),
        ):
            self._opener.add_handler(handler)

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a JSON object to ``url/path`` and return the one that comes back.

        Raises
        ------
        EndpointError
            If no attempt got a JSON object. The error says what the last one got.
        """
        # JSON and file names may hold half of an emoji, which cannot be encoded.
        data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode(errors="replace")
        for attempt in range(1, self.retries + 2):
            try:
                return self._within_time(path, data)
            except _Failure as failure:
                pause = self.backoff * 2 ** (attempt - 1) if failure.wait is None else failure.wait
                if not failure.transient or attempt > self.retries or pause > _LONGEST_WAIT:
                    tries = f", at each of {attempt} attempts" if attempt > 1 else ""
                    raise EndpointError(
                        f"{self.url} {failure.reason}{tries}",
                        url=self.url,
                        problem=failure.problem,
                        status=failure.status,
                        attempts=attempt,
                        remedy=failure.remedy,
                    ) from None
            time.sleep(pause)
        raise AssertionError("retries must not be negative")

    def _within_time(self, path: str, data: bytes) -> dict[str, Any]:
        """Return the reply of one attempt, which a server that sends its headers drop by drop cannot draw out."""
        done: Future[dict[str, Any]] = Future()

        def work() -> None:
            try:
                done.set_result(self._attempt(path, data))
            except Exception as error:
                done.set_exception(error)

        threading.Thread(target=work, name="pairlens-endpoint", daemon=True).start()
        try:
            return done.result(self.timeout + _GRACE)
        except TimeoutError:
            raise self._timed_out() from None

    def _attempt(self, path: str, data: bytes) -> dict[str, Any]:
        key = self._key()
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"pairlens/{__version__}",
        }
        request = urllib.request.Request(f"{self.url}/{path.lstrip('/')}", data, headers, method="POST")
        if key:
            request.add_unredirected_header("Authorization", f"Bearer {key}")
        deadline = time.monotonic() + self.timeout
        try:
            with self._opener.open(request, timeout=self.timeout) as reply:
                return _json_object(_read(reply, self.limit, deadline))
        except urllib.error.HTTPError as error:
            with error:
                raise _rejected(error, key, deadline) from None
        except (http.client.IncompleteRead, http.client.RemoteDisconnected, ConnectionResetError):
            raise _Failure("cut-off", "closed the connection before its reply was complete", transient=True) from None
        except TimeoutError:
            raise self._timed_out() from None
        except http.client.HTTPException:
            raise _Failure("not-http", "sent a reply that is not HTTP", transient=True) from None
        except OSError as error:
            cause = getattr(error, "reason", error)
            if isinstance(cause, TimeoutError):
                raise self._timed_out() from None
            told = getattr(cause, "strerror", None) or str(cause)
            raise _Failure(
                "no-connection",
                f"cannot be reached: {_one_line(told, key)}",
                "Check the address, and that the server is running",
                transient=True,
            ) from None

    def _timed_out(self) -> _Failure:
        return _Failure(
            "timeout", f"did not reply within {self.timeout:g} seconds", "Allow more time by timeout=", transient=True
        )

    def _key(self) -> str | None:
        key = os.environ.get(self.key_variable, "").strip()
        # What does not look like a variable may be the key itself.
        shown = self.key_variable if re.fullmatch("[A-Z_][A-Z0-9_]{0,40}", self.key_variable) else "…"
        if not key and self.key_variable != KEY_VARIABLE:
            raise ArgumentError(
                "key_variable", shown, "must name an environment variable that is set", "Set it to the key"
            )
        if not re.fullmatch(r"[!-~]*", key):
            # The text of the standard library's own error would contain the key.
            reason = "must name an environment variable that holds a key of printable ASCII characters"
            raise ArgumentError("key_variable", shown, reason)
        return key or None


def checked_url(url: str) -> str:
    """Return an address without its last slash; raise ArgumentError if it is not a plain one of HTTP or HTTPS."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or not re.fullmatch(r"[!-~]+", url):
        remedy = 'Give an address such as "http://127.0.0.1:8000/v1"'
        raise ArgumentError("url", url, "must begin with http:// or https:// and name a host", remedy)
    if parts.username is not None or parts.query or parts.fragment:
        # The value is not repeated: what is there may be a secret.
        reason = "must have no user name, no ? and no #"
        raise ArgumentError("url", f"{parts.scheme}://{host}/…", reason, f"Put a key into the variable {KEY_VARIABLE}")
    return url.rstrip("/")


class _Failure(Exception):
    """One attempt that failed."""

    def __init__(
        self,
        problem: str,
        reason: str,
        remedy: str | None = None,
        *,
        transient: bool = False,
        status: int | None = None,
        wait: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.problem, self.reason, self.remedy = problem, reason, remedy
        self.transient, self.status, self.wait = transient, status, wait


def _read(reply: IO[bytes], limit: int, deadline: float) -> bytes:
    """Read a reply in parts, so that one that comes drop by drop ends at the deadline too."""
    parts, size = [], 0
    while part := reply.read1(_CHUNK) if hasattr(reply, "read1") else reply.read(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise _Failure("too-large", f"sent a reply of more than {limit} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
    missing = getattr(reply, "length", None)
    if missing:
        raise http.client.IncompleteRead(b"", missing)
    return b"".join(parts)


def _json_object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise _Failure("not-json", "sent a reply that is not JSON", _ADDRESS, transient=True) from None
    if not isinstance(found, dict):
        raise _Failure("not-json", "sent JSON that is not an object", _ADDRESS)
    return found


_ADDRESS = "Check the address; that of a compatible server often ends in /v1"


def _rejected(error: urllib.error.HTTPError, key: str | None, deadline: float) -> _Failure:
    """Return what an HTTP status other than success means."""
    status = error.code
    if 300 <= status < 400:
        return _Failure("redirect", "redirects to another address", "Give the final address", status=status)
    reason = f"replied with status {status}"
    if told := _told(error, key, deadline):
        reason += f" ({told})"
    wait = _retry_after(error.headers.get("Retry-After"))
    if status == 429:
        pause = f" for {math.ceil(wait)} seconds" if wait is not None and wait > _LONGEST_WAIT else ""
        remedy = f"Wait{pause}, then run it again: what has been answered is kept"
        return _Failure("rate-limit", reason, remedy, transient=True, status=status, wait=wait)
    if status in _TRANSIENT:
        return _Failure("server", reason, transient=True, status=status, wait=wait)
    remedies = {401: "Check the key", 403: "Check the key", 404: f"{_ADDRESS}, and the name of the model"}
    return _Failure("rejected", reason, remedies.get(status), status=status)


def _told(error: urllib.error.HTTPError, key: str | None, deadline: float) -> str:
    """Return what the server says about its error, in at most 300 characters."""
    try:
        content = _read(error, 1 << 20, deadline)
    except (_Failure, OSError, http.client.HTTPException):
        return ""
    try:
        found: Any = json.loads(content)
        found = found.get("error", found)
        text = str(found["message"] if isinstance(found, dict) else found)
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError):
        return ""
    return _one_line(text, key)


def _one_line(text: str, key: str | None) -> str:
    """Return a text of another machine, safe to print: one line, no control characters, no key."""
    if key:
        text = text.replace(key, "…")
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return text if len(text) <= 300 else f"{text[:299]}…"


def _retry_after(value: str | None) -> float | None:
    """Return the seconds that a ``Retry-After`` asks for, which is a number or a date."""
    if value is None:
        return None
    try:
        seconds = float(value) if value.strip().isdigit() else parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return max(seconds, 0.0)


def is_loopback(host: str) -> bool:
    """Return whether a name or address means this machine alone."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
