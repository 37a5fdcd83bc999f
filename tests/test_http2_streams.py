"""Streams of HTTP/2 as hosted applications and their clients see them: one that fails leaves its neighbours alone."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from h2.errors import ErrorCodes

from .conftest import Serve
from .harness import perl
from .harness.client import Broken
from .harness.frames import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Frames,
    frame,
    get,
    literal,
    post,
)
from .harness.server import Server

APPS: dict[str, dict[str, Any]] = {
    "asgi": {"target": "raw_asgi"},
    "wsgi": {"target": "raw_wsgi"},
    "threads": {"target": "raw_wsgi", "threads": 3},
    **({"psgi": {"target": "raw.psgi"}} if perl.has("JSON::PP") else {}),
}
UNREAD = "/hola/you"
"""Answers without reading its body (in PSGI, after it is there)."""

LONG = 2_000_000
"""The length of a body whose beginning reaches any application before its end."""

WHOLE = END_HEADERS | END_STREAM
FOUR = (b"content-length", b"4")


@pytest.fixture(scope="module", params=APPS)
def shared(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all(**APPS[request.param], workers=1, body_limit="1MiB", stream_limit="4MiB")


def is_asgi(server: Server) -> bool:
    return "asgi" in server.target


def is_psgi(server: Server) -> bool:
    return server.target.endswith(".psgi")


def answers_before_the_end_of(server: Server, length: int) -> None:
    """Skips a test for which an application has to answer while most of a body is missing."""
    if length == LONG and is_psgi(server):
        pytest.skip("PSGI has its body whole")


def told(server: Server) -> str:
    """The path that tells the request."""
    return "/scope" if is_asgi(server) else "/environ"


def asking(server: Server, *frames: bytes, settings: bytes = b"") -> Frames:
    return Frames(server.address, settings).send(*frames)


def by_method(method: bytes) -> bytes:
    """The fields of a request."""
    return literal(b":method", method) + b"\x86" + literal(b":path", b"/hola/you") + literal(b":authority", b"test")


# A stream that fails


@pytest.mark.parametrize("target", ["/broken", "/length/5/4"])
def test_a_response_that_breaks_off_resets_its_stream_alone(server: Server, target: str) -> None:
    client = server.connect2()
    path = target.replace("/length", "/streamed-length") if is_asgi(server) else target
    with pytest.raises(Broken, match="CANCEL"):
        client.answer(client.ask("GET", path))
    for _ in range(3):
        assert client.get("/hola/you").text == "Hola you"
    assert client.goaway is None


@pytest.mark.parametrize(
    "field",
    [
        (b"connection", b"close"),
        (b"keep-alive", b"9"),
        (b"transfer-encoding", b"chunked"),
        (b"upgrade", b"h2c"),
        (b"te", b"gzip"),
        (b"content-length", b"7"),
        (b"content-length", b"-1"),
        (b":path", b"/hola/you"),
        (b":status", b"200"),
        (b"host", b"other"),
    ],
    ids=str,
)
def test_a_malformed_request_costs_its_stream_and_no_other(server: Server, field: tuple[bytes, bytes]) -> None:
    wrong = frame(HEADERS, WHOLE, 1, get(b"/hola/you") + literal(*field))
    with asking(server, wrong, frame(HEADERS, WHOLE, 3, get(b"/hola/you"))) as client:
        client.until_ended(3).until_quiet()
        assert client.body(3) == b"Hola you"
        assert client.reset(1) is not None or client.status(1) == 400
        assert client.goaway is None


@pytest.mark.parametrize(
    "block",
    [
        get(b"/hola/you") + literal(b"x-a", b"b\0"),
        get(b"/hola/you") + literal(b"x-a", b"b\nc"),
        get(b"/hola/you") + literal(b"x-a", b"b\rc"),
        get(b"/hola/you") + literal(b"x-a", b"b\x7f"),
        get(b"/hola/you") + literal(b"X-A", b"b"),
        get(b"/hola/you") + literal(b"x a", b"b"),
        get(b"/hola/you") + literal(b"x:a", b"b"),
        get(b"/hola/you") + literal(b"", b"b"),
        get(b"/hola/you") + literal(b":unknown", b"b"),
        by_method(b"G T"),
        by_method(b"GET:"),
        by_method(b""),
        by_method(b"G\xc9T"),
        by_method(b"(GET)"),
    ],
)
def test_bytes_that_no_field_may_have_end_the_connection(server: Server, block: bytes) -> None:
    """Whoever sends them is no client of HTTP/2, or one that tries what a proxy lets through."""
    before = server.status()["counts"]["accepted"]
    with asking(server, frame(HEADERS, WHOLE, 1, block)) as client:
        assert client.until_closed().goaway == ErrorCodes.PROTOCOL_ERROR
    assert server.status()["counts"]["accepted"] == before


@pytest.mark.parametrize("length", [200_000, LONG])
def test_a_body_that_nobody_wants_is_refused_and_the_connection_goes_on(server: Server, length: int) -> None:
    """Of the long one, only the beginning is sent."""
    answers_before_the_end_of(server, length)
    client = server.connect2()
    for _ in range(4):
        stream = client.ask("POST", UNREAD, ("content-length", str(length)), body=b"x" * 200_000, end=length < LONG)
        assert client.answer(stream).status == 200
        assert client.streams[stream].reset in (None, ErrorCodes.NO_ERROR)
    assert client.get("/hola/you").text == "Hola you"
    assert client.goaway is None


def test_a_client_that_goes_on_sending_gets_its_response_without_a_reset(server: Server) -> None:
    """curl 7.88 drops a response whose stream is reset with NO_ERROR. This client may be too slow, once or twice."""
    if not is_asgi(server):
        pytest.skip("others have this body whole")
    assert any(sends_all(server) for _ in range(3))


def sends_all(server: Server) -> bool:
    asked = frame(HEADERS, END_HEADERS, 1, post(UNREAD.encode(), (b"content-length", b"200000")))
    piece = frame(DATA, 0, 1, bytes(10_000))
    answered = server.status()["counts"]["answered"]
    with asking(server, asked, piece * 6) as client:
        client.until_quiet().send(frame(SETTINGS, ACK, 0), piece * 4)
        server.until(lambda status: status["counts"]["answered"] > answered)
        client.send(piece * 9, frame(DATA, END_STREAM, 1, bytes(10_000)))
        client.until_ended(1).until_quiet()
        assert (client.status(1), client.goaway) == (200, None)
        return client.reset(1) is None


def test_a_client_that_was_not_asked_for_its_body_is_answered_at_once(server: Server) -> None:
    """It waits for `100 Continue`: nothing is waited for that it could send."""
    if not is_asgi(server):
        pytest.skip("others have this body whole")
    asked = post(UNREAD.encode(), (b"content-length", b"200000"), (b"expect", b"100-continue"))
    answered = server.status()["counts"]["answered"]
    with asking(server, frame(HEADERS, END_HEADERS, 1, asked)) as client:
        server.until(lambda status: status["counts"]["answered"] > answered)
        client.until_quiet().until_quiet()
        assert (client.status(1), client.is_whole(1)) == (200, True)


def test_an_error_comes_before_the_rest_of_its_request(server: Server) -> None:
    asked = frame(HEADERS, END_HEADERS, 1, post(UNREAD.encode(), (b"content-length", b"5000000")))
    with asking(server, asked, frame(DATA, 0, 1, bytes(10_000))) as client:
        client.until_ended(1).until_quiet()
        assert (client.status(1), client.reset(1), client.goaway) == (413, ErrorCodes.NO_ERROR, None)
        assert b"Content Too Large" in client.body(1)


def test_what_comes_for_a_stream_that_has_ended_is_dropped(server: Server) -> None:
    """A client cannot know that the response, and the end of the stream, are on their way."""
    answers_before_the_end_of(server, LONG)
    client = server.connect2()
    stream = client.ask("POST", UNREAD, ("content-length", str(LONG)), body=b"x" * 200_000, end=False)
    assert client.answer(stream).status == 200
    late = [frame(DATA, 0, stream, b"y" * 1_000), frame(HEADERS, WHOLE, stream, literal(b"x-t", b"v"))]
    client.socket.sendall(b"".join(late))
    assert client.get("/hola/you").text == "Hola you"
    assert client.goaway is None


# Bodies

BODIES = {
    "whole": [frame(DATA, END_STREAM, 1, b"body")],
    "an empty piece": [frame(DATA, 0, 1, b"bo"), frame(DATA, 0, 1, b""), frame(DATA, END_STREAM, 1, b"dy")],
    "an empty end": [frame(DATA, 0, 1, b"body"), frame(DATA, END_STREAM, 1)],
    "padded": [frame(DATA, PADDED | END_STREAM, 1, b"\x09body" + bytes(9))],
    "padded pieces": [frame(DATA, PADDED, 1, b"\0bo"), frame(DATA, PADDED | END_STREAM, 1, b"\x02dy\0\0")],
    "trailers": [frame(DATA, 0, 1, b"body"), frame(HEADERS, WHOLE, 1, literal(b"x-trailer", b"said"))],
    "strange trailers": [frame(DATA, 0, 1, b"body"), frame(HEADERS, WHOLE, 1, literal(b"host", b"other"))],
    "a priority": [frame(PRIORITY, 0, 1, b"\0\0\0\0\x0f"), frame(DATA, END_STREAM, 1, b"body")],
    "an unknown frame": [frame(0x55, 0, 1, b"unknown"), frame(DATA, END_STREAM, 1, b"body")],
    "a goodbye before it": [frame(GOAWAY, 0, 0, bytes(8)), frame(DATA, END_STREAM, 1, b"body")],
}


@pytest.mark.parametrize("frames", BODIES.values(), ids=BODIES)
def test_a_body_in_frames_of_any_kind_is_the_same(server: Server, frames: list[bytes]) -> None:
    with asking(server, frame(HEADERS, END_HEADERS, 1, post(b"/echo", FOUR)), *frames) as client:
        client.until_ended(1)
        assert (client.status(1), client.body(1)) == (200, b"body")


WRONG = {
    "short": [frame(DATA, END_STREAM, 1, b"bod")],
    "long": [frame(DATA, END_STREAM, 1, b"bodyy")],
    "short with trailers": [frame(DATA, 0, 1, b"bod"), frame(HEADERS, WHOLE, 1, literal(b"x-t", b"v"))],
    "trailers about the connection": [frame(DATA, 0, 1, b"body"), frame(HEADERS, WHOLE, 1, literal(b"upgrade", b"v"))],
    "trailers that do not end": [frame(DATA, 0, 1, b"body"), frame(HEADERS, END_HEADERS, 1, literal(b"x-t", b"v"))],
    "more padding than frame": [frame(DATA, PADDED | END_STREAM, 1, b"\x09body")],
}


@pytest.mark.parametrize("frames", WRONG.values(), ids=WRONG)
def test_a_body_that_is_not_what_was_announced_is_never_taken_for_whole(server: Server, frames: list[bytes]) -> None:
    with asking(server, frame(HEADERS, END_HEADERS, 1, post(b"/echo", FOUR)), *frames) as client:
        client.until_ended(1).until_quiet()
        assert client.reset(1) is not None or client.goaway is not None or client.status(1) == 400
        assert not client.body(1).startswith(b"bod")


def test_padding_costs_no_window_for_good(server: Server) -> None:
    """Otherwise the body would stand still after 64 KiB."""
    client = server.connect2()
    stream = client.ask("POST", "/count", end=False)
    for _ in range(600):
        client.connection.send_data(stream, b"x", pad_length=255)
        client.flush()
        while client.connection.local_flow_control_window(stream) < 1_000:
            client.receive()
    client.connection.end_stream(stream)
    client.flush()
    assert client.answer(stream).text == "600"


def test_a_reset_while_the_application_reads_is_not_its_mistake(server: Server) -> None:
    before = server.log().count("ERROR")
    client = server.connect2()
    for _ in range(3):
        stream = client.ask("POST", "/count", ("content-length", str(LONG)), body=b"x" * 200_000, end=False)
        server.until_running(1)
        client.reset(stream)
        server.until_zero()
    assert client.get("/hola/you").text == "Hola you"
    assert server.log().count("ERROR") == before


@pytest.mark.parametrize("fields", [[FOUR], []], ids=["announced", "of unknown length"])
@pytest.mark.parametrize("code", [ErrorCodes.NO_ERROR, ErrorCodes.CANCEL])
def test_the_beginning_of_a_body_is_not_taken_for_the_whole(
    server: Server, code: int, fields: list[tuple[bytes, bytes]]
) -> None:
    """Whatever the reason with which its client breaks it off."""
    before = server.status()["counts"]["accepted"]
    head, reset = (
        frame(HEADERS, END_HEADERS, 1, post(b"/echo", *fields)),
        frame(RST_STREAM, 0, 1, struct.pack(">I", code)),
    )
    with asking(server, head, frame(DATA, 0, 1, b"bo"), reset) as client:
        client.until_quiet()
        assert client.status(1) is None
    if fields or not is_asgi(server):  # which gets one of unknown length at once, and hears of its end
        assert server.status()["counts"]["accepted"] == before


# Windows


def test_a_response_waits_for_its_window_and_no_other_waits_for_it(server: Server) -> None:
    client = server.connect2(window=0)
    stream = client.ask("GET", "/hola/you")
    assert client.opening(stream).status == 200
    assert client.answer(client.ask("HEAD", "/hola/you")).status == 200
    assert client.streams[stream].pieces == []
    for size in (3, 1, 4):
        client.connection.increment_flow_control_window(size, stream)
        client.flush()
        assert len(client.piece(stream)) == size
    assert client.piece(stream) == b""


def test_a_window_that_overflows_ends_what_it_belongs_to(server: Server) -> None:
    asked, most = frame(HEADERS, END_HEADERS, 1, post(b"/echo")), struct.pack(">I", 2**31 - 1)
    with asking(server, asked, frame(WINDOW_UPDATE, 0, 1, most)) as client:
        assert client.until_ended(1).reset(1) == ErrorCodes.FLOW_CONTROL_ERROR
    with asking(server, asked, frame(WINDOW_UPDATE, 0, 0, most)) as client:
        assert client.until_closed().goaway == ErrorCodes.FLOW_CONTROL_ERROR


@pytest.mark.parametrize(
    ("name", "value"), [(4, 2**31), (5, 16_383), (5, 2**24), (2, 2)], ids=["window", "short", "long", "push"]
)
def test_a_setting_that_cannot_be_ends_the_connection(server: Server, name: int, value: int) -> None:
    with asking(server, settings=struct.pack(">HI", name, value)) as client:
        assert client.until_closed().goaway in (ErrorCodes.FLOW_CONTROL_ERROR, ErrorCodes.PROTOCOL_ERROR)


@pytest.mark.parametrize("size", [16_384, 20_000, 1_000_000])
def test_frames_are_no_longer_than_the_client_allows(server: Server, size: int) -> None:
    body = [frame(DATA, 0, 1, b"x" * 10_000) for _ in range(6)]
    asked = frame(HEADERS, END_HEADERS, 1, post(b"/echo", (b"content-length", b"60000")))
    with asking(server, asked, *body, frame(DATA, END_STREAM, 1), settings=struct.pack(">HI", 5, size)) as client:
        client.until_ended(1)
        assert client.body(1) == b"x" * 60_000
        assert max(len(payload) for *_, payload in client.received) <= size


# The connection


def test_a_client_that_says_goodbye_gets_what_it_has_asked_for(server: Server) -> None:
    gate = server.new_gate()
    with asking(server, frame(HEADERS, WHOLE, 1, get(f"/held/{gate}".encode()))) as client:
        while client.body(1) != b"one ":
            client.next()
        client.send(frame(GOAWAY, 0, 0, bytes(8)))
        server.open_gate(gate)
        client.until_closed()
        assert client.body(1) == b"one two"
        assert client.is_whole(1)


def test_settings_and_pings_are_acknowledged(server: Server) -> None:
    with asking(server, frame(SETTINGS, 0, 0, struct.pack(">HI", 0x99, 7)), frame(PING, 0, 0, b"12345678")) as client:
        client.until_quiet()
        answered = [(kind, payload) for kind, flags, _, payload in client.received if flags == 1]
        assert answered[:3] == [(SETTINGS, b""), (SETTINGS, b""), (PING, b"12345678")]


def test_streams_at_the_same_time_are_all_answered(server: Server) -> None:
    client = server.connect2()
    client.get("/hola/you")
    count = min(100, client.connection.remote_settings.max_concurrent_streams)
    streams = [client.ask("POST", "/echo", ("content-length", "2"), end=False) for _ in range(count)]
    for at, stream in enumerate(streams):
        client.send(stream, f"{at:02}".encode())
    assert [client.answer(stream).text for stream in reversed(streams)] == [f"{at:02}" for at in reversed(range(count))]


# What the application is told


@pytest.mark.parametrize("scheme", [b"https", b"HTTPS", b"gopher"])
def test_the_scheme_that_a_client_claims_is_not_believed(server: Server, scheme: bytes) -> None:
    block = b"\x82" + literal(b":scheme", scheme) + literal(b":authority", b"test")
    block += literal(b":path", told(server).encode())
    with asking(server, frame(HEADERS, WHOLE, 1, block)) as client:
        client.until_ended(1)
        if client.status(1) == 200:
            said = json.loads(client.body(1))
            names = ("scheme", "wsgi.url_scheme", "psgi.url_scheme")
            assert [said[name].strip("'") for name in names if name in said] == ["http"]
        else:
            assert scheme != b"https"


@pytest.mark.parametrize("fields", [(), (("host", "example.com:81"),)])
def test_the_authority_is_the_host(server: Server, fields: tuple[tuple[str, str], ...]) -> None:
    client = server.connect2()
    said = client.answer(client.ask("GET", told(server), *fields, authority="example.com:81")).json()
    if is_asgi(server):
        assert [value for name, value in said["headers"] if name == "host"] == ["example.com:81"]
        assert not [name for name, _ in said["headers"] if name.startswith(":")]
    else:
        assert said["HTTP_HOST"] == "example.com:81"


def test_a_host_will_do_without_an_authority(server: Server) -> None:
    client = server.connect2()
    said = client.answer(client.ask("GET", told(server), ("host", "example.com"), authority=None)).json()
    host = dict(said["headers"])["host"] if is_asgi(server) else said["HTTP_HOST"]
    assert host == "example.com"


def test_a_priority_is_a_field_like_any_other(server: Server) -> None:
    assert "u=0, i" in server.connect2().get(told(server), ("priority", "u=0, i")).text
