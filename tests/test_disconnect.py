"""A client that leaves stops the work, wherever its request is, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from .conftest import Kind, Serve
from .harness.client import Client, request
from .harness.server import Server
from .harness.until import BUSY, Stopwatch, until

pytestmark = pytest.mark.also_in_perl

LEAVING = {"closes": Client.close, "resets": Client.reset, "closes its sending side": Client.half_close}

VANISH = """
import os, socket, sys
host, port, count, data = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), bytes.fromhex(sys.argv[4])
clients = []
for _ in range(count):
    client = socket.create_connection((host, port))
    client.sendall(data)
    clients.append(client)
print("there", flush=True)
sys.stdin.read()
"""
"""A process full of clients, to be killed."""


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, kind: Kind) -> Server:
    return serve_for_all("basic", environment=kind, workers=1)


@pytest.mark.promise(3)
@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING.keys())
@pytest.mark.parametrize(
    "target",
    [
        "/next/left",
        "/after/60",
        "/events/left",
        "/next-then/left",
        "/after-then/60",
        "/standing-next",
        "/standing-stream",
    ],
)
def test_a_client_that_leaves_while_parked_is_forgotten(server: Server, target: str, leave: object) -> None:
    clients = server.waiting(target, 3)
    server.until_parked(3)
    before = server.status()["counts"]["cancelled"].get("client left", 0)
    for client in clients:
        leave(client)  # type: ignore[operator]
    server.until_zero()
    assert server.status()["counts"]["cancelled"]["client left"] == before + 3


@pytest.mark.promise(3)
@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING.keys())
def test_a_client_that_leaves_while_queued_never_reaches_a_worker(serve: Serve, kind: Kind, leave: object) -> None:
    server = serve("basic", environment=kind, workers=1)
    running = server.connect().ask("GET", "/hold/queue")
    server.until_running(1)
    queued = server.waiting("/hola/never", 5)
    server.until(lambda status: status["lives"]["queued"] == 5)
    for client in queued:
        leave(client)  # type: ignore[operator]
    server.until(lambda status: status["lives"]["queued"] == 0)
    server.open_gate("queue")
    assert running.answer().status == 200
    server.until_zero()
    assert [worker["requests"] for worker in server.workers()] == [1]


@pytest.mark.promise(3)
def test_a_client_that_leaves_while_running_frees_its_place(server: Server) -> None:
    gate = server.new_gate()
    client = server.connect().ask("GET", f"/hold/{gate}")
    server.until_running(1)
    client.close()
    server.until(lambda status: not any(status["lives"].values()))
    server.open_gate(gate)
    server.until_zero()


def test_a_client_that_leaves_in_the_middle_of_its_answer_ends_the_iterator(server: Server) -> None:
    client = server.connect(receive_buffer=4096).ask("GET", "/stream/100000/65536")
    client.opening()
    client.close()
    watch = Stopwatch()
    server.until_zero()
    assert watch.seconds < BUSY


def test_a_client_that_leaves_behind_a_pipelined_request_takes_both_along(server: Server) -> None:
    client = server.connect().send(request("GET", "/next/two"), request("GET", "/next/two"))
    server.until_parked(1)
    client.close()
    server.until_zero()


@pytest.mark.python_only("coroutines")
@pytest.mark.promise(3)
@pytest.mark.parametrize(
    ("target", "begun", "says"),
    [
        ("/hold/never", "holds at never", "cancelled while holding at never"),
        ("/after/60", "awaits a timer", "cancelled while awaiting a timer"),
        ("/stream/never", "streams", "cancelled while streaming"),
    ],
)
def test_a_coroutine_is_told_that_its_client_left(serve: Serve, target: str, begun: str, says: str) -> None:
    server = serve("coroutines")
    clients = server.waiting(target, 3)
    server.until_logged(begun, times=3)
    for client in clients:
        client.close()
    server.until_logged(says, times=3)
    server.still_serves()


@pytest.mark.python_only("coroutines")
def test_streams_of_http_2_that_are_reset_cancel_their_coroutines(serve: Serve) -> None:
    server = serve("coroutines")
    client = server.connect2()
    streams = [client.ask("GET", "/hold/never") for _ in range(3)]
    server.until_logged("holds at never", times=3)
    for stream in streams:
        client.reset(stream)
    server.until_logged("cancelled while holding at never", times=3)
    assert client.get("/hola/x").status == 200
    server.until_zero()


@pytest.mark.python_only("coroutines")
def test_a_connection_of_http_2_that_breaks_cancels_all_its_streams(serve: Serve) -> None:
    server = serve("coroutines")
    client = server.connect2()
    for _ in range(20):
        client.ask("GET", "/next/never")
    server.until_parked(20)
    client.close()
    server.until_zero()
    server.still_serves()


# Many


@pytest.mark.python_only("about the core")
@pytest.mark.promise(3)
@pytest.mark.promise(8)
def test_five_thousand_parked_clients_that_vanish_at_once_are_gone_within_a_second(serve: Serve) -> None:
    server = serve("basic")
    baseline = server.resident_bytes
    for round_ in range(2):
        crowd = [
            subprocess.Popen(
                [sys.executable, "-c", VANISH, *map(str, server.address), "2500", request("GET", target).hex()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for target in ("/next/crowd", "/after/600")
        ]
        try:
            for process in crowd:
                assert process.stdout is not None
                assert process.stdout.readline() == b"there\n"
            server.until_parked(5_000)
            watch = Stopwatch()
        finally:
            for process in crowd:
                os.kill(process.pid, signal.SIGKILL)
        server.until_zero()
        assert watch.seconds < 1 + BUSY, "promised is a second"
        for process in crowd:
            process.communicate()
        assert server.get("/hola/x").status == 200
        if round_ == 0:
            after_the_first = server.resident_bytes
    assert server.resident_bytes < after_the_first * 1.1 + (1 << 20), "the second round takes the places of the first"
    assert after_the_first - baseline < 16 << 20


@pytest.mark.python_only("about the core")
@pytest.mark.promise(8)
def test_a_storm_of_clients_that_come_park_and_leave_grows_nothing(server: Server) -> None:
    def storm(count: int) -> None:
        for number in range(count):
            client = Client(server.address).ask("GET", "/next/storm" if number % 2 else "/after/60")
            if number % 100 == 0:
                server.until(lambda status: status["lives"]["parked"] > 0)
            client.reset() if number % 3 else client.close()
        server.until_zero()

    storm(1_000)
    before = server.resident_bytes
    for _ in range(3):
        storm(1_000)
    assert server.resident_bytes - before < 1 << 20


@pytest.mark.promise(1)
def test_a_message_and_a_client_that_leaves_at_one_moment_do_not_harm_each_other(server: Server) -> None:
    for number in range(20):
        clients = server.waiting("/next/race", 20)
        server.until_parked(20)
        for client in clients[::2]:
            client.close()
        server.publish("race", b"%d" % number)
        assert {client.answer().body for client in clients[1::2]} == {b"%d" % number}
        server.until_zero()


def test_other_clients_are_served_while_a_crowd_leaves(server: Server) -> None:
    crowd = server.waiting("/next/leaving", 2_000)
    server.until_parked(2_000)
    other = server.connect()
    other.get("/constant")
    took = []
    for at in range(0, 2_000, 200):
        for client in crowd[at : at + 200]:
            client.close()
        watch = Stopwatch()
        assert other.get("/constant").status == 200
        took.append(watch.seconds)
    assert sorted(took)[4] < 0.3, "a busy machine may stand still now and then"
    until("all are gone", lambda: server.status()["lives"]["parked"] == 0)
