"""Jobs in PostgreSQL: servers share them, and no death of a server or of the database loses an acknowledged job."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.jobs import asking, enqueue, enqueue_many, result, state, until_state
from .harness.postgres import GUARDED, Postgres
from .harness.server import run
from .harness.site import Site
from .harness.until import until

pytestmark = pytest.mark.also_in_perl

IN_PYTHON = pytest.mark.python_only("coroutines")


@pytest.fixture
def site(serve: Serve, postgres: Postgres, tmp_path: Path) -> Site:
    return Site(serve, tmp_path, postgres)


@pytest.fixture
def fragile(serve: Serve, tmp_path: Path) -> Iterator[Site]:
    """With a PostgreSQL that the test may end."""
    with ExitStack() as stack:
        postgres = Postgres()
        stack.callback(postgres.stop)
        yield Site(serve, tmp_path, postgres)


# Several servers


@pytest.mark.promise(9)
def test_servers_share_jobs_and_each_runs(site: Site) -> None:
    servers = [site.serve(workers=2), site.serve(workers=2)]
    with ThreadPoolExecutor(10) as threads:
        done = [
            threads.submit(enqueue, servers[number % 2], "write", f"shared {number}", queue=f"queue{number % 3}")
            for number in range(1_000)
        ]
        jobs = [one.result() for one in done]
    assert len(set(jobs)) == 1_000
    site.ran.until(*(f"shared {number}" for number in range(1_000)))
    assert len(site.ran.about("shared")) == 1_000, "nobody died: each ran once"
    until("all have ended", lambda: site.count("running") == 0)
    assert all(state(servers[number % 2], jobs[number]) == "completed" for number in range(0, 1_000, 50))


def test_a_server_runs_what_another_has_no_worker_for(site: Site) -> None:
    first, second = site.serve(workers=1), site.serve(workers=1)
    jobs = enqueue_many(first, 2, "wait_at", "gate")
    site.ran.until_count("begin gate 1", 2)
    site.open_gate("gate")
    for job in jobs:
        assert result(first, job).text == result(second, job).text == "gate"


def test_a_server_hears_how_a_job_ended_in_another(site: Site) -> None:
    first = site.serve()
    job = enqueue(first, "wait_at", "gate")
    site.ran.until("begin gate 1")
    second = site.serve()
    client = second.connect().ask("GET", f"/jobs/{job}", "Prefer: wait=60")
    second.until(lambda status: any(wait["count"] for wait in status["waits"].values()))
    site.open_gate("gate")
    answer = client.answer(seconds=20)
    assert (answer.status, answer.text) == (200, "gate")


def test_a_server_hears_that_a_job_was_dropped_at_another(site: Site) -> None:
    first, second = site.serve(), site.serve()
    job = enqueue(first, "write", "never", delay=3_600)
    client = second.connect().ask("GET", f"/jobs/{job}", "Prefer: wait=60")
    follows = second.events(f"/jobs/{job}")
    assert json.loads(follows.data(1)[0])["state"] == "scheduled"
    second.until(lambda status: status["waits"]["job"]["count"] == 1)
    assert first.admin("DELETE", f"/jobs/{job}")[0] == 200
    assert client.answer().status == 404
    assert json.loads(follows.data(1)[0])["state"] == "missing"


def test_a_server_that_cannot_look_up_how_a_job_ended_in_another_looks_again(site: Site) -> None:
    first = site.serve()
    job = enqueue(first, "wait_at", "gate")
    site.ran.until("begin gate 1")
    second = site.serve()
    client = second.connect().ask("GET", f"/jobs/{job}", "Prefer: wait=60")
    second.until(lambda status: status["waits"]["job"]["count"] == 1)
    assert second.get(f"/jobs/{job}").status in (200, 202), "the store has also answered the client before"

    def looking() -> list[int]:
        rows = [row for row in site.postgres.activity() if row["wait_event_type"] == "Lock"]
        return [row["pid"] for row in rows if row["datname"] == site.database and "WITH ORDINALITY" in row["query"]]

    with site.postgres.connected(site.database) as connection, connection.transaction():
        # Without these columns its end is recorded, but nobody is notified.
        connection.execute("lock table parkade.bodies in access exclusive mode")
        site.open_gate("gate")
        (waits,) = until("it is looked up", looking)
        connection.execute("select pg_cancel_backend(%s)", [waits])
        second.until_logged("the job store cannot carry out commands; ")
        until("it is looked up again", looking)
        assert not client.is_readable()
    assert client.answer().text == "gate"


@pytest.mark.parametrize(("app", "name"), [("jobs", "poll_at"), pytest.param("jobs_async", "wait_at", marks=IN_PYTHON)])
def test_who_cancels_a_job_reaches_the_server_that_runs_it(site: Site, app: str, name: str) -> None:
    first = site.serve(app)
    job = enqueue(first, name, "gate")
    site.ran.until("begin gate 1")
    second = site.serve(app)
    with second.connect() as client:
        answer = client.ask("DELETE", f"/jobs/{job}").answer()
    assert answer.status in (200, 202), "it has ended, or is about to"
    site.ran.until("cancelled gate")
    for server in (first, second):
        until_state(server, job, "cancelled")
    assert "end gate 1" not in site.ran.lines()


@pytest.mark.promise(9)
def test_what_a_killed_server_ran_another_runs_again(site: Site) -> None:
    first = site.serve()
    job = enqueue(first, "wait_at", "gate")
    site.ran.until("begin gate 1")
    second = site.serve()
    first.kill()
    site.ran.until("begin gate 2")
    site.open_gate("gate")
    assert result(second, job).text == "gate"
    assert "end gate 1" not in site.ran.lines()
    second.until_logged("other servers were declared dead; their jobs are ready to run again")


@pytest.mark.promise(9)
def test_a_server_that_was_taken_for_lost_comes_again_and_its_attempt_does_not_count(site: Site) -> None:
    first = site.serve()
    job = enqueue(first, "wait_at", "gate")
    site.ran.until("begin gate 1")
    second = site.serve()
    first.signal(signal.SIGSTOP)
    site.ran.until("begin gate 2")
    site.open_gate("gate")
    assert result(second, job).text == "gate"
    first.signal(signal.SIGCONT)
    first.until_logged("declared dead by its peers")
    first.until_logged("marked lost")
    later = enqueue(first, "write", "later")
    assert result(first, later).text == "later"
    until("both live", lambda: site.count("boots") == 2)
    assert state(first, job) == "completed"


@pytest.mark.promise(9)
def test_what_a_stopped_server_hands_back_another_runs_at_once(site: Site) -> None:
    first = site.serve(grace="200ms")
    job = enqueue(first, "wait_at", "gate")
    site.ran.until("begin gate 1")
    second = site.serve()
    assert first.stop() == 0
    site.ran.until_count("begin gate 1", 2)
    assert site.count("boots") == 1, "the other said farewell"
    site.open_gate("gate")
    assert result(second, job).text == "gate"


# The database


@pytest.mark.promise(9)
def test_a_database_that_restarts_loses_nothing_acknowledged(fragile: Site) -> None:
    servers = [fragile.serve(workers=2), fragile.serve(workers=2)]

    def enqueued(number: int) -> str | None:
        body = asking("write", f"kept {number}")
        answer = servers[number % 2].post("/enqueue", body)
        assert answer.status in (200, 503), answer.text
        return f"kept {number}" if answer.status == 200 else None

    with ThreadPoolExecutor(8) as threads:
        before = [threads.submit(enqueued, number) for number in range(200)]
        fragile.ran.until_count("kept", 20)
        during = [threads.submit(enqueued, number) for number in range(200, 600)]
        fragile.postgres.restart()
        after = [threads.submit(enqueued, number) for number in range(600, 700)]
        acknowledged = [line for one in (*before, *during, *after) if (line := one.result())]
    assert len(acknowledged) >= 200
    fragile.ran.until(*acknowledged, seconds=60)
    until("all have ended", lambda: fragile.count("running") == 0 and fragile.count("ready") == 0, 60)


def test_without_its_database_a_server_acknowledges_nothing(fragile: Site) -> None:
    server = fragile.serve()
    enqueue(server, "write", "before")
    fragile.ran.until("before")
    fragile.postgres.halt()
    for number in range(3):
        answer = server.post("/enqueue", asking("write", f"refused {number}"))
        assert answer.status == 503, answer.text
    fragile.postgres.start()

    def is_back() -> bool:
        status: int = server.post("/enqueue", asking("write", "behind")).status
        return status == 200

    until("jobs are taken again", is_back, 30, told=server.log_tail)
    fragile.ran.until("behind")
    assert not fragile.ran.about("refused")
    told = ["ERROR the job store cannot carry out commands; ", "INFO the job store carries out commands again"]
    assert 0 < server.log().index(told[0]) < server.log().index(told[1])


def test_a_server_that_starts_without_its_database_takes_jobs_when_it_comes(fragile: Site) -> None:
    fragile.postgres.halt()
    server = fragile.serve()
    assert server.get("/hola/you").status == 200
    fragile.postgres.start()
    until("jobs are taken", lambda: server.post("/enqueue", asking("write", "late")).status == 200, 30)
    fragile.ran.until("late")


def test_outcomes_that_the_database_cannot_take_are_logged_once_a_second(fragile: Site) -> None:
    """Not in every step of a shutdown, which takes up to five seconds: that was 100,000 lines."""
    server = fragile.serve()
    for number in range(30):
        enqueue(server, "wait_for_word", f"{number}")
    server.until(lambda status: status["jobs"]["parked"] == 30)
    fragile.postgres.halt()
    server.publish("word", b"go on")
    fragile.ran.until_count("end", 30)
    server.until_logged("the job store cannot carry out commands; ")
    server.stop()
    assert server.log().count("the job store cannot carry out") < 15


def test_jobs_outlive_their_server(site: Site) -> None:
    first = site.serve()
    gone = enqueue(first, "write", "gone")
    until_state(first, gone, "completed")
    jobs = enqueue_many(first, 3, "write", "kept", delay=0.5)
    first.kill()
    second = site.serve()
    for job in jobs:
        until_state(second, job, "completed")
    assert state(second, gone) == "completed"


# What is refused


def test_tables_of_a_newer_parkade_are_left_alone(site: Site) -> None:
    site.serve().stop()
    site.postgres.psql("update parkade.version set version = version + 1", site.database)
    server = site.serve(is_ready=False)
    assert server.fails() == 1
    server.until_logged("parkade: --jobs: .*newer parkade.*install that one")
    assert site.count("bodies") == 0


def test_a_database_in_which_no_tables_may_be_made_is_refused(site: Site) -> None:
    site.postgres.psql("drop role if exists stranger; create role stranger login")
    server = site.serve(is_ready=False, jobs=site.postgres.url_of(site.database, user="stranger"))
    assert server.fails() == 1
    server.until_logged("parkade: --jobs: .*a schema called parkade that belongs to the connecting role")


def test_tables_that_turn_out_to_be_newer_later_end_nobody(fragile: Site) -> None:
    """The database comes back with them when the server is already serving."""
    fragile.serve().stop()
    fragile.postgres.psql("update parkade.version set version = version + 1", fragile.database)
    fragile.postgres.halt()
    server = fragile.serve()
    until("the start is over", lambda: server.status()["uptime"] > 5)
    fragile.postgres.start()
    server.until_logged("newer parkade")
    assert server.post("/enqueue", asking("write", "refused")).status == 503
    assert server.get("/hola/you").status == 200


def test_the_password_is_never_shown(site: Site) -> None:
    name, _ = GUARDED
    url = f"postgres://{name}:open-sesame@127.0.0.1:{site.postgres.port}/{site.database}?sslmode=disable"
    server = site.serve(jobs=None, environment={"PARKADE_JOBS": url, "GATES": str(site.folder)})
    assert server.post("/enqueue", asking("write", "refused")).status == 503
    server.until_logged("denies access")
    assert "open-sesame" not in server.log()
    shown = run("serve", "--help", PARKADE_JOBS=url)
    assert shown.returncode == 0
    assert "open-sesame" not in shown.stdout + shown.stderr
    refused = run("serve", server.target, PARKADE_JOBS="mysql://root:open-sesame@localhost/shop")
    assert refused.returncode == 2
    assert "parkade: --jobs: write postgres://" in refused.stderr
    assert "open-sesame" not in refused.stdout + refused.stderr
