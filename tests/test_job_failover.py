"""The database of the jobs is lost while they run. It comes back, or a standby replaces it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.jobs import asking, enqueue, result
from .harness.postgres import Postgres
from .harness.server import Server
from .harness.site import Site
from .harness.standby import Standby
from .harness.until import Stopwatch, until

pytestmark = [pytest.mark.promise(9), pytest.mark.also_in_perl]

RUNNING = 1_000


class Alone(Site):
    """Jobs in a PostgreSQL that comes back."""

    def break_down(self) -> None:
        self.postgres.halt()

    def mend(self) -> None:
        self.postgres.start()


class Pair(Site):
    """Jobs in a primary and its standby: servers use whichever accepts writes."""

    def __init__(self, serve: Serve, folder: Path, primary: Postgres) -> None:
        super().__init__(serve, folder, primary)
        self.standby = Standby(primary)
        self._hosts = f"127.0.0.1:{primary.port},127.0.0.1:{self.standby.port}"

    @property
    def url(self) -> str:
        words = "sslmode=disable&target_session_attrs=read-write"
        return f"postgres://postgres@{self._hosts}/{self.database}?{words}"

    def break_down(self) -> None:
        self.postgres.halt()
        self._postgres = self.standby

    def mend(self) -> None:
        self.standby.promote()


Broken = Alone | Pair


@pytest.fixture(params=["comes back", "fails over"])
def broken(request: pytest.FixtureRequest, serve: Serve, tmp_path: Path) -> Iterator[Broken]:
    with ExitStack() as stack:
        postgres = Postgres()
        stack.callback(postgres.stop)
        if request.param == "comes back":
            yield Alone(serve, tmp_path, postgres)
        else:
            pair = Pair(serve, tmp_path, postgres)
            stack.callback(pair.standby.stop)
            yield pair


class Crowd:
    """Enqueues one job after another, and records which were acknowledged."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._is_over = threading.Event()
        self.acknowledged: list[str] = []
        self.statuses: set[int] = set()
        self._thread = threading.Thread(target=self._enqueue)

    def __enter__(self) -> Crowd:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _enqueue(self) -> None:
        number = 0
        while not self._is_over.is_set():
            number += 1
            status = self._server.post("/enqueue", asking("write", f"line {number}")).status
            self.statuses.add(status)
            if status == 200:
                self.acknowledged.append(f"line {number}")


def test_a_thousand_jobs_run_on_while_their_database_is_gone(broken: Broken) -> None:
    server = broken.serve(workers=2)
    lines = [f"{number}" for number in range(RUNNING)]
    for line in lines:
        enqueue(server, "wait_for_word", line)
    until("all run", lambda: broken.count("running") == RUNNING)
    with Crowd(server) as crowd:
        until("some are enqueued", lambda: len(crowd.acknowledged) > 20)
        broken.break_down()
        server.publish("word", b"go on")
        broken.ran.until_count("end", RUNNING)
        before = len(crowd.acknowledged)
        broken.mend()
        until("some are enqueued again", lambda: len(crowd.acknowledged) > before + 20, 30)
    assert crowd.statuses <= {200, 503}
    broken.ran.until(*crowd.acknowledged)
    until("no job is left", lambda: not sum(broken.count(table) for table in ("ready", "scheduled", "running")))
    assert sorted(broken.ran.about("end")) == sorted(f"end {line}" for line in lines), "each once: its server lives"
    assert len(broken.ran.about("begin")) == RUNNING
    assert server.status()["lives"]["running"] == 0


def test_an_outage_of_the_database_takes_no_server_for_lost(serve: Serve, tmp_path: Path) -> None:
    """No server could send a heartbeat."""
    with ExitStack() as stack:
        postgres = Postgres()
        stack.callback(postgres.stop)
        site = Alone(serve, tmp_path, postgres)
        servers = [site.serve(workers=2) for _ in range(3)]
        jobs = [enqueue(server, "wait_at", str(number)) for number, server in enumerate(servers)]
        begun = [f"begin {number} 1" for number in range(3)]
        site.ran.until(*begun)
        site.break_down()
        watch = Stopwatch()
        until("longer than a server may be silent", lambda: watch.seconds > 11)
        site.mend()
        for number, (server, job) in enumerate(zip(servers, jobs, strict=True)):
            until("jobs are taken", lambda server=server: server.post("/enqueue", asking("write", "x")).status == 200)
            site.open_gate(str(number))
            assert result(server, job).text == str(number)
        assert sorted(site.ran.about("begin")) == begun
