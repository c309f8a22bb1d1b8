"""Posting JSON to an address: every fault of a server ends in a reply or in an error that says what happened."""

from __future__ import annotations

import pickle
import socket
import threading
import time
import traceback
from contextlib import suppress
from email.utils import formatdate

import pytest

from pairlens._endpoint import KEY_VARIABLE, Endpoint
from pairlens.exceptions import ArgumentError, EndpointError
from tests.endpoint_server import Fault, endpoint_server, refused

KEY = "sk-very-secret-1234567890"


@pytest.fixture
def server():
    with endpoint_server() as running:
        yield running


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


def client(server, **settings):
    return Endpoint(server.url, **{"timeout": 5.0, "retries": 2, "backoff": 0.001, **settings})


def failure(endpoint):
    with pytest.raises(EndpointError) as caught:
        endpoint.post("things", {"a": 1})
    return caught.value


def test_a_reply_is_the_object_that_the_server_sent(server):
    assert client(server).post("/things", {"text": "Grüße"}) == {"echo": {"text": "Grüße"}}
    ((path, headers, body),) = server.requests
    assert path == "/v1/things"
    assert body == {"text": "Grüße"}
    assert headers["Content-Type"] == "application/json"
    assert "Authorization" not in headers


@pytest.mark.parametrize(
    "fault",
    [
        refused(429),
        refused(429, Retry_After="0"),
        refused(429, Retry_After=formatdate(0, usegmt=True)),
        refused(429, Retry_After="soon"),
        refused(500),
        refused(503),
        Fault(content=b'{"echo": 1', cut=5),
        Fault(content=b'{"echo": ', headers=(("X", "y"),)),
        Fault(content=b"<html>busy</html>"),
        Fault(cut=0),
    ],
    ids=["429", "now", "date", "soon", "500", "503", "cut-off", "half", "nonsense", "empty"],
)
def test_a_failure_that_may_pass_is_tried_again(server, fault):
    server.faults.extend([fault, fault])
    assert client(server).post("things", {"a": 1}) == {"echo": {"a": 1}}
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("fault", "problem", "status", "attempts"),
    [
        (refused(429), "rate-limit", 429, 3),
        (refused(500), "server", 500, 3),
        (refused(400), "rejected", 400, 1),
        (refused(401), "rejected", 401, 1),
        (refused(404), "rejected", 404, 1),
        (Fault(302, b"", (("Location", "http://127.0.0.1:1/"),)), "redirect", 302, 1),
        (Fault(307, b"", (("Location", "/v1/other"),)), "redirect", 307, 1),
        (Fault(308, b"", (("Location", "http://[::no"),)), "redirect", 308, 1),
        (Fault(content=b'{"a": 1}', cut=3), "cut-off", None, 3),
        (Fault(content=b"<html>"), "not-json", None, 3),
        (Fault(content=b"[" * 100_000), "not-json", None, 3),
        (Fault(content=b"[1, 2]"), "not-json", None, 1),
        (Fault(content=b"\xff\xfe\x00"), "not-json", None, 3),
        (Fault(content=b'{"a": "' + b"b" * 2000 + b'"}'), "too-large", None, 1),
    ],
)
def test_a_failure_that_stays_says_what_it_was(server, fault, problem, status, attempts):
    server.faults.extend([fault] * 3)
    error = failure(client(server, limit=1000 if problem == "too-large" else 1 << 20))
    assert (error.problem, error.status, error.attempts) == (problem, status, attempts)
    assert error.url == server.url
    assert server.url in str(error)
    assert len(server.requests) == attempts


def test_the_server_says_why(server):
    server.faults.append(refused(400, "the model \x1b[31m'x'\nis not known " + "z" * 1000))
    text = str(failure(client(server)))
    assert "(the model [31m'x' is not known zzz" in text
    assert len(text) < 450
    assert text.isprintable()


@pytest.mark.parametrize("fault", [Fault(slow=30), Fault(content=b'{"a": 1}' + b" " * 500, drip=0.05)])
def test_a_slow_server_is_given_up_at_the_deadline(server, fault):
    server.faults.extend([fault, fault])
    start = time.monotonic()
    assert failure(client(server, timeout=0.3, retries=1)).problem == "timeout"
    assert 0.6 <= time.monotonic() - start < 10


@pytest.mark.parametrize(
    ("start", "part"),
    [(b"HTTP/1.1 200 OK\r\nX: ", b"y"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n")],
    ids=["header", "continue"],
)
def test_a_server_whose_headers_have_no_end_is_given_up_at_the_deadline(start, part):
    """No single byte is late, so the timeout of the socket alone would wait as long as the server likes."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)

        def talk():
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.recv(1 << 16)
                connection.sendall(start)
                for _ in range(100):  # ten seconds
                    connection.sendall(part)
                    if over.wait(0.1):
                        break

        thread = threading.Thread(target=talk)
        thread.start()
        try:
            endpoint = Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.5, retries=0)
            assert failure(endpoint).problem == "timeout"
        finally:
            over.set()
            thread.join()


def test_nobody_listens():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
        error = failure(Endpoint(url, retries=1, backoff=0.001))
    assert (error.problem, error.attempts) == ("no-connection", 2)
    assert pickle.loads(pickle.dumps(error)).problem == "no-connection"


def test_something_that_is_not_http():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        endpoint = Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}", retries=0)

        def talk():
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"SSH-2.0-server\r\n\r\n")

        thread = threading.Thread(target=talk)
        thread.start()
        assert failure(endpoint).problem == "not-http"
        thread.join()


def test_retry_after_is_respected_up_to_a_minute(server, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    server.faults.extend([refused(429, Retry_After="7"), refused(503), refused(503)])
    assert client(server, retries=3, backoff=0.5).post("things", {}) == {"echo": {}}
    assert pauses == [7.0, 1.0, 2.0]
    server.faults.append(refused(429, Retry_After="3600"))
    error = failure(client(server))
    assert error.attempts == 1
    assert "3600 seconds" in str(error)


def test_the_key_is_sent_and_appears_nowhere_else(server, monkeypatch, capfd):
    monkeypatch.setenv("MY_KEY", f"{KEY}\n")
    endpoint = client(server, key_variable="MY_KEY", retries=0)
    endpoint.post("things", {})
    assert server.requests[-1][1]["Authorization"] == f"Bearer {KEY}"
    seen = [repr(endpoint), str(vars(endpoint)), repr(pickle.dumps(vars(endpoint) | {"_opener": None}))]
    location = (("Location", "http://127.0.0.1:1/"),)
    for fault in (refused(401, f"wrong key {KEY}"), Fault(302, b"", location), Fault(content=b"no"), Fault(cut=0)):
        server.faults.append(fault)
        error = failure(endpoint)
        seen += [str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error))]
    seen += capfd.readouterr()
    assert not [text for text in seen if KEY in text]


def test_a_key_that_no_header_can_hold_is_not_repeated(server, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, f"{KEY}\r\nX: y")
    with pytest.raises(ArgumentError) as caught:
        client(server).post("things", {})
    assert caught.value.argument == "key_variable"
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert server.requests == []


def test_a_variable_that_was_named_must_be_set(server):
    for name, told in (("NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE"), (KEY, "…")):  # the key itself, by mistake
        with pytest.raises(ArgumentError) as caught:
            client(server, key_variable=name).post("things", {})
        assert (caught.value.argument, caught.value.value) == ("key_variable", told)
        assert KEY not in "".join(traceback.format_exception(caught.value))
    assert server.requests == []


def test_half_of_an_emoji_is_sent_as_a_question_mark(server):
    assert client(server).post("things", {"text": "a\ud83d"}) == {"echo": {"text": "a?"}}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8000",
        "file:///etc/passwd",
        "ftp://a.b",
        "http://",
        "http://a:b:c",
        "http://[::1",
        "https://a.b/c d",
        "http://a\n",
    ],
)
def test_other_addresses_are_refused(url):
    with pytest.raises(ArgumentError) as caught:
        Endpoint(url)
    assert caught.value.argument == "url"


@pytest.mark.parametrize("url", [f"https://me:{KEY}@a.b/v1", f"https://a.b/v1?key={KEY}", f"https://a.b/v1#{KEY}"])
def test_an_address_with_a_secret_is_refused_without_repeating_it(url):
    with pytest.raises(ArgumentError) as caught:
        Endpoint(url)
    assert KEY not in str(caught.value)
    assert KEY not in repr(vars(caught.value))


def test_a_proxy_learns_nothing_about_this_machine(server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert client(server, retries=0).post("things", {}) == {"echo": {}}
