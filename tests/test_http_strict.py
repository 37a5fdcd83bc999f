"""Requests that could be read in two ways are refused, and nothing after them is read."""

from __future__ import annotations

import contextlib
import json
import random
import struct
from collections.abc import Iterator

import pytest

from .conftest import Serve
from .harness.client import Broken, Client, chunked, request
from .harness.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    get,
    length,
    literal,
    post,
)
from .harness.http2 import Http2
from .harness.server import Server
from .harness.until import until

SMUGGLED = request("GET", "/hola/smuggled")
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("basic", access_log="json", workers=1)


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    before = shared.printed().count("smuggled")
    yield shared
    shared.cleared()
    assert shared.printed().count("smuggled") == before, "a request was read out of the rest of a refused one"


def check(server: Server, raw: bytes, statuses: set[int]) -> None:
    """One error response, the connection closes, and nothing after the request is read."""
    with Client(server.address) as client:
        client.send(raw, SMUGGLED)
        answer = client.answer()
        assert answer.status in statuses, f"{answer.status} {answer.text}"
        assert answer["connection"] == "close"
        assert client.ends(), "the connection goes on"


def head(
    *lines: str, method: str = "POST", target: str = "/echo", version: str = "HTTP/1.1", host: bool = True
) -> bytes:
    told = [f"{method} {target} {version}", *(["Host: test"] if host else []), *lines, "", ""]
    return "\r\n".join(told).encode("latin-1")


# Framing: Content-Length and Transfer-Encoding


@pytest.mark.parametrize(
    "raw",
    [
        head("Content-Length: 5", "Transfer-Encoding: chunked") + chunked(b"x"),
        head("Transfer-Encoding: chunked", "Content-Length: 5") + chunked(b"x"),
        head("Transfer-Encoding: chunked", "Content-Length: 0") + chunked(b"x"),
        head("content-length: 5", "TRANSFER-ENCODING: Chunked") + chunked(b"x"),
        head("Content-Length: 5", "Transfer-Encoding: identity") + b"abcde",
    ],
)
def test_two_framings_are_refused(server: Server, raw: bytes) -> None:
    check(server, raw, {400, 501})


@pytest.mark.parametrize(
    "coding",
    [
        "gzip",
        "identity",
        "chunked, gzip",
        "gzip, chunked",
        "chunked, chunked",
        "chunked;q=1",
        "xchunked",
        "chunked x",
        "\x0bchunked",
        "chunked\x0b",
        '"chunked"',
        "chunked,",
        ",chunked",
        "",
    ],
)
def test_a_transfer_coding_other_than_chunked_is_refused(server: Server, coding: str) -> None:
    check(server, head(f"Transfer-Encoding: {coding}") + chunked(b"x"), {400, 501})


@pytest.mark.parametrize(
    "raw",
    [
        head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + chunked(b"x"),
        head("Transfer-Encoding: chunked", "Transfer-Encoding: identity") + chunked(b"x"),
        head("Transfer-Encoding: chunked", version="HTTP/1.0") + chunked(b"x"),
        head("Transfer-Encoding : chunked") + chunked(b"x"),
        head("Transfer-Encoding:", " chunked") + chunked(b"x"),
        head("X: y", "\tTransfer-Encoding: chunked") + chunked(b"x"),
    ],
)
def test_a_transfer_coding_that_is_told_in_a_strange_way_is_refused(server: Server, raw: bytes) -> None:
    check(server, raw, {400, 501})


@pytest.mark.parametrize(
    "length",
    [
        "+5",
        "-5",
        "0x5",
        "5 5",
        "5, 5",
        "5,5",
        "",
        "five",
        "5.0",
        "5e0",
        "٥",
        "99999999999999999999999",
        "18446744073709551616",
        "5;",
        "_5",
        "5_0",
    ],
)
def test_a_content_length_that_is_no_number_is_refused(server: Server, length: str) -> None:
    raw = f"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n".encode()
    check(server, raw + b"abcde", {400, 413})


@pytest.mark.parametrize("second", ["5", "6", "0"])
def test_a_second_content_length_is_refused(server: Server, second: str) -> None:
    check(server, head("Content-Length: 5", f"Content-Length: {second}") + b"abcde", {400})


# Chunks


@pytest.mark.parametrize(
    "body",
    [
        b"\r\n",
        b"x\r\n",
        b"0x1\r\na\r\n",
        b"-1\r\n",
        b"+1\r\na\r\n",
        b" 1\r\na\r\n",
        b"1 \r\na\r\n",
        b"1\t\r\na\r\n",
        b"1\na\r\n0\r\n\r\n",
        b"1\ra\r\n0\r\n\r\n",
        b"1\r\nab\r\n0\r\n\r\n",
        b"1\r\na\n0\r\n\r\n",
        b"1\r\na0\r\n\r\n",
        b"1;\nb\r\na\r\n",
        b"1;\x00\r\na\r\n",
        b"1;\r\r\na\r\n",
        b"1," + b"x\r\na\r\n",
        b"1_0\r\na\r\n",
        b"10000000000000000\r\na",
        b"ffffffffffffffff\r\na",
        b"fffffffffffffffff\r\na",
        b"1;" + b"e" * 300 + b"\r\na\r\n",
        b"0" * 300 + b"1\r\na\r\n",
        b"0\r\nno colon\r\n\r\n",
        b"0\r\nX : y\r\n\r\n",
        b"0\r\n folded: x\r\n\r\n",
        b"0\r\nX: y\n\r\n",
        b"0\r\nX: a\x00b\r\n\r\n",
        b"0\r\n: y\r\n\r\n",
        b"0\r\n" + b"X: " + b"y" * 40_000 + b"\r\n\r\n",
        b"0\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
    ],
)
def test_a_malformed_chunk_is_refused(server: Server, body: bytes) -> None:
    check(server, head("Transfer-Encoding: chunked") + body, {400, 413, 431})


# Lines


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /echo HTTP/1.1\nHost: test\n\n",
        b"GET /echo HTTP/1.1\r\nHost: test\n\r\n",
        b"GET /echo HTTP/1.1\nHost: test\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX: a\nY: b\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX: a\rY: b\r\n\r\n",
        b"GET /echo HTTP/1.1\rHost: test\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX: a\r\n b\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX: a\r\n\tb\r\n\r\n",
        b"GET /echo HTTP/1.1\r\n Host: test\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX : a\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX\t: a\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\n: a\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX: a\x00b\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX: a\x01b\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX\x00: a\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX(y): a\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX\xe4: a\r\n\r\n",
    ],
)
def test_lines_that_are_not_quite_lines_are_refused(server: Server, raw: bytes) -> None:
    check(server, raw, {400})


@pytest.mark.parametrize(
    ("line", "statuses"),
    [
        (b"GET /echo", {400, 505}),
        (b"GET  /echo HTTP/1.1", {400}),
        (b"GET /echo  HTTP/1.1", {400, 505}),
        (b" GET /echo HTTP/1.1", {400}),
        (b"GET\t/echo HTTP/1.1", {400}),
        (b"GET /echo HTTP/1.1 ", {400}),
        (b"G@T /echo HTTP/1.1", {400}),
        (b"GET /echo http/1.1", {400, 505}),
        (b"GET /echo HTTP/1.2", {400, 505}),
        (b"GET /echo HTTP/2.0", {400, 505}),
        (b"GET /echo HTTP/11", {400, 505}),
        (b"GET /echo HTTP/1.10", {400, 505}),
        (b"GET /echo HTTPS/1.1", {400, 505}),
        (b"/echo HTTP/1.1", {400}),
    ],
)
def test_a_request_line_that_is_none_is_refused(server: Server, line: bytes, statuses: set[int]) -> None:
    check(server, line + b"\r\nHost: test\r\n\r\n", statuses)


@pytest.mark.parametrize(
    "target",
    [
        "echo",
        "",
        "*",
        "/echo#x",
        "/e cho",
        "/%00",
        "/\x7f",
        "/\xe4",
        "ftp://test/echo",
        "http://u@test/echo",
        "http:///echo",
        "//\x01",
        "http://te st/",
    ],
)
def test_a_malformed_target_is_refused(server: Server, target: str) -> None:
    check(server, head(method="GET", target=target), {400, 505} if " " in target else {400})


def test_connect_is_refused(server: Server) -> None:
    check(server, b"CONNECT test:80 HTTP/1.1\r\nHost: test\r\n\r\n", {400, 501})


# Host


@pytest.mark.parametrize(
    "fields",
    [
        [],
        ["Host: a", "Host: a"],
        ["Host: a", "Host: b"],
        ["Host: a", "host: b"],
        ["Host:"],
        ["Host: a b"],
        ["Host: a@b"],
        ["Host: a/b"],
        ["Host: a:b"],
        ["Host: a:1:2"],
        ["Host: [::1"],
        ["Host: http://a"],
        ["Host: a, b"],
        ["Host: a?b"],
        ["Host: a#b"],
        ["Host: a\\b"],
        ["Host: \xe4"],
    ],
)
def test_a_missing_double_or_invalid_host_is_refused(server: Server, fields: list[str]) -> None:
    check(server, head(*fields, method="GET", host=False), {400})


@pytest.mark.parametrize("host", ["test", "test:80", "127.0.0.1:8000", "[::1]:80", "a-b.c_d", "xn--nxasmq6b"])
def test_a_valid_host_is_not(server: Server, host: str) -> None:
    assert server.connect().send(request("GET", "/hola/x", host=host)).answer().status == 200


def test_a_double_host_is_refused_though_the_target_is_absolute(server: Server) -> None:
    check(server, head("Host: test", "Host: test", method="GET", target="http://test/echo", host=False), {400})


def test_http_2_without_an_authority_is_refused(server: Server) -> None:
    with Http2(server.address, strict=False) as client:
        assert client.answer(client.ask("GET", "/hola/x", authority=None)).status == 400


@pytest.mark.parametrize("authority", ["", "u@test", "a b", "a/b"])
def test_http_2_with_an_invalid_authority_is_refused(server: Server, authority: str) -> None:
    with Http2(server.address, strict=False) as client:
        stream = client.ask("GET", "/hola/x", authority=authority)
        with contextlib.suppress(Broken):  # hyper resets the stream for some of them
            assert client.answer(stream).status == 400


# Upgrade and Expect


@pytest.mark.parametrize("upgrade", ["websocket", "h2c", "x"])
def test_an_upgrade_that_is_not_understood_is_passed_over(server: Server, upgrade: str) -> None:
    client = server.connect()
    fields = ["Connection: Upgrade, HTTP2-Settings", f"Upgrade: {upgrade}", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"]
    assert client.get("/hola/x", *fields).status == 200
    assert client.get("/hola/y").text == "Hola y", "the connection speaks HTTP/1.1 as before"


@pytest.mark.parametrize("framing", [["Content-Length: 5"], ["Transfer-Encoding: chunked"]])
def test_an_upgrade_with_a_body_is_refused(server: Server, framing: list[str]) -> None:
    check(server, head("Connection: Upgrade", "Upgrade: websocket", *framing) + b"0\r\n\r\n", {400})


@pytest.mark.parametrize("expectation", ["more", "100-continue, more", "200-ok", ""])
def test_an_expectation_that_is_not_understood_is_refused(server: Server, expectation: str) -> None:
    check(server, head(f"Expect: {expectation}", "Content-Length: 5") + b"abcde", {400, 417})


def test_a_body_that_follows_a_refused_expectation_is_no_request(server: Server) -> None:
    with Client(server.address) as client:
        client.send(head("Expect: 100-continue", f"Content-Length: {1 << 40}"))
        assert client.answer().status == 413
        try:
            client.send(SMUGGLED)
        except ConnectionError:
            return
        assert client.ends()


# After an error nothing is read


@pytest.mark.promise(1)
def test_what_was_pipelined_before_an_error_is_answered_and_what_came_behind_is_not(server: Server) -> None:
    client = server.connect()
    client.send(request("GET", "/after/0.05"), request("GET", "/hola/good"), b"bad\r\n\r\n", SMUGGLED)
    assert [client.answer().status for _ in range(3)] == [200, 200, 400]
    assert client.ends()


# Bodies that end early


@pytest.mark.parametrize(
    "raw",
    [
        head("Content-Length: 10") + b"short",
        head("Content-Length: 100000") + b"x" * 70_000,
        head("Transfer-Encoding: chunked") + b"5\r\nshort\r\n",
        head("Transfer-Encoding: chunked") + b"5\r\nsho",
        head("Transfer-Encoding: chunked") + b"5\r\nshort\r\n0\r\n",
        head("Transfer-Encoding: chunked") + b"5",
    ],
)
@pytest.mark.parametrize("how", ["close", "half close", "reset"])
def test_a_body_that_ends_early_is_never_a_request(server: Server, raw: bytes, how: str) -> None:
    before = server.status()["counts"]["accepted"]
    client = Client(server.address)
    client.send(raw)
    match how:
        case "close":
            client.close()
        case "reset":
            client.reset()
        case _:
            said = client.half_close().rest()
            assert not said or b" 400 " in said.split(b"\r\n")[0]
    server.until(lambda status: status["connections"]["http1"] == 0)
    assert server.status()["counts"]["accepted"] == before


# Unchecked input


@pytest.mark.parametrize("name", ["%0a", "a%0d%0ab", "%1b", "x" * 201, "%7f"])
def test_a_channel_name_with_control_characters_or_too_long_is_400(server: Server, name: str) -> None:
    assert server.get(f"/next/{name}").status == 400
    assert server.get(f"/events/{name}").status == 400
    assert server.post(f"/publish/{name}", b"x").status == 400


def test_what_a_client_sends_cannot_forge_lines_of_the_access_log(server: Server) -> None:
    lines = len(server.printed().splitlines())
    assert server.get("/hola/x", 'User-Agent: "forged"\\ \xff').status == 200
    assert server.get("/hola/%0aforged").status == 200
    assert server.get("/hola/x", "User-Agent: a\x1b[31m").status == 400
    until("two lines", lambda: len(server.printed().splitlines()) >= lines + 2)
    for line in server.printed().splitlines():
        json.loads(line)
        assert "\x1b" not in line


# Garbage


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_harm_nobody(server: Server, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        with Client(server.address) as client:
            client.send_what_goes(chance.randbytes(chance.randrange(1, 2000)))
    server.still_serves()


@pytest.mark.parametrize("seed", range(4))
def test_good_requests_with_some_wrong_bytes_harm_nobody(server: Server, seed: int) -> None:
    chance = random.Random(seed)
    good = [
        request("GET", "/hola/x", "X-A: b"),
        request("POST", "/echo", body=b"body"),
        head("Transfer-Encoding: chunked") + chunked(b"one", b"two"),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    ]
    for _ in range(100):
        raw = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(raw))
            match chance.randrange(3):
                case 0:
                    raw[at] = chance.randrange(256)
                case 1:
                    del raw[at]
                case _:
                    raw.insert(at, chance.choice(b"\r\n\0 :;,\xff0"))
        with Client(server.address) as client:
            client.send_what_goes(bytes(raw))
    server.still_serves()


@pytest.mark.parametrize("at", range(0, 62, 3))
def test_a_request_cut_anywhere_is_none(server: Server, at: int) -> None:
    raw = head("Content-Length: 4", "X-Y: z") + b"body"
    before = server.status()["counts"]["accepted"]
    with Client(server.address) as client:
        client.send(raw[: min(at, len(raw) - 1)])
    server.until(lambda status: status["connections"]["http1"] == 0)
    assert server.status()["counts"]["accepted"] == before


# HTTP/2: floods. The frames are made by hand, because no library sends them.


def flood(server: Server, frames: Iterator[bytes], mebibytes: int = 16) -> None:
    """Sends until the server ends the connection, or everything is sent. The core must not grow by more than this."""
    before = server.resident_bytes
    with Client(server.address) as client:
        client.socket.settimeout(2)
        client.send(PREFACE, frame(SETTINGS, 0, 0))
        try:
            for piece in frames:
                client.send(piece)
        except (ConnectionError, TimeoutError):
            pass
        assert server.resident_bytes - before < mebibytes * MEBIBYTE
        server.status()
    assert server.resident_bytes - before < mebibytes * MEBIBYTE


def test_rapid_resets_are_cut_off_and_their_work_is_cancelled(server: Server) -> None:
    flood(
        server,
        (
            b"".join(
                frame(HEADERS, END_HEADERS | END_STREAM, stream, get(b"/next/rapid"))
                + frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
                for stream in range(first, first + 200, 2)
            )
            for first in range(1, 20_000, 200)
        ),
    )
    server.until_zero()


def test_resets_that_the_server_is_made_to_send_are_cut_off_too(server: Server) -> None:
    """MadeYouReset: a zero window update on each stream makes the server reset it."""
    flood(
        server,
        (
            b"".join(
                frame(HEADERS, END_HEADERS | END_STREAM, stream, get(b"/next/made"))
                + frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 0))
                for stream in range(first, first + 200, 2)
            )
            for first in range(1, 20_000, 200)
        ),
    )
    server.until_zero()


def test_slow_resets_cancel_their_work_one_by_one(server: Server) -> None:
    client = server.connect2()
    for _ in range(40):
        stream = client.ask("GET", "/next/slow")
        server.until_parked(1)
        client.reset(stream)
        server.until_zero()
    assert client.get("/hola/x").status == 200, "who resets now and then is no attacker"


def test_endless_continuations_end_the_connection(server: Server) -> None:
    def frames() -> Iterator[bytes]:
        yield frame(HEADERS, END_STREAM, 1, get(b"/hola/x"))
        for _ in range(4_000):
            yield frame(CONTINUATION, 0, 1, literal(b"x-a", b"v" * 4_000) * 4)

    flood(server, frames())


def test_empty_continuations_end_the_connection(server: Server) -> None:
    def frames() -> Iterator[bytes]:
        yield frame(HEADERS, END_STREAM, 1, get(b"/hola/x"))
        for _ in range(2_000):
            yield frame(CONTINUATION, 0, 1) * 100

    flood(server, frames())


def test_an_hpack_bomb_is_refused_and_memory_stays_flat(server: Server) -> None:
    """One long field is put into the table, then referenced thousands of times."""
    stored = b"\x40\x01x" + length(4_000) + b"v" * 4_000

    def frames() -> Iterator[bytes]:
        yield frame(HEADERS, END_HEADERS | END_STREAM, 1, get(b"/hola/x") + stored)
        for stream in range(3, 203, 2):
            yield frame(HEADERS, END_HEADERS | END_STREAM, stream, get(b"/hola/smuggled") + b"\xbe" * 10_000)

    flood(server, frames())


def test_too_many_or_too_long_fields_of_http_2_are_refused(server: Server) -> None:
    client = server.connect2()
    assert client.get("/hola/x", *((f"x-{number}", "y") for number in range(101))).status == 431
    assert client.get("/hola/x").status == 200


@pytest.mark.parametrize(
    ("what", "piece"),
    [
        ("pings", frame(PING, 0, 0, b"12345678") * 1000),
        ("settings", frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65_535)) * 1000),
        ("empty data", frame(DATA, 0, 1) * 1000),
        ("window updates", frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 1000),
        ("priorities", frame(PRIORITY, 0, 1, b"\0\0\0\0\1") * 1000),
        ("unknown frames", frame(0x77, 0, 0, b"x" * 10) * 1000),
    ],
)
def test_a_flood_of_control_frames_grows_nothing(server: Server, what: str, piece: bytes) -> None:
    def frames() -> Iterator[bytes]:
        yield frame(HEADERS, END_HEADERS, 1, post(b"/echo"))
        for _ in range(500):
            yield piece

    flood(server, frames())


def test_broken_frames_of_http_2_end_the_connection(server: Server) -> None:
    chance = random.Random(7)
    for _ in range(60):
        with Client(server.address) as client:
            rubbish = frame(
                chance.randrange(12), chance.randrange(256), chance.randrange(4), chance.randbytes(chance.randrange(40))
            )
            client.send_what_goes(PREFACE + frame(SETTINGS, 0, 0) + rubbish)
            client.send_what_goes(chance.randbytes(60))
    server.still_serves()


@pytest.mark.parametrize(
    "fields",
    [
        [("connection", "close")],
        [("transfer-encoding", "chunked")],
        [("te", "gzip")],
        [("X-Upper", "case")],
        [("x-a", "b\r\nx-c: d")],
        [("x-a", "b\0")],
        [("content-length", "5")],
        [("host", "other"), ("host", "another")],
        [("x a", "b")],
        [(":path", "/hola/smuggled")],
    ],
)
def test_fields_that_http_2_forbids_never_reach_a_handler(server: Server, fields: list[tuple[str, str]]) -> None:
    before = server.status()["counts"]["accepted"]
    block = get(b"/hola/forbidden") + b"".join(literal(name.encode(), value.encode()) for name, value in fields)
    with Client(server.address) as client:
        client.send(PREFACE, frame(SETTINGS, 0, 0), frame(HEADERS, END_HEADERS | END_STREAM, 1, block))
        client.send(frame(PING, 0, 0, b"12345678"))
        assert client.is_readable(5)
        server.until(lambda status: True)
    assert server.status()["counts"]["accepted"] == before
