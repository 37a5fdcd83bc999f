"""The disk with the jobs is full: enqueueing is refused, and acknowledged jobs run when there is room again."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import small_disk
from .harness.jobs import asking, enqueue, result
from .harness.postgres import Postgres
from .harness.server import Server
from .harness.site import Site
from .harness.small_disk import SmallDisk
from .harness.until import until

WHY_NOT = small_disk.missing()

pytestmark = [
    pytest.mark.promise(9),
    pytest.mark.also_in_perl,
    pytest.mark.usefixtures("language"),  # of which pytest does not know where a fixture is asked for by its name
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
]

LOAD = base64.b64encode(random.Random(1).randbytes(75_000)).decode()
"""PostgreSQL would compress more regular data."""

SPARE = 2 << 20
"""Bytes that are left for jobs: a few dozen."""


class InFile:
    """Jobs in a file on a small disk."""

    def __init__(self, serve: Serve, folder: Path, disk: SmallDisk) -> None:
        self.site, self.disk = Site(serve, folder), disk

    def serve(self, app: str = "jobs") -> Server:
        """Starts another server."""
        prefix = self.disk.inside(self.site.folder)
        return self.site.serve(app, workers=2, prefix=prefix, state=self.disk.folder)


class InPostgres:
    """Jobs in a database whose tablespace is on a small disk."""

    def __init__(self, serve: Serve, folder: Path, disk: SmallDisk, postgres: Postgres) -> None:
        self.site, self.disk = Site(serve, folder, postgres), disk
        postgres.psql(f"create tablespace small location '{disk.folder}'")
        postgres.psql(f"alter database {self.site.database} set tablespace small")

    def serve(self, app: str = "jobs") -> Server:
        """Starts another server."""
        return self.site.serve(app, workers=2)


Full = InFile | InPostgres


@pytest.fixture(params=["sqlite", "postgres"])
def full(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Full]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            disk = stack.enter_context(SmallDisk(8))
            yield InFile(request.getfixturevalue("serve"), tmp_path, disk)
        else:
            disk = stack.enter_context(SmallDisk(24))
            postgres = Postgres(prefix=disk.inside(Path("/"), as_nobody=True))
            stack.callback(postgres.stop)
            yield InPostgres(request.getfixturevalue("serve"), tmp_path, disk, postgres)


def enqueue_until_full(server: Server, **options: object) -> list[str]:
    """Returns the acknowledged jobs."""
    acknowledged: list[str] = []
    for number in range(200):
        line = f"kept {number}"
        answer = server.post("/enqueue", asking("write_laden", line, LOAD, **options))
        if answer.status != 200:
            assert answer.status == 507, answer.text
            return acknowledged
        acknowledged.append(line)
    raise AssertionError("it was never full")


def test_a_full_disk_is_told_and_what_was_acknowledged_runs_when_there_is_room(full: Full) -> None:
    server = full.serve()
    held = enqueue(server, "wait_at", "gate", queue="single")
    full.site.ran.until("begin gate 1")
    full.disk.fill(SPARE)
    acknowledged = enqueue_until_full(server, queue="single")
    assert len(acknowledged) > 5
    server.until_logged("free disk space")
    assert server.post("/streamed", LOAD.encode()).status == 507, "nothing of it leaves"
    assert server.get("/hola/you").status == 200, "the rest goes on"
    full.site.open_gate("gate")
    full.site.ran.until("end gate 1")

    full.disk.make_room()

    full.site.ran.until(*acknowledged)
    assert result(server, held).text == "gate"
    until("jobs are taken", lambda: server.post("/enqueue", asking("write", "again")).status == 200)
    server.until_logged("INFO the job store carries out commands again")
    full.site.ran.until("again")
    server.until_zero()
    assert sorted(full.site.ran.about("kept")) == sorted(acknowledged), "each ran once"
    assert full.site.ran.about("begin") == ["begin gate 1"]


def test_a_server_that_is_killed_while_the_disk_is_full_has_lost_nothing(full: Full) -> None:
    server = full.serve()
    enqueue(server, "wait_at", "gate", queue="single")
    full.site.ran.until("begin gate 1")
    full.disk.fill(SPARE)
    acknowledged = enqueue_until_full(server, queue="single")
    server.kill()
    full.site.open_gate("gate")
    full.disk.make_room()
    full.serve()
    full.site.ran.until(*acknowledged, "end gate 2")


@pytest.mark.python_only("in Perl, an enqueue cannot be awaited")
def test_a_coroutine_that_awaits_its_enqueue_is_told_too(full: Full) -> None:
    server = full.serve("jobs_async")
    full.disk.fill(SPARE)
    statuses = {server.post("/enqueue", asking("write", LOAD, delay=1_000_000)).status for _ in range(100)}
    assert statuses == {200, 507}
    answer = server.post("/stored", asking("write", LOAD))
    assert (answer.status, "the job store is full" in answer.text) == (507, True)


@pytest.fixture
def in_file(serve: Serve, tmp_path: Path) -> Iterator[InFile]:
    with SmallDisk(8) as disk:
        yield InFile(serve, tmp_path, disk)


def check_without_jobs(server: Server, job: str, status: int) -> None:
    assert server.get("/hola/you").status == 200, "the rest is served"
    assert server.post("/enqueue", asking("write", "refused")).status == status
    assert server.get(f"/jobs/{job}").status == 503, "nobody can say that there is no such job"
    assert server.admin("GET", "/health/ready")[0] == 200


def test_a_restart_on_a_full_disk_serves_all_but_jobs_until_there_is_room(in_file: InFile) -> None:
    server = in_file.serve()
    acknowledged = [f"kept {number}" for number in range(5)]
    job, *_ = [enqueue(server, "write", line, delay=2) for line in acknowledged]
    server.stop()
    in_file.disk.fill(SPARE)
    in_file.disk.fill_the_rest()

    server = in_file.serve()
    server.until_logged("the job store cannot be opened; serving everything but jobs, and retrying.*free disk space")
    check_without_jobs(server, job, 507)

    in_file.disk.make_room()
    in_file.site.ran.until(*acknowledged)
    server.until_logged("the job store is open")
    assert sorted(in_file.site.ran.about("kept")) == sorted(acknowledged), "each ran once"


def test_a_read_only_disk_is_told_as_such_and_jobs_go_on_when_it_is_not(in_file: InFile) -> None:
    server = in_file.serve()
    job = enqueue(server, "write", "later", delay=3_600)
    server.stop()
    in_file.disk.remount("ro")

    server = in_file.serve()
    server.until_logged("(?i)read-only file system.*mount it writable, or choose another folder")
    check_without_jobs(server, job, 503)

    in_file.disk.remount("rw")
    server.until_logged("the job store is open")
    assert server.get(f"/jobs/{job}").status == 202
    assert result(server, enqueue(server, "write", "again")).status == 200


def test_a_first_start_on_a_disk_that_may_not_be_written_serves_all_but_jobs(in_file: InFile) -> None:
    in_file.disk.remount("ro")
    server = in_file.serve()
    check_without_jobs(server, "0192f3a4-5b6c-7d8e-9f01-23456789abcd", 503)
    in_file.disk.remount("rw")
    until("jobs are taken", lambda: server.post("/enqueue", asking("write", "first")).status == 200)
    in_file.site.ran.until("first")
    for file in in_file.disk.seen.glob("jobs.db*"):
        assert file.stat().st_mode & 0o777 == 0o600, file
