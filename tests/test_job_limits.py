"""Limits of jobs: how many of a queue run at a time, how many begin in a second, what is left for requests."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .conftest import KINDS, Kind, Serve
from .harness.jobs import Ran, at_a_time, enqueue, enqueue_many, result, state, until_state
from .harness.server import Server

pytestmark = pytest.mark.also_in_perl

IN_PYTHON = pytest.mark.python_only("coroutines")


@pytest.mark.promise(8)
@pytest.mark.parametrize(("app", "workers"), [("jobs", 3), pytest.param("jobs_async", 1, marks=IN_PYTHON)])
@pytest.mark.parametrize(("queue", "most"), [("single", 1), ("pair", 2)])
def test_no_more_jobs_of_a_queue_run_than_it_may(
    serve: Serve, tmp_path: Path, app: str, workers: int, queue: str, most: int
) -> None:
    server, ran = serve(app, job_workers=workers, folder=tmp_path), Ran(tmp_path)
    bounded = enqueue_many(server, 5, "wait_at", "gate", queue=queue)
    ran.until_count("begin", most)
    # There is a worker for other queues, so more of these could run if they were allowed to.
    for number in range(5):
        assert result(server, enqueue(server, "write", f"other {number}")).status == 200
    assert len(ran.about("begin")) == most
    assert sum(state(server, job) == "running" for job in bounded) == most
    server.open_gate("gate")
    for job in bounded:
        until_state(server, job, "completed")
    assert at_a_time(ran.lines()) == most


@pytest.mark.promise(8)
def test_a_job_that_was_cancelled_has_its_place_until_its_code_has_ended(serve: Serve, tmp_path: Path) -> None:
    server = serve("jobs", folder=tmp_path, job_workers=2)  # one of them is held at a gate
    ran = Ran(tmp_path)
    cancelled = enqueue(server, "wait_at", "gate", queue="single")
    ran.until("begin gate 1")
    assert server.connect().ask("DELETE", f"/jobs/{cancelled}").answer().status in (200, 202)
    until_state(server, cancelled, "cancelled")
    behind = enqueue(server, "write", "behind", queue="single")
    for number in range(5):
        assert result(server, enqueue(server, "write", f"other {number}")).status == 200
    assert ran.about("behind") == []
    server.open_gate("gate")
    assert result(server, behind).text == "behind"
    assert ran.about("end") == ["end gate 1"]


@pytest.mark.promise(8)
def test_no_more_jobs_of_a_queue_begin_than_its_rate_allows(serve: Serve, tmp_path: Path) -> None:
    """Ten a second, and ten that were saved up. A slow machine begins them later, never sooner."""
    server, ran = serve("jobs", workers=2, folder=tmp_path), Ran(tmp_path)
    before = time.monotonic()
    enqueue_many(server, 20, "note_time", "rated", queue="rated")
    unbounded = enqueue(server, "write", "not bounded")
    until_state(server, unbounded, "completed")
    begun = sorted(float(line.split()[1]) - before for line in ran.until_count("rated", 20))
    early = [(place, moment) for place, moment in enumerate(begun) if moment < (place - 10) / 10]
    assert early == []
    assert ran.lines().index("not bounded") < 20, "nobody else waits for that"


@pytest.mark.promise(8)
@pytest.mark.promise(9)
def test_the_bounds_of_queues_hold_under_load_and_through_a_reload(serve: Serve, tmp_path: Path) -> None:
    server = serve("jobs", workers=3, folder=tmp_path, job_workers=2)  # a queue lets two run at a time
    ran = Ran(tmp_path)

    def enqueue_all() -> None:
        enqueue_many(server, 20, "write", "other")
        enqueue_many(server, 1, "note_time", "rated", queue="rated")
        enqueue_many(server, 1, "work", "pair", 0.01, queue="pair")
        enqueue_many(server, 1, "work", "single", 0.01, queue="single")

    before = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(enqueue_all) for _ in range(40)]
        ran.until_count("rated", 12)
        assert server.reload()["code"]["last_reload"] == "done"
        for one in asked:
            one.result()
    counts = {"other": 800, "rated": 40, "begin pair": 40, "end pair": 40, "begin single": 40, "end single": 40}
    for line, count in counts.items():
        ran.until_count(line, count)
    server.until_zero()
    assert {line: len(ran.about(line)) for line in counts} == counts, "nobody died: each ran once"
    begun = sorted(float(line.split()[1]) - before for line in ran.about("rated"))
    assert [(place, moment) for place, moment in enumerate(begun) if moment < (place - 10) / 10] == []
    lines = ran.lines()
    assert at_a_time([line for line in lines if line.endswith("pair")]) == 2
    assert at_a_time([line for line in lines if line.endswith("single")]) == 1


def busy(server: Server) -> int:
    return len(server.workers("busy"))


def test_workers_for_jobs_take_all_jobs_and_no_requests(serve: Serve, tmp_path: Path) -> None:
    server, ran = serve("jobs", workers=1, job_workers=2, folder=tmp_path), Ran(tmp_path)
    server.ready(1, job_workers=2)
    jobs = enqueue_many(server, 4, "wait_at", "gate")
    ran.until_count("begin", 2)
    server.until(lambda _: busy(server) == 2)
    requests = {worker["id"]: worker["requests"] for worker in server.workers("busy")}
    for _ in range(100):
        assert server.get("/hola/you").text == "Hola you"
    assert len(ran.about("begin")) == 2, "the worker for requests takes none"
    assert {worker["id"]: worker["requests"] for worker in server.workers("busy")} == requests
    server.open_gate("gate")
    for job in jobs:
        until_state(server, job, "completed")


def test_a_request_that_keeps_the_only_worker_keeps_no_worker_of_jobs(serve: Serve, tmp_path: Path) -> None:
    server, ran = serve("jobs", workers=1, job_workers=1, folder=tmp_path), Ran(tmp_path)
    server.ready(1, job_workers=1)
    enqueue(server, "write", "soon", delay=0.2)
    held = server.connect().ask("GET", "/hold/request")
    ran.until("soon")
    server.open_gate("request")
    assert held.answer().text == "request"


@pytest.mark.python_only("coroutines")
def test_coroutines_of_one_worker_run_many_jobs_at_a_time_and_serve_meanwhile(serve: Serve, tmp_path: Path) -> None:
    server, ran = serve("jobs_async", workers=1, folder=tmp_path), Ran(tmp_path)
    enqueue_many(server, 50, "wait_at", "gate")
    ran.until_count("begin", 50)
    assert server.get("/hola/you").text == "Hola you"
    server.open_gate("gate")
    ran.until_count("end", 50)


@pytest.mark.promise(9)
def test_thousands_of_jobs_of_one_request_all_run_and_the_server_serves_meanwhile(serve: Serve, tmp_path: Path) -> None:
    server, ran = serve("jobs", workers=2, folder=tmp_path), Ran(tmp_path)
    client = server.connect()
    ids = [job for _ in range(5) for job in enqueue_many(server, 1_000, "write", "many")]
    assert client.get("/hola/you").text == "Hola you"
    assert len(set(ids)) == 5_000
    ran.until_count("many", 5_000, seconds=60)
    until_state(server, ids[-1], "completed")
    server.until_zero()
    assert len(ran.lines()) == 5_000, "nobody died: each ran once"


@pytest.mark.promise(4)
@pytest.mark.parametrize(
    ("app", "environment"),
    [
        ("jobs", KINDS["plain"]),
        pytest.param("jobs", KINDS["loop"], marks=IN_PYTHON),
        pytest.param("jobs_async", {}, marks=IN_PYTHON),
    ],
    ids=["plain", "loop", "coroutines"],
)
def test_no_request_waits_for_a_job(serve: Serve, tmp_path: Path, app: str, environment: Kind) -> None:
    """Quick jobs first: however quick they were, the next may take minutes."""
    server = serve(app, environment=environment, workers=3, job_workers="auto", folder=tmp_path)
    ran = Ran(tmp_path)
    enqueue_many(server, 10, "write", "quick")
    jobs = enqueue_many(server, 3, PLAINLY[app], "gate")
    ran.until("begin gate 1")
    held = [server.connect().ask("GET", f"/hold/request-{number}") for number in range(2)] if app == "jobs" else []
    client = server.connect()
    for _ in range(200):
        assert client.get("/hola/you").text == "Hola you"
    assert {worker["jobs"] for worker in server.workers() if worker["role"] == "requests"} == {0}
    for number, request in enumerate(held):
        server.open_gate(f"request-{number}")
        assert request.answer().status == 200
    server.open_gate("gate")
    for job in jobs:
        until_state(server, job, "completed")
    assert {worker["requests"] for worker in server.workers() if worker["role"] == "jobs"} == {0}


PLAINLY = {"jobs": "wait_at", "jobs_async": "wait_plainly_at"}
"""A job that blocks its thread."""


@pytest.mark.python_only("code of its own")
def test_workers_of_jobs_come_and_go_with_what_the_code_declares(serve: Serve, tmp_path: Path) -> None:
    code = tmp_path / "app.py"
    plain = "from parkade import App\n\napp = App()\n\n@app.get('/hola')\ndef hola():\n    return 'Hola'\n"
    code.write_text(plain)
    server = serve(f"{code}:app", folder=tmp_path, job_workers=2)
    roles = lambda: sorted(worker["role"] for worker in server.workers("ready", "busy"))  # noqa: E731
    assert roles() == ["requests"]
    code.write_text(plain + "\n@app.job\ndef work():\n    pass\n")
    assert server.reload()["code"]["last_reload"] == "done"
    assert roles() == ["jobs", "jobs", "requests"]
    code.write_text(plain)
    assert server.reload()["code"]["last_reload"] == "done"
    assert roles() == ["requests"]


def test_without_workers_of_jobs_they_are_kept_for_other_servers(serve: Serve, tmp_path: Path) -> None:
    server, ran = serve("jobs", job_workers=0, folder=tmp_path), Ran(tmp_path)
    job = enqueue(server, "write", "later")
    assert server.get("/hola/you").text == "Hola you"
    assert (state(server, job), ran.lines()) == ("ready", [])
    assert [worker["role"] for worker in server.workers()] == ["requests"]
    server.until_logged("stores jobs but runs none")
    server.stop()
    server = serve("jobs", folder=tmp_path)
    until_state(server, job, "completed")
