"""Submit and hold: a client gets the result of the job, now or later, follows it, or cancels it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from .conftest import Serve
from .harness.client import Client
from .harness.jobs import Ran, asking, enqueue, result, state, until_state, waiting
from .harness.server import Server
from .harness.until import Stopwatch, until

pytestmark = pytest.mark.also_in_perl

IN_PYTHON = pytest.mark.python_only("coroutines")
PLAIN = "jobs"
COROUTINES = "jobs_async"
APPS = (PLAIN, pytest.param(COROUTINES, marks=IN_PYTHON))

Place = tuple[Server, Ran]


@pytest.fixture(scope="module")
def servers(serve_for_all: Serve, language: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Place]:
    apps = (PLAIN, COROUTINES) if language == "python" else (PLAIN,)
    folders = {name: tmp_path_factory.mktemp(name) for name in apps}
    return {name: (serve_for_all(name, workers=3, folder=folders[name]), Ran(folders[name])) for name in apps}


@pytest.fixture(params=APPS)
def each(servers: dict[str, Place], request: pytest.FixtureRequest) -> Iterator[Place]:
    server, ran = servers[request.param]
    yield server, ran
    server.cleared()


@pytest.fixture
def plain(servers: dict[str, Place]) -> Iterator[Place]:
    yield servers["jobs"]
    servers["jobs"][0].cleared()


@pytest.fixture
def coroutines(servers: dict[str, Place]) -> Iterator[Place]:
    yield servers["jobs_async"]
    servers["jobs_async"][0].cleared()


# Three ways


@pytest.mark.parametrize(
    ("app", "way", "found"),
    [
        ("jobs", "returned", "done"),
        pytest.param("jobs_async", "returned", "done", marks=IN_PYTHON),
        ("jobs", "then", ["got", "done"]),
        pytest.param("jobs_async", "awaited", ["got", "done"], marks=IN_PYTHON),
    ],
)
def test_each_way_gives_the_result(servers: dict[str, Place], app: str, way: str, found: object) -> None:
    server, ran = servers[app]
    answer = server.post(f"/{way}", asking("write", "done"))
    assert (answer.status, answer.text if way == "returned" else answer.json()) == (200, found)
    assert ran.about("done"), "behind the job"


@pytest.mark.parametrize(
    ("value", "status", "content_type", "body"),
    [
        (None, 204, None, ""),
        ("ü", 200, "text/plain; charset=utf-8", "ü"),
        pytest.param(
            *({"b": 1, "a": [None, 1.5, True]}, 200, "application/json", '{"b":1,"a":[null,1.5,true]}'),
            marks=pytest.mark.python_only("hashes have no order"),
        ),
        ([{"b": 1.5}, None, True], 200, "application/json", '[{"b":1.5},null,true]'),
        ([], 200, "application/json", "[]"),
        (2**63, 200, "application/json", str(2**63)),
    ],
)
def test_a_result_is_answered_as_if_a_handler_had_returned_it(
    plain: Place, value: object, status: int, content_type: str | None, body: str
) -> None:
    answer = plain[0].post("/returned", asking("give", value))
    assert (answer.status, answer.all("content-type"), answer.text) == (
        status,
        [content_type] if content_type else [],
        body,
    )


@pytest.mark.parametrize(
    ("kind", "body"),
    [("keys", '{"null":1,"true":2,"1.5":3,"7":{"false":"cmF3"}}'), ("depth", "[" * 300 + "1" + "]" * 300)],
)
@pytest.mark.python_only("keys that are not text")
def test_a_result_that_json_cannot_say_as_it_is_is_said_all_the_same(plain: Place, kind: str, body: str) -> None:
    server, _ = plain
    answer = result(server, enqueue(server, "give_odd", kind))
    assert (answer.status, answer.text) == (200, body)


def test_all_who_wait_for_a_large_result_get_it(plain: Place) -> None:
    server, _ = plain
    gate = server.new_gate()
    enqueue(server, "wait_at", gate, queue="single")
    job = enqueue(server, "give_many", 100_000, queue="single")
    clients = server.waiting(f"/jobs/{job}", 30, "Prefer: wait=60")
    server.until(lambda status: status["waits"]["job"]["count"] == 30)
    server.open_gate(gate)
    assert all(client.answer().body == b"[" + b",".join([b"[]"] * 100_000) + b"]" for client in clients)


def test_a_result_may_be_a_response(plain: Place) -> None:
    server, _ = plain
    for answer in (server.post("/returned", asking("page")), result(server, enqueue(server, "page"))):
        assert (answer.status, answer["content-type"].partition(";")[0]) == (201, "text/html")
        assert answer.body == b"<p>made by a job"


def test_a_function_gets_nothing_when_the_time_is_up(plain: Place) -> None:
    server, ran = plain
    gate = server.new_gate()
    client = waiting(server, "then", "wait_at", gate, timeout=0.05)
    assert client.answer().json() == ["got", None]
    server.open_gate(gate)
    ran.until(f"end {gate} 1")


@pytest.mark.python_only("coroutines")
def test_a_coroutine_is_told_why_there_is_no_result(coroutines: Place) -> None:
    reason, text = coroutines[0].post("/awaited", asking("broken", "no")).json()
    assert (reason, "it is broken" in text) == ("dead", True)


# Later


def test_when_the_time_is_up_it_says_where_the_result_will_be(each: Place) -> None:
    server, _ = each
    gate = server.new_gate()
    watch = Stopwatch()
    answer = server.post("/returned", asking("wait_at", gate, timeout=0.2))
    assert (answer.status, watch.seconds >= 0.2) == (202, True)
    told = answer.json()
    assert answer["location"] == f"/jobs/{told['id']}"
    assert answer["cache-control"] == "no-store"
    assert (told["state"], told["attempt"]) == ("running", 1)
    again = server.get(answer["location"])
    assert (again.status, again.json()["state"]) == (202, "running")
    holding = [server.connect().ask("GET", answer["location"], "Prefer: wait=20") for _ in range(3)]
    server.until(lambda status: status["waits"]["job"]["count"] == 3)
    server.open_gate(gate)
    assert [(client.answer().status, gate) for client in holding] == [(200, gate)] * 3
    assert server.get(answer["location"]).text == gate, "as often as one likes"


def test_another_client_gets_the_result_though_who_asked_has_left(each: Place) -> None:
    server, ran = each
    gate = server.new_gate()
    client = waiting(server, "returned", "wait_at", gate, key=f"key of {gate}")
    ran.until(f"begin {gate} 1")
    server.until(lambda status: status["waits"]["job"]["count"] == 1)
    client.close()
    server.until(lambda status: status["waits"]["job"]["count"] == 0)
    # The key leads to the same job.
    other = waiting(server, "returned", "wait_at", gate, key=f"key of {gate}")
    server.until(lambda status: status["waits"]["job"]["count"] == 1)
    server.open_gate(gate)
    assert other.answer().text == gate
    assert ran.about(f"begin {gate}") == [f"begin {gate} 1"], "who leaves ends no job"


def test_a_client_that_prefers_to_wait_less_waits_less(each: Place) -> None:
    server, ran = each
    gate = server.new_gate()
    with Client(server.address) as client:
        answer = client.post("/returned", asking("wait_at", gate, timeout=3_600), "Prefer: wait=0")
    assert answer.status == 202
    server.open_gate(gate)
    ran.until(f"end {gate} 1")


def test_a_client_that_does_not_say_how_long_it_waits_does_not_wait(each: Place) -> None:
    server, ran = each
    job = enqueue(server, "write", "much later", delay=3_600)
    assert server.get(f"/jobs/{job}").json() == {"id": job, "state": "scheduled", "attempt": 0}
    assert server.connect().ask("DELETE", f"/jobs/{job}").answer().status == 200
    assert "much later" not in ran.lines()


# Followed


def progress_of(server: Server, job: str, gate: str) -> list[dict[str, object]]:
    """What its followers receive, from some point near its beginning to its end."""
    told: list[dict[str, object]] = []
    with server.events(f"/jobs/{job}") as events:
        while not told or told[-1]["state"] != "completed":
            told += map(json.loads, events.data(1))
            if told[-1].get("fraction") == 0.25:
                server.open_gate(gate)
            elif told[-1].get("text") == "some more":
                server.open_gate(f"{gate}-2")
    return told


def test_progress_is_told_to_who_follows(each: Place) -> None:
    server, _ = each
    gate = server.new_gate()
    job = server.post("/returned", asking("steps", gate, timeout=0)).json()["id"]
    quarter = {"state": "running", "attempt": 1, "fraction": 0.25, "text": "a quarter"}
    until("it is in its beginning", lambda: server.get(f"/jobs/{job}").json() == quarter | {"id": job})
    told = progress_of(server, job, gate)
    assert told[0] == quarter, "who comes later is told how far it is"
    assert {"state": "running", "attempt": 1, "fraction": None, "text": "some more"} in told
    assert result(server, job).json() == {"pages": 3}


def test_another_who_follows_is_told_alone_how_it_stands(each: Place) -> None:
    server, _ = each
    job = enqueue(server, "write", "much later", delay=3_600)
    followers = []
    for _ in range(20):
        followers.append(server.events(f"/jobs/{job}"))
        assert json.loads(followers[-1].data(1)[0]) == {"state": "scheduled", "attempt": 0}
    assert delete(server, job)[0] == 200
    told = [[event.data for event in events.rest() if event.data is not None] for events in followers]
    assert told == [['{"state":"cancelled"}']] * 20, "the others know it"


def test_who_follows_a_job_that_has_ended_is_told_so(each: Place) -> None:
    server, _ = each
    job = enqueue(server, "write", "followed too late")
    until_state(server, job, "completed")
    assert json.loads(server.events(f"/jobs/{job}").data(1)[0])["state"] == "completed"


# Cancelled


def delete(server: Server, job: str) -> tuple[int, str]:
    answer = server.connect().ask("DELETE", f"/jobs/{job}").answer()
    told = answer.json()
    return answer.status, told.get("state", told.get("detail"))


def test_a_job_that_waits_is_cancelled_before_it_begins(each: Place) -> None:
    server, ran = each
    gate = server.new_gate()
    enqueue(server, "wait_at", gate, queue="single")
    ran.until(f"begin {gate} 1")
    client = waiting(server, "returned", "write", f"{gate} never", queue="single", key=gate)
    server.until(lambda status: status["waits"]["job"]["count"] == 1)
    job = server.post("/returned", asking("write", "", queue="single", key=gate, timeout=0)).json()["id"]
    assert delete(server, job) == (200, "cancelled")
    assert client.answer().status == 410
    behind = enqueue(server, "write", f"{gate} behind", queue="single")
    server.open_gate(gate)
    until_state(server, behind, "completed")
    assert f"{gate} never" not in ran.lines()
    assert state(server, job) == "cancelled"
    assert delete(server, job) == (200, "cancelled"), "twice is once"


@pytest.mark.parametrize(("app", "name"), [("jobs", "poll_at"), pytest.param("jobs_async", "wait_at", marks=IN_PYTHON)])
def test_cancelling_reaches_the_code_that_runs(servers: dict[str, Place], app: str, name: str) -> None:
    server, ran = servers[app]
    gate = server.new_gate()
    job = enqueue(server, name, gate)
    ran.until(f"begin {gate} 1")
    holding = server.connect().ask("GET", f"/jobs/{job}", "Prefer: wait=20")
    server.until(lambda status: status["waits"]["job"]["count"] == 1)
    assert delete(server, job)[0] in (200, 202)
    ran.until(f"cancelled {gate}")
    assert holding.answer().status == 410
    until_state(server, job, "cancelled")
    server.cleared()
    assert len(ran.about(f"begin {gate}")) == 1, "it is not tried again"


def test_a_job_that_has_completed_cannot_be_cancelled(each: Place) -> None:
    server, _ = each
    job = enqueue(server, "write", "completed")
    until_state(server, job, "completed")
    answer = server.connect().ask("DELETE", f"/jobs/{job}").answer()
    assert (answer.status, answer.json()["fault"]) == (409, "client")
    assert result(server, job).text == "completed"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_job_that_there_is_not_is_not_found(each: Place, method: str) -> None:
    server, _ = each
    for target in (f"/jobs/{uuid4()}", "/jobs/7"):
        assert server.connect().ask(method, target, "Prefer: wait=5").answer().status == 404


def test_other_methods_are_not_for_jobs(each: Place) -> None:
    server, _ = each
    answer = server.post(f"/jobs/{uuid4()}")
    assert (answer.status, sorted(answer["allow"].split(", "))) == (405, ["DELETE", "GET", "HEAD"])


def drop(server: Server, job: str) -> None:
    assert server.admin("DELETE", f"/jobs/{job}")[0] == 200


@pytest.mark.parametrize(
    ("app", "way"), [("jobs", "returned"), ("jobs", "then"), pytest.param("jobs_async", "awaited", marks=IN_PYTHON)]
)
def test_who_waits_for_a_job_that_is_dropped_is_told_at_once(servers: dict[str, Place], app: str, way: str) -> None:
    server, _ = servers[app]
    key = server.new_gate()
    client = waiting(server, way, "write", "never", delay=3_600, key=key)
    server.until(lambda status: status["waits"]["job"]["count"] == 1)
    job = server.post("/returned", asking("write", "", key=key, timeout=0)).json()["id"]
    asks = server.connect().ask("GET", f"/jobs/{job}", "Prefer: wait=60")
    follows = server.events(f"/jobs/{job}")
    assert json.loads(follows.data(1)[0])["state"] == "scheduled"
    server.until(lambda status: status["waits"]["job"]["count"] == 2)
    drop(server, job)
    told = client.answer()
    if way == "awaited":
        assert told.json() == ["missing", "no such job; it may have been deleted"]
    else:
        assert told.status == 404
    assert asks.answer().status == 404
    assert json.loads(follows.data(1)[0])["state"] == "missing"
    assert not any(event.data for event in follows.rest()), "then it ends"
    server.cleared()


def test_a_job_that_failed_for_good_is_an_error_of_the_application(each: Place) -> None:
    server, _ = each
    job = enqueue(server, "broken", "dead")
    answer = result(server, job)
    assert (answer.status, answer.json()["fault"]) == (500, "application")
    assert "it is broken" not in answer.text, "that is for the log"
    server.until_logged("it is broken")


def test_a_result_is_kept_as_long_as_was_said(serve: Serve) -> None:
    server = serve("jobs", job_results="200ms")
    job = enqueue(server, "write", "short-lived")

    def is_purged() -> bool:
        # Purging is a part of the store's next step.
        enqueue(server, "write", "another")
        return state(server, job) == "missing"

    until("it is gone", is_purged)
