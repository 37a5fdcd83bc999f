"""Code that enqueues faster than the store commits is slowed down, and loses nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness import processes
from .harness.jobs import result, state
from .harness.server import Server
from .harness.until import Stopwatch, until

pytestmark = pytest.mark.also_in_perl

MIB = 1 << 20

SECONDS = 240.0
"""For hundreds of thousands of jobs on a busy disk."""


def until_ended(server: Server, job: str) -> float:
    """Waits until the job has ended, and sends other requests all the time; returns the longest time that one of them
    took.
    """
    client, slowest = server.connect(), 0.0

    def has_ended() -> bool:
        nonlocal slowest
        watch = Stopwatch()
        assert client.get("/hola/you").text == "Hola you"
        slowest = max(slowest, watch.seconds)
        return state(server, job) not in ("ready", "running")

    until("the job has ended", has_ended, SECONDS, told=server.log_tail)
    return slowest


def check_stored_once(status: Mapping[str, Any], count: int, parents: int = 1) -> None:
    counts = status["counts"]
    assert status["jobs"]["scheduled"] == count
    assert counts["jobs_enqueued"] == count + parents, "each once"
    assert (counts["jobs_retried"], counts["jobs_dead"], counts["jobs_completed"]) == (0, 0, parents)


@pytest.mark.promise(8)
@pytest.mark.promise(9)
def test_a_job_that_enqueues_without_end_is_slowed_down(
    serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = 300_000
    # About 12,000 a second: on any machine the code is faster.
    server = serve("flood", workers=2, folder=tmp_path, environment={"PARKADE_INJECT_COMMIT": "delay=80ms"})
    server.ready(2, job_workers=1)  # all of which are measured
    before = [processes.peak_bytes(pid) for pid in (server.pid, *server.worker_pids())]
    slowest = until_ended(server, server.post(f"/enqueue/flood/{count}/0").text)
    status = server.until(lambda status: status["jobs"]["scheduled"] >= count)
    grown = [
        processes.peak_bytes(pid) - bytes
        for pid, bytes in zip((server.pid, *server.worker_pids()), before, strict=True)
    ]
    with capsys.disabled():
        print(
            f"\n{count} jobs: core and workers grew by {[f'{bytes / MIB:.1f} MiB' for bytes in grown]}, {slowest:.3f} s"
        )
    check_stored_once(status, count)
    # SQLite's cache, 16 MiB, and the last 65,536 that are remembered; nothing that grows with the number of jobs.
    assert grown[0] < 64 * MIB
    assert max(grown[1:]) < 8 * MIB
    assert slowest < 2.0


@pytest.mark.parametrize("job", ["flood", pytest.param("flood_from_threads", marks=pytest.mark.python_only("threads"))])
def test_jobs_with_much_to_carry_are_slowed_down_too(serve: Serve, tmp_path: Path, job: str) -> None:
    """300 MiB: more than may wait for the store. No request waits for jobs of threads: they would just be lost."""
    server = serve("flood", workers=2, folder=tmp_path, durability="process")
    before = processes.peak_bytes(server.pid)
    until_ended(server, server.post(f"/enqueue/{job}/752/{400 * 1024}").text)
    check_stored_once(server.until(lambda status: status["jobs"]["scheduled"] >= 752, SECONDS), 752)
    assert processes.peak_bytes(server.pid) - before < 96 * MIB


@pytest.mark.python_only("event loops")
@pytest.mark.parametrize("job", ["flood", "flood_plainly"])
def test_a_worker_with_an_event_loop_loses_nothing(serve: Serve, tmp_path: Path, job: str) -> None:
    count = 160_000
    server = serve("flood_async", workers=2, folder=tmp_path)
    ended = result(server, server.post(f"/enqueue/{job}/{count}").text, SECONDS)
    assert ended.status == 204
    check_stored_once(server.until(lambda status: status["jobs"]["scheduled"] >= count), count)
    assert "stack follows" not in server.log(), "its loop is not taken for stuck"


@pytest.mark.promise(8)
def test_a_store_that_fails_lets_its_worker_go_on(serve: Serve, tmp_path: Path) -> None:
    server = serve("flood", workers=1, folder=tmp_path, environment={"PARKADE_INJECT_COMMIT": "fail=1"})
    with server.connect(seconds=SECONDS) as client:
        assert client.post("/flood/50000").status == 503
    assert server.get("/hola/you").text == "Hola you"
    server.until_zero()
    assert server.status()["counts"]["workers_died"] == 0
