"""Attacks: whoever was not let in learns nothing and changes nothing."""

from __future__ import annotations

import json
import socket
import threading
import time

import httpx
import pytest

from pairlens.studio.rows import rows_from_file
from pairlens.studio.run import Studio, open_store
from pairlens.studio.security import Access, allowed_hosts, is_loopback
from tests.studio.conftest import CHANGE, Person, link, write_table

READS = ["state", "rows?rows=0", "map", "groups", "events", "progress", "doubts", "export/answers.csv", "picture/0"]
CHANGES = ["next", "answer", "undo", "change", "retract", "flag", "name", "review", "link"]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
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
    assert stranger.get("/?token=wrong").status_code == 403
    assert "set-cookie" not in stranger.get("/?token=wrong").headers
    assert "row-0" not in stranger.get("/").text


def test_a_link_works_once(studio, table):
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
    second = httpx.get(url)
    assert second.status_code == 403
    assert "set-cookie" not in second.headers


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
        with pytest.raises(ValueError, match=r"--host 0\.0\.0\.0 would let other machines in: give a --token"):
            Studio.prepare(rows, store, host="0.0.0.0", port=0)
        with pytest.raises(ValueError, match="--token must have at least 16 characters, got 5"):
            Studio.prepare(rows, store, host="0.0.0.0", port=0, token="short")


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
