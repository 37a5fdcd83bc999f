"""The disk with the jobs is full: who enqueues is told so, and what was acknowledged runs when there is room again."""

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

pytestmark = [pytest.mark.promise(9), pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]

LOAD = base64.b64encode(random.Random(1).randbytes(75_000)).decode()
"""PostgreSQL would compress what is more regular."""

SPARE = 2 << 20
"""Bytes that are left for jobs: a few dozen."""


class InFile:
    """Jobs in a file on a small disk."""

    def __init__(self, serve: Serve, folder: Path, disk: SmallDisk) -> None:
        self.site, self.disk = Site(serve, folder), disk

    def serve(self, app: str = "jobs") -> Server:
        """One more server."""
        prefix = self.disk.inside(self.site.folder)
        return self.site.serve(app, workers=2, prefix=prefix, state=self.disk.folder)


class InPostgres:
    """Jobs in a database whose tablespace is on a small disk."""

    def __init__(self, serve: Serve, folder: Path, disk: SmallDisk, postgres: Postgres) -> None:
        self.site, self.disk = Site(serve, folder, postgres), disk
        postgres.psql(f"create tablespace small location '{disk.folder}'")
        postgres.psql(f"alter database {self.site.database} set tablespace small")

    def serve(self, app: str = "jobs") -> Server:
        """One more server."""
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
    """Gives what was acknowledged."""
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
    server.until_logged("make room on the disk")
    assert server.post("/streamed", LOAD.encode()).status == 507, "nothing of it leaves"
    assert server.get("/hola/you").status == 200, "the rest goes on"
    full.site.open_gate("gate")
    full.site.ran.until("end gate 1")

    full.disk.make_room()

    full.site.ran.until(*acknowledged)
    assert result(server, held).text == "gate"
    until("jobs are taken", lambda: server.post("/enqueue", asking("write", "again")).status == 200)
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


def test_a_coroutine_that_awaits_its_enqueue_is_told_too(full: Full) -> None:
    server = full.serve("jobs_async")
    full.disk.fill(SPARE)
    statuses = {server.post("/enqueue", asking("write", LOAD, delay=1_000_000)).status for _ in range(100)}
    assert statuses == {200, 507}
    answer = server.post("/stored", asking("write", LOAD))
    assert (answer.status, "there is no room" in answer.text) == (507, True)
