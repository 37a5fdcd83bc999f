"""Good jobs next to one that ends its worker or blocks it: they run once, and lose no attempt."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from .conftest import Kind, Serve
from .harness import processes
from .harness.client import Client
from .harness.jobs import Ran, until_state
from .harness.server import Server
from .harness.until import BUSY, until

pytestmark = pytest.mark.also_in_perl

DEADLINE, GRACE = 0.5, 1.0
"""Seconds, for the jobs that block their worker, and for `--kill-grace`."""

EARLY = 0.1
"""How many seconds earlier the core may have heard that a job begins than the job records it."""


def has_loop(kind: Kind) -> bool:
    return "CONCURRENT" in kind


def good(kind: Kind, count: int) -> list[str]:
    """Names of this many: plain ones and, if there is a loop, coroutines."""
    return list(islice(cycle(["good", "good_coroutine"] if has_loop(kind) else ["good"]), count))


def good_beside(kind: Kind, death: str, count: int) -> list[str]:
    """The same, without those that could be running their own code when this one ends the worker at once."""
    if death in ("leave", "crash"):
        return ["good"] * count
    return ["good_coroutine"] * count if death == "leave_coroutine" else good(kind, count)


def only_with_a_loop(kind: Kind, name: str) -> None:
    if name.endswith("_coroutine") and not has_loop(kind):
        pytest.skip("a plain worker runs no coroutine")


def asked(server: Server, line: str, jobs: list[str]) -> Client:
    """A client that has enqueued them; the response has their ids."""
    client: Client = server.connect().ask("POST", "/burst", body=json.dumps({"jobs": jobs, "line": line}).encode())
    return client


def ended(counts: Mapping[str, Any]) -> int:
    """How many workers died, or were killed because of a deadline."""
    return int(counts["workers_died"]) + int(counts["workers_killed"].get("deadline", 0))


def known_to_be_quick(server: Server, ran: Ran, kind: Kind) -> None:
    """A worker that has been quick gets more than one at a time."""
    asked(server, "quick", good(kind, 200)).answer()
    ran.until_count("quick", 200)


def check_good(server: Server, ran: Ran, expected: dict[str, str]) -> None:
    """Each has run once, in its first attempt, and is completed; the keys are the lines, the values the ids."""
    ran.until_count("good", len(expected))
    for job in expected.values():
        until_state(server, job, "completed")
    assert sorted(ran.about("good")) == sorted(f"{line} 1" for line in expected)


@pytest.mark.promise(9)
@pytest.mark.parametrize("death", ["leave", "crash", "loop", "leave_coroutine", "loop_coroutine"])
def test_good_jobs_beside_those_that_end_their_worker_run_once_and_lose_no_attempt(
    serve: Serve, kind: Kind, tmp_path: Path, death: str
) -> None:
    """They have no second attempt: if one were considered begun although it was not, it would be lost."""
    only_with_a_loop(kind, death)
    server = serve("neighbours", environment=kind, job_deadline="2s", kill_grace="1s", folder=tmp_path)
    server.ready(1, job_workers=1)
    ran = Ran(tmp_path)
    known_to_be_quick(server, ran, kind)
    jobs = [*good_beside(kind, death, 5), death, *good_beside(kind, death, 40)]
    clients = {f"good {burst}": asked(server, f"good {burst}", jobs) for burst in range(3)}
    ids = {
        f"{line} {place}": job for line, client in clients.items() for place, job in enumerate(client.answer().json())
    }
    bad = {line: job for line, job in ids.items() if line.endswith(" 5")}
    check_good(server, ran, {line: job for line, job in ids.items() if line not in bad})
    for job in bad.values():
        until_state(server, job, "dead")
    assert sorted(line.rsplit(maxsplit=2)[0] for line in ran.about("bad")) == sorted(f"bad {line}" for line in bad)
    server.until(lambda status: ended(status["counts"]) == 3)


@pytest.mark.promise(6)
@pytest.mark.parametrize("job_workers", [1, 2])
@pytest.mark.parametrize("hanging", ["loop_soon", "sleep_soon", "loop_soon_coroutine"])
def test_a_job_that_hangs_is_killed_in_time_and_all_others_run(
    serve: Serve, kind: Kind, tmp_path: Path, hanging: str, job_workers: int
) -> None:
    """Jobs queued after it do not extend its time, whatever their own deadlines."""
    only_with_a_loop(kind, hanging)
    server = serve("neighbours", environment=kind, job_workers=job_workers, kill_grace=f"{GRACE}s", folder=tmp_path)
    server.ready(1, job_workers=job_workers)
    ran = Ran(tmp_path)
    known_to_be_quick(server, ran, kind)
    jobs = [*good(kind, 20), hanging, *good(kind, 60)]
    ids = {f"good {place}": job for place, job in enumerate(asked(server, "good", jobs).answer().json())}
    *_, pid, begun = ran.until_count("bad", 1)[0].split()
    until("it is killed", lambda: not processes.is_alive(int(pid)), told=server.log_tail)
    after = time.monotonic() - float(begun)
    assert DEADLINE + GRACE - EARLY <= after < DEADLINE + GRACE + BUSY
    until_state(server, ids.pop("good 20"), "dead")
    check_good(server, ran, ids)
    assert server.status()["counts"]["workers_killed"] == {"deadline": 1}
    assert server.get("/hola/you").text == "Hola you"


@pytest.mark.promise(9)
@pytest.mark.parametrize("death", ["leave", "loop", "loop_coroutine"])
def test_jobs_that_come_back_from_a_wait_lose_no_attempt_either(
    serve: Serve, kind: Kind, tmp_path: Path, death: str
) -> None:
    """Their functions have not begun when this one ends the only worker, or blocks it past their deadline."""
    only_with_a_loop(kind, death)
    server = serve(
        "neighbours", environment=kind, job_workers=1, job_deadline="1s", kill_grace=f"{GRACE}s", folder=tmp_path
    )
    server.ready(1, job_workers=1)
    ran = Ran(tmp_path)
    jobs = [*(f"{name}_behind_a_wait" for name in good_beside(kind, death, 40)), death]
    ids = {f"good {place}": job for place, job in enumerate(asked(server, "good", jobs).answer().json())}
    until_state(server, ids.pop("good 40"), "dead")
    check_good(server, ran, ids)
