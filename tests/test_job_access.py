"""`@app.job(access=function)`: the application decides who may read, follow or cancel a job at `/jobs/<id>`.

The worker for Perl has no such functions, only jobs that clients do not find at all (`test_job_address`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from .conftest import Serve
from .harness.client import Answer, Client
from .harness.jobs import Ran, enqueue
from .harness.postgres import Postgres
from .harness.server import APPS, Server
from .harness.site import Site
from .harness.until import until

KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "plain": ("jobs", {}),
    "plain beside a loop": ("jobs", {"CONCURRENT": "yes"}),
    "coroutine": ("jobs_async", {}),
}
ASKING: tuple[tuple[str, tuple[str, str] | None], ...] = (
    ("GET", None),
    ("HEAD", None),
    ("GET", ("prefer", "wait=20")),
    ("GET", ("accept", "text/event-stream")),
    ("DELETE", None),
)
LATER = 3_600

Say = Callable[..., Answer]


@dataclass
class Place:
    """A server, and the actions of its store and its workers."""

    site: Site
    server: Server

    def asked(self, job: str) -> list[str]:
        """The methods for which the application decided about this job."""
        return [line.split()[1] for line in self.site.ran.about("asked ") if line.endswith(job)]


@pytest.fixture(scope="module", params=["SQLite", "PostgreSQL"])
def store(request: pytest.FixtureRequest) -> Postgres | None:
    return request.getfixturevalue("postgres") if request.param == "PostgreSQL" else None


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS.keys())
def place(
    serve_for_all: Serve,
    store: Postgres | None,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Place:
    app, environment = request.param
    site = Site(serve_for_all, tmp_path_factory.mktemp("jobs"), store)
    return Place(site, site.serve(app, environment, workers=2))


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
def say(place: Place, request: pytest.FixtureRequest) -> Say:
    """Requests a job as a user."""

    def by_1(method: str, job: str, user: str | None, *fields: tuple[str, str] | None) -> Answer:
        with Client(place.server.address) as client:
            lines = [": ".join(field) for field in told(user, fields)]
            return client.ask(method, f"/jobs/{job}", *lines).answer(head=method == "HEAD")

    def by_2(method: str, job: str, user: str | None, *fields: tuple[str, str] | None) -> Answer:
        with place.server.connect2() as client:
            return client.answer(client.ask(method, f"/jobs/{job}", *told(user, fields)))

    return by_1 if request.param == "HTTP/1.1" else by_2


def told(user: str | None, fields: tuple[tuple[str, str] | None, ...] = ()) -> list[tuple[str, str]]:
    return [field for field in (*fields, user and ("x-user", user)) if field]


def lines(user: str | None, *fields: str) -> tuple[str, ...]:
    return (*fields, *(f"{name}: {value}" for name, value in told(user)))


def is_there(place: Place, job: str) -> bool:
    """Whether it is still waiting."""
    answer = place.server.get(f"/jobs/{job}", *lines("ada"))
    return answer.status == 202 and answer.json()["state"] in ("scheduled", "ready", "running")


# Clients with access


def test_whoever_may_has_the_job_as_a_public_one(place: Place, say: Say) -> None:
    job = enqueue(place.server, "owned", "ada", delay=LATER)
    pending = say("GET", job, "ada")
    assert (pending.status, pending.json()["state"], pending["location"]) == (202, "scheduled", f"/jobs/{job}")
    assert (pending.all("cache-control"), pending.all("vary")) == (["no-store"], ["Accept, Prefer"])
    head = say("HEAD", job, "ada")
    assert (head.status, head.body) == (202, b"")
    ended = say("DELETE", job, "ada")
    assert (ended.status, ended.json()) == (200, {"id": job, "state": "cancelled"})
    assert [say(method, job, "ada").status for method in ("DELETE", "GET")] == [200, 410]
    assert place.asked(job) == ["GET", "HEAD", "DELETE", "DELETE", "GET"], "once for each request"


def test_whoever_may_waits_for_the_result(place: Place, say: Say) -> None:
    gate = place.server.new_gate()
    job = enqueue(place.server, "owned", "ada", gate)
    waiting = place.server.connect().ask("GET", f"/jobs/{job}", *lines("ada", "Prefer: wait=60"))
    place.server.until(lambda status: status["waits"]["job"]["count"] == 1)
    place.site.open_gate(gate)
    assert waiting.answer().text == say("GET", job, "ada").text == "ada has it"
    assert say("DELETE", job, "ada").status == 409
    assert say("GET", job, "eve").status == 404


def test_whoever_may_follows_the_job(place: Place) -> None:
    gate = place.server.new_gate()
    job = enqueue(place.server, "owned", "ada", gate)
    with place.server.events(f"/jobs/{job}", *lines("ada")) as events:
        assert json.loads(events.data(1)[0])["state"] in ("ready", "running")
        place.site.open_gate(gate)
        followed = [json.loads(event.data) for event in events.rest() if event.data is not None]
    assert followed[-1]["state"] == "completed"
    with place.server.connect2() as client:
        opened = client.ask("GET", f"/jobs/{job}", *told("ada", (("accept", "text/event-stream"),)))
        assert client.opening(opened).status == 200


def test_a_job_that_runs_is_ended_by_whoever_may_alone(place: Place, say: Say) -> None:
    gate = place.server.new_gate()
    job = enqueue(place.server, "owned", "ada", gate)
    until("it runs", lambda: place.server.get(f"/jobs/{job}", *lines("ada")).json()["state"] == "running")
    assert say("DELETE", job, "eve").status == 404
    assert is_there(place, job)
    assert say("DELETE", job, "ada").status in (200, 202)
    place.site.open_gate(gate)
    until("it has ended", lambda: place.server.get(f"/jobs/{job}", *lines("ada")).status == 410)


def test_its_arguments_may_be_long(place: Place, say: Say) -> None:
    job = enqueue(place.server, "owned", "ada", None, "x" * 400_000, delay=LATER)
    assert [say("GET", job, user).status for user in ("ada", "eve")] == [202, 404]
    assert say("DELETE", job, "ada").status == 200


# Clients without access


def seen(answer: Answer) -> tuple[object, ...]:
    fields = ("content-type", "content-length", "location", "retry-after", "cache-control", "vary")
    return answer.status, answer.body, *(answer.all(name) for name in fields)


def test_to_whoever_may_not_it_is_as_a_job_that_there_is_not(place: Place, say: Say) -> None:
    jobs = [enqueue(place.server, "owned", "ada", delay=LATER), enqueue(place.server, "owned", "ada")]
    until("it has ended", lambda: place.server.get(f"/jobs/{jobs[1]}", *lines("ada")).status == 200)
    for asking in ASKING:
        nothing = seen(say(asking[0], str(uuid4()), "eve", *asking[1:]))
        assert nothing[0] == 404
        for job in jobs:
            assert seen(say(asking[0], job, "eve", *asking[1:])) == nothing
    assert is_there(place, jobs[0])
    assert place.asked(jobs[0])[: len(ASKING)] == [method for method, _ in ASKING]


@pytest.mark.parametrize(("user", "status"), [(None, 401), ("fails", 500), ("waits", 500)])
def test_what_is_raised_is_the_answer_and_the_job_stays(place: Place, say: Say, user: str | None, status: int) -> None:
    job = enqueue(place.server, "owned", "ada", delay=LATER)
    for method, field in ASKING:
        answer = say(method, job, user, field)
        assert answer.status == status
        assert answer.all("www-authenticate") == (["Basic"] if user is None else [])
    assert is_there(place, job)


# Changes in the middle


def test_a_client_that_leaves_meanwhile_cancels_nothing(place: Place) -> None:
    job, gate = enqueue(place.server, "owned", "ada", delay=LATER), place.server.new_gate()
    with Client(place.server.address) as client:
        client.ask("DELETE", f"/jobs/{job}", *lines("ada", f"X-Gate: {gate}"))
        until("it is asked about", lambda: place.asked(job))
    place.server.until_running(0)
    place.site.open_gate(gate)
    assert is_there(place, job)


def test_nothing_is_done_before_it_was_permitted(place: Place) -> None:
    job, gate = enqueue(place.server, "owned", "ada", delay=LATER), place.server.new_gate()
    client = place.server.connect().ask("DELETE", f"/jobs/{job}", *lines("ada", f"X-Gate: {gate}"))
    until("it is asked about", lambda: place.asked(job))
    assert is_there(place, job)
    place.site.open_gate(gate)
    assert client.answer().status == 200
    assert not is_there(place, job)


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def fragile(serve: Serve, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Place]:
    """A separate server with these settings, and jobs in a file."""
    app, environment = request.param
    site = Site(serve, tmp_path)
    return lambda **settings: Place(site, site.serve(app, environment, **settings))


def test_a_worker_that_dies_meanwhile_cancels_nothing(fragile: Callable[..., Place]) -> None:
    place = fragile(workers=2)
    job = enqueue(place.server, "owned", "ada", delay=LATER)
    answer = place.server.connect().ask("DELETE", f"/jobs/{job}", *lines("dies")).answer()
    assert answer.status == 502
    assert is_there(place, job)


def test_what_a_coroutine_waits_for_while_it_is_asked_is_the_applications(serve: Serve, tmp_path: Path) -> None:
    place = Place(Site(serve, tmp_path), serve("jobs_async", folder=tmp_path))
    job, other = (enqueue(place.server, name, "ada", delay=LATER) for name in ("owned", "hidden"))
    first = f"X-First: {other}"
    for method, user, status in [("DELETE", "eve", 404), ("GET", "ada", 202), ("DELETE", "ada", 200)]:
        assert place.server.connect().ask(method, f"/jobs/{job}", *lines(user, first)).answer().status == status
    place.server.until(lambda status: status["jobs"]["cancelled"] == 1 and status["jobs"]["scheduled"] == 1)


def test_it_has_the_deadline_of_a_request(fragile: Callable[..., Place]) -> None:
    place = fragile(workers=2, deadline="500ms")
    job, gate = enqueue(place.server, "owned", "ada", delay=LATER), place.server.new_gate()
    late = place.server.connect().ask("DELETE", f"/jobs/{job}", *lines("ada", f"X-Gate: {gate}")).answer()
    assert late.status == 504
    place.site.open_gate(gate)
    until("it is there", lambda: is_there(place, job))


def test_arguments_count_as_what_requests_hold(fragile: Callable[..., Place]) -> None:
    place = fragile(workers=2, requests_limit="2MiB")
    job, gate = enqueue(place.server, "owned", "ada", None, "x" * 400_000, delay=LATER), place.server.new_gate()
    clients = place.server.waiting(f"/jobs/{job}", 8, *lines("ada", f"X-Gate: {gate}"))
    until("there is no room", lambda: any(client.is_readable() for client in clients))
    place.site.open_gate(gate)
    answers = [client.answer() for client in clients]
    assert {answer.status for answer in answers} == {202, 503}
    assert all("retry-after" in answer for answer in answers)
    place.server.until(lambda status: status["memory"]["request_bytes"] == 0)


RELEASE = """
from parkade import App

app = App()
{job}

@app.post("/enqueue")
def enqueue() -> list[str]:
    return [app.jobs["work"].enqueue().id]

@app.job
def another() -> None: ...
"""


def test_a_new_release_decides_anew(serve: Serve, tmp_path: Path) -> None:
    code = tmp_path / "releases.py"

    def release(job: str) -> None:
        code.write_text(RELEASE.format(job=job))

    release("app.job(name='work')(lambda: None)")
    server = serve(str(code), folder=tmp_path, job_workers=0)
    (job,) = server.post("/enqueue").json()
    assert server.get(f"/jobs/{job}").status == 202
    for told, status in [
        ("app.job(name='work', access=lambda request, job: False)(lambda: None)", 404),
        ("async def may(request, job): return True\napp.job(name='work', access=may)(lambda: None)", 202),
        ("app.job(name='work', public=False)(lambda: None)", 404),
        ("", 404),
    ]:
        release(told)
        server.reload()
        assert server.get(f"/jobs/{job}").status == status


QUEUED = """
import os
from parkade import App
from gates import hold
from jobs_ran import note

app = App(concurrent=True)

@app.get("/hold/{{gate}}")
def hold_at(gate: str) -> None:
    hold(gate)

@app.post("/enqueue")
def enqueue() -> list[str]:
    return [app.jobs["work"].enqueue().id]

{define} may(request, job):
    note("begun")
    os._exit(1)

app.job(name="work", access=may)(lambda: None)
"""


def test_a_function_that_new_code_makes_a_coroutine_is_asked_once(serve: Serve, tmp_path: Path) -> None:
    for name in ("gates.py", "jobs_ran.py"):
        (tmp_path / name).write_text((APPS / name).read_text())
    code = tmp_path / "queued.py"
    code.write_text(QUEUED.format(define="def"))
    server = serve(str(code), folder=tmp_path, workers=1, job_workers=0)
    (job,) = server.post("/enqueue").json()
    gate = server.new_gate()
    held = server.connect().ask("GET", f"/hold/{gate}")
    server.until_running(1)
    queued = server.connect().ask("GET", f"/jobs/{job}")
    server.until(lambda status: status["lives"]["queued"] == 1)
    code.write_text(QUEUED.format(define="async def"))
    server.reload()
    assert queued.answer().status == 502
    server.open_gate(gate)
    held.answer()
    assert Ran(tmp_path).lines() == ["begun"]


def test_a_public_job_needs_no_worker(fragile: Callable[..., Place]) -> None:
    place = fragile(workers=1)
    jobs = [enqueue(place.server, name, "ada", delay=LATER) for name in ("write", "owned")]
    (pid,) = place.server.worker_pids()[:1]
    gate = place.server.new_gate()
    blocked = place.server.connect().ask("GET", f"/jobs/{jobs[1]}", *lines("ada", f"X-Gate: {gate}"))
    until("it is asked about", lambda: place.asked(jobs[1]))
    assert place.server.get(f"/jobs/{jobs[0]}").status == 202
    place.site.open_gate(gate)
    assert blocked.answer().status == 202
    assert pid in place.server.worker_pids()
