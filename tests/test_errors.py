"""Errors have one shape, whoever answers: problem details for programs, a page for browsers, text if asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import Kind, Serve
from .harness.client import Answer
from .harness.server import Server

PROBLEM, PAGE, TEXT = "application/problem+json", "text/html; charset=utf-8", "text/plain; charset=utf-8"
BROWSER = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
MEMBERS = {"title", "status", "detail", "fault"}


@pytest.fixture(scope="module")
def shared(kind: Kind, serve_for_all: Serve) -> Server:
    return serve_for_all("failing", environment=kind, body_limit="1KiB", workers=2)


def problem(answer: Answer, status: int, fault: str) -> dict[str, Any]:
    """The members of an error, after checking those that each error has."""
    assert (answer.status, answer["content-type"], answer["vary"]) == (status, PROBLEM, "Accept"), answer
    told: dict[str, Any] = answer.json()
    assert told.keys() >= MEMBERS
    assert (told["status"], told["fault"]) == (status, fault)
    return told


FAULTS = [
    ("GET", "/nowhere", 404, "client", "no route matches this path"),
    ("GET", "/number/?n=1", 404, "client", "no route matches this path; there is a route for /number"),
    ("DELETE", "/number/", 404, "client", "no route matches this path"),
    ("POST", "/hola/x", 405, "client", "this path does not support the method; see Allow"),
    ("GET", "/gone/it", 410, "client", "it is <gone>"),
    ("GET", "/raise/secret", 500, "application", "the application failed; its log says why"),
    ("GET", "/raise-later", 500, "application", "the application failed; its log says why"),
    ("GET", "/number?n=x", 422, "client", "invalid or missing: n"),
    ("POST", "/note", 422, "client", None),
    ("GET", "/channel?name=%0a", 400, "client", None),
    ("GET", "/query", 500, "application", "the database rejected the query; the log says why"),
    ("GET", "/jobs/01a2085c-2786-79cc-860f-9d0418e3977c", 404, "client", None),
]


@pytest.mark.parametrize(("method", "target", "status", "fault", "detail"), FAULTS)
def test_each_error_has_the_same_members(
    server: Server, method: str, target: str, status: int, fault: str, detail: str | None
) -> None:
    told = problem(server.connect().ask(method, target, "Content-Length: 0").answer(), status, fault)
    assert detail in (None, told["detail"])
    assert told.keys() - MEMBERS <= {"parameters", "effect"}
    assert ("parameters" in told) == (status == 422)
    over_http_2 = server.connect2()
    assert problem(over_http_2.answer(over_http_2.ask(method, target)), status, fault) == told


def test_what_a_client_sent_is_refused_in_the_same_shape(server: Server) -> None:
    not_json = server.post("/note", b"{", "Content-Type: application/json")
    assert "JSON" in problem(not_json, 400, "client")["detail"]
    assert (
        "application/json" in problem(server.post("/note", b"a", "Content-Type: text/plain"), 415, "client")["detail"]
    )
    (parameter,) = server.get("/number?n=x").json()["parameters"]
    assert (parameter["name"], parameter["where"], parameter["value"]) == ("n", "query", "x")


def test_a_query_that_fails_is_told_the_same_returned_and_awaited(server: Server, kind: Kind) -> None:
    returned = problem(server.get("/query"), 500, "application")
    assert returned["effect"] == "none"
    if kind:
        assert problem(server.get("/query/awaited"), 500, "application") == returned


def test_a_worker_that_dies_is_not_the_client_s_fault(server: Server) -> None:
    assert "died" in problem(server.get("/die"), 502, "worker")["detail"]


@pytest.mark.parametrize(
    ("target", "status", "says"),
    [
        ("/nowhere", "404 Not Found", "no route matches this path"),
        ("/gone/it", "410 Gone", "it is &lt;gone&gt;"),
        ("/raise/secret", "500 Internal Server Error", "its log says why"),
        ("/query", "500 Internal Server Error", "the database rejected the query"),
        ("/number?n=x", "422 Unprocessable Content", "n: an integer is expected"),
    ],
)
def test_browsers_get_a_page_and_terminals_a_text(server: Server, target: str, status: str, says: str) -> None:
    page = server.get(target, BROWSER)
    assert (page["content-type"], page["vary"]) == (PAGE, "Accept")
    assert f"<title>{status}</title>" in page.text
    assert says in page.text
    assert not {"secret", "src=", "href="} & set(page.text.replace('"', " ").split()), "it needs no other file"
    text = server.get(target, "Accept: text/plain")
    assert text["content-type"] == TEXT
    assert text.text.startswith(f"{status}\n")
    over_http_2 = server.connect2()
    assert over_http_2.get(target, ("accept", BROWSER.removeprefix("Accept: "))).body == page.body


@pytest.mark.parametrize("accept", ["*/*", "text/html", "text/plain", "application/json"])
def test_the_core_and_a_worker_write_the_same(server: Server, accept: str) -> None:
    by_core, by_worker = (server.get(target, f"Accept: {accept}") for target in ("/nowhere", "/like-the-core"))
    assert by_core.body == by_worker.body
    assert [by_core[name] for name in ("content-type", "vary")] == [
        by_worker[name] for name in ("content-type", "vary")
    ]


def test_405_and_404_have_the_same_shape_with_a_handler_for_404(serve: Serve, kind: Kind) -> None:
    server = serve("failing", environment=kind | {"HANDLERS": "yes"})
    refused = server.post("/hola/x")
    assert problem(refused, 405, "client")["detail"] == "this path does not support the method; see Allow"
    assert refused["allow"] == "GET, HEAD"
    assert problem(server.get("/nowhere"), 404, "client")["detail"] == "nothing at /nowhere"


def test_a_body_over_the_limit_is_told_as_its_client_likes_and_logged(server: Server) -> None:
    refused = server.post("/note", b"x" * 2_000, BROWSER)
    assert (refused.status, refused["content-type"]) == (413, PAGE)
    assert "the body is larger than this server allows: 1024 bytes (--body-limit)" in refused.text
    with server.connect() as client:
        client.send(b"POST /note HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n")
        assert client.until_bytes(b"\r\n").startswith(b"HTTP/1.1 413 Content Too Large")
    for length in (2_000, 3_000, 4_000):
        over_http_2 = server.connect2()
        asked = over_http_2.ask("POST", f"/note?{length}", ("content-length", str(length)), end=False)
        assert problem(over_http_2.answer(asked), 413, "client")["title"] == "Content Too Large"
    server.until_logged("a request was refused: the body is larger than this server allows: 1024 bytes")
    lines = [line for line in server.log().splitlines() if "a request was refused" in line]
    assert 1 <= len(lines) <= 2, "at most one a second"
    assert "WARN" in lines[0]
    assert 'path="/note' in lines[0]


def test_developers_are_shown_the_query_and_the_traceback(serve: Serve, kind: Kind) -> None:
    server = serve("failing", environment=kind, command="dev")
    told = json.loads(server.get("/query").body)
    assert told["query"] == "selct 1"
    assert "syntax error" in told["message"]
    told = json.loads(server.get("/raise/x").body)
    assert (told["detail"], "in fails" in told["traceback"]) == ("ValueError: x", True)
    assert "<pre>" in server.get("/query", BROWSER).text
