"""Heads and bodies of all requests share one budget, whatever their protocol and wherever they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.client import Client, request
from .harness.frames import END_HEADERS, HEADERS, PREFACE, SETTINGS, frame, literal
from .harness.server import Server
from .harness.until import until

KIBIBYTE, MEBIBYTE = 1 << 10, 1 << 20
NEVER = "10m"


def held(server: Server) -> int:
    return int(server.status()["memory"]["request_bytes"])


def until_given_back(server: Server) -> None:
    until("everything is given back", lambda: held(server) == 0)


def large_head(target: str, kibibytes: int) -> bytes:
    return request("GET", target, *(f"X-{at}: {'v' * (KIBIBYTE - 10)}" for at in range(kibibytes)))


# HTTP/2: much in memory, little on the wire


def amplified(name: bytes) -> bytes:
    """249 streams that each name one field of 4,000 bytes seven times and withhold their bodies."""
    begun = b"\x83\x86" + literal(b":path", b"/digest") + literal(b":authority", b"test")
    first = frame(HEADERS, END_HEADERS, 1, begun + literal(name, b"v" * 3_900, stored=True))
    rest = (frame(HEADERS, END_HEADERS, stream, begun + b"\xbe" * 7) for stream in range(3, 501, 2))
    return PREFACE + frame(SETTINGS, 0, 0) + first + b"".join(rest)


@pytest.mark.promise(8)
@pytest.mark.parametrize("name", [b"x", b"cookie"])
def test_heads_that_hpack_makes_small_on_the_wire_hold_little_in_memory(serve: Serve, name: bytes) -> None:
    """In earlier versions, 20 connections that sent 16 KB each held 212 MB, even after they had closed."""
    server = serve("basic", workers=1, body_timeout=NEVER)
    with contextlib.ExitStack() as stack:
        before = server.resident_bytes
        for _ in range(20):
            client = stack.enter_context(Client(server.address))
            client.send(amplified(name))
        until("all have come", lambda: server.status()["connections"]["http2"] == 20)
        server.until(lambda status: status["memory"]["request_bytes"] > 20 * MEBIBYTE)
        # Streams without such a field take 14 MB, the heads of each connection at most 2 MiB.
        assert server.resident_bytes - before < 80 * MEBIBYTE
        assert server.get("/hola/x").status == 200
    until_given_back(server)


@pytest.mark.promise(8)
def test_a_stream_whose_client_withholds_the_body_costs_little(serve: Serve) -> None:
    """HPACK can make its head a few bytes. Before, each such stream cost 14 KB, and 100 connections 344 MB."""
    server = serve("basic", workers=1, body_timeout=NEVER)
    connections, streams = 40, 249
    named = literal(b":path", b"/digest", stored=True) + literal(b":authority", b"test", stored=True)
    first = frame(HEADERS, END_HEADERS, 1, b"\x83\x86" + named)
    rest = (frame(HEADERS, END_HEADERS, stream, b"\x83\x86\xbf\xbe") for stream in range(3, 2 * streams, 2))
    sent = PREFACE + frame(SETTINGS, 0, 0) + first + b"".join(rest)
    with contextlib.ExitStack() as stack:
        before = server.resident_bytes
        for _ in range(connections):
            stack.enter_context(Client(server.address)).send(sent)
        # Each counts with what it really costs.
        server.until(lambda status: status["memory"]["request_bytes"] > connections * streams * 3 * KIBIBYTE)
        assert server.resident_bytes - before < connections * streams * 4 * KIBIBYTE
        assert server.get("/hola/x").status == 200
    until_given_back(server)


# Slow clients


def test_heads_that_trickle_have_a_budget_and_keep_no_whole_request_out(serve: Serve) -> None:
    server = serve("basic", workers=1, requests_limit="4MiB", header_timeout=NEVER)
    with contextlib.ExitStack() as stack:
        refused = 0
        for _ in range(200):
            client = stack.enter_context(Client(server.address))
            client.send(b"GET /hola/x HTTP/1.1\r\nHost: test\r\nX: ")
            for _ in range(7):
                client.send_what_goes(b"v" * 4 * KIBIBYTE)
            until("it is read", lambda: held(server) > 0)
            if client.is_readable(0.005):
                answer = client.answer()
                assert (answer.status, answer["retry-after"], answer.json()["fault"]) == (503, "1", "server")
                refused += 1
        assert refused > 20
        assert 2 * MEBIBYTE < held(server) <= 3 * MEBIBYTE
        for _ in range(5):
            assert server.get("/hola/x").status == 200
    until_given_back(server)


@pytest.mark.promise(8)
@pytest.mark.parametrize("version", ["1.1", "2"])
@pytest.mark.parametrize("holder", ["1.1", "2"])
def test_bodies_that_come_in_have_a_room_together_that_is_given_back(serve: Serve, holder: str, version: str) -> None:
    server = serve("basic", workers=1, body_limit="1GiB", requests_limit="64MiB", body_timeout=NEVER)
    first = hold_body(server, holder, 36 * MEBIBYTE)
    small, large = b"x" * MEBIBYTE, b"x" * (24 * MEBIBYTE)
    for _ in range(4):
        assert post(server, version, small) == 200, "there is room for one, and it is given back after each"
    for _ in range(2):
        assert post(server, version, large) == 503
        assert post(server, version, small) == 200, "who was refused has given back what had come"
    assert server.get("/hola/x").status == 200
    assert 36 * MEBIBYTE <= held(server) <= 48 * MEBIBYTE
    first.close()
    until_given_back(server)
    assert post(server, version, large) == 200
    until_given_back(server)


class Holder:
    """A client that has sent this much of its body."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def close(self) -> None:
        self.client.reset()


def hold_body(server: Server, version: str, size: int) -> Holder | object:
    if version == "1.1":
        client = server.connect().send(request("POST", "/digest", f"Content-Length: {1 << 30}"))
        for _ in range(size // MEBIBYTE):
            client.send(b"x" * MEBIBYTE)
        until("it has come", lambda: held(server) >= size)
        return Holder(client)
    connection = server.connect2()
    connection.ask("POST", "/digest", body=b"x" * size, end=False)
    until("it has come", lambda: held(server) >= size)
    return connection


def post(server: Server, version: str, body: bytes) -> int:
    if version == "2":
        with contextlib.closing(server.connect2()) as connection:
            return int(connection.answer(connection.ask("POST", "/digest", body=body)).status)
    with Client(server.address) as client:
        client.send(request("POST", "/digest", f"Content-Length: {len(body)}"))
        sent = 0
        while sent < len(body) and not client.is_readable(0):
            sent += client.send_what_goes(body[sent : sent + MEBIBYTE])
        answer = client.answer()
    assert answer.status == 200 or (answer["retry-after"], answer["connection"]) == ("1", "close")
    return int(answer.status)


# Complete requests


def answers(clients: list[Client]) -> Iterator[int]:
    return (client.answer().status for client in clients)


def test_heads_of_queued_requests_count_until_they_are_answered(serve: Serve) -> None:
    server = serve("basic", workers=1, requests_limit="2MiB")
    gate = server.new_gate()
    holding = server.connect().ask("GET", f"/hold/{gate}")
    server.until_running(1)
    clients = [server.connect().send(large_head("/hola/x", 20)) for _ in range(150)]
    server.until(lambda status: status["lives"]["queued"] > 90)
    refused = [client for client in clients if client.is_readable(0.01)]
    assert set(answers(refused)) == {503}
    assert MEBIBYTE < held(server) <= 2 * MEBIBYTE
    assert len(refused) >= 150 - 2 * MEBIBYTE // (20 * 1_000)
    server.open_gate(gate)
    assert holding.answer().status == 200
    assert set(answers([client for client in clients if client not in refused])) == {200}
    until_given_back(server)


@pytest.mark.parametrize("target", ["/next/x", "/standing-next", "/after-then/30.0"])
@pytest.mark.parametrize("version", ["1.1", "2"])
def test_a_parked_request_holds_nothing_of_the_budget(serve: Serve, version: str, target: str) -> None:
    server = serve("basic", workers=1)
    if version == "1.1":
        server.connect().send(large_head(target, 20))
    else:
        server.connect2().ask("GET", target, *((f"x-{at}", "v" * 900) for at in range(20)))
    server.until_parked(1)
    until_given_back(server)


AWAITING = """
import asyncio
from parkade import App, after, channel

app = App()

@app.job
async def doze():
    await asyncio.sleep(600)

@app.post("/timer")
async def timer(body: bytes):
    await after(600)

@app.post("/message/{name}")
async def message(name: str):
    await after(0.01)
    await after(0.01)
    return channel(name).next()

@app.post("/result")
async def result():
    await after(0.01)
    return doze.enqueue().result()
"""


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_a_coroutine_that_awaits_holds_nothing_of_the_budget(serve: Serve, tmp_path: Path, version: str) -> None:
    app, body = tmp_path / "app.py", b"x" * (4 * MEBIBYTE)
    app.write_text(AWAITING)
    server = serve(app, workers=1, requests_limit="16MiB")
    for count in range(1, 6):
        if version == "1.1":
            server.connect().ask("POST", "/timer", body=body)
        else:
            server.connect2().ask("POST", "/timer", body=body)
        server.until_parked(count)
    until_given_back(server)


def test_what_its_client_said_of_waits_counts_when_it_has_awaited(serve: Serve, tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(AWAITING)
    server = serve(app, workers=1)
    cursor = server.publish("x", b"seen")
    server.publish("x", b"missed")
    assert server.post("/message/x", b"", f"Last-Event-ID: {cursor}").text == "missed"
    assert server.post("/result", b"", "Prefer: wait=0").status == 202
    until_given_back(server)


def test_what_is_pipelined_after_a_parked_request_counts(serve: Serve) -> None:
    server = serve("basic", workers=1)
    client = server.connect().send(request("GET", "/next/x") + b"GET /hola/x HTTP/1.1\r\nX: " + b"v" * 3_000)
    server.until_parked(1)
    assert 3_000 <= held(server) <= 64 * KIBIBYTE
    client.close()
    until_given_back(server)


@pytest.fixture
def nearly_full(serve: Serve) -> Server:
    """Incomplete bodies hold three quarters of the budget: their maximum."""
    server = serve("basic", workers=1, requests_limit="4MiB", body_timeout=NEVER)
    head = b"POST /digest HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n"

    def is_refused(size: int) -> bool:
        before, client = held(server), server.connect().send(head + b"z" * size)
        until("it is counted or refused", lambda: held(server) > before or client.is_readable())
        return client.is_readable()

    for size in (60_000, 4_000, 100):
        while not is_refused(size):
            pass
    return server


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_slow_bodies_keep_out_no_request_that_comes_whole(nearly_full: Server, version: str) -> None:
    if version == "1.1":  # in one piece
        assert nearly_full.post("/digest", b"hello").status == 200
    else:
        assert post(nearly_full, version, b"hello") == 200


def test_a_whole_request_is_served_without_room_for_what_is_pipelined_after_it(nearly_full: Server) -> None:
    client = nearly_full.connect().send(2 * request("GET", "/hola/x"))
    answer = client.answer()
    assert (answer.status, answer.text) == (200, "Hola x")
