"""The limits of queues apply to all servers that share a PostgreSQL, together."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.jobs import at_a_time, enqueue_many, result
from .harness.postgres import Postgres
from .harness.site import Site
from .harness.until import Stopwatch, until

pytestmark = [pytest.mark.promise(8), pytest.mark.also_in_perl]


@pytest.fixture
def site(serve: Serve, postgres: Postgres, tmp_path: Path) -> Site:
    return Site(serve, tmp_path, postgres)


def test_the_bound_of_a_queue_is_that_of_all_servers(site: Site) -> None:
    """Otherwise a recurring job could overlap with itself in any queue."""
    first, _ = site.serve(workers=2), site.serve(workers=2)
    jobs = enqueue_many(first, 4, "wait_at", "gate", queue="single")
    watch = Stopwatch()
    until("each server has looked for jobs, told or not", lambda: watch.seconds > 6)
    begun = site.ran.about("begin")
    site.open_gate("gate")
    for job in jobs:
        assert result(first, job).text == "gate"
    assert begun == ["begin gate 1"]


def test_servers_hand_the_places_of_a_queue_to_each_other(site: Site) -> None:
    """At once: polling, every few seconds, would be too late."""
    servers = [site.serve(workers=2) for _ in range(3)]
    for number in range(60):
        enqueue_many(servers[number % 3], 1, "work", "pair", 0.02, queue="pair")
        enqueue_many(servers[number % 3], 5, "write", "other")
    site.ran.until_count("end pair", 60, seconds=20)
    site.ran.until_count("other", 300)
    assert at_a_time([line for line in site.ran.lines() if line.endswith("pair")]) == 2
    assert len(site.ran.about("begin pair")) == 60, "nobody died: each ran once"


@pytest.mark.promise(9)
def test_the_places_of_a_killed_server_are_free_when_its_jobs_are_taken_from_it(site: Site) -> None:
    first = site.serve(job_workers=2)  # it takes both places of the queue
    jobs = enqueue_many(first, 6, "wait_at", "gate", queue="pair")
    site.ran.until_count("begin gate 1", 2)
    others = [site.serve(workers=3), site.serve(workers=3)]
    first.kill()

    def is_taken() -> bool:
        assert site.count("running") <= 2, "more than may run at a time"
        return len(site.ran.about("begin")) > 2

    until("others have the places", is_taken, 40)
    site.ran.until_count("begin gate", 4)
    site.open_gate("gate")
    for job in jobs:
        assert result(others[0], job).text == "gate"
    assert at_a_time(site.ran.lines()[2:]) == 2


def test_servers_together_begin_no_more_jobs_of_a_queue_than_its_rate_allows(site: Site) -> None:
    """Ten a second, and ten that were saved up, not ten for each server."""
    servers = [site.serve(workers=2) for _ in range(3)]
    before = time.monotonic()
    for server in servers:
        enqueue_many(server, 15, "note_time", "rated", queue="rated")
    begun = sorted(float(line.split()[1]) - before for line in site.ran.until_count("rated", 45))
    early = [(place, moment) for place, moment in enumerate(begun) if moment < (place - 10) / 10]
    assert early == []
    assert begun[-1] < 15, "whoever found the bucket empty has come again"
