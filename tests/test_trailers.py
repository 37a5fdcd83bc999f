"""Extensions of ASGI: early hints before a response, and trailers after it."""

from __future__ import annotations

import pytest

from .conftest import Serve
from .harness.client import Answer, Broken, Client, Closed
from .harness.http2 import Http2
from .harness.server import Server

VERSIONS = ["1.1", "2"]
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


def test_a_trailer_that_http2_does_not_have_is_left_out_there(server: Server) -> None:
    with server.connect2() as client:
        number = client.ask("GET", "/trailers/proxy-connection/x-a")
        assert client.answer(number).body == b"body"
        assert client.streams[number].trailers == [("x-a", "said")]


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


class OneRequest:
    """A request on a connection of its own."""

    def __init__(self, server: Server, version: str, target: str) -> None:
        self._http2 = server.connect2() if version == "2" else None
        self._http1 = server.connect() if self._http2 is None else None
        self._stream = self._http2.ask("GET", target) if self._http2 else 0
        if self._http1:
            self._http1.ask("GET", target)

    def hint(self) -> Answer:
        """The next response that is none."""
        return self._http1.opening() if self._http1 else self._over_http2().interim(self._stream)

    def answer(self) -> Answer:
        """The response, after all hints."""
        if self._http2:
            return self._http2.answer(self._stream)
        while (answer := self._over_http1().answer()).status == 103:
            pass
        return answer

    def goes_on(self) -> bool:
        """Whether the connection can be used for another request."""
        return (self._http1 or self._over_http2()).get("/hola/you").text == "Hola you"

    def _over_http1(self) -> Client:
        assert self._http1 is not None
        return self._http1

    def _over_http2(self) -> Http2:
        assert self._http2 is not None
        return self._http2


def hinted(request: OneRequest) -> list[str]:
    """The links of two early hints."""
    links = []
    for _ in HINTS:
        hint = request.hint()
        assert hint.status == 103
        assert [name for name, _ in hint.fields] == ["link"]
        links.append(hint["link"])
    return links


@pytest.mark.parametrize("version", VERSIONS)
def test_early_hints_come_before_the_response_is_made(server: Server, version: str) -> None:
    gate = server.new_gate()
    request = OneRequest(server, version, f"/hints?{gate}")
    assert hinted(request) == HINTS
    server.open_gate(gate)
    assert request.answer().text == "hinted"
    assert request.goes_on()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_that_does_not_read_piles_up_no_hints(server: Server, version: str) -> None:
    gate = server.new_gate()
    before = server.resident_bytes
    request = OneRequest(server, version, f"/many-hints/4000?{gate}")
    server.until_logged(f"all hints are sent: {gate}")
    assert server.resident_bytes - before < 24 << 20, "64 MB were sent"
    assert server.get("/hola/you").text == "Hola you"
    server.open_gate(gate)
    assert request.answer().text == "hinted"
    assert request.goes_on()


def test_each_of_several_requests_in_a_row_has_its_hints(server: Server) -> None:
    with server.connect() as client:
        client.send(b"GET /hints HTTP/1.1\r\nHost: a\r\n\r\n" * 3)
        for _ in range(3):
            assert [client.opening()["link"] for _ in HINTS] == HINTS
            assert client.answer().text == "hinted"


def test_streams_of_a_connection_have_their_own_hints(server: Server) -> None:
    with server.connect2() as client:
        streams = [client.ask("GET", "/hints") for _ in range(20)]
        for stream in reversed(streams):
            assert client.answer(stream).text == "hinted"
            assert [hint["link"] for hint in client.streams[stream].interim] == HINTS


def test_http_1_0_has_no_hints(server: Server) -> None:
    """The response is the same."""
    told = asked(server, "/hints", version="1.0")
    assert told.startswith(b"HTTP/1.1 200 OK\r\n")
    assert told.endswith(b"\r\n\r\nhinted")


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
    assert "'http.response.early_hint'" in told
