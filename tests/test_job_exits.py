"""Jobs whose code ends its worker: requests do not wait for that, the jobs do."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.jobs import Ran, enqueue, enqueue_many, result
from .harness.server import Server
from .harness.until import Stopwatch, until

DEATHS = 7
"""The pause behind the next is four seconds, whoever has to keep it: workers would stay away for as long."""

LONG = 2.0
"""Seconds in which a worker is there again on a busy machine."""


def slowest_answer(server: Server, is_over: Callable[[], bool]) -> float:
    """Of requests one after the other until then, in seconds."""
    slowest = 0.0

    def ask() -> bool:
        nonlocal slowest
        watch = Stopwatch()
        assert server.get("/hola/you").text == "Hola you"
        slowest = max(slowest, watch.seconds)
        return is_over()

    until("workers have died", ask, seconds=60)
    return slowest


@pytest.mark.promise(6)
def test_jobs_that_end_their_worker_make_no_request_wait(serve: Serve, tmp_path: Path) -> None:
    server, ran = serve("jobs", workers=1, folder=tmp_path), Ran(tmp_path)
    enqueue_many(server, 30, "crash_always", "poison")
    assert slowest_answer(server, lambda: len(ran.about("poison")) >= DEATHS) < LONG
    assert result(server, enqueue(server, "write", "other", priority=1_000)).text == "other"
    assert server.status()["counts"]["workers_died"] <= DEATHS + 5, "the jobs are put off"


@pytest.mark.promise(6)
def test_a_worker_of_jobs_that_dies_delays_no_worker_of_requests(serve: Serve, tmp_path: Path) -> None:
    server, ran = serve("jobs", workers=1, job_workers=1, folder=tmp_path), Ran(tmp_path)
    enqueue_many(server, 30, "crash_always", "poison")
    ran.until_count("poison", DEATHS)
    (worker,) = [one["pid"] for one in server.status()["workers"] if not one["for_jobs"] and one["pid"]]
    os.kill(worker, signal.SIGKILL)
    server.until(lambda status: worker not in [one["pid"] for one in status["workers"]])
    assert slowest_answer(server, lambda: True) < LONG
