"""Times of recurring jobs that pass while no server runs, and the effect of `missed=`.

The worker for Perl has no recurring jobs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import wall_clock
from .harness.postgres import Postgres
from .harness.server import Server
from .harness.site import Site
from .harness.wall_clock import WallClock

pytestmark = pytest.mark.skipif(wall_clock.missing() is not None, reason=str(wall_clock.missing()))

HOUR = 3_600

JUST_NOW = 5 / HOUR
"""Minutes of an hour. A time less than a minute ago is not missed."""

# The store gets `witness` last: when that has run, it knows all due times of the others.
APP = """
from parkade import App
from jobs_ran import note

app = App()

HOURLY = {
    "every unsaid": app.every("1 hour", name="every unsaid"),
    "cron unsaid": app.cron("0 * * * *", name="cron unsaid"),
}
for missed in ("once", "skip", "all"):
    HOURLY[f"every {missed}"] = app.every("1 hour", missed=missed, name=f"every {missed}")
    HOURLY[f"cron {missed}"] = app.cron("0 * * * *", missed=missed, name=f"cron {missed}")

for name, recurs in HOURLY.items():
    def tick(name=name):
        note(name)
    tick.__name__ = name.replace(" ", "_")
    recurs(tick)

@app.every(1)
def witness():
    note("witness")

@app.job
def write(line: str):
    note(line)

@app.post("/behind")
def behind():
    return write.enqueue("behind").id

@app.get("/hola/{name}")
def hola(name: str):
    return f"Hola {name}"
"""


@pytest.fixture(scope="module")
def clock() -> WallClock:
    return WallClock()


@pytest.fixture(scope="module")
def moved_postgres(clock: WallClock) -> Iterator[Postgres]:
    with ExitStack() as stack:
        postgres = Postgres(clock.environment)
        stack.callback(postgres.stop)
        yield postgres


@pytest.fixture(params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, serve: Serve, tmp_path: Path) -> Site:
    in_postgres = request.param == "postgres"
    return Site(serve, tmp_path, request.getfixturevalue("moved_postgres") if in_postgres else None)


class Hourly:
    """Servers with jobs that are due on the hour."""

    def __init__(self, site: Site, clock: WallClock) -> None:
        self._site, self._clock = site, clock
        self._file = site.folder / "hourly.py"
        self._file.write_text(APP)
        (site.folder / "jobs_ran.py").write_text((Path(__file__).parent / "apps" / "jobs_ran.py").read_text())
        self._began = (time.time() // HOUR + 1) * HOUR

    def start(self, hours: float) -> Server:
        """Waits until this many hours after a full hour. The jobs that were due then have been enqueued."""
        self._clock.jump(self._began + hours * HOUR - time.time())
        witnessed = len(self._site.ran.about("witness"))
        server = self._site.serve(self._file, self._clock.environment)
        self._site.ran.until_count("witness", witnessed + 1)
        return server

    def check(self, server: Server, once: int, skip: int, all_of_them: int) -> None:
        """They have run this often, and no more: a job that is enqueued after them runs after them."""
        of = {"unsaid": once, "once": once, "skip": skip, "all": all_of_them}
        expected = {f"{way} {missed}": count for way in ("every", "cron") for missed, count in of.items()}
        for name, count in expected.items():
            self._site.ran.until_count(name, count)
        before = len(self._site.ran.about("behind"))
        assert server.post("/behind").status == 200
        self._site.ran.until_count("behind", before + 1)
        assert {name: len(self._site.ran.about(name)) for name in expected} == expected


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    ("back_at", "skip", "all_of_them"),
    [(5.5, 0, 5), (6 + JUST_NOW, 1, 6), (250.5, 0, 250)],
    ids=["long ago", "a moment ago", "very many"],
)
def test_what_was_missed_while_no_server_ran_is_run_as_was_said(
    site: Site, clock: WallClock, back_at: float, skip: int, all_of_them: int
) -> None:
    hourly = Hourly(site, clock)
    server = hourly.start(0.5)
    hourly.check(server, 0, 0, 0)
    assert server.stop() == 0
    server = hourly.start(back_at)
    hourly.check(server, 1, skip, all_of_them)
    server.kill()
    server = hourly.start(back_at + 0.1)
    hourly.check(server, 1, skip, all_of_them)
