"""Jobs whose code ends its worker: the pause affects jobs, not requests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from .conftest import Kind, Serve
from .harness.jobs import Ran, enqueue, enqueue_many, result
from .harness.until import Stopwatch, until

pytestmark = pytest.mark.also_in_perl

DEATHS = 7
"""After this many the pause is eight seconds, whichever worker it applies to."""

LONG = 5.0
"""Seconds in which a worker is back, however busy the machine is."""


@pytest.mark.promise(6)
def test_jobs_that_end_their_worker_make_no_request_wait(serve: Serve, kind: Kind, tmp_path: Path) -> None:
    server, ran = serve("jobs", environment=kind, workers=1, folder=tmp_path), Ran(tmp_path)
    enqueue_many(server, 30, "crash_always", "poison")
    answers: list[float] = []

    def ask() -> bool:
        watch = Stopwatch()
        assert server.get("/hola/you").text == "Hola you"
        answers.append(watch.seconds)
        return int(server.status()["counts"]["workers_died"]) >= DEATHS

    until("workers have died", ask, seconds=120)
    ask()
    assert max(answers) < LONG
    assert result(server, enqueue(server, "write", "other", priority=1_000)).text == "other"
    assert len(ran.about("poison")) < 30, "those are put off"


@pytest.mark.promise(6)
def test_a_worker_of_jobs_that_dies_delays_no_worker_of_requests(serve: Serve, kind: Kind, tmp_path: Path) -> None:
    server = serve("jobs", environment=kind, workers=1, job_workers=1, folder=tmp_path)
    enqueue_many(server, 30, "crash_always", "poison")
    workers = server.status()["workers"]
    (worker,) = [one["pid"] for one in workers if one["state"] != "starting" and one["role"] == "requests"]
    # It is young, too; otherwise its own death would end the series.
    status = server.until(lambda status: status["counts"]["workers_died"] >= DEATHS - 1, seconds=60)
    server.until_logged("WARN a job worker died: ")
    assert "WARN a worker died: " not in server.log()
    watch, started = Stopwatch(), status["counts"]["workers_started"]
    os.kill(worker, signal.SIGKILL)
    server.until(lambda status: status["counts"]["workers_started"] > started)
    assert watch.seconds < 3.5, "it was to be four"
    assert server.get("/hola/you").text == "Hola you"


def test_a_worker_of_jobs_that_is_killed_is_told_as_one(serve: Serve, kind: Kind, tmp_path: Path) -> None:
    server = serve("jobs", environment=kind, workers=1, folder=tmp_path)
    assert result(server, enqueue(server, "loop", "loop")).text == "loop"
    server.until_logged("WARN killing a job worker: it is still running a job past its deadline")
