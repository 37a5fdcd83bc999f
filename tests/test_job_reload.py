"""Jobs during reloads: the new code's settings apply from the moment it serves, and replace the old ones.

Jobs that do not finish within the grace are told so and handed back, without losing an attempt.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Serve
from .harness.jobs import Ran, enqueue, result
from .harness.server import Server

APP = """
import os
from parkade import App, after
from jobs_ran import note

app = App()

@app.get("/hola/{{name}}")
def hola(name: str):
    return f"Hola {{name}}"

@app.get("/later")
def later():
    return after(1).then(hola, name="later")

{more}
"""

TICK = """
@app.every(0.2)
def tick(): note("tick")
"""

RATED = """
{bounds}

@app.job(queue="rated")
def rated(): note("rated")
"""

HALF = """
if os.path.exists("half"):
    raise SystemExit("only the first worker of this code starts")
open("half", "w").close()

@app.every(0.2)
def fresh(): note("fresh")
"""


class Code:
    """The application's file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "shop.py"
        (folder / "jobs_ran.py").write_text((Path(__file__).parent / "apps" / "jobs_ran.py").read_text())

    def write(self, *more: str) -> Path:
        self.file.write_text(APP.format(more="\n".join(more)))
        return self.file


@pytest.fixture
def code(tmp_path: Path) -> Code:
    return Code(tmp_path)


def admit(server: Server, name: str, count: int) -> None:
    """Enqueues this many on the admin address, where it does not matter whether the application has the job."""
    for _ in range(count):
        assert server.admin("POST", "/jobs", b'{"name": "%s"}' % name.encode())[0] == 201


def reload(server: Server, outcome: str = "done") -> None:
    assert server.reload()["code"]["last_reload"] == outcome


def test_jobs_that_were_enqueued_before_their_code_came_run_when_it_has_come(
    serve: Serve, code: Code, tmp_path: Path
) -> None:
    server, ran = serve(code.write(TICK), folder=tmp_path, workers=2), Ran(tmp_path)
    admit(server, "fresh", 20)
    server.until(lambda status: status["jobs"]["unknown"] == 20)
    code.write(TICK, "@app.job\ndef fresh(): note('fresh')")
    reload(server)
    ran.until_count("fresh", 20)
    server.until(lambda status: status["jobs"]["unknown"] == 0)
    assert len(ran.about("fresh")) == 20


def test_a_queue_of_which_the_new_code_says_nothing_has_no_bounds(serve: Serve, code: Code, tmp_path: Path) -> None:
    code.write(RATED.format(bounds="app.queue('rated', rate=0.001)"))
    server, ran = serve(code.file, folder=tmp_path), Ran(tmp_path)
    admit(server, "rated", 4)
    ran.until_count("rated", 1)
    assert server.get("/later").text == "Hola later"
    assert len(ran.about("rated")) == 1
    code.write(RATED.format(bounds=""))
    reload(server)
    ran.until_count("rated", 4)


def test_code_without_jobs_ends_those_that_recur_until_they_are_back(serve: Serve, code: Code, tmp_path: Path) -> None:
    server, ran = serve(code.write(TICK), folder=tmp_path), Ran(tmp_path)
    ran.until_count("tick", 2)
    code.write()
    reload(server)
    server.until_zero()
    before, enqueued = len(ran.about("tick")), server.status()["counts"]["jobs_enqueued"]
    assert server.get("/later").text == "Hola later"
    assert len(ran.about("tick")) == before
    status = server.status()
    in_transit = status["counts"]["jobs_enqueued"] - enqueued
    assert (in_transit <= 1, status["jobs"]["unknown"] <= 1) == (True, True), (
        "one may be due in the moment of the reload"
    )
    code.write(TICK)
    reload(server)
    ran.until_count("tick", before + 2)


def test_what_the_code_of_a_reload_says_that_is_given_up_is_not_in_force(
    serve: Serve, code: Code, tmp_path: Path
) -> None:
    server, ran = serve(code.write(TICK), folder=tmp_path, workers=2), Ran(tmp_path)
    server.ready(2, job_workers=1)  # one that starts later would load the new code
    ran.until_count("tick", 1)
    code.write(HALF)
    reload(server, "aborted")
    assert (tmp_path / "half").exists(), "its first worker was ready"
    ran.until_count("tick", len(ran.about("tick")) + 3)
    assert (ran.about("fresh"), server.status()["jobs"]["unknown"]) == ([], 0)


@pytest.mark.also_in_perl
@pytest.mark.promise(9)
@pytest.mark.parametrize("app", ["jobs", pytest.param("jobs_async", marks=pytest.mark.python_only("coroutines"))])
def test_a_job_that_takes_longer_than_the_grace_of_a_reload_has_lost_no_attempt(
    serve: Serve, tmp_path: Path, app: str
) -> None:
    server, ran = serve(app, folder=tmp_path, grace="200ms"), Ran(tmp_path)
    job = enqueue(server, "wait_at", "gate")
    ran.until("begin gate 1")
    for count in (2, 3):
        reload(server)
        ran.until_count("begin gate 1", count)
    server.open_gate("gate")
    assert result(server, job).text == "gate"
    assert "begin gate 2" not in ran.lines()


@pytest.mark.also_in_perl
@pytest.mark.parametrize("way", ["reload", "stop"])
def test_a_plain_job_is_told_that_the_grace_is_over(serve: Serve, tmp_path: Path, way: str) -> None:
    server, ran = serve("jobs", folder=tmp_path, grace="1s"), Ran(tmp_path)
    enqueue(server, "poll_at", "gate")
    ran.until("begin gate 1")
    getattr(server, way)()
    ran.until("cancelled gate")
    if way == "reload":
        ran.until_count("begin gate 1", 2)
        server.open_gate("gate")
