"""Jobs that fail, workers and servers that die, stores that cannot store: nothing acknowledged is lost."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from .conftest import Kind, Serve
from .harness.jobs import Ran, asking, enqueue, result, state, until_state, waiting
from .harness.server import Server

pytestmark = pytest.mark.also_in_perl

Place = tuple[Server, Ran]


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("jobs")
    return serve_for_all("jobs", environment=kind, workers=2, folder=folder), Ran(folder)


@pytest.fixture
def place(shared: Place) -> Iterator[Place]:
    yield shared
    shared[0].cleared()


# Code that fails


@pytest.mark.promise(9)
def test_a_job_that_raises_is_tried_again_as_often_as_was_said_and_is_dead_then(place: Place) -> None:
    server, ran = place
    job = enqueue(server, "broken", "raises")
    assert result(server, job).status == 500
    assert ran.about("raises") == ["raises 1", "raises 2"]
    server.until_logged('exception="(ValueError: )?it is broken"', times=2)
    server.until_logged(f"{job}.*it is broken")


def test_a_job_says_itself_when_it_is_tried_again(place: Place) -> None:
    server, ran = place
    assert result(server, enqueue(server, "again", "says", 2)).json() == 3
    assert ran.about("says") == ["says 1", "says 2", "says 3"]
    assert result(server, enqueue(server, "again", "in vain", 9)).status == 500
    assert ran.about("in vain") == [f"in vain {attempt}" for attempt in (1, 2, 3, 4)]


def test_a_job_that_is_discarded_is_not_tried_again(place: Place) -> None:
    server, ran = place
    assert result(server, enqueue(server, "discarded", "unwanted")).status == 500
    assert ran.about("unwanted") == ["unwanted 1"]
    server.until_logged("nobody wants it")


def test_a_result_that_cannot_be_kept_is_a_failure_that_says_so(place: Place) -> None:
    server, _ = place
    assert result(server, enqueue(server, "unkeepable")).status == 500
    server.until_logged("object that cannot be encoded as MessagePack|GLOB is not plain data")


@pytest.mark.python_only("keys of hashes are text in Perl")
def test_a_result_that_no_client_could_be_told_is_a_failure_that_says_so(place: Place) -> None:
    server, _ = place
    assert result(server, enqueue(server, "give_untellable")).status == 500
    server.until_logged(r"\(1, 2\) cannot be a key")


@pytest.mark.promise(9)
@pytest.mark.parametrize("name", ["leave", "crash", "loop", "oversleep"])
def test_a_job_that_takes_its_worker_along_is_tried_again(place: Place, name: str) -> None:
    """It exits, crashes, loops past its deadline, or sleeps past it."""
    server, ran = place
    assert result(server, enqueue(server, name, name)).text == name
    assert ran.about(name) == [f"{name} 1", f"{name} 2"]
    if name in ("loop", "oversleep"):
        server.until_logged(rf'a job passed its deadline and is still running.* job="{name} \([0-9a-f-]{{36}}\)"')
    server.until(lambda status: len([one for one in status["workers"] if one["state"] == "ready"]) == 3)


@pytest.mark.python_only("coroutines")
def test_a_coroutine_past_its_deadline_is_cancelled_and_tried_again(serve: Serve, tmp_path: Path) -> None:
    server, ran = serve("jobs_async", folder=tmp_path), Ran(tmp_path)
    assert result(server, enqueue(server, "oversleep", "late")).text == "late"
    assert ran.lines() == ["late 1", "late 2"]
    assert server.status()["counts"]["workers_died"] == 0


@pytest.mark.promise(9)
def test_a_job_that_always_takes_its_worker_along_is_dead_in_the_end(place: Place) -> None:
    server, ran = place
    assert result(server, enqueue(server, "crash_always", "poison")).status == 500
    assert ran.about("poison") == ["poison 1", "poison 2"]


@pytest.mark.promise(8)
def test_a_job_that_enqueues_itself_for_ever_starves_nobody(serve: Serve, kind: Kind, tmp_path: Path) -> None:
    server, ran = serve("jobs", environment=kind, workers=1, folder=tmp_path), Ran(tmp_path)
    enqueue(server, "for_ever", 1)
    for number in range(20):
        assert server.get("/hola/you").text == "Hola you"
        assert result(server, enqueue(server, "write", f"other {number}")).status == 200
    assert len(ran.lines()) == 20
    status = server.status()
    jobs, held = status["jobs"], sum(worker["held"] for worker in status["workers"])
    assert jobs["queued"] + jobs["parked"] + held < 10, "it is one at a time"
    assert server.stop() == 0


# What cannot be enqueued


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/unserialisable", "its argument 1 cannot be encoded as MessagePack|a job's arguments must be plain data"),
        ("/oversized", "524,?288 bytes"),
        pytest.param("/misfit", "too many positional arguments", marks=pytest.mark.python_only("signatures")),
    ],
)
def test_arguments_that_cannot_be_enqueued_are_an_error_where_they_are_given(
    place: Place, path: str, told: str
) -> None:
    server, ran = place
    before = len(ran.lines())
    assert server.post(path).status == 500
    server.until_logged(told)
    job = enqueue(server, "write", f"behind {path}")
    until_state(server, job, "completed")
    assert ran.lines()[before:] == [f"behind {path}"], "nothing else was stored"


def test_what_was_enqueued_before_an_error_is_kept(place: Place) -> None:
    """A request that needs all or nothing enqueues one job."""
    server, ran = place
    assert server.post("/stored-and-oversized", b"first").status == 500
    ran.until("first")


CODE = """
import os
from parkade import App
from gates import hold
from jobs_ran import note

app = App(concurrent="CONCURRENT" in os.environ)

@app.job
def write(line: str):
    note(line)

@app.get("/hola/{{name}}")
def hola(name: str):
    return f"Hola {{name}}"

@app.post("/enqueue-write")
def enqueue_write(body: str):
    return write.options(delay=0.3).enqueue(body).id

@app.post("/enqueue-other")
def enqueue_other(body: str):
    return {other}

{more}
"""

OTHER = """
@app.job
def other(gate: str, job):
    note(f"{version} begin {{gate}} {{job.attempt}}")
    hold(gate)
    note(f"{version} end {{gate}} {{job.attempt}}")
    return "{version}"
"""


class Code:
    """The application's file; `other` is a job in it, or not."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "shop.py"
        for name in ("gates.py", "jobs_ran.py"):
            (folder / name).write_text((Path(__file__).parent / "apps" / name).read_text())

    def write(self, version: str, has_other: bool = True) -> None:
        """Replaces it atomically, as a deployment does."""
        more = OTHER.format(version=version) if has_other else ""
        code = CODE.format(other="other.options(delay=0.2).enqueue(body).id" if has_other else "None", more=more)
        new = self.file.with_suffix(".new")
        new.write_text(code)
        new.replace(self.file)


@pytest.fixture
def code(tmp_path: Path) -> Code:
    code = Code(tmp_path)
    code.write("one")
    return code


@pytest.mark.promise(9)
def test_a_job_whose_function_is_gone_is_kept_until_there_is_one_again(
    serve: Serve, kind: Kind, code: Code, tmp_path: Path
) -> None:
    server, ran = serve(code.file, environment=kind, folder=tmp_path), Ran(tmp_path)
    server.open_gate("there")
    job = server.post("/enqueue-other", b"there").text
    server.kill()
    code.write("two", has_other=False)
    server = serve(code.file, environment=kind, folder=tmp_path)
    server.until(lambda status: status["jobs"]["unknown"] == 1)
    server.until_logged("no job of this name")
    assert state(server, job) == "missing", "nobody knows whether clients may see it"
    assert result(server, server.post("/enqueue-write", b"meanwhile").text)
    server.open_gate("there")
    code.write("three")
    assert server.reload()["code"]["last_reload"] == "done"
    assert result(server, job).text == "three"
    assert len(ran.about("three end")) == 1


# Deaths


@pytest.mark.promise(9)
def test_a_worker_that_is_killed_in_the_middle_of_a_job(place: Place) -> None:
    server, ran = place
    gate = server.new_gate()
    client = waiting(server, "returned", "wait_at", gate)
    ran.until(f"begin {gate} 1")
    (busy,) = [worker["pid"] for worker in server.workers("busy")]
    os.kill(busy, signal.SIGKILL)
    ran.until(f"begin {gate} 2")
    server.open_gate(gate)
    assert client.answer().text == gate
    assert ran.about(f"end {gate}") == [f"end {gate} 2"]


@pytest.mark.promise(9)
def test_a_core_that_is_killed_in_the_middle_of_a_job(serve: Serve, kind: Kind, tmp_path: Path) -> None:
    ran = Ran(tmp_path)
    server = serve("jobs", environment=kind, folder=tmp_path)
    job = enqueue(server, "wait_at", "gate")
    ran.until("begin gate 1")
    server.kill()
    server = serve("jobs", environment=kind, folder=tmp_path)
    server.until_logged("WARN jobs were running when the last server ended; they are ready to run again jobs=1")
    ran.until("begin gate 2")
    server.open_gate("gate")
    assert result(server, job).text == "gate"
    assert "end gate 1" not in ran.lines()


@pytest.mark.promise(9)
def test_a_job_that_runs_at_sigterm_may_end(serve: Serve, kind: Kind, tmp_path: Path) -> None:
    ran = Ran(tmp_path)
    server = serve("jobs", environment=kind, workers=2, folder=tmp_path, grace="20s")
    job = enqueue(server, "wait_at", "gate")
    ran.until("begin gate 1")
    kept = enqueue(server, "write", "another time", delay=0.5)
    server.signal(signal.SIGTERM)
    server.until(lambda status: status["state"] == "draining")
    server.open_gate("gate")
    assert server.ended() == 0
    assert "end gate 1" in ran.lines()
    server = serve("jobs", environment=kind, folder=tmp_path)
    assert state(server, job) == "completed"
    until_state(server, kept, "completed")
    assert ran.about("begin") == ["begin gate 1"]


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    "app",
    [
        "jobs",
        pytest.param("jobs_async", marks=pytest.mark.python_only("coroutines")),
        pytest.param("jobs_asgi", marks=pytest.mark.python_only("ASGI")),
    ],
)
def test_a_job_that_takes_longer_than_the_grace_is_handed_back_and_has_lost_no_attempt(
    serve: Serve, tmp_path: Path, app: str
) -> None:
    ran = Ran(tmp_path)
    server = serve(app, folder=tmp_path, grace="200ms")
    job = enqueue(server, "wait_at", "gate")
    ran.until("begin gate 1")
    assert server.stop() == 0
    server = serve(app, folder=tmp_path)
    ran.until_count("begin gate 1", 2)
    server.open_gate("gate")
    assert result(server, job).text == "gate"
    assert "begin gate 2" not in ran.lines()


@pytest.mark.promise(7)
@pytest.mark.promise(9)
def test_a_job_that_runs_at_a_reload_is_finished_by_the_old_code(
    serve: Serve, kind: Kind, code: Code, tmp_path: Path
) -> None:
    server, ran = serve(code.file, environment=kind, folder=tmp_path), Ran(tmp_path)
    job = server.post("/enqueue-other", b"gate").text
    ran.until("one begin gate 1")
    code.write("two")
    server.signal(signal.SIGHUP)
    server.until(lambda status: status["code"]["generation"] == 2)
    server.open_gate("gate")
    assert result(server, job).text == "one"
    later = server.post("/enqueue-other", b"gate").text
    assert result(server, later).text == "two"
    assert ran.lines() == ["one begin gate 1", "one end gate 1", "two begin gate 1", "two end gate 1"]


# The store


def refused(serve: Serve, folder: Path, **settings: object) -> str:
    """The output of a server that does not start with the state in this folder."""
    server: Server = serve("jobs", is_ready=False, folder=folder, **settings)
    assert server.fails() == 1
    return server.log()


@pytest.mark.python_only("no worker takes part, and in one folder the harness cannot tell two servers of Perl apart")
def test_a_second_server_on_the_same_state_is_refused(serve: Serve, tmp_path: Path) -> None:
    server = serve("jobs", folder=tmp_path)
    told = refused(serve, tmp_path)
    assert "jobs.db is in use" in told
    assert "its own folder" in told, "what to do"
    assert result(server, enqueue(server, "write", "the first goes on")).status == 200
    server.kill()
    serve("jobs", folder=tmp_path)  # no process holds it any more


@pytest.mark.parametrize(
    ("kind", "words"), [("text", "is not a SQLite"), ("foreign", "another program"), ("newer", "newer Parkade")]
)
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(
    serve: Serve, tmp_path: Path, kind: str, words: str
) -> None:
    file = tmp_path / ".parkade" / "jobs.db"
    file.parent.mkdir()
    if kind == "text":
        file.write_bytes(b"my shopping list, which is longer than the head of a database\n" * 100)
    else:
        connection = sqlite3.connect(file)
        connection.executescript("pragma application_id = 7; create table jobs (id)")
        connection.close()
    if kind == "newer":
        file.unlink()
        serve("jobs", folder=tmp_path).stop()
        connection = sqlite3.connect(file)
        connection.execute("pragma user_version = 1000")
        connection.close()
    before = file.read_bytes()
    assert words in refused(serve, tmp_path)
    assert file.read_bytes() == before


def test_a_damaged_store_is_refused_and_left_as_it_is(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / ".parkade" / "jobs.db"
    serve("jobs", folder=tmp_path).stop()
    data = bytearray(file.read_bytes())
    data[100:4_096] = b"\xa5" * 3_996  # the schema exists
    file.write_bytes(data)
    assert "is damaged" in refused(serve, tmp_path)
    assert file.read_bytes() == data


LARGE = "x" * 100_000


def fill(server: Server, *statuses: int) -> list[str]:
    """Enqueues until the store refuses with one of these; returns the acknowledged jobs."""
    acknowledged: list[str] = []
    for _ in range(200):
        answer = server.post("/enqueue", asking("write", LARGE, delay=1_000_000))
        if answer.status != 200:
            assert answer.status in statuses, answer.text
            assert answer.json()["fault"] != "client"
            server.until_logged("the job store cannot carry out commands; ")
            assert server.get("/hola/you").status == 200, "the rest goes on"
            return acknowledged
        acknowledged += answer.json()
    raise AssertionError("it was never full")


def check_acknowledged(serve: Serve, server: Server, folder: Path, acknowledged: list[str]) -> None:
    """All of them are in the store, of this server and of the next."""
    assert acknowledged
    assert result(server, enqueue(server, "write", "there is room again")).status == 200
    assert {state(server, job) for job in acknowledged} == {"scheduled"}
    server.kill()
    server = serve("jobs", folder=folder)
    assert {state(server, job) for job in acknowledged} == {"scheduled"}


@pytest.mark.promise(9)
def test_a_file_at_its_size_limit_is_told_at_once_and_loses_nothing(serve: Serve, tmp_path: Path) -> None:
    server = serve("jobs", folder=tmp_path)
    enqueue(server, "write", "before")
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (2 << 20, hard))
    acknowledged = fill(server, 507)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))
    check_acknowledged(serve, server, tmp_path, acknowledged)


@pytest.mark.promise(9)
def test_a_start_under_a_limit_of_file_sizes_serves_all_but_jobs_until_it_is_raised(
    serve: Serve, tmp_path: Path
) -> None:
    # Enough for the log, which is a file here, but not for the tables of the store.
    server = serve("jobs", folder=tmp_path, prefix=["prlimit", f"--fsize={16 << 10}:"])
    server.until_logged(
        "the job store cannot be opened; serving everything but jobs, and retrying.* the file size limit"
    )
    assert server.get("/hola/you").text == "Hola you"
    refused = server.post("/enqueue", asking("write", "refused"))
    assert (refused.status, refused.json()["title"]) == (507, "Insufficient Storage")
    os.kill(server.pid, signal.SIGXFSZ)  # as the kernel does after a write
    assert server.get("/hola/you").text == "Hola you"
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))
    server.until_logged("accepting and running jobs again")
    assert result(server, enqueue(server, "write", "there is room")).text == "there is room"
    assert Ran(tmp_path).lines() == ["there is room"]


@pytest.mark.promise(9)
def test_a_commit_that_fails_acknowledges_nothing_and_loses_nothing(serve: Serve, tmp_path: Path) -> None:
    server = serve("jobs", folder=tmp_path, environment={"PARKADE_INJECT_COMMIT": "fail=5"})
    client = server.connect()
    statuses = {number: client.post("/enqueue", asking("write", f"line {number}")).status for number in range(60)}
    assert set(statuses.values()) == {200, 503}, "some failed, and said so"
    acknowledged = [f"line {number}" for number, status in statuses.items() if status == 200]
    ran = Ran(tmp_path)
    server.kill()
    serve("jobs", folder=tmp_path)
    ran.until(*acknowledged)


@pytest.mark.promise(9)
def test_the_end_of_a_job_that_cannot_be_noted_is_made_up_for_without_a_restart(serve: Serve, tmp_path: Path) -> None:
    """Every third commit fails: of claims, of ends. A client that waits for the result gets it nevertheless."""
    server = serve("jobs", folder=tmp_path, environment={"PARKADE_INJECT_COMMIT": "fail=3"})
    ids: list[str] = []
    for number in range(40):
        answer = server.post("/enqueue", asking("write", f"line {number}"))
        ids += answer.json() if answer.status == 200 else []
    assert ids
    for job in ids:
        until_state(server, job, "completed", 20)


def cancelling(server: Server, job: str) -> int:
    """The response to a client that cancels it."""
    status: int = server.connect().ask("DELETE", f"/jobs/{job}").answer().status
    return status


def test_a_job_that_is_cancelled_on_its_way_to_its_worker_does_not_run_to_its_end(serve: Serve, tmp_path: Path) -> None:
    """The disk is slow: when the job is cancelled, its claim is on its way to the disk, or committed but unreported."""
    server = serve("jobs", folder=tmp_path, environment={"PARKADE_INJECT_COMMIT": "delay=50ms"})
    for _ in range(5):
        job = enqueue(server, "poll_at", server.new_gate())
        assert cancelling(server, job) in (200, 202)
        until_state(server, job, "cancelled")


def test_a_job_whose_attempt_could_not_be_noted_yet_is_cancelled_when_that_is_said(
    serve: Serve, tmp_path: Path
) -> None:
    """Every fifth commit fails, so ends of attempts wait for up to a second: in each round that of another step."""
    server = serve("jobs", folder=tmp_path, environment={"PARKADE_INJECT_COMMIT": "fail=5"})
    ran, accepted = Ran(tmp_path), []
    for number in range(30):
        for _ in range(number % 5):
            state(server, str(uuid4()))
        answer = server.post("/enqueue", asking("again_in", f"line {number}", 2))
        for job in answer.json() if answer.status == 200 else []:
            ran.until(f"line {number} 1")
            if cancelling(server, job) in (200, 202):
                accepted.append(job)
    assert accepted
    for job in accepted:
        until_state(server, job, "cancelled")


def test_the_order_of_things_does_not_matter_to_who_looks(place: Place) -> None:
    """A job is found in any state, from the response that revealed its id on."""
    server, _ = place
    gate = server.new_gate()
    jobs = [enqueue(server, "wait_at", gate, queue="single") for _ in range(3)]
    assert {state(server, job) for job in jobs} <= {"ready", "running"}
    server.open_gate(gate)
    for job in jobs:
        until_state(server, job, "completed")
    server.until_zero()
