"""Jobs: enqueued in every way, durable before the response, and run when and as often as requested."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.jobs import Ran, asking, enqueue, enqueue_many, result, state, until_state
from .harness.server import Server
from .harness.until import Stopwatch

pytestmark = pytest.mark.also_in_perl

PLAIN = "jobs"
COROUTINES = "jobs_async"
IN_PYTHON = pytest.mark.python_only("coroutines")
APPS = (PLAIN, pytest.param(COROUTINES, marks=IN_PYTHON))

DELAY = 0.2
"""An artificial delay of each commit, in seconds, where that matters."""

SLOW_DISK = {"PARKADE_INJECT_COMMIT": f"delay={DELAY * 1000:.0f}ms"}


@pytest.fixture(scope="module")
def servers(
    serve_for_all: Serve, language: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Server, Ran]]:
    apps = (PLAIN, COROUTINES) if language == "python" else (PLAIN,)
    places = {name: tmp_path_factory.mktemp(name) for name in apps}
    two = {"workers": 3, "job_workers": 2}  # a job is held at a gate while others continue
    return {name: (serve_for_all(name, **two, folder=places[name]), Ran(places[name])) for name in apps}


@pytest.fixture(params=APPS)
def each(servers: dict[str, tuple[Server, Ran]], request: pytest.FixtureRequest) -> Iterator[tuple[Server, Ran]]:
    server, ran = servers[request.param]
    yield server, ran
    server.cleared()


@pytest.fixture
def plain(servers: dict[str, tuple[Server, Ran]]) -> Iterator[tuple[Server, Ran]]:
    yield servers["jobs"]
    servers["jobs"][0].cleared()


@pytest.fixture
def coroutines(servers: dict[str, tuple[Server, Ran]]) -> Iterator[tuple[Server, Ran]]:
    yield servers["jobs_async"]
    servers["jobs_async"][0].cleared()


# Enqueued


def test_a_handler_enqueues_and_the_job_runs_once(each: tuple[Server, Ran]) -> None:
    server, ran = each
    job = enqueue(server, "write", "from a handler")
    ran.until("from a handler")
    until_state(server, job, "completed")
    assert ran.about("from a handler") == ["from a handler"]


def test_a_job_enqueues_others(each: tuple[Server, Ran]) -> None:
    server, ran = each
    parent = enqueue(server, "parent", "child", 5)
    until_state(server, parent, "completed")
    ran.until(*(f"child {number}" for number in range(5)))


def test_a_job_goes_on_behind_a_wait(plain: tuple[Server, Ran]) -> None:
    server, ran = plain
    assert result(server, enqueue(server, "wait_behind", "waited")).text == "behind waited"
    ran.until("waited")


@pytest.mark.python_only("coroutines")
def test_a_coroutine_goes_on_behind_a_wait(coroutines: tuple[Server, Ran]) -> None:
    server, ran = coroutines
    assert result(server, enqueue(server, "stepwise", "waited")).text == "waited"
    ran.until("waited")


@pytest.mark.python_only("coroutines")
def test_enqueueing_is_awaited(coroutines: tuple[Server, Ran]) -> None:
    server, ran = coroutines
    ids = server.post("/stored", asking("write", "awaited", count=3)).json()
    assert len(set(ids)) == 3
    ran.until_count("awaited", 3)
    for job in ids:
        until_state(server, job, "completed")


def test_a_delay_is_kept(each: tuple[Server, Ran]) -> None:
    server, ran = each
    watch = Stopwatch()
    job = enqueue(server, "write", "delayed", delay=0.3)
    assert state(server, job) == "scheduled" or watch.seconds >= 0.3
    ran.until("delayed")
    assert watch.seconds >= 0.3


def test_a_time_is_kept(each: tuple[Server, Ran]) -> None:
    server, ran = each
    due = time.time() + 0.3
    enqueue(server, "write", "at a time", at=due)
    job = enqueue(server, "write", "next year", at=due + 31_536_000)
    past = enqueue(server, "write", "long ago", at=due - 31_536_000)
    until_state(server, past, "completed")
    ran.until("at a time")
    assert time.time() >= due - 0.001, "milliseconds are kept"
    assert state(server, job) == "scheduled"
    server.connect().ask("DELETE", f"/jobs/{job}").answer()


def test_the_higher_priority_goes_first(each: tuple[Server, Ran]) -> None:
    server, ran = each
    gate = server.new_gate()
    enqueue(server, "wait_at", gate, queue="single")
    ran.until(f"begin {gate} 1")
    for priority in (0, -10, 10, 0):
        enqueue(server, "write", f"{gate} of {priority}", queue="single", priority=priority)
    server.open_gate(gate)
    ran.until(f"{gate} of -10")
    assert ran.about(f"{gate} of") == [f"{gate} of {priority}" for priority in (10, 0, 0, -10)]


@pytest.mark.python_only("coroutines")
def test_while_a_job_with_that_key_has_not_ended_it_is_that_one(coroutines: tuple[Server, Ran]) -> None:
    server, ran = coroutines

    def enqueue_stored(line: str, **options: object) -> str:
        (job,) = server.post("/stored", asking("write", line, **options)).json()
        return str(job)

    first = enqueue_stored("keyed", key="a key", delay=0.3)
    assert enqueue_stored("keyed, again", key="a key") == first
    assert enqueue_stored("keyed, other", key="another key") != first
    ran.until("keyed", "keyed, other")
    until_state(server, first, "completed")
    assert enqueue_stored("keyed, later", key="a key") != first
    ran.until("keyed, later")
    assert "keyed, again" not in ran.lines()


def test_who_asks_for_the_result_of_a_job_with_a_key_gets_that_of_the_one_that_is_there(
    each: tuple[Server, Ran],
) -> None:
    server, ran = each
    gate = server.new_gate()
    first = server.post("/returned", asking("wait_at", gate, key=gate, timeout=0))
    second = server.post("/returned", asking("wait_at", gate, key=gate, timeout=0))
    assert (first.status, second.status) == (202, 202)
    assert first["location"] == second["location"]
    server.open_gate(gate)
    assert result(server, first.json()["id"]).text == gate
    assert ran.about(f"end {gate}") == [f"end {gate} 1"]


@pytest.mark.python_only("unique jobs")
def test_a_unique_job_is_there_once_for_the_same_arguments(plain: tuple[Server, Ran]) -> None:
    server, ran = plain
    enqueue_many(server, 3, "write_once", "unique", delay=0.2)
    enqueue(server, "write_once", "another", delay=0.2)
    job = enqueue(server, "write", "behind the unique ones", delay=0.3)
    until_state(server, job, "completed")
    ran.until("unique", "another")
    assert (len(ran.about("unique")), len(ran.about("another"))) == (1, 1)
    enqueue(server, "write_once", "unique")
    ran.until_count("unique", 2)


@pytest.mark.python_only("unique jobs")
def test_a_function_says_what_is_unique(plain: tuple[Server, Ran]) -> None:
    server, ran = plain
    for line in ("uno", "uno and more", "dos"):
        enqueue(server, "write_once_for_each_beginning", line, delay=0.2)
    job = enqueue(server, "write", "behind them", delay=0.3)
    until_state(server, job, "completed")
    ran.until("uno", "dos")
    assert "uno and more" not in ran.lines()


def test_a_job_goes_to_the_queue_that_was_said(each: tuple[Server, Ran]) -> None:
    server, ran = each
    gate = server.new_gate()
    enqueue(server, "wait_at", gate, queue="single")
    ran.until(f"begin {gate} 1")
    kept = enqueue(server, "write", f"{gate} kept", queue="single")
    other = enqueue(server, "write", f"{gate} other", queue="other")
    until_state(server, other, "completed")
    assert state(server, kept) == "ready"
    server.open_gate(gate)
    until_state(server, kept, "completed")


# Durable before the response


@pytest.fixture(scope="module")
def slow(serve_for_all: Serve, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Server]:
    """Servers with a slow disk."""

    @cache
    def start(app: str) -> Server:
        return serve_for_all(app, folder=tmp_path_factory.mktemp("slow"), environment=SLOW_DISK)

    return start


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    ("app", "path", "status", "body"),
    [
        ("jobs", "/streamed", 200, b"onetwo"),
        ("jobs", "/before-a-wait", 200, b"waited"),
        # An error in Perl tells the client nothing of the job: it goes before it.
        pytest.param("jobs", "/before-an-error", 500, None, marks=pytest.mark.python_only("errors are responses")),
        pytest.param("jobs_async", "/streamed", 200, b"onetwo", marks=IN_PYTHON),
        pytest.param("jobs_async", "/before-a-wait", 200, b"waited", marks=IN_PYTHON),
        pytest.param("jobs_async", "/before-an-awaited-wait", 200, b"waited", marks=IN_PYTHON),
    ],
)
def test_nothing_leaves_before_the_job_is_stored(
    slow: Callable[[str], Server], app: str, path: str, status: int, body: bytes | None
) -> None:
    with slow(app).connect() as client:
        watch = Stopwatch()
        opened = client.ask("POST", path, body=b"line").opening()
        assert (opened.status, watch.seconds >= DELAY) == (status, True)
        assert body in (None, b"".join(client.pieces(opened)))


@pytest.mark.promise(9)
def test_a_handler_waits_for_no_disk_though_its_answer_does(serve: Serve, tmp_path: Path) -> None:
    """One worker that runs one request at a time: twenty responses take as long as a few commits."""
    server = serve("jobs", folder=tmp_path, environment=SLOW_DISK)
    enqueue(server, "write", "the first")
    watch = Stopwatch()
    body = asking("write", "line")
    clients = [server.connect().ask("POST", "/enqueue", body=body) for _ in range(20)]
    assert {client.answer().status for client in clients} == {200}
    assert DELAY <= watch.seconds < 20 * DELAY


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    ("app", "path", "body"),
    [
        ("jobs", "/enqueue", asking("write", "line")),
        ("jobs", "/streamed", b"line"),
        ("jobs", "/before-a-wait", b"line"),
        pytest.param("jobs_async", "/before-a-wait", b"line", marks=IN_PYTHON),
    ],
    ids=["at once", "streamed", "behind a wait", "a coroutine behind a wait"],
)
def test_the_core_is_killed_at_the_first_byte_of_the_answer(
    serve: Serve, tmp_path: Path, app: str, path: str, body: bytes
) -> None:
    server = serve(app, folder=tmp_path, environment=SLOW_DISK)
    client = server.connect().ask("POST", path, body=body)
    assert client.is_readable(10)
    server.kill()
    serve(app, folder=tmp_path)
    Ran(tmp_path).until("line")


def enqueue_a_hundred(server: Server) -> list[str]:
    client = server.connect()
    lines = [f"line {number}" for number in range(100)]
    for line in lines:
        assert client.post("/enqueue", asking("write", line)).status == 200
    return lines


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    ("app", "durability"), [("jobs", "power"), pytest.param("jobs_async", "process", marks=IN_PYTHON)]
)
def test_a_hundred_acknowledged_jobs_run_though_the_core_was_killed(
    serve: Serve, tmp_path: Path, app: str, durability: str
) -> None:
    server = serve(app, folder=tmp_path, durability=durability)
    lines = enqueue_a_hundred(server)
    server.kill()
    serve(app, folder=tmp_path)
    Ran(tmp_path).until(*lines)


@pytest.mark.promise(9)
@pytest.mark.parametrize("app", APPS)
def test_a_hundred_acknowledged_jobs_run_once_though_the_server_was_stopped(
    serve: Serve, tmp_path: Path, app: str
) -> None:
    server = serve(app, folder=tmp_path)
    lines = enqueue_a_hundred(server)
    assert server.stop() == 0
    serve(app, folder=tmp_path)
    assert sorted(Ran(tmp_path).until(*lines)) == sorted(lines)


@pytest.mark.promise(9)
def test_delayed_and_waiting_jobs_outlive_a_restart_and_keep_their_results(serve: Serve, tmp_path: Path) -> None:
    ran = Ran(tmp_path)
    server = serve("jobs", folder=tmp_path)
    done = enqueue(server, "give", {"kept": [1, "two"]})
    until_state(server, done, "completed")
    far = enqueue(server, "write", "far away", delay=3_600)
    soon = enqueue(server, "write", "soon", delay=0.5)
    server.kill()
    server = serve("jobs", folder=tmp_path)
    assert result(server, done).json() == {"kept": [1, "two"]}
    until_state(server, soon, "completed")
    assert state(server, far) == "scheduled"
    assert ran.lines() == ["soon"]
