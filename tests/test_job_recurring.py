"""Recurring jobs: one run at each time for the whole installation, whichever servers die or restart.

The worker for Perl has no recurring jobs.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.jobs import Ran
from .harness.server import Server
from .harness.until import until

APP = """
import time
from parkade import App, after
from jobs_ran import note

app = App()

{job}

@app.job
def never():
    pass

@app.post("/noted")
def noted():
    never.options(delay=1_000_000).enqueue()

@app.get("/hola/{{name}}")
def hola(name: str):
    return f"Hola {{name}}"
"""


class Code:
    """The application's file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "shop.py"
        (folder / "jobs_ran.py").write_text((Path(__file__).parent / "apps" / "jobs_ran.py").read_text())

    def write(self, *decorators: str, more: str = "") -> Path:
        """A job that records when it ran, with these decorators."""
        job = "\n".join([*decorators, "def tick(): note(f'tick {time.time():.3f}')", more])
        self.file.write_text(APP.format(job=job))
        return self.file


@pytest.fixture
def code(tmp_path: Path) -> Code:
    return Code(tmp_path)


def times(ran: Ran) -> list[float]:
    """When it ran."""
    return [float(line.split()[1]) for line in ran.about("tick")]


def check(ran: Ran, started: float, period: int) -> None:
    """Not more runs than due times up to the last run: a run comes at its time or later."""
    ran_at = times(ran)
    assert ran_at == sorted(ran_at)
    assert len(ran_at) <= ran_at[-1] // period - started // period, f"more runs than times: {ran_at}"


def until_noted(server: Server) -> None:
    """Waits until the store has the end of every run: it does one thing after the other."""
    server.until_zero()
    assert server.post("/noted").status == 204


@pytest.mark.parametrize(
    "decorators",
    [
        ('@app.every("1 second")',),
        ("@app.every(1)", "@app.job(retries=0)"),
        ("@app.job(retries=0)", "@app.every(1)"),
    ],
    ids=["alone", "over", "under"],
)
def test_a_job_recurs(serve: Serve, code: Code, tmp_path: Path, decorators: tuple[str, ...]) -> None:
    ran, started = Ran(tmp_path), time.time()
    server = serve(code.write(*decorators), folder=tmp_path)
    ran.until_count("tick", 2)
    check(ran, started, 1)
    assert server.status()["counts"]["jobs_enqueued"] >= 2


@pytest.mark.promise(9)
def test_a_restart_doubles_nothing(serve: Serve, code: Code, tmp_path: Path) -> None:
    """Its time is over when it has run; the next run is for a later time, whichever server enqueues it."""
    ran, started = Ran(tmp_path), time.time()
    file = code.write("@app.every(2)")
    server = serve(file, folder=tmp_path)
    ran.until_count("tick", 1)
    for way in ("kill", "stop"):
        until_noted(server)
        getattr(server, way)()
        server = serve(file, folder=tmp_path)
    ran.until_count("tick", 3, seconds=20)
    check(ran, started, 2)


def test_a_reload_doubles_nothing_and_what_no_longer_recurs_ends(serve: Serve, code: Code, tmp_path: Path) -> None:
    ran, started = Ran(tmp_path), time.time()
    server = serve(code.write("@app.every(1)"), folder=tmp_path)
    ran.until_count("tick", 1)
    assert server.reload()["code"]["last_reload"] == "done"
    ran.until_count("tick", 3)
    code.write("@app.job", more="@app.every(1)\ndef tock(): note('tock')")
    assert server.reload()["code"]["last_reload"] == "done"
    server.until_zero()
    ticks = len(times(ran))
    ran.until_count("tock", 2)
    assert len(times(ran)) <= ticks + 1, "one may have been on its way"
    check(ran, started, 1)


def test_a_unique_job_does_not_recur_while_one_has_not_ended(serve: Serve, code: Code, tmp_path: Path) -> None:
    """The other server reports that its times have come."""
    more = """
@app.every(1)
@app.job(unique=True)
def slow():
    note("slow")
    return after(3_600).then(later)

def later(): ...
"""
    serve(code.write("@app.every(1)", more=more), folder=tmp_path)
    ran = Ran(tmp_path)
    ran.until("slow")
    ran.until_count("tick", len(ran.about("tick")) + 3)
    assert len(ran.about("slow")) == 1


def test_a_timetable_is_accepted(serve: Serve, code: Code, tmp_path: Path) -> None:
    more = "app.cron('0 3 * * mon-fri', timezone='Europe/Berlin', name='nightly')(tick)"
    server = serve(code.write('@app.cron("*/5 * * * *")', more=more), folder=tmp_path)
    server.still_serves()
    assert not Ran(tmp_path).lines() or "tick" in Ran(tmp_path).lines()[0], "five minutes may just have passed"


@pytest.mark.parametrize(
    ("schedule", "told"),
    [
        ('cron("61 * * * *")', '"61" is not a valid minute'),
        ('cron("* * * *")', "five fields"),
        ('cron("0 0 30 2 *")', "no year has such a day"),
        ('cron("0 3 * * *", timezone="Europe/Atlantis")', '"Europe/Atlantis" is not a time zone'),
        ('every("a while")', "a while"),
        ("every(0)", "0"),
    ],
)
def test_a_bad_timetable_is_refused_at_the_start(
    serve: Serve, code: Code, tmp_path: Path, schedule: str, told: str
) -> None:
    server: Server = serve(code.write(f"@app.{schedule}"), folder=tmp_path, is_ready=False)
    assert server.fails() == 1
    assert told in server.log()


def test_a_bad_timetable_is_refused_at_a_reload_and_the_old_one_stays(serve: Serve, code: Code, tmp_path: Path) -> None:
    ran = Ran(tmp_path)
    server = serve(code.write("@app.every(1)"), folder=tmp_path)
    server.ready(1, job_workers=1)  # one that starts later would load the new code
    code.write('@app.cron("61 * * * *")')
    assert server.reload()["code"]["last_reload"] != "done"
    before = len(ran.lines())
    until("it recurs still", lambda: len(ran.lines()) > before + 1)
    server.still_serves()
