"""Extensions of ASGI: early hints before a response, and trailers after it."""

from __future__ import annotations

import pytest

from .conftest import Serve
from .harness.client import Broken, Client, Closed
from .harness.server import Server

HINTS = ["</a.css>; rel=preload; as=style", "</b.js>; rel=preload; as=script"]


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("raw_asgi", workers=1)


def asked(server: Server, target: str, *fields: str, method: str = "GET", version: str = "1.1") -> bytes:
    """Everything that comes on a connection that is closed after one response."""
    lines = [f"{method} {target} HTTP/{version}", "Host: test", "Connection: close, TE", *fields, "", ""]
    with server.connect() as client:
        return client.send("\r\n".join(lines).encode()).rest()


# Trailers


@pytest.mark.parametrize("te", ["trailers", "gzip, Trailers", "deflate;q=0.5\r\nTE: trailers"])
@pytest.mark.parametrize(("query", "body"), [("", b"4\r\nbody\r\n"), ("?empty", b"")])
def test_trailers_come_after_the_body(server: Server, te: str, query: str, body: bytes) -> None:
    head, _, rest = asked(server, f"/trailers/x-a/x-b{query}", f"TE: {te}").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert rest == body + b"0\r\nx-a: said\r\nx-b: said\r\n\r\n"


@pytest.mark.parametrize("fields", [(), ("TE: gzip",), ("TE: trailers-of-mine",)])
def test_a_client_that_does_not_ask_for_trailers_gets_none(server: Server, fields: tuple[str, ...]) -> None:
    _, _, rest = asked(server, "/trailers/x-a", *fields).partition(b"\r\n\r\n")
    assert rest == b"4\r\nbody\r\n0\r\n\r\n"


def test_a_connection_goes_on_after_trailers(server: Server) -> None:
    with server.connect() as client:
        client.ask("GET", "/trailers/x-a", "TE: trailers", "Connection: TE")
        client.until_bytes(b"0\r\nx-a: said\r\n\r\n")
        assert client.get("/hola/you").text == "Hola you"


@pytest.mark.parametrize(("method", "version"), [("HEAD", "1.1"), ("GET", "1.0")])
def test_where_there_is_no_room_for_trailers_they_are_left_out(server: Server, method: str, version: str) -> None:
    told = asked(server, "/trailers/x-a", "TE: trailers", method=method, version=version)
    head, _, rest = told.partition(b"\r\n\r\n")
    assert b"200 OK" in head
    assert rest == (b"" if method == "HEAD" else b"body")


@pytest.mark.parametrize(("target", "body"), [("/trailers/x-a/x-b", b"body"), ("/trailers/x-a/x-b?empty", b"")])
def test_trailers_come_over_http2(server: Server, target: str, body: bytes) -> None:
    with server.connect2() as client:
        number = client.ask("GET", target)
        assert client.answer(number).body == body
        assert client.streams[number].trailers == [("x-a", "said"), ("x-b", "said")]


def test_head_has_no_trailers_over_http2(server: Server) -> None:
    with server.connect2() as client:
        number = client.ask("HEAD", "/trailers/x-a")
        assert (client.answer(number).status, client.streams[number].trailers) == (200, [])


@pytest.mark.parametrize("name", ["content-length", "transfer-encoding", "connection", "host", "two words"])
def test_a_trailer_that_belongs_into_the_head_breaks_the_response_off(server: Server, name: str) -> None:
    with server.connect() as client:
        client.ask("GET", f"/trailers/{name.replace(' ', '%20')}", "TE: trailers")
        opened = client.opening()
        with pytest.raises((Closed, ConnectionError)):
            list(client.pieces(opened))
    with server.connect2() as client2, pytest.raises(Broken):
        client2.get(f"/trailers/{name.replace(' ', '%20')}")
    server.still_serves()


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/unannounced-trailers", "http.response.trailers come after the body, and http.response.start announces them"),
        ("/missing-trailers", "returned without the http.response.trailers that it had announced"),
    ],
)
def test_trailers_out_of_place_break_the_response_off(server: Server, target: str, why: str) -> None:
    with server.connect().ask("GET", target, "TE: trailers") as client, pytest.raises((Closed, ConnectionError)):
        client.answer()
    server.until_logged(f"GET {target}: .*{why}")


# Early hints


def hinted(client: Client) -> list[str]:
    """The links of two early hints."""
    links = []
    for _ in HINTS:
        hint = client.opening()
        assert hint.status == 103
        assert [name for name, _ in hint.fields] == ["link"]
        links.append(hint["link"])
    return links


def test_early_hints_come_before_the_response_is_made(server: Server) -> None:
    gate = server.new_gate()
    with server.connect().ask("GET", f"/hints?{gate}") as client:
        assert hinted(client) == HINTS
        server.open_gate(gate)
        assert client.answer().text == "hinted"
        assert client.get("/hola/you").text == "Hola you"


def test_each_of_several_requests_in_a_row_has_its_hints(server: Server) -> None:
    with server.connect() as client:
        client.send(b"GET /hints HTTP/1.1\r\nHost: a\r\n\r\n" * 3)
        for _ in range(3):
            assert hinted(client) == HINTS
            assert client.answer().text == "hinted"


def test_nobody_else_gets_hints(server: Server) -> None:
    """HTTP/1.0 has none, and the core sends none with HTTP/2: the response is the same."""
    told = asked(server, "/hints", version="1.0")
    assert told.startswith(b"HTTP/1.1 200 OK\r\n")
    assert told.endswith(b"\r\n\r\nhinted")
    with server.connect2() as client:
        assert client.get("/hints").text == "hinted"


def test_a_hint_after_the_start_is_a_mistake(server: Server) -> None:
    assert server.get("/late-hint").status == 500
    server.until_logged("GET /late-hint: .*http.response.early_hint after http.response.start")


def test_a_hint_that_cannot_be_sent_is_logged_and_the_response_comes_without_it(server: Server) -> None:
    told = asked(server, "/impossible-hint")
    assert told.startswith(b"HTTP/1.1 200 OK\r\n")
    assert told.endswith(b"\r\n\r\nhinted")
    server.until_logged(r"ERROR early hints cannot be sent: .*request=\"GET /impossible-hint")


# What the scope says of them


@pytest.mark.parametrize(
    ("fields", "extensions"),
    [((), {"early_hint", "pathsend"}), (("TE: trailers",), {"early_hint", "pathsend", "trailers"})],
)
def test_the_scope_names_the_extensions_that_work(
    server: Server, fields: tuple[str, ...], extensions: set[str]
) -> None:
    told = server.get("/scope", *fields).json()["extensions"]
    assert {name for name in ("early_hint", "pathsend", "trailers") if f"'http.response.{name}'" in told} == extensions


def test_the_scope_names_the_extensions_that_work_over_http2(server: Server) -> None:
    with server.connect2() as client:
        told = client.get("/scope").json()["extensions"]
    assert "'http.response.trailers'" in told
    assert "early_hint" not in told
