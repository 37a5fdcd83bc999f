"""WSGI with `--threads`: several requests at once in one worker."""

from __future__ import annotations

import os
import signal

import pytest

from .conftest import Serve
from .harness.client import Closed
from .harness.server import Server
from .harness.until import until


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("raw_wsgi", workers=1, threads=3)


def test_as_many_requests_run_at_once_as_there_are_threads_and_the_others_queue(server: Server) -> None:
    gate = server.new_gate()
    clients = server.waiting(f"/held/{gate}", 5)
    server.until(lambda status: (status["lives"]["running"], status["lives"]["queued"]) == (3, 2))
    (worker,) = server.workers()
    assert worker["held"] == 3
    server.open_gate(gate)
    assert {client.answer().text for client in clients} == {"one two"}


def test_each_thread_is_the_same_for_many_requests(server: Server) -> None:
    gate = server.new_gate()
    held = server.waiting(f"/held/{gate}", 2)
    server.until_running(2)
    assert len({server.get("/thread").text for _ in range(10)}) == 1, "two are held"
    server.open_gate(gate)
    assert {client.answer().text for client in held} == {"one two"}


@pytest.mark.parametrize("path", ["held", "written"])
def test_pieces_of_several_responses_come_as_each_makes_them(server: Server, path: str) -> None:
    gates = [server.new_gate() for _ in range(3)]
    clients = [server.connect().ask("GET", f"/{path}/{gate}") for gate in gates]
    pieces = [client.pieces(client.opening()) for client in clients]
    first, rest = (b"one ", b"two") if path == "held" else (b"written, ", b"returned")
    assert [next(one) for one in pieces] == [first] * 3
    for gate, one in reversed(list(zip(gates, pieces, strict=True))):
        server.open_gate(gate)
        assert b"".join(one) == rest


def test_a_slow_reader_holds_one_thread(server: Server) -> None:
    before = server.log().count("the body is closed")
    with server.connect(receive_buffer=4096, segment=1460).ask("GET", "/endless") as slow:
        slow.opening()
        for _ in range(10):
            assert server.get("/hola/you").text == "Hola you"
        server.until_running(1)
    until("the body is closed", lambda: server.log().count("the body is closed") == before + 1)


def test_two_bodies_are_read_at_the_same_time(serve: Serve) -> None:
    """Each is longer than what the core collects, so their threads wait for the pieces."""
    server = serve("raw_wsgi", workers=1, threads=2, body_limit="128KiB", stream_limit="2MiB")
    size, clients = 1_000_000, [server.connect() for _ in range(2)]
    for client in clients:
        client.send(b"POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size + b"x" * 700_000)
    server.until_running(2)
    for client in reversed(clients):
        client.send(b"x" * (size - 700_000))
        assert client.answer().text == str(size)


def test_a_client_that_leaves_in_the_middle_of_its_body_frees_its_thread(serve: Serve) -> None:
    server = serve("raw_wsgi", workers=1, threads=2, body_limit="128KiB", stream_limit="2MiB")
    with server.connect() as client:
        client.send(b"POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 700_000)
        server.until_running(1)
    server.until_running(0)
    assert server.post("/count", b"x" * 300_000).text == "300000"


@pytest.mark.parametrize("how", ["reload", "stop"])
def test_a_drain_waits_for_all_threads(serve: Serve, how: str) -> None:
    server = serve("raw_wsgi", workers=1, threads=3, grace="20s")
    gates = [server.new_gate() for _ in range(3)]
    clients = [server.connect().ask("GET", f"/held/{gate}") for gate in gates]
    pieces = [client.pieces(client.opening()) for client in clients]
    assert [next(one) for one in pieces] == [b"one "] * 3
    (pid,) = server.worker_pids()
    if how == "stop":
        server.signal(signal.SIGTERM)
    else:
        server.signal(signal.SIGHUP)
        server.until(lambda _: server.workers("draining"))
        assert server.get("/thread").text.partition(" ")[0] != str(pid), "new requests go to the new worker"
    for gate, one in zip(gates, pieces, strict=True):
        server.open_gate(gate)
        assert b"".join(one) == b"two"
    if how == "stop":
        assert server.ended() == 0
    else:
        server.until(lambda _: not server.workers("draining"))


def test_a_worker_that_dies_takes_what_its_threads_run_and_nothing_that_is_queued(serve: Serve) -> None:
    server = serve("raw_wsgi", workers=1, threads=2)
    (pid,) = server.worker_pids()
    held = server.connect().ask("GET", f"/held/{server.new_gate()}")
    pieces = held.pieces(held.opening())
    assert next(pieces) == b"one "
    (waiting,) = server.waiting(f"/written/{server.new_gate()}", 1)
    server.until_running(2)
    queued = server.waiting("/hola/you", 3)
    server.until(lambda status: status["lives"]["queued"] == 3)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises((Closed, ConnectionError)):
        next(pieces)
    with pytest.raises((Closed, ConnectionError)):
        list(waiting.pieces(waiting.opening()))
    assert [client.answer().status for client in queued] == [200] * 3


def test_a_request_that_ends_its_worker_is_told_so(serve: Serve) -> None:
    server = serve("raw_wsgi", workers=1, threads=2)
    assert server.get("/dies").status == 502
    server.still_serves()
