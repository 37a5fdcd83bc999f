"""The wall clock jumps: delayed jobs follow it, running ones do not, and nothing runs twice or is forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import wall_clock
from .harness.jobs import enqueue, enqueue_many, result, state, until_state
from .harness.postgres import Postgres
from .harness.server import Server
from .harness.site import Site
from .harness.until import BUSY, Stopwatch, until
from .harness.wall_clock import WallClock

pytestmark = [
    pytest.mark.also_in_perl,
    pytest.mark.usefixtures("language"),  # of which pytest does not know where a fixture is asked for by its name
    pytest.mark.skipif(wall_clock.missing() is not None, reason=str(wall_clock.missing())),
]

RECURS = pytest.mark.python_only("recurring jobs")

HOUR, DAY = 3_600, 86_400


class Moved(Site):
    """All clocks are set together: those of the servers, of their workers and of the database."""

    def __init__(self, serve: Serve, folder: Path, clock: WallClock, postgres: Postgres | None) -> None:
        super().__init__(serve, folder, postgres)
        self.clock = clock

    def serve(self, app: str | Path = "jobs", environment: dict[str, str] | None = None, **settings: object) -> Server:
        return super().serve(app, self.clock.environment | (environment or {}), **settings)


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
def moved_postgres(clock: WallClock) -> Iterator[Postgres]:
    with ExitStack() as stack:
        postgres = Postgres(clock.environment)
        stack.callback(postgres.stop)
        yield postgres


@pytest.fixture
def in_file(serve: Serve, tmp_path: Path, clock: WallClock) -> Moved:
    return Moved(serve, tmp_path, clock, None)


@pytest.fixture
def in_postgres(serve: Serve, tmp_path: Path, clock: WallClock, moved_postgres: Postgres) -> Moved:
    return Moved(serve, tmp_path, clock, moved_postgres)


@pytest.fixture(params=["in_file", "in_postgres"])
def moved(request: pytest.FixtureRequest) -> Moved:
    site: Moved = request.getfixturevalue(request.param)
    return site


def seconds_of_the_late_one(site: Moved) -> float:
    """From its beginning to its deadline, by the monotonic clock."""
    (begun,), (cancelled,) = site.ran.until_count("begin late", 1), site.ran.until_count("cancelled late", 1)
    return float(cancelled.split()[-1]) - float(begun.split()[-1])


def noted(site: Moved) -> list[str]:
    """What ran, without the times."""
    return sorted(re.sub(r" [\d.]{4,}$", "", line) for line in site.ran.lines())


@pytest.mark.promise(9)
def test_a_jump_forward_begins_what_was_put_off_and_leaves_alone_what_runs(moved: Moved) -> None:
    server = moved.serve(workers=4, job_workers=2)  # one of them is held at a gate
    held = enqueue(server, "wait_at", "gate")
    moved.ran.until("begin gate 1")
    tomorrow = enqueue_many(server, 20, "write", "tomorrow", delay=DAY)
    again = enqueue(server, "again_in", "again", DAY)
    moved.ran.until("again 1")
    until_state(server, again, "scheduled")
    later = enqueue(server, "write", "later", delay=3 * DAY)
    enqueue(server, "late", "late")
    moved.ran.until_count("begin late", 1)

    moved.clock.jump(DAY + HOUR)

    assert 1.4 <= seconds_of_the_late_one(moved) < 1.5 + BUSY
    enqueue(server, "write", "looks again")
    moved.ran.until("again 2", "looks again")
    moved.ran.until_count("tomorrow", 20)
    until_state(server, again, "completed")
    until_state(server, tomorrow[-1], "completed")
    assert (state(server, held), state(server, later)) == ("running", "scheduled")
    moved.open_gate("gate")
    assert result(server, held).text == "gate"
    once = ["again 1", "again 2", "begin gate 1", "begin late", "cancelled late", "end gate 1", "looks again"]
    assert noted(moved) == [*once, *["tomorrow"] * 20]


@pytest.mark.promise(9)
def test_a_jump_back_puts_off_further_what_was_put_off_and_nothing_else(moved: Moved) -> None:
    server = moved.serve(workers=4, job_workers=2)  # one of them is held at a gate
    held = enqueue(server, "wait_at", "gate")
    moved.ran.until("begin gate 1")
    enqueue(server, "late", "late")
    moved.ran.until_count("begin late", 1)
    put_off = enqueue_many(server, 20, "write", "put off", delay=5)

    moved.clock.jump(-HOUR)
    watch = Stopwatch()

    assert 1.4 <= seconds_of_the_late_one(moved) < 1.5 + BUSY
    assert "put off" not in moved.ran.lines(), "it has jumped before their time had come"
    for job in (enqueue(server, "write", "at once"), enqueue(server, "write", "soon", delay=0.3)):
        until_state(server, job, "completed")
    again = enqueue(server, "again_in", "again", 0.3)
    until_state(server, again, "completed")
    until("their time would have come", lambda: watch.seconds > 6)
    assert {state(server, job) for job in put_off} == {"scheduled"}
    moved.open_gate("gate")
    assert result(server, held).text == "gate"

    moved.clock.jump(0)

    enqueue(server, "write", "looks again")
    moved.ran.until("looks again")
    moved.ran.until_count("put off", 20)
    until_state(server, put_off[-1], "completed")
    once = ["again 1", "again 2", "at once", "begin gate 1", "begin late", "cancelled late", "end gate 1"]
    assert noted(moved) == [*once, "looks again", *["put off"] * 20, "soon"]


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    ("store", "seconds"),
    [
        ("in_file", -HOUR),
        ("in_file", DAY),
        ("in_postgres", -HOUR),
        ("in_postgres", DAY),
    ],
)
def test_what_a_killed_server_ran_is_run_again_though_the_clock_jumps_meanwhile(
    store: str, seconds: int, request: pytest.FixtureRequest
) -> None:
    moved: Moved = request.getfixturevalue(store)
    server = moved.serve(workers=2)
    held = enqueue(server, "wait_at", "gate")
    moved.ran.until("begin gate 1")
    waiting = enqueue_many(server, 10, "write", "waiting", queue="single", delay=1)
    server.kill()
    moved.clock.jump(seconds)
    server = moved.serve(workers=2)
    moved.ran.until("begin gate 2", seconds=20)
    moved.open_gate("gate")
    assert result(server, held).text == "gate"
    moved.clock.jump(DAY)
    enqueue(server, "write", "looks again")
    moved.ran.until_count("waiting", 10)
    until_state(server, waiting[-1], "completed")
    assert len(moved.ran.about("waiting")) == 10


@pytest.mark.parametrize("store", ["in_file", "in_postgres"])
def test_a_server_that_has_nothing_else_to_do_sees_a_jump(store: str, request: pytest.FixtureRequest) -> None:
    moved: Moved = request.getfixturevalue(store)
    server = moved.serve()
    enqueue(server, "write", "tomorrow", delay=DAY)
    moved.clock.jump(DAY + HOUR)
    moved.ran.until("tomorrow", seconds=10)


RECURRING = """
from parkade import App
from jobs_ran import note

app = App()

@app.every(1)
def tick():
    note("tick")

@app.get("/hola/{name}")
def hola(name: str):
    return f"Hola {name}"
"""


@pytest.fixture
def recurring(tmp_path: Path) -> Path:
    (tmp_path / "jobs_ran.py").write_text((Path(__file__).parent / "apps" / "jobs_ran.py").read_text())
    file = tmp_path / "recurring.py"
    file.write_text(RECURRING)
    return file


@RECURS
@pytest.mark.promise(9)
def test_a_recurring_job_takes_a_jump_forward_for_missed_times_and_one_back_for_none(
    moved: Moved, recurring: Path
) -> None:
    """Missed times are one run; after the clock was set back, jobs wait for it."""
    watch = Stopwatch()
    server = moved.serve(recurring)
    moved.ran.until_count("tick", 2)
    moved.clock.jump(DAY)
    ticks = len(moved.ran.lines())
    moved.ran.until_count("tick", ticks + 3)
    moved.clock.jump(DAY - HOUR)
    ticks = len(moved.ran.lines())
    back = Stopwatch()
    until("some of its times have come a second time", lambda: back.seconds > 6)
    server.until_zero()
    assert len(moved.ran.lines()) <= ticks + 3, "some may have been on their way"
    moved.clock.jump(DAY)
    assert server.reload()["code"]["last_reload"] == "done"  # reads the clock now, and not for the next half a minute
    ticks = len(moved.ran.lines())
    moved.ran.until_count("tick", ticks + 2)
    assert len(moved.ran.lines()) <= watch.seconds + 1, "a day has 86,400 seconds"


@pytest.mark.promise(9)
def test_a_jump_of_the_clock_of_the_database_takes_no_server_for_lost(in_postgres: Moved) -> None:
    """Heartbeats come every two seconds. A jump of the database's clock by a day does not make a server silent."""
    servers = [in_postgres.serve(workers=2) for _ in range(3)]
    jobs = [enqueue(server, "wait_at", str(number)) for number, server in enumerate(servers)]
    begun = [f"begin {number} 1" for number in range(3)]
    in_postgres.ran.until(*begun)
    in_postgres.clock.jump(DAY)
    watch = Stopwatch()
    until("each has said that it lives", lambda: watch.seconds > 8)
    for number, (server, job) in enumerate(zip(servers, jobs, strict=True)):
        in_postgres.open_gate(str(number))
        assert result(server, job).text == str(number)
    assert sorted(in_postgres.ran.about("begin")) == begun


@RECURS
@pytest.mark.promise(9)
def test_a_server_whose_clock_is_ahead_keeps_recurring_jobs_from_nobody(
    serve: Serve, tmp_path: Path, clock: WallClock, postgres: Postgres, recurring: Path
) -> None:
    """The database's clock counts: the clocks of the servers do not matter."""
    site = Site(serve, tmp_path, postgres)
    site.serve(recurring)
    site.ran.until_count("tick", 1)
    clock.jump(HOUR)
    ahead = site.serve(recurring, clock.environment)
    watch = Stopwatch()
    until("it has looked at what recurs", lambda: watch.seconds > 2)
    assert ahead.stop() == 0
    ticks = len(site.ran.lines())
    site.ran.until_count("tick", ticks + 3, seconds=8)
