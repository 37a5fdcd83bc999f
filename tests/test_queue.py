"""Requests that queue for a worker: a stampede is served; a request that no worker would start in time is refused."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from .conftest import Serve
from .harness.crowd import Crowd
from .harness.server import Server
from .harness.until import Stopwatch, until

pytestmark = pytest.mark.also_in_perl

CROWD = 2_000
"""As many as the descriptors of most machines allow; a queue of 19,000 is in the core's own test (`queue_time`)."""


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve("basic")


@pytest.fixture
def stopped(server: Server) -> Iterator[Server]:
    """Its only worker is stopped."""
    (pid,) = server.worker_pids()
    os.kill(pid, signal.SIGSTOP)
    yield server
    os.kill(pid, signal.SIGCONT)


@pytest.mark.promise(8)
def test_nobody_of_a_stampede_is_refused(server: Server) -> None:
    with Crowd(server.address, CROWD) as crowd:
        for _ in range(10):
            crowd.ask("/next/stampede")
            server.until_parked(CROWD)
            server.publish("stampede", b"go")
            assert crowd.statuses(20) == {200: CROWD}
    assert server.status()["counts"]["refused"] == {}
    server.still_serves()


@pytest.mark.promise(8)
def test_when_all_workers_hang_who_comes_is_refused_at_once(stopped: Server) -> None:
    """Requests that were queued before any sign of it wait; their deadline is half a minute."""
    waiting = stopped.waiting("/hola/queued", 200)
    watch = Stopwatch()
    refused = until("a refusal", lambda: next(iter(refusals(stopped)), None), 10)
    assert watch.seconds < 6, "a second is promised"
    status, retry, detail = refused
    assert (status, 1 <= retry <= 30, detail) == (503, True, "no worker would be free before the deadline")
    told = stopped.status()
    assert told["queue_wait"] > 30
    assert told["counts"]["refused"] == {"queue too slow": 1}
    assert "parkade_queue_wait_seconds " in stopped.metrics()
    assert stopped.get("/constant").status == 200, "what needs no worker is served"
    os.kill(stopped.worker_pids()[0], signal.SIGCONT)
    assert {client.answer().status for client in waiting} == {200}
    until("it serves again", lambda: stopped.get("/hola/you").status == 200)
    assert stopped.status()["queue_wait"] is None


def refusals(server: Server) -> Iterator[tuple[int, int, str]]:
    """The response to another client, if it comes at once."""
    client = server.connect().ask("GET", "/hola/late")
    if client.is_readable(0.3):
        answer = client.answer()
        yield answer.status, int(answer["retry-after"]), answer.json()["detail"]
    client.close()


@pytest.mark.promise(8)
def test_quick_ones_that_wait_for_a_slow_one_of_a_quick_worker_are_not_refused(
    serve: Serve, kind: dict[str, str]
) -> None:
    """A pause of a second is no sign if the worker has answered hundreds before."""
    server = serve("basic", environment=kind)
    for _ in range(300):
        server.get("/hola/quick")
    slow = server.connect().ask("GET", "/hold/slow")
    server.until_running(1)
    queued = server.waiting("/hola/queued", 100)
    server.until(lambda status: status["queue_wait"] is not None)
    late = server.connect().ask("GET", "/hola/late")
    server.until(lambda status: status["lives"]["queued"] == 101 or status["counts"]["refused"])
    server.open_gate("slow")
    assert {client.answer().status for client in [slow, *queued, late]} == {200}


@pytest.mark.python_only("coroutines")
@pytest.mark.promise(8)
def test_a_coroutine_that_begins_at_once_is_not_refused_though_plain_functions_queue(serve: Serve) -> None:
    server = serve("plain_functions", workers=1)
    slow = server.connect().ask("GET", "/hold/slow")
    server.until_running(1)
    queued = server.waiting("/where", 40)
    server.until(lambda status: (status["queue_wait"] or 0) > 30)
    assert server.get("/hola/you").status == 200
    assert server.get("/where").status == 503, "for a plain one there is no chance"
    server.open_gate("slow")
    assert {client.answer().status for client in [slow, *queued]} == {200}


@pytest.mark.promise(8)
def test_a_slow_handler_refuses_nobody_who_has_time(serve: Serve) -> None:
    """Five wait for one worker, after a request that takes long: no other worker is quick enough to raise a doubt."""
    server = serve("basic")
    first = server.connect().ask("GET", "/hold/slow")
    server.until_running(1)
    queued = server.waiting("/hola/queued", 5)
    server.until(lambda status: (status["queue_wait"] or 0) > 5)
    last = server.connect().ask("GET", "/hola/last")
    server.until(lambda status: status["lives"]["queued"] == 6)
    server.open_gate("slow")
    assert {client.answer().status for client in [first, *queued, last]} == {200}
