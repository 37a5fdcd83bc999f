"""A step of priority is worth half a minute of waiting: higher priorities go first, but nothing starves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import wall_clock
from .harness.jobs import enqueue, enqueue_many
from .harness.postgres import Postgres
from .harness.site import Site
from .harness.until import until
from .harness.wall_clock import WallClock

pytestmark = [
    pytest.mark.also_in_perl,
    pytest.mark.skipif(wall_clock.missing() is not None, reason=str(wall_clock.missing())),
]

STEP = 30
"""Seconds of waiting for each step of priority."""


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture(params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, serve: Serve, tmp_path: Path, clock: WallClock) -> Iterator[Site]:
    with ExitStack() as stack:
        postgres = None
        if request.param == "postgres":
            postgres = Postgres(clock.environment)
            stack.callback(postgres.stop)
        yield Site(serve, tmp_path, postgres)


def test_who_has_waited_for_long_goes_before_a_higher_priority(site: Site, clock: WallClock) -> None:
    server = site.serve(workers=2, environment=clock.environment)
    enqueue(server, "wait_at", "gate", queue="single")
    site.ran.until("begin gate 1")
    enqueue(server, "write", "low", queue="single")
    for minutes in (4, 6):
        clock.jump(60 * minutes)
        enqueue(server, "write", f"high after {minutes}", queue="single", priority=10)
    site.open_gate("gate")
    site.ran.until("high after 6")
    assert site.ran.lines()[2:] == ["high after 4", "low", "high after 6"]


def test_a_queue_that_is_kept_full_of_a_high_priority_starves_nobody(
    serve: Serve, tmp_path: Path, clock: WallClock
) -> None:
    """The clock runs sixty times as fast: five minutes are five seconds."""
    clock.hasten(60)
    site = Site(serve, tmp_path)
    server = site.serve(workers=2, environment=clock.environment)
    asked = 0

    def feed() -> None:
        nonlocal asked
        enqueue_many(server, 25, "write", f"high {clock.now():.3f}", queue="single", priority=10)
        asked += 25

    enqueue(server, "wait_at", "gate", queue="single")
    site.ran.until("begin gate 1")
    feed()
    enqueue(server, "write", "low", queue="single")
    stored = clock.now()
    feed()
    site.open_gate("gate")

    def has_run() -> bool:
        if asked - len(site.ran.about("high")) < 50:
            feed()
        return "low" in site.ran.lines()

    until("it has run", has_run)
    lines = site.ran.lines()
    before = [float(line.split()[1]) for line in lines[: lines.index("low")] if line.startswith("high")]
    assert max(before) > stored, "what came later went first"
    assert max(before) <= stored + 10 * STEP, "but not for longer than it was worth"
