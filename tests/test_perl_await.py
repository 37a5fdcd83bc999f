"""`await` in a Perl worker, with Future::AsyncAwait: coroutines wait in the core, and others run meanwhile."""

from __future__ import annotations

import os
import signal

import pytest

from .conftest import Serve
from .harness import perl
from .harness.server import Server

pytestmark = pytest.mark.skipif(not perl.has("Future::AsyncAwait"), reason="Future::AsyncAwait is not installed")


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all(perl.app("coroutines.pl"), workers=1).ready(job_workers=1)


def test_coroutines_and_plain_subs_are_told_apart(server: Server) -> None:
    (worker,) = [worker for worker in server.status()["workers"] if worker["role"] == "requests"]
    assert worker["concurrent"]
    assert server.get("/none").text == "at once"


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("/after/0.05?more=a", "after 0.05,a,undef"),
        ("/next/nothing?timeout=0.05", {"value": None}),
        ("/nested", {"total": 84}),
        ("/parks", "at last parked"),
        ("/published/nobody", "published"),
    ],
)
def test_what_is_awaited_is_its_value(server: Server, target: str, told: object) -> None:
    answer = server.get(target)
    assert answer.status == 200
    if isinstance(told, dict):
        assert told.items() <= answer.json().items()
    else:
        assert answer.text == told


def test_hundreds_wait_in_one_worker_while_others_run(server: Server) -> None:
    waiting = server.waiting("/next/many", 300)
    server.until_parked(300)
    assert server.get("/hola/you").text == "Hola you"
    server.publish("many", b"all of you")
    assert {client.answer().json()["value"] for client in waiting} == {"all of you"}
    server.until_logged("many is over", times=300)


def test_a_coroutine_waits_again(server: Server) -> None:
    client = server.connect().ask("GET", "/two/name")
    server.until_parked(1)
    server.publish("name", b"first")
    server.publish("name", b"second")
    assert client.answer().json() == ["first", "second"]


def test_a_client_that_leaves_ends_its_coroutine(server: Server) -> None:
    client = server.connect().ask("GET", "/next/left")
    server.until_parked(1)
    client.close()
    server.until_logged("left is over")


def test_a_wait_that_fails_is_an_exception(server: Server) -> None:
    assert server.get("/caught").text.startswith("caught: the wait has failed: ")
    assert server.get("/uncaught").status == 500
    server.until_logged('the wait has failed: .*route="GET /uncaught"')
    assert server.get("/raises").status == 500
    server.until_logged('after the wait".*route="GET /raises"')


@pytest.mark.parametrize(
    "accept", ["*/*", "text/html,*/*;q=0.8", "text/plain", "application/json;q=0.5, text/html;q=0"]
)
def test_a_wait_that_fails_is_answered_as_the_core_would(server: Server, accept: str) -> None:
    by_core, by_worker = (server.get(f"/uncaught{who}", f"Accept: {accept}") for who in ("-by-the-core", ""))
    assert (by_core.status, by_core.body) == (by_worker.status, by_worker.body)
    assert [by_core[name] for name in ("content-type", "vary")] == [
        by_worker[name] for name in ("content-type", "vary")
    ]


@pytest.mark.parametrize(
    ("target", "why"), [("/streams", "a stream cannot be awaited"), ("/then", "a wait with then cannot be awaited")]
)
def test_what_cannot_be_awaited_is_told(server: Server, target: str, why: str) -> None:
    assert server.get(target).status == 500
    server.until_logged(f'{why}.* at .*coroutines.pl line .*route="GET {target}"')


@pytest.mark.parametrize("target", ["/exits", "/exits/after"])
def test_exit_ends_its_request_and_its_worker_leaves_in_order(serve: Serve, target: str) -> None:
    server = serve(perl.app("coroutines.pl"), workers=1)
    assert server.get(target).status == 500
    server.until(lambda status: status["counts"]["workers_recycled"] == 1)
    assert server.get("/none").text == "at once"
    assert server.status()["counts"]["workers_died"] == 0


def test_exit_takes_what_its_worker_awaits(serve: Serve) -> None:
    server = serve(perl.app("coroutines.pl"), workers=1)
    awaiting = server.connect().ask("GET", "/next/lost")
    server.until_parked(1)
    assert server.get("/exits").status == 500
    assert awaiting.answer().status == 502
    assert server.get("/none").text == "at once"


def test_a_job_awaits_and_its_result_is_awaited(server: Server) -> None:
    assert server.post("/job/well").text == "did well"
    server.until_logged("job of well")


@pytest.mark.promise(6)
def test_a_killed_worker_takes_what_it_ran_and_awaited_and_no_more(serve: Serve) -> None:
    server = serve(perl.app("coroutines.pl"), workers=1)
    awaiting = server.connect().ask("GET", "/next/lost")
    server.until_parked(1)
    running = server.connect().ask("GET", "/hold/never")
    server.until_begun("never")
    queued = server.waiting("/hola/queued", 5)
    server.until(lambda status: sum(status["lives"].values()) == 7)
    os.kill(server.worker_pids()[0], signal.SIGKILL)
    assert (awaiting.answer().status, running.answer().status) == (502, 502)
    assert {client.answer().text for client in queued} == {"Hola queued"}


@pytest.mark.promise(7)
def test_a_reload_lets_coroutines_end_in_the_old_worker(serve: Serve) -> None:
    server = serve(perl.app("coroutines.pl"), workers=1)
    (old,) = server.worker_pids()
    awaiting = server.waiting("/next/await", 10)
    server.until_parked(10)
    server.signal(signal.SIGHUP)
    server.until(lambda status: [w["state"] for w in status["workers"] if w["pid"] == old] == ["draining"])
    server.publish("await", b"still")
    assert {(client.answer().json()["pid"]) for client in awaiting} == {old}
    server.until(lambda status: old not in [worker["pid"] for worker in status["workers"]])
    assert server.status()["counts"]["workers_died"] == 0
