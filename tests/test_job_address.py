"""`/jobs/<id>` as HTTP: caching of its responses, and responses while the store is silent."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from .conftest import Serve
from .harness.client import Broken, Client, Closed
from .harness.jobs import asking, enqueue, result, until_state
from .harness.server import Server
from .harness.site import Site
from .harness.until import Stopwatch, until

pytestmark = pytest.mark.also_in_perl

FAILING = {"PARKADE_INJECT_COMMIT": "fail=1"}
SLOW = {"PARKADE_INJECT_COMMIT": "delay=2000ms"}


@pytest.fixture(scope="module")
def server(serve_for_all: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    return serve_for_all("jobs", workers=2, folder=tmp_path_factory.mktemp("jobs"))


# Additional headers


def check_told(server: Server, method: str, job: str, status: int, cache: str = "no-store") -> None:
    answer = server.connect().ask(method, f"/jobs/{job}").answer()
    assert (answer.status, answer.all("cache-control"), answer.all("vary")) == (status, [cache], ["Accept, Prefer"])


def test_no_answer_is_kept_and_what_it_depends_on_is_told(server: Server) -> None:
    waits = enqueue(server, "write", "later", delay=3_600)
    check_told(server, "GET", waits, 202)
    check_told(server, "DELETE", waits, 200)
    check_told(server, "GET", waits, 410)
    completed = enqueue(server, "write", "now")
    until_state(server, completed, "completed")
    check_told(server, "GET", completed, 200)
    check_told(server, "DELETE", completed, 409)
    check_told(server, "GET", str(uuid4()), 404)


def test_a_response_that_says_how_long_it_may_be_kept_is_believed(server: Server) -> None:
    page = enqueue(server, "page_to_keep")
    until_state(server, page, "completed")
    check_told(server, "GET", page, 200, "max-age=60")
    answer = server.post("/returned", asking("page_to_keep"))
    assert (answer.all("cache-control"), "vary" in answer) == (["max-age=60"], False), (
        "that is the handler's own answer"
    )


def test_a_job_that_failed_for_good_cannot_be_cancelled(server: Server) -> None:
    job = enqueue(server, "discarded", "dead")
    until_state(server, job, "dead")
    check_told(server, "GET", job, 500)
    check_told(server, "DELETE", job, 409)
    assert "failed for good" in server.connect().ask("DELETE", f"/jobs/{job}").answer().json()["detail"]


@pytest.mark.parametrize(
    "fields",
    [
        ("Prefer: respond-async", "Prefer: wait=60"),
        ("Prefer: respond-async, wait=60",),
        ("Prefer: wait=soon, WAIT=60",),
    ],
)
def test_whichever_preference_says_wait_counts(server: Server, fields: tuple[str, ...]) -> None:
    gate = server.new_gate()
    job = enqueue(server, "wait_at", gate)
    client = server.connect().ask("GET", f"/jobs/{job}", *fields)
    server.until(lambda status: status["waits"]["job"]["count"] == 1)
    server.open_gate(gate)
    assert client.answer().text == gate


# Followed


@pytest.mark.parametrize(("job", "last"), [("write", "completed"), ("discarded", "dead")])
def test_the_stream_of_a_job_ends_behind_its_end(server: Server, job: str, last: str) -> None:
    gate = server.new_gate()
    enqueue(server, "wait_at", gate, queue="single")
    followed = enqueue(server, job, "followed", queue="single")
    streams = [server.events(f"/jobs/{followed}") for _ in range(2)]
    for stream in streams:
        assert json.loads(stream.data(1)[0])["state"] == "ready"
        assert stream.head.all("vary") == ["Accept, Prefer"]
    server.open_gate(gate)
    streams.append(server.events(f"/jobs/{followed}"))
    for stream in streams:
        told = [json.loads(event.data) for event in stream.rest() if event.data is not None]
        assert told[-1]["state"] == last


def test_a_stream_of_a_job_that_there_is_not_is_not_found(server: Server) -> None:
    assert server.get(f"/jobs/{uuid4()}", "Accept: text/event-stream").status == 404


def test_who_follows_a_job_is_told_how_it_stands_though_the_store_fails_now_and_then(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve("jobs", folder=tmp_path, environment={"PARKADE_INJECT_COMMIT": "fail=2"})
    jobs: list[str] = []

    def enqueued() -> bool:
        answer = server.post("/enqueue", asking("write", "line", delay=3_600))
        jobs.extend(answer.json() if answer.status == 200 else [])
        return bool(jobs)

    until("it is stored", enqueued)
    heard = 0
    while heard < 4:
        with Client(server.address) as client:
            opened = client.ask("GET", f"/jobs/{jobs[0]}", "Accept: text/event-stream").opening()
            assert opened.status in (200, 503)
            if opened.status == 200:
                client.until_bytes(b'"scheduled"')
                heard += 1


# A store that does not answer


def test_a_store_that_takes_too_long_is_waited_for_until_the_deadline(serve: Serve, tmp_path: Path) -> None:
    server = serve("jobs", folder=tmp_path, deadline="300ms", environment=SLOW)
    for fields in ((), ("Prefer: wait=0.3",), ("Accept: text/event-stream",)):
        watch = Stopwatch()
        answer = server.get(f"/jobs/{uuid4()}", *fields)
        assert (answer.status, "retry-after" in answer, watch.seconds < 1.5) == (503, True, True)
        assert "is unknown" in answer.json()["detail"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_store_that_cannot_be_asked_is_not_said_to_store_nothing(serve: Serve, tmp_path: Path, method: str) -> None:
    server = serve("jobs", folder=tmp_path, environment=FAILING)
    answer = server.connect().ask(method, f"/jobs/{uuid4()}").answer()
    assert (answer.status, answer.json()["detail"]) == (
        503,
        "the state of the job is unknown, because the job store is unavailable",
    )


def test_an_answer_that_has_begun_is_broken_off_when_its_job_is_not_stored(serve: Serve, tmp_path: Path) -> None:
    server = serve("jobs", folder=tmp_path, environment=FAILING)
    client = server.connect()
    opened = client.ask("POST", "/streamed-before", body=b"never").opening()
    assert opened.status == 200
    with pytest.raises((Closed, Broken, ConnectionResetError)):
        list(client.pieces(opened))


def test_it_is_found_when_the_store_is_slow(serve: Serve, tmp_path: Path) -> None:
    server = serve("jobs", folder=tmp_path, environment={"PARKADE_INJECT_COMMIT": "delay=200ms"})
    assert result(server, enqueue(server, "write", "slowly")).text == "slowly"


# A refused client has changed nothing


def test_a_job_is_not_cancelled_by_a_request_that_is_refused(serve: Serve, tmp_path: Path) -> None:
    server = serve("jobs", workers=2, folder=tmp_path, parked_limit=1)
    job = enqueue(server, "write", "kept", delay=3_600)
    server.waiting(f"/jobs/{job}", 1, "Prefer: wait=60")
    server.until_parked(1)
    for _ in range(2):
        assert server.connect().ask("DELETE", f"/jobs/{job}").answer().status == 503
    server.leave()
    server.until_parked(0)
    assert server.get(f"/jobs/{job}").status == 202, "it is there as before"
    for _ in range(2):
        assert server.connect().ask("DELETE", f"/jobs/{job}").answer().status == 200, "twice is once"
    assert server.get(f"/jobs/{job}").status == 410


def test_an_application_cannot_forge_the_progress_of_a_job(server: Server) -> None:
    job = enqueue(server, "write", "followed", delay=3_600)
    with server.events(f"/jobs/{job}") as events:
        assert json.loads(events.data(1)[0])["state"] == "scheduled"
        for name in (f"parkade/jobs/{job}", f"jobs/{job}"):
            server.publish(name, b'{"state": "completed"}', "application/json")
        assert server.admin("POST", f"/publish/%01jobs/{job}", b"{}")[0] == 400
        server.connect().ask("DELETE", f"/jobs/{job}").answer()
        assert json.loads(events.data(1)[0])["state"] == "cancelled"


# Jobs without an address


APPS = ("jobs", pytest.param("jobs_async", marks=pytest.mark.python_only("coroutines")))
ASKING = (("GET",), ("GET", "Prefer: wait=20"), ("GET", "Accept: text/event-stream"), ("DELETE",))


def told_of(server: Server, job: str) -> list[object]:
    """The result of each way to ask: the status, the body, the fields."""

    def told(method: str, *fields: str) -> tuple[object, ...]:
        with Client(server.address) as client:
            answer = client.ask(method, f"/jobs/{job}", *fields).answer()
            return answer.status, answer.body, answer.all("location"), answer.all("cache-control"), answer.all("vary")

    return [told(*asking) for asking in ASKING]


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def site(serve: Serve, tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    postgres = request.getfixturevalue("postgres") if request.param == "PostgreSQL" else None
    return Site(serve, tmp_path, postgres)


@pytest.mark.parametrize("app", APPS)
def test_a_private_job_is_to_clients_as_one_that_there_is_not(site: Site, app: str) -> None:
    server = site.serve(app)
    nothing = told_of(server, str(uuid4()))
    assert [told[0] for told in nothing] == [404] * len(ASKING)  # type: ignore[index]
    waits = enqueue(server, "hidden", "waits", delay=3_600)
    assert told_of(server, waits) == nothing
    runs = enqueue(server, "hidden", "runs")
    server.until(lambda status: status["jobs"]["running"] == 1)
    assert told_of(server, runs) == nothing
    assert server.status()["jobs"]["running"] == 1, "nobody has cancelled it"
    site.open_gate("runs")
    server.until(lambda status: status["jobs"]["completed"] == 1)
    assert told_of(server, runs) == nothing
    assert server.status()["jobs"]["scheduled"] == 1
    public = enqueue(server, "write", "public")
    assert result(server, public).text == "public"


@pytest.mark.parametrize("app", APPS)
def test_a_handler_may_answer_with_the_result_of_a_private_job(site: Site, app: str) -> None:
    server = site.serve(app, job_workers=2)  # one of them is held at a gate
    pending = server.post("/returned", asking("hidden", "later", timeout=0))
    assert (pending.status, pending.all("location")) == (202, [])
    assert len(server.post("/returned", asking("write", "x", delay=3_600, timeout=0)).all("location")) == 1
    site.open_gate("now")
    assert server.post("/returned", asking("hidden", "now")).text == "now"
