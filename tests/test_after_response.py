"""Work after a response: its worker counts as busy, the work is bounded, and a drain waits for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Serve
from .harness import perl, processes
from .harness.server import Server
from .harness.until import Stopwatch, until
from .harness.versions import VERSIONS, asking_over

PURE = {"PARKADE_ACCELERATOR": "0"}
KINDS: dict[str, dict[str, Any]] = {
    "wsgi": {},
    "wsgi pure": {"environment": PURE},
    "wsgi in threads": {"threads": 2},
    "psgi": {"language": "perl"},
    "psgi pure": {"language": "perl", "environment": PURE},
}

Start = Callable[..., Server]


@pytest.fixture(params=KINDS)
def worker_kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    return KINDS[request.param]


@pytest.fixture
def threads(worker_kind: dict[str, Any]) -> int:
    """How many requests a worker runs at a time."""
    return worker_kind.get("threads", 1)


@pytest.fixture
def start(worker_kind: dict[str, Any], serve: Serve) -> Start:
    """Starts a server with that kind of worker."""
    is_perl = worker_kind.get("language") == "perl"
    if is_perl and not perl.has("JSON::PP"):
        pytest.skip("there is no Perl")
    target = perl.app("after_response.psgi") if is_perl else "after_response"

    def begin(**settings: Any) -> Server:
        return serve(target, **{"workers": 1} | worker_kind | settings)

    return begin


def occupied(server: Server, threads: int, path: str = "whole") -> str:
    """A gate for which all threads of the worker wait, after responses that have come."""
    gate = server.new_gate()
    for _ in range(threads):
        assert server.get(f"/{path}/{gate}").text == {"whole": "done", "streamed": "one two"}[path]
    server.until_logged("works in", times=threads)
    server.until(lambda status: sum(worker["held"] for worker in status["workers"]) == threads)
    return gate


@pytest.mark.parametrize("path", ["whole", "streamed"])
def test_nobody_is_given_to_a_worker_that_works_after_its_response(start: Start, threads: int, path: str) -> None:
    server = start()
    for _ in range(20):
        server.get("/pid")  # it is quick, so that the core would send ahead
    gate = occupied(server, threads, path)
    assert server.status()["lives"]["running"] == 0, "the responses are complete"
    others = server.waiting("/pid", 3)
    server.until(lambda status: status["lives"]["queued"] + status["lives"]["running"] == 3)
    server.open_gate(gate)
    assert {client.answer().status for client in others} == {200}
    server.until_zero()
    server.until(lambda status: sum(worker["held"] for worker in status["workers"]) == 0)


def test_others_go_to_a_worker_that_is_idle(start: Start, threads: int) -> None:
    server = start(workers=2)
    gate = server.new_gate()
    assert server.get(f"/whole/{gate}").text == "done"
    busy = server.until_logged(r"works in (\d+)")[1]
    server.until(lambda status: sum(worker["held"] for worker in status["workers"]) == 1)
    told = {server.get("/pid").text for _ in range(10)}
    assert told, "answered at once"
    assert busy not in told or threads > 1
    server.open_gate(gate)
    server.until_logged(f"worked: {gate}")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_response_is_complete_before_the_work(start: Start, version: str) -> None:
    server = start()
    ask = asking_over(version, server)
    gate = server.new_gate()
    assert ask(f"/streamed/{gate}").text == "one two"
    assert f"worked: {gate}" not in server.log()
    server.open_gate(gate)
    server.until_logged(f"worked: {gate}")
    assert ask("/pid").status == 200


def test_work_after_a_failure_is_counted(start: Start) -> None:
    server = start()
    gate = server.new_gate()
    with server.connect().ask("GET", f"/fails/{gate}") as client:
        client.opening()
        server.until_logged("works in")
        server.until(lambda status: status["lives"]["running"] == 0)
    assert [worker["held"] for worker in server.workers()] == [1]
    server.open_gate(gate)
    server.until_logged(f"worked: {gate}")
    assert server.get("/pid").status == 200


def test_work_after_a_client_that_left_is_counted(start: Start) -> None:
    server = start()
    gate = server.new_gate()
    with server.connect().ask("GET", f"/endless/{gate}") as client:
        client.opening()
    server.until_logged("works in")
    server.until(lambda status: [worker["held"] for worker in status["workers"]] == [1])
    server.open_gate(gate)
    server.until_logged(f"worked: {gate}")
    server.until(lambda status: [worker["held"] for worker in status["workers"]] == [0])
    assert server.get("/pid").status == 200


@pytest.mark.promise(6)
def test_work_that_does_not_end_is_killed_in_its_time(start: Start) -> None:
    server = start(deadline="1s", kill_grace="500ms")
    watch = Stopwatch()
    assert server.get("/whole/hang").text == "done"
    pid = int(server.until_logged(r"works in (\d+)")[1])
    until("it is killed", lambda: not processes.is_alive(pid), told=server.log_tail)
    assert watch.seconds > 1.4, "it has its deadline and the grace"
    server.until(lambda status: status["counts"]["workers_killed"] == {"deadline": 1})
    server.until_logged("stack follows")
    assert server.get("/pid").status == 200


def test_who_was_queued_for_it_is_answered_by_another(start: Start, threads: int) -> None:
    server = start(deadline="4s", kill_grace="200ms")
    watch = Stopwatch()
    for _ in range(threads):
        assert server.get("/whole/hang").text == "done"
    pid = server.until_logged(r"works in (\d+)", times=threads)[1]
    server.until(lambda status: sum(worker["held"] for worker in status["workers"]) == threads)
    until("the deadline is near", lambda: watch.seconds > 3)  # that of the next one is not
    answer = server.get("/pid")
    assert (answer.status, answer.text != pid) == (200, True)


def test_a_stop_waits_for_it(start: Start, threads: int) -> None:
    server = start(grace="20s")
    gate = occupied(server, threads)
    server.signal(signal.SIGTERM)
    server.until_logged("shutting down")
    assert server.process.poll() is None
    server.open_gate(gate)
    assert server.ended() == 0
    assert f"worked: {gate}" in server.log()


def test_a_stop_waits_no_longer_than_its_grace(start: Start) -> None:
    server = start(grace="1s")
    assert server.get("/whole/hang").text == "done"
    server.until_logged("works in")
    server.until(lambda status: sum(worker["held"] for worker in status["workers"]) == 1)
    watch = Stopwatch()
    server.signal(signal.SIGTERM)
    server.ended()
    assert 0.8 < watch.seconds < 6


def test_a_reload_waits_for_it(start: Start, threads: int) -> None:
    server = start()
    gate = occupied(server, threads)
    pid = int(server.until_logged(r"works in (\d+)")[1])
    server.reload()
    assert server.get("/pid").text != str(pid)
    assert processes.is_alive(pid)
    server.open_gate(gate)
    server.until_logged(f"worked: {gate}")
    until("the old one ends", lambda: not processes.is_alive(pid))
    assert server.status()["counts"]["workers_killed"] == {}


def test_a_worker_that_dies_of_it_is_replaced(start: Start, threads: int) -> None:
    server = start()
    occupied(server, threads)
    pid = int(server.until_logged(r"works in (\d+)")[1])
    waiting = server.waiting("/pid", 2)
    os.kill(pid, signal.SIGKILL)
    assert {client.answer().text for client in waiting}.isdisjoint({str(pid)})
    server.until(lambda _: server.workers("ready"))
