"""Attacks: whoever was not let in learns nothing and changes nothing."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from unittest.mock import Mock

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from pairlens._endpoint import is_loopback
from pairlens.studio.http import LimitedProtocol, QuietServer
from pairlens.studio.rows import rows_from_file
from pairlens.studio.run import Studio, links_file, open_store, running_links
from pairlens.studio.security import Access, allowed_hosts
from tests.studio.conftest import CHANGE, PATIENCE, Person, link, write_table

READS = ["state", "rows?rows=0", "map", "groups", "events", "progress", "doubts", "export/answers.csv", "picture/0"]
CHANGES = ["next", "answer", "undo", "change", "retract", "flag", "name", "review", "link"]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@pytest.fixture(scope="module")
def inside(shared_studio, tmp_path_factory):
    """A studio and a person who was let in."""
    path = tmp_path_factory.mktemp("studio") / "things.csv"
    write_table(path)
    running = shared_studio(path)
    person = Person.enter(link(running))
    person.question()
    return running, person


@pytest.fixture
def person(inside):
    """The person, who has to find as many answers afterwards as before."""
    before = inside[1].count
    yield inside[1]
    assert inside[1].count == before


def test_without_cookie_nothing_is_told(person):
    stranger = httpx.Client(base_url=person.base)
    for route in READS:
        assert stranger.get(f"/api/{route}").status_code == 401
    for route in CHANGES:
        reply = stranger.post(f"/api/{route}", json={}, headers={**CHANGE, "origin": person.base})
        assert reply.status_code == 401
    assert stranger.get("/").status_code == 403
    assert stranger.get("/page/app.js").status_code == 401
    refused = stranger.get("/?token=wrong")
    assert refused.status_code == 403
    assert "This link no longer opens the studio" in refused.text
    assert "set-cookie" not in stranger.get("/?token=wrong").headers
    assert "row-0" not in stranger.get("/").text


def test_a_link_to_this_machine_can_be_opened_again_until_the_studio_ends(studio, table):
    running = studio(table)
    url = link(running)
    assert httpx.head(url).status_code == 403
    first = httpx.get(url)
    assert first.status_code == 303
    assert first.headers["location"] == "/"
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "token" not in cookie
    assert "Max-Age" in cookie
    second = httpx.get(url)
    assert second.status_code == 303
    assert second.headers["set-cookie"].split(";")[0] != cookie.split(";")[0]
    kept = links_file(table.with_name("things.answers.db"))
    assert running_links(table.with_name("things.answers.db")) == running.urls
    assert kept.stat().st_mode & 0o077 == 0
    running.stop()
    assert not kept.exists()
    with pytest.raises(ValueError, match=r"no studio of this machine has .* open"):
        running_links(table.with_name("things.answers.db"))


def test_a_link_to_other_machines_works_once(table):
    access = Access(1)
    token = access.link("ann")
    session = access.redeem(token)
    assert access.annotator(f"{access.cookie}={session}") == "ann"
    assert access.redeem(token) is None
    assert "Max-Age" not in access.set_cookie(session)


def test_an_old_cookie_ends_with_its_studio(studio, table, tmp_path):
    person = Person.enter(link(studio(table)))
    old = person.client.cookies
    other = studio(table, store=tmp_path / "second.db")
    port = link(other).split(":")[2].partition("/")[0]
    jar = {f"pairlens_{port}": value for value in old.values()}
    assert httpx.get(f"http://127.0.0.1:{port}/api/state", cookies=jar).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost.evil.example:{port}", ""]
)
def test_a_foreign_host_is_turned_away_on_every_route(person, host):
    port = person.base.rpartition(":")[2]
    for path in ("/", "/page/app.js", *(f"/api/{route}" for route in READS)):
        assert person.client.get(path, headers={"host": host.format(port=port)}).status_code in (400, 421)
    for route in CHANGES:
        reply = person.post(route, headers={"host": host.format(port=port)})
        assert reply.status_code in (400, 421)


def test_localhost_is_a_name_of_this_machine(person):
    port = person.base.rpartition(":")[2]
    assert person.client.get("/api/state", headers={"host": f"localhost:{port}"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://{host}", "http://{host}.evil.example", "http://localhost", ""]
)
def test_a_foreign_origin_changes_nothing(person, origin):
    host = person.base.removeprefix("http://")
    for route in CHANGES:
        assert person.post(route, headers={"origin": origin.format(host=host)}).status_code == 403
    bare = httpx.Client(base_url=person.base, cookies=person.client.cookies)
    assert bare.post("/api/undo", json={"id": "x"}, headers=CHANGE).status_code == 403


def test_changes_need_json_and_our_header(inside):
    _, person = inside
    before = person.count
    question = person.question()
    body = json.dumps({"id": "x", "question": question["raw"], "answer": "same"})
    send = lambda headers: person.client.post("/api/answer", content=body, headers=headers).status_code  # noqa: E731
    assert send({"content-type": "application/json"}) == 403
    assert send({"x-pairlens": "1"}) == 415
    assert send({"x-pairlens": "1", "content-type": "text/plain"}) == 415
    assert send({"x-pairlens": "1", "content-type": "application/x-www-form-urlencoded"}) == 415
    assert person.count == before
    assert send(CHANGE) == 200
    assert person.count == before + 1


def test_get_changes_nothing(inside):
    running, person = inside
    person.answer("same")
    before = list(running.call(lambda session: list(session.store.events())))
    for route in CHANGES:
        for method in ("GET", "HEAD"):
            reply = person.client.request(method, f"/api/{route}", params={"id": "x", "answer": "same"}, headers=CHANGE)
            assert reply.status_code == 405
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert person.client.request(method, "/api/answer", headers=CHANGE).status_code == 405
    for route in READS[:4]:
        person.client.get(f"/api/{route}")
    assert running.call(lambda session: list(session.store.events())) == before


def test_a_page_of_another_studio_reads_and_changes_nothing(person):
    """It has the cookie, if it is at the same address."""
    study = person.get("state")["study"]
    for name, code in (("0" * 64, 410), (study, 200)):
        for route in ("state", "groups", "progress"):
            assert person.client.get(f"/api/{route}", headers={"x-pairlens-study": name}).status_code == code
        assert person.post("next", headers={"x-pairlens-study": name}).status_code == code
    assert person.client.get("/api/events?study=other").status_code == 410


def test_bodies_over_the_limit(person):
    large = {"id": "x", "question": {}, "answer": "y" * 70_000}
    assert person.post("answer", large).status_code == 413

    def parts():
        for _ in range(40):
            yield b"x" * 4096

    reply = person.client.post("/api/answer", content=parts(), headers=CHANGE)
    assert reply.status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"nonsense",
        b"[" * 50_000,
        b'{"id": 5}',
        b'{"id": "x", "question": [], "answer": "same"}',
        b"\xff\xfe",
    ],
)
def test_bodies_that_make_no_sense(person, body):
    assert person.client.post("/api/answer", content=body, headers=CHANGE).status_code == 400


ODD = [
    *("1e400", "-1e400", "NaN", "Infinity", "-1", "1.5", "true", "null", "1" + "0" * 4000, "1" + "0" * 5000),
    *('""', r'"\u0000"', r'"\ud83d"', r'"\udc00x"', '"01"', f'"{"x" * 60_000}"'),
    *("[]", "{}", "[1e400]", "[null]", r'["\ud83d"]', r'{"\ud83d": 1}', "[" * 500 + "]" * 500),
]
"""Values of JSON that no field expects."""
FIELDS = {
    "next": ["id"],
    "answer": ["id", "question", "answer"],
    "undo": ["id"],
    "change": ["id", "target", "answer"],
    "retract": ["id", "target"],
    "flag": ["id", "target", "flagged"],
    "name": ["id", "group", "name"],
    "review": ["id", "target", "outcome", "answer"],
    "link": ["id", "name"],
}


@pytest.mark.parametrize("route", CHANGES)
def test_odd_values_are_no_error_of_the_studio(studio_to_spoil, route):
    """Each field in turn, and each part of a question; afterwards others go on as before."""
    person = studio_to_spoil
    raw = person.question()["raw"]
    good = {"answer": "same", "question": raw, "target": "none", "flagged": True, "group": 0, "name": "n"}
    bodies = [{**{name: json.dumps(good.get(name, person.event())) for name in FIELDS[route]}}]
    bodies = [{**bodies[0], field: odd} for field in FIELDS[route] for odd in ODD]
    if route == "answer":
        forged = [{**{name: json.dumps(part) for name, part in raw.items()}, part: odd} for part in raw for odd in ODD]
        bodies += [{"id": json.dumps(person.event()), "question": _object(each), "answer": '"same"'} for each in forged]
    for content in [_object(body) for body in bodies] + ODD:
        reply = person.client.post(f"/api/{route}", content=content.encode(), headers=CHANGE)
        assert reply.status_code < 500, content[:200]
        if reply.status_code >= 400:
            assert reply.json()["error"]
    assert person.post("link", {"id": person.event(), "name": "ben"}).status_code == 200


@pytest.fixture(scope="module")
def studio_to_spoil(shared_studio, tmp_path_factory):
    """A person of a studio that gets answers which nobody would give."""
    path = tmp_path_factory.mktemp("spoilt") / "things.csv"
    write_table(path)
    return Person.enter(link(shared_studio(path)))


def _object(parts):
    return "{" + ", ".join(f'"{name}": {value}' for name, value in parts.items()) + "}"


def test_what_is_wrong_with_a_value_is_said(person):
    def said(content):
        reply = person.client.post("/api/link", content=content, headers=CHANGE)
        assert reply.status_code == 400
        return reply.json()["error"]

    assert "half of a surrogate pair" in said(r'{"id": "l", "name": "\ud83d"}')
    assert "numbers must be finite, got 1e400" in said('{"id": "l", "name": [1e400]}')
    assert "numbers must be finite, got NaN" in said('{"id": "l", "name": NaN}')


def test_a_link_that_cannot_be_made_leaves_nothing_in_the_store(inside):
    running, person = inside
    before = running.call(lambda session: list(session.store.events()))
    for name in ("a\x00b", "\x1b[31m", "x\u202e", "machine:gpt", " machine:gpt", "x" * 81):
        assert person.post("link", {"id": person.event(), "name": name}).status_code == 400
    assert running.call(lambda session: list(session.store.events())) == before
    assert person.post("link", {"id": "taken", "name": "ann"}).status_code == 200
    assert person.post("link", {"id": "taken", "name": "ann"}).status_code == 200
    assert person.post("link", {"id": "taken", "name": "ben"}).status_code == 409


@pytest.mark.parametrize("odd", ["x" * 60_000, "x" * 60_000 + ".js", "%00.js", "%ed%a0%bd", "%ff", "9" * 5000, "-1"])
def test_odd_addresses_are_no_error_of_the_studio(person, odd):
    for path in ("/page/", "/api/picture/", "/api/export/", "/api/rows?rows=", "/api/", "/", "/?token="):
        assert person.client.get(f"{path}{odd}", follow_redirects=False).status_code < 500


def test_forged_questions(person):
    raw = person.question()["raw"]
    send = lambda **parts: person.post("answer", {"id": person.event(), "question": {**raw, **parts}, "answer": "same"})  # noqa: E731
    assert send(id="z", rows=[0, 10**9]).status_code == 400
    assert send(id="z", rows=[-1, 2]).status_code == 400
    assert send(id="z", rows=[1, 1]).status_code == 400
    assert send(id="z", rows="ab").status_code == 400
    assert send(id="z", kind="skip").status_code == 400
    assert send(id="z", annotator="somebody else").status_code == 403
    assert person.post("answer", {"id": "y", "question": raw, "answer": "perhaps"}).status_code == 400


def test_every_answer_carries_the_policy(person):
    stranger = httpx.Client(base_url=person.base)
    replies = [person.client.get(path) for path in ("/", "/page/app.js", "/api/state", "/api/nothing")]
    replies += [stranger.get("/"), stranger.get("/api/state"), person.client.get("/", headers={"host": "evil"})]
    for reply in replies:
        assert reply.headers["content-security-policy"] == POLICY
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"
        assert not [name for name in reply.headers if name.startswith("access-control")]
        assert "server" not in reply.headers


@pytest.mark.parametrize(
    "path",
    [
        "/page/../server.py",
        "/page/%2e%2e/server.py",
        "/page/..%2fserver.py",
        "/page//etc/passwd",
        "/page/app.py",
        "/page/",
    ],
)
def test_assets_stay_in_their_folder(person, path):
    """Sent as they are: a client would tidy such paths up."""
    host, port = person.base.removeprefix("http://").split(":")
    cookie = "; ".join(f"{name}={value}" for name, value in person.client.cookies.items())
    with socket.create_connection((host, int(port))) as line:
        line.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n".encode()
        )
        reply = b"".join(iter(lambda: line.recv(65536), b""))
    assert reply.startswith(b"HTTP/1.1 404")
    assert b"Starlette" not in reply


def test_a_stream_needs_the_cookie_and_tells(inside):
    _, person = inside
    assert httpx.get(f"{person.base}/api/events").status_code == 401
    before = person.count
    heard: list[str] = []

    def read() -> None:
        with httpx.stream("GET", f"{person.base}/api/events", cookies=person.client.cookies, timeout=20) as reply:
            assert reply.headers["content-type"].startswith("text/event-stream")
            for line in reply.iter_lines():
                heard.append(line)
                if line.startswith("data:") and json.loads(line[5:]).get("answers") == before + 1:
                    return

    reader = threading.Thread(target=read)
    reader.start()
    while not heard:
        time.sleep(0.01)
    person.answer("same")
    reader.join(timeout=20)
    assert "event: status" in heard


def test_duplicate_headers_are_refused(person):
    host, port = person.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as line:
        line.sendall(f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\nHost: evil\r\nConnection: close\r\n\r\n".encode())
        assert line.recv(100).startswith((b"HTTP/1.1 400", b"HTTP/1.1 421"))


def test_other_machines_only_with_a_token_of_ones_own(table):
    rows = rows_from_file(table, ids="name")
    with open_store(table.with_suffix(".db"), rows) as store:
        with pytest.raises(ValueError, match=r"host='0\.0\.0\.0' would let other machines in\. Give a token="):
            Studio.prepare(rows, store, host="0.0.0.0", port=0)
        with pytest.raises(ValueError, match="token= must have at least 16 characters, got 5"):
            Studio.prepare(rows, store, host="0.0.0.0", port=0, token="short")
        with pytest.raises(ValueError, match="annotators= must be printable text"):
            Studio.prepare(rows, store, port=0, annotators=["ann", "\ud83d"])
        with pytest.raises(ValueError, match="token= must be printable text"):
            Studio.prepare(rows, store, port=0, token="\udcff" * 20)


def test_a_token_of_any_characters_opens_the_studio(studio, table):
    assert Person.enter(link(studio(table, token="a+b c&d=e#f%20?/ünï")))


def test_names_of_this_machine():
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("localhost.evil.example")
    assert allowed_hosts("10.1.2.3", 80) == {"10.1.2.3:80"}
    assert "127.0.0.1:80" in allowed_hosts("0.0.0.0", 80)


def test_tokens_and_sessions_are_kept_apart():
    access = Access(80)
    token = access.link("ann")
    session = access.redeem(token)
    assert session is not None
    assert access.redeem(token) is None
    assert access.redeem("") is None
    assert access.redeem("ünï") is None
    assert access.annotator(f"{access.cookie}={session}") == "ann"
    assert access.annotator(f"{access.cookie}={token}") is None
    assert access.annotator(f"other={session}") is None
    assert access.annotator("") is None
    assert access.annotator("a=b; =; ;;;") is None


@pytest.mark.parametrize(
    "foreign", ['prefs={"a":1}', "note=café", "flash=hello world", 'a="b; c', "=", "pairlens_80=old"]
)
def test_cookies_of_other_programs_lock_nobody_out(foreign):
    """Browsers send the cookies of all ports of a host."""
    access = Access(80)
    ours = f"{access.cookie}={access.redeem(access.link('ann'))}"
    assert access.annotator(f"{foreign}; {ours}") == "ann"
    assert access.annotator(f"{ours}; {foreign}") == "ann"
    assert access.annotator(foreign) is None


def test_cookies_of_other_programs_reach_the_studio(person):
    cookies = "; ".join(f"{name}={value}" for name, value in person.client.cookies.items())
    foreign = f'note=café; prefs={{"a":1}}; flash=hello world; large={"x" * 30_000}; {cookies}'
    assert httpx.get(f"{person.base}/api/state", headers={"cookie": foreign.encode()}).status_code == 200


def lines(person, count, text):
    """Connections on which a text was sent."""
    host, port = person.base.removeprefix("http://").split(":")
    found = [socket.create_connection((host, int(port)), timeout=PATIENCE) for _ in range(count)]
    for line in found:
        line.sendall(text.encode())
    return found


@pytest.mark.parametrize("body", ["head", "first body", "second body"])
def test_a_request_that_is_half_sent_is_given_up(person, monkeypatch, body):
    monkeypatch.setattr("pairlens.studio.http.REQUEST_SECONDS", 0.1)
    cookie = "; ".join(f"{name}={value}" for name, value in person.client.cookies.items())
    host = person.base.removeprefix("http://")
    head = f"Host: {host}\r\nOrigin: {person.base}\r\nCookie: {cookie}\r\nX-Pairlens: 1\r\n"
    change = f"POST /api/next HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
    text = {"head": f"GET / HTTP/1.1\r\n{head}", "first body": change}
    text["second body"] = f"GET /api/state HTTP/1.1\r\n{head}\r\n{change}"
    (line,) = lines(person, 1, text[body])
    with line:
        # The end comes; without a limit, it is the patience of the socket that ends.
        assert b"".join(iter(lambda: line.recv(65536), b"")).count(b"HTTP/1.1") == (body == "second body")


def test_strangers_keep_nobody_out(inside, monkeypatch):
    running, person = inside
    monkeypatch.setattr("pairlens.studio.http.MOST_STRANGERS", 8)
    host = person.base.removeprefix("http://")
    held = lines(person, 40, f"GET / HTTP/1.1\r\nHost: {host}\r\n")
    assert person.get("state")["annotator"] == "me"
    with httpx.Client(base_url=person.base, cookies=person.client.cookies, timeout=60) as other:
        assert other.get("/api/state").status_code == 200
    strangers = [each for each in running._server.server_state.connections if each.is_stranger]
    assert len(strangers) <= 8
    for line in held:
        line.close()


def test_a_new_request_does_not_make_a_person_a_stranger():
    """The cookie of a request is checked after its scope was made; other connections may come in between."""

    async def app(scope, receive, send):
        scope["annotator"] = "me"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    async def requests():
        config = uvicorn.Config(app, log_config=None, lifespan="off")
        config.load()
        connection = LimitedProtocol(config, ServerState(), {})
        connection.connection_made(Mock(is_closing=lambda: False, get_extra_info=lambda name: None))
        before = connection.is_stranger
        connection.data_received(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        while connection.scope.get("annotator") is None or not connection.cycle.response_complete:
            await asyncio.sleep(0)
        between = connection.is_stranger
        connection.data_received(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        assert "annotator" not in connection.scope
        after = connection.is_stranger
        connection.connection_lost(None)
        return before, between, after

    assert asyncio.run(asyncio.wait_for(requests(), PATIENCE)) == (True, False, False)


def test_connections_that_cannot_be_accepted_are_told_once(caplog):
    server, loop = QuietServer(uvicorn.Config(lambda: None, log_config=None), lambda: None), asyncio.new_event_loop()
    loop.set_exception_handler(server._trouble)
    error = OSError(24, "Too many open files")
    for _ in range(1000):
        loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": error})
    loop.call_exception_handler({"message": "another one"})
    loop.close()
    told = [record.getMessage() for record in caplog.records]
    assert told == ["connections cannot be accepted at present: [Errno 24] Too many open files", "another one"]
