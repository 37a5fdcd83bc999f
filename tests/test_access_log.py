"""The access log of hosted applications: one line for each request, whatever becomes of it, and no secrets."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness import perl
from .harness.client import Client, request
from .harness.server import Server
from .harness.until import until
from .harness.versions import VERSIONS, Ask, asking_over
from .harness.websocket import Opener, handshake
from .test_asgi_messages import saying

OK = ["start()", "body(b'four')"]

APPS = ("scripted_asgi", *(["scripted.psgi"] if perl.has("JSON::PP") else []))
"""Applications whose requests say what they answer."""


@pytest.fixture(scope="module", params=APPS)
def shared(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all(request.param, workers=1, access_log="json")


@pytest.fixture(scope="module")
def asgi(serve_for_all: Serve) -> Server:
    """Applications of PSGI have no WebSockets."""
    return serve_for_all("scripted_asgi", workers=1, access_log="json")


@pytest.fixture(params=VERSIONS)
def ask(request: pytest.FixtureRequest, server: Server) -> Ask:
    return asking_over(request.param, server)


def lines(server: Server) -> list[str]:
    """The lines so far, without those of the requests between the tests."""
    return [line for line in server.printed().splitlines() if "/hola/you" not in line]


def last(server: Server, before: int) -> dict[str, Any]:
    """The line after so many."""
    [line] = until("the line", lambda: lines(server)[before:])
    entry: dict[str, Any] = json.loads(line)
    return entry


@pytest.mark.parametrize(
    ("method", "messages", "status", "count"),
    [
        ("GET", OK, 200, 4),
        ("HEAD", OK, 200, 0),
        ("POST", OK, 200, 4),
        ("PROPFIND", OK, 200, 4),
        ("GET", ["start(204)", "body(b'four')"], 204, 0),
        ("GET", ["start(304)", "body(b'four')"], 304, 0),
        ("GET", ["start(441)", "body(b'four')"], 441, 4),
        ("GET", ["start()", "body()"], 200, 0),
        ("GET", ["start()", "body(b'a' * 70_000, 1)", "body(b'b')"], 200, 70_001),
        ("GET", ["fail('error')"], 500, None),
        ("GET", ["start(99)"], 500, None),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_a_line_has_what_the_client_got(
    server: Server, ask: Ask, method: str, messages: list[str], status: int, count: int | None
) -> None:
    before = len(lines(server))
    answer = ask(saying(*messages), method, fields=(("user-agent", 'the "agent"'), ("referer", "http://a/\u00e9")))
    entry = last(server, before)
    assert (entry["method"], entry["path"], entry["status"]) == (method, saying(*messages), status)
    assert entry["bytes"] == (len(answer.body) if count is None else count)
    assert (entry["client"], entry["protocol"], entry["ending"]) == ("127.0.0.1", answer.version, "done")
    assert entry["user_agent"] == 'the "agent"'
    assert entry["request_id"] == dict(answer.fields)["x-request-id"]


def test_a_response_that_fails_in_its_middle_was_broken_off(server: Server, ask: Ask) -> None:
    before = len(lines(server))
    with pytest.raises((AssertionError, OSError)):
        ask(saying("start()", "body(b'a', 1)", "fail('error')"))
    entry = last(server, before)
    assert (entry["status"], entry["bytes"], entry["ending"]) == (200, 1, "broken off")


LONG = "start(200, [(b'content-length', b'3')])"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("messages", "told"),
    [
        (["start()", "body(b'a', 1)"], "the application returned before the end of its response"),
        ([LONG, "body(b'a', 1)", "body()"], 'shorter than its Content-Length; the connection was reset request="GET /'),
        ([LONG, "body(b'a', 1)", "body(b'bcd', 1)", "body()"], "Content-Length does not match the body"),
    ],
)
def test_a_response_that_is_not_what_it_announced_was_broken_off(
    asgi: Server, version: str, messages: list[str], told: str
) -> None:
    before = len(lines(asgi))
    with pytest.raises((AssertionError, OSError)):
        asking_over(version, asgi)(saying(*messages))
    entry = last(asgi, before)
    assert (entry["status"], entry["bytes"], entry["ending"]) == (200, 1, "broken off")
    asgi.until_logged(re.escape(told))


def test_a_client_that_leaves_has_its_line(server: Server) -> None:
    gate = server.new_gate()
    before = len(lines(server))
    with server.connect().ask("GET", saying(f"hold('{gate}')")):
        server.until_running(1)
    entry = last(server, before)
    assert (entry["status"], entry["bytes"], entry["ending"]) == (0, 0, "client left")
    server.open_gate(gate)


@pytest.mark.parametrize(("messages", "status"), [(["accept()"], 101), (["close()"], 403), (["fail('error')"], 500)])
def test_a_websocket_has_its_line(asgi: Server, messages: list[str], status: int) -> None:
    before = len(lines(asgi))
    with asgi.connect() as client:
        answer = client.send(handshake(saying(*messages))).opening()
        assert answer.status == status
        entry = last(asgi, before)
    assert (entry["method"], entry["status"]) == ("GET", status)


def test_a_websocket_over_http_2_has_its_line(asgi: Server) -> None:
    before = len(lines(asgi))
    Opener("2")(asgi, saying("accept()")).closed()
    entry = last(asgi, before)
    assert entry["status"] in (101, 200)
    assert entry["protocol"] == "HTTP/2"


@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("form", ["text", "json", "combined"])
def test_no_line_has_what_authorizes_a_client(serve: Serve, form: str, app: str) -> None:
    """Gunicorn logs the user of Basic authentication."""
    server = serve(app, workers=1, access_log=form)
    secrets = ["Authorization: Basic YWxpY2U6c2VjcmV0", "Cookie: session=secret", "X-Token: secret"]
    assert server.get(saying(*OK), *secrets).text == "four"
    until("the line", lambda: " 200 " in server.printed() or '"status":200' in server.printed().replace(" ", ""))
    assert not re.search("secret|alice|YWxpY2U6|Basic", server.printed())


@pytest.mark.parametrize("app", APPS)
def test_a_combined_line_is_that_of_other_servers(serve: Serve, app: str) -> None:
    server = serve(app, workers=1, access_log="combined")
    with server.connect() as client:
        client.send(request("GET", "/hola/you", 'User-Agent: a "b" \\', "Referer: http://a/"))
        assert client.answer().text == "Hola you"
    line = until("the line", server.printed)
    told = re.fullmatch(
        r'127\.0\.0\.1 - - \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "GET /hola/you HTTP/1\.1" 200 8 '
        r'"http://a/" "(.*)"\n',
        line,
    )
    assert told, line
    assert '"' not in told[2].replace('\\"', "").replace("\\x22", "")


@pytest.mark.parametrize("app", APPS)
def test_a_combined_line_has_fields_that_are_no_utf_8(serve: Serve, app: str) -> None:
    server = serve(app, workers=1, access_log="combined")
    with server.connect() as client:
        client.send(b"GET /hola/you HTTP/1.1\r\nHost: a\r\nUser-Agent: caf\xe9\r\nReferer: /\xff\r\n\r\n")
        assert client.answer().text == "Hola you"
    assert until("the line", server.printed).endswith(' "/\\xff" "caf\\xe9"\n')


@pytest.mark.also_in_perl
@pytest.mark.parametrize("target", ["/%0d%0aGET", '/"quoted"', "/\\back", "/%1b[31m", "/caf%c3%a9", "/%ff"])
@pytest.mark.parametrize("form", ["text", "combined"])
def test_a_target_stays_on_its_line(serve: Serve, form: str, target: str) -> None:
    server = serve("basic", workers=1, access_log=form)
    server.get(target)
    server.get("/hola/next")
    until("both", lambda: "/hola/next" in server.printed())
    first, second = server.printed().splitlines()
    assert "/hola/next" in second
    assert first.isprintable()


@pytest.mark.also_in_perl
def test_a_file_is_appended_to_by_one_server_after_the_other(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "access"
    for count in (1, 2):
        server = serve("basic", workers=1, access_log="text", access_log_file=file)
        with Client(server.address) as client:
            client.get("/hola/x")
        server.stop()
        assert len(file.read_text().splitlines()) == count


@pytest.mark.also_in_perl
def test_a_file_that_is_truncated_goes_on_at_its_beginning(serve: Serve, tmp_path: Path) -> None:
    """As `logrotate` does with `copytruncate`."""
    file = tmp_path / "access"
    server = serve("basic", workers=1, access_log="text", access_log_file=file)
    server.get("/hola/first")
    until("the first", file.read_text)
    with file.open("w"):
        pass
    server.get("/hola/second")
    line = until("the second", file.read_text)
    assert "first" not in line
    assert "\0" not in line
