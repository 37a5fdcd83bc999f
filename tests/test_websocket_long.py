"""Messages of WebSockets that are longer than a frame of a worker: whole ones, and unfinished ones of many clients."""

from __future__ import annotations

import random
import signal
import struct
import zlib
from collections.abc import Iterator

import pytest
from wsproto.events import CloseConnection, Pong

from .conftest import Kind, Serve
from .harness import processes
from .harness.server import Server
from .harness.until import until
from .harness.websocket import BINARY, CONTINUED, PING, TEXT, Opener, frame

MEBIBYTE = 1 << 20
LIMIT = 16 * MEBIBYTE
NEVER = "10m"
CLIENTS = 30


def unmasked(kind: int, payload: bytes, final: bool = True, reserved: int = 0) -> bytes:
    """A frame of a client. The mask of a long one is zero: that costs this client nothing."""
    if len(payload) < 65_536:
        return frame(kind, payload, final, reserved=reserved)
    return struct.pack("!BBQ", (0x80 if final else 0) | reserved << 4 | kind, 0xFF, len(payload)) + bytes(4) + payload


def fragments(kind: int, payload: bytes, size: int, reserved: int = 0) -> Iterator[bytes]:
    for start in range(0, len(payload), size):
        is_last = start + size >= len(payload)
        yield unmasked(CONTINUED if start else kind, payload[start : start + size], is_last, 0 if start else reserved)


def binary(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def text(size: int) -> str:
    """So many bytes, or a few less, some of characters that have several."""
    return ("J\u00fcrgen \U0001f600 " * (size // 13 + 1)).encode()[:size].decode(errors="ignore")


def held(server: Server) -> int:
    return int(server.status()["memory"]["request_bytes"])


@pytest.fixture(scope="module", params=["sockets_asgi", "sockets_native"])
def shared(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all(request.param, workers=1)


# Whole messages


@pytest.mark.parametrize("size", [MEBIBYTE + 1, 5 * MEBIBYTE, LIMIT])
def test_a_long_message_comes_back(server: Server, size: int, opened: Opener) -> None:
    client = opened(server, "/echo")
    message = binary(size)
    assert client.raw(unmasked(BINARY, message)).receive() == message
    assert client.send("between").receive() == "between"
    words = text(size)
    assert client.raw(*fragments(TEXT, words.encode(), 300_001)).receive() == words
    assert client.close()[0] == 1000
    until("nothing is held", lambda: held(server) == 0)


def test_a_message_beyond_the_limit_is_refused(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    client.raw(unmasked(BINARY, bytes(LIMIT + 1))[:20])
    assert client.closed(answers=False)[0] == 1009


@pytest.mark.parametrize("app", ["sockets_asgi", "sockets_native"])
def test_the_limit_is_a_setting(serve: Serve, app: str, opened: Opener) -> None:
    server = serve(app, workers=1, websocket_limit="1MiB")
    half = MEBIBYTE // 2
    for frames in (
        [unmasked(BINARY, bytes(MEBIBYTE + 1))[:20]],
        [unmasked(BINARY, bytes(half), final=False), unmasked(CONTINUED, bytes(half + 1))[:20]],
    ):
        client = opened(server, "/echo")
        assert client.raw(unmasked(BINARY, bytes(MEBIBYTE))).receive() == bytes(MEBIBYTE)
        assert client.raw(*frames).closed(answers=False)[0] == 1009
    server.leave()
    server.still_serves()


def test_a_long_text_is_utf_8_as_a_whole(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    words = text(3 * MEBIBYTE).encode()
    client.raw(unmasked(TEXT, words + b"\xff", final=False))
    assert client.closed(answers=False)[0] == 1007
    server.still_serves()


@pytest.mark.parametrize("how", ["message", "context"])
def test_long_messages_are_compressed_in_both_directions(serve: Serve, how: str, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1, websocket_compression=how)
    clients = [opened(server, "/echo", deflate=True) for _ in range(2)]
    squeezed = [zlib.compressobj(wbits=-15) for _ in clients]
    forgets = "client_no_context_takeover" in clients[0].opening["sec-websocket-extensions"]
    for size in (3 * MEBIBYTE, 100, 2 * MEBIBYTE):
        words = text(size // 2) + "".join(random.Random(size).choices("abcdefgh\u00fc", k=size // 4))
        for at, client in enumerate(clients):
            if forgets:
                squeezed[at] = zlib.compressobj(wbits=-15)
            data = squeezed[at].compress(words.encode()) + squeezed[at].flush(zlib.Z_SYNC_FLUSH)
            client.raw(
                *fragments(TEXT, data[:-4], 200_000, reserved=4) if size > 100 else [frame(TEXT, data[:-4], reserved=4)]
            )
        for client in clients:  # both get fragments at the same time
            assert client.receive() == words
    assert {client.close()[0] for client in clients} == {1000}


@pytest.mark.also_in_perl
def test_a_function_is_called_with_a_long_message(kind: Kind, serve: Serve, opened: Opener) -> None:
    server = serve("held_sockets", workers=1, environment=kind)
    client = opened(server, "/length")
    message = binary(9 * MEBIBYTE)
    assert client.raw(*fragments(BINARY, message, MEBIBYTE)).receive() == str(len(message))
    assert client.close()[0] == 1000
    until("nothing is held", lambda: held(server) == 0)


# Memory


@pytest.mark.promise(8)
def test_unfinished_messages_of_many_clients_take_no_more_than_their_budget(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1, requests_limit="48MiB", body_timeout=NEVER)
    other = opened(server, "/echo")
    assert other.send("before").receive() == "before"
    before = server.resident_bytes
    clients = [opened(server, "/echo") for _ in range(CLIENTS)]
    finished, refused = clients[:6], clients[6:]
    for client in finished:
        client.raw(unmasked(BINARY, bytes(4 * MEBIBYTE), final=False), frame(PING))
        assert isinstance(client.next(), Pong)
    assert held(server) == 24 * MEBIBYTE, "half of the budget is for messages"
    for client in refused:
        client.raw(unmasked(BINARY, bytes(100_000), final=False))
        assert client.closed(answers=False)[0] == 1013
    assert held(server) == 24 * MEBIBYTE
    assert processes.peak_bytes(server.pid) - before < 36 * MEBIBYTE
    assert other.send("meanwhile").receive() == "meanwhile"
    assert server.get("/hola/x").status == 200
    for client in finished:
        assert client.raw(frame(CONTINUED, b"end")).receive() == bytes(4 * MEBIBYTE) + b"end"
    until("everything is given back", lambda: held(server) == 0)


@pytest.mark.promise(8)
def test_what_an_application_does_not_receive_counts_until_it_does(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1, requests_limit="48MiB", body_timeout=NEVER)
    gate = server.new_gate()
    *clients, late = (opened(server, f"/lazy/{gate}") for _ in range(7))
    server.until_logged("accepted", times=7)
    before = server.resident_bytes
    for client in clients:
        client.raw(unmasked(BINARY, bytes(4 * MEBIBYTE)))
    beyond_window = 6 * (4 * MEBIBYTE + 64 - 262_144)
    until("the worker has them", lambda: held(server) == beyond_window)
    until("the core has not", lambda: server.resident_bytes - before < 12 * MEBIBYTE)
    late.raw(unmasked(BINARY, bytes(1_600_000), final=False))
    assert late.closed(answers=False)[0] == 1013
    server.open_gate(gate)
    for client in clients:
        assert client.raw(frame(BINARY)).receive() == str(4 * MEBIBYTE)
    until("everything is given back", lambda: held(server) == 0)


def test_a_bomb_takes_no_more_than_a_message(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1)
    client = opened(server, "/echo", deflate=True)
    before = server.resident_bytes
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = squeezed.compress(bytes(256 * MEBIBYTE)) + squeezed.flush(zlib.Z_SYNC_FLUSH)
    client.raw(unmasked(BINARY, bomb[:-4], reserved=4))
    assert client.closed(answers=False)[0] == 1009
    assert processes.peak_bytes(server.pid) - before < 40 * MEBIBYTE


def test_a_message_to_a_client_that_does_not_read_stays_with_the_worker(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1, stall_timeout=NEVER)
    before = server.resident_bytes
    clients = [opened(server, f"/push/1x{40 * MEBIBYTE}") for _ in range(4)]
    other = opened(server, "/echo")
    for _ in range(20):
        assert other.send("between").receive() == "between"
    assert processes.peak_bytes(server.pid) - before < 16 * MEBIBYTE
    for client in clients[:2]:
        message = client.receive()
        assert (len(message), message[:4]) == (40 * MEBIBYTE, bytes(4))
        assert client.close()[0] == 1000
    for client in (*clients[2:], other):
        client.client.close()
    server.still_serves()


# Ends


def test_a_message_that_stalls_ends_the_connection(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1, body_timeout="1s")
    short, long = opened(server, "/echo"), opened(server, "/echo")
    short.raw(frame(BINARY, b"a", final=False))
    long.raw(unmasked(BINARY, bytes(MEBIBYTE), final=False))
    assert long.client.ends()
    assert short.raw(frame(CONTINUED, b"b")).receive() == b"ab"
    server.until_logged("disconnected 1006")


def test_a_client_that_leaves_in_the_middle_is_no_news_for_others(server: Server, opened: Opener) -> None:
    for ends in ("close", "leave"):
        client = opened(server, "/echo")
        client.raw(unmasked(BINARY, bytes(5 * MEBIBYTE), final=False))
        if ends == "close":
            assert client.close()[0] == 1000
        else:
            client.client.close()
    until("nothing is held", lambda: held(server) == 0)
    server.still_serves()


def test_a_stop_ends_what_is_being_sent(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1, grace="2s", stall_timeout=NEVER)
    client = opened(server, f"/push/1x{64 * MEBIBYTE}")
    client.next()
    server.signal(signal.SIGTERM)
    while not isinstance(event := client.next(), CloseConnection):
        pass
    assert event.code == 1001
