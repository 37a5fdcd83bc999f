"""WebSockets that no code holds, whose end is a call: `channel(…).socket(on_close=…)`, with each kind of worker."""

from __future__ import annotations

import os
import re
import signal

import pytest

from .conftest import Kind, Serve
from .harness.server import Server
from .harness.websocket import CLOSE, TEXT, Opener, frame, handshake

CROWD = 300

QUEUED_MAX = 16
"""Calls for ends that are queued at a time."""


@pytest.fixture(scope="module")
def shared(kind: Kind, serve_for_all: Serve) -> Server:
    return serve_for_all("held_ends", workers=2, environment=kind)


def until_held(server: Server, count: int) -> None:
    server.until(lambda status: status["waits"]["socket"]["count"] == count)


def ends(server: Server, who: str) -> list[str]:
    """The codes with which it was told that this one has left."""
    return re.findall(rf"left: {who} (\d+)", server.log())


def until_left(server: Server, who: str, code: int) -> None:
    server.until_logged(f"left: {who} {code}\\b")


@pytest.fixture
def mark(opened: Opener) -> str:
    """So that clients of each version of HTTP have names of their own."""
    return opened.version[0]


# However it ends


def test_a_client_that_closes(server: Server, opened: Opener, mark: str) -> None:
    assert opened(server, f"/rooms/a/closer{mark}").close(4001, "bye") == (4001, "bye")
    until_left(server, f"closer{mark}", 4001)
    opened(server, f"/rooms/a/mute{mark}").raw(frame(CLOSE))
    until_left(server, f"mute{mark}", 1005)


def test_others_hear_of_it(server: Server, opened: Opener, mark: str) -> None:
    ada, bob = opened(server, f"/rooms/b/ada{mark}"), opened(server, f"/rooms/b/bob{mark}")
    until_held(server, 2)
    ada.send("hola")
    assert (ada.receive(), bob.receive()) == (f"ada{mark}: hola",) * 2
    ada.close()
    assert bob.receive() == f"ada{mark} has left"


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_connection_that_is_lost(server: Server, opened: Opener, mark: str, how: str) -> None:
    client = opened(server, f"/rooms/c/{how}{mark}")
    until_held(server, 1)
    getattr(client.client, how)()
    until_left(server, f"{how}{mark}", 1006)


def test_a_client_that_breaks_the_rules(server: Server, opened: Opener, mark: str) -> None:
    opened(server, f"/rooms/d/rude{mark}").raw(frame(TEXT, b"\xff"))
    until_left(server, f"rude{mark}", 1007)


def test_a_function_that_closes_it(server: Server, opened: Opener, mark: str) -> None:
    assert opened(server, f"/rooms/e/sent{mark}").send("close 4002").closed() == (4002, "because")
    until_left(server, f"sent{mark}", 4002)


def test_a_function_that_fails(server: Server, opened: Opener, mark: str) -> None:
    assert opened(server, f"/rooms/f/failed{mark}").send("fail").closed()[0] == 1011
    until_left(server, f"failed{mark}", 1011)


def test_an_operator(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_ends", workers=1, environment=kind)
    client = opened(server, "/rooms/g/operated")
    until_held(server, 1)
    assert server.admin("POST", "/requests/0.0/cancel")[0] == 202
    assert client.closed()[0] == 1001
    until_left(server, "operated", 1001)


def test_a_dead_client(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_ends", workers=1, environment=kind, websocket_ping="1s", websocket_pong_timeout="1s")
    client = opened(server, "/rooms/h/dead")
    until_left(server, "dead", 1006)
    client.client.close()


def test_a_deadline(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_ends", workers=1, environment=kind, deadline="1s")
    assert opened(server, "/rooms/i/slow").send("sleep 2").closed()[0] == 1011
    until_left(server, "slow", 1011)


def test_a_worker_that_dies(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_ends", workers=1, environment=kind)
    assert opened(server, "/rooms/j/killer").send("exit").closed()[0] == 1012
    until_left(server, "killer", 1012)


def test_a_server_that_stops(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_ends", workers=1, grace="30s", environment=kind)
    clients = [opened(server, f"/rooms/k/stopped{number}x") for number in range(20)]
    until_held(server, 20)
    server.signal(signal.SIGTERM)
    assert {client.closed()[0] for client in clients} == {1001}
    assert server.ended() == 0
    assert [ends(server, f"stopped{number}x") for number in range(20)] == [["1001"]] * 20


# Once, in order, and only for those that were accepted


def test_it_is_called_once(server: Server, opened: Opener, mark: str) -> None:
    clients = [opened(server, f"/rooms/l/once{number}x{mark}") for number in range(20)]
    until_held(server, 20)
    for client in clients[:10]:
        client.raw(frame(CLOSE, b"\x03\xe8"))
        client.client.close()
    for client in clients[10:]:
        client.close()
    server.until_zero()
    assert {tuple(ends(server, f"once{number}x{mark}")) for number in range(20)} == {("1000",)}


def test_it_is_not_called_for_one_that_is_refused(server: Server) -> None:
    for how in ("error", "channel", "other"):
        assert server.connect().send(handshake(f"/refused/{how}")).opening().status in (200, 400, 403)
    server.until_zero()
    assert "left: refused" not in server.log()


def test_it_comes_after_what_its_client_has_said(server: Server, opened: Opener, mark: str) -> None:
    client = opened(server, f"/rooms/m/sleeper{mark}").send("sleep 0.7")
    server.until_logged(f"sleeps for sleeper{mark}")  # a call that has not begun is cancelled
    client.client.close()
    until_left(server, f"sleeper{mark}", 1006)
    log = server.log()
    assert log.index(f"slept for sleeper{mark}") < log.index(f"left: sleeper{mark}")


def test_what_was_said_before_a_close_comes_first(server: Server, opened: Opener, mark: str) -> None:
    client = opened(server, f"/rooms/n/last{mark}")
    client.raw(frame(TEXT, b"sleep 0.3"), frame(CLOSE, b"\x03\xe8"))
    until_left(server, f"last{mark}", 1000)
    log = server.log()
    assert log.index(f"slept for last{mark}") < log.index(f"left: last{mark}")


# What the function may do


def test_a_function_has_the_request_and_may_wait(server: Server, opened: Opener) -> None:
    opened(server, "/ways/waits").close()
    server.until_logged("left: waits 1000 /ways/waits")
    server.until_logged("waited: waits")


def test_what_it_returns_is_for_nobody_and_its_faults_are_logged(server: Server, opened: Opener) -> None:
    for way in ("fails", "answers", "closes"):
        opened(server, f"/ways/{way}").close()
        until_left(server, way, 1000)
    server.until_logged("held_ends:goes, called for the end of a WebSocket: ValueError: at the end")
    server.until_logged("held_ends:goes returned a wait for nobody")
    server.until_zero()


def test_a_coroutine(server: Server, kind: Kind, opened: Opener, mark: str) -> None:
    if "CONCURRENT" not in kind:
        pytest.skip("there is no event loop")
    client = opened(server, f"/coroutines/coro{mark}").send("x")
    server.until(lambda status: status["waits"]["timer"]["count"] == 1)
    client.client.close()
    until_left(server, f"coro{mark}", 1006)
    server.until_logged(f"stopped: coro{mark}")


# Crowds, workers that die, and servers that stop


def test_a_crowd_that_leaves_does_not_fill_the_queue(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_ends", workers=1, environment=kind)
    gate = server.new_gate()
    clients = [opened(server, f"/gates/{gate}/crowd{number}x") for number in range(CROWD)]
    until_held(server, CROWD)
    for client in clients:
        client.client.close()
    server.until_begun(gate)
    status = server.until(lambda status: sum(status["connections"].values()) == 0)
    assert status["lives"]["queued"] <= QUEUED_MAX
    assert status["lives"]["queued"] + status["lives"]["running"] + status["lives"]["parked"] == CROWD
    server.open_gate(gate)
    server.until_zero()
    assert sorted(re.findall(r"left: crowd(\d+)x 1006", server.log()), key=int) == [str(n) for n in range(CROWD)]


def test_another_worker_gets_it_if_one_dies_that_had_not_begun_it(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_ends", workers=1, environment=kind)
    gate = server.new_gate()
    first, others = opened(server, f"/gates/{gate}/first"), [opened(server, f"/rooms/o/other{n}x") for n in range(5)]
    until_held(server, 6)
    first.client.close()
    server.until_begun(gate)
    for other in others:
        other.client.close()
    [worker] = server.worker_pids()
    os.kill(worker, signal.SIGKILL)
    for number in range(5):
        until_left(server, f"other{number}x", 1006)
    server.until_logged("were not told, or not to the end|was not told, or not to the end")
    server.open_gate(gate)
    assert ends(server, "first") == []


def test_those_that_the_grace_is_too_short_for_are_logged(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_ends", workers=1, grace="2s", environment=kind)
    gate = server.new_gate()
    clients = [opened(server, f"/gates/{gate}/late{number}x") for number in range(5)]
    until_held(server, 5)
    server.signal(signal.SIGTERM)
    assert {client.closed()[0] for client in clients} == {1001}
    server.ended()
    assert re.search(r'count"?[=:] ?5\b', server.log()), server.log()
    server.open_gate(gate)
