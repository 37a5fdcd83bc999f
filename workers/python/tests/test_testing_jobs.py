"""What the test client answers for jobs, as the core does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from parkade import App, Job, Request, after, html, jobs
from parkade.testing import Client, Parked

NOBODY = "0192f3a4-5b6c-7d8e-9f01-23456789abcd"


class Application:
    """One with jobs of every kind; `enqueue` gives the id of one."""

    def __init__(self, **options: Any) -> None:
        self.app = App(**options)
        self.ended: list[str] = []
        for job in (self.page, self.value, self.nothing, self.fails, self.waits, self.coroutine):
            self.app.job(name=job.__name__, retries=0)(job)
        self.app.get("/held/{name}", lambda name: self.app.jobs[name].enqueue().result(timeout=20))
        self.app.get("/enqueued/{name}", lambda name: self.app.jobs[name].options(delay=60).enqueue().id)

    def page(self) -> object:
        return html("<p>")

    def value(self) -> object:
        return {"pages": 3}

    def nothing(self) -> None: ...

    def fails(self) -> None:
        raise ValueError("secret")

    def waits(self, job: Job) -> object:
        job.progress(0.5, "half")
        return after(60, "waited")

    async def coroutine(self, job: Job) -> None:
        try:
            await after(60)
        except asyncio.CancelledError:
            self.ended.append(f"cancelled {job.cancelled}")
            raise


DEAD = (
    '{"title":"Internal Server Error","status":500,"detail":"the job failed; the log says why","fault":"application"}'
)


def enqueue(client: Client, name: str) -> str:
    return client.get(f"/enqueued/{name}").text


@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("page", 200, "<p>"),
        ("value", 200, '{"pages":3}'),
        ("nothing", 204, ""),
        ("fails", 500, DEAD),
    ],
)
def test_a_job_is_found_by_its_id(name: str, status: int, text: str) -> None:
    with Client(Application(jobs_path="/work").app) as client:
        id = enqueue(client, name)
        pending = client.get(f"/work/{id}")
        assert (pending.status, pending.json()) == (202, {"id": id, "state": "scheduled", "attempt": 0})
        assert (pending.headers["location"], pending.headers["retry-after"]) == (f"/work/{id}", "1")
        client.run_jobs()
        ended = client.get(f"/work/{id.upper()}")
        assert (ended.status, ended.text) == (status, text)


def test_who_has_no_id_of_a_job_finds_nothing() -> None:
    with Client(Application().app) as client:
        assert [client.get(f"/jobs/{id}").status for id in (NOBODY, "nonsense")] == [404, 404]
        assert client.delete(f"/jobs/{NOBODY}").status == 404
        assert client.post(f"/jobs/{NOBODY}").status == 405
    assert Client(Application(jobs_path=None).app).get(f"/jobs/{NOBODY}").status == 404


def test_a_key_that_another_has_leaves_an_id_that_no_job_has() -> None:
    app = App()
    work = app.job(name="work")(lambda: None)
    app.get("/", lambda: work.options(key="k").enqueue().id)
    with Client(app) as client:
        first, second = client.get("/").text, client.get("/").text
        assert [client.get(f"/jobs/{id}").status for id in (first, second)] == [202, 404]


@pytest.mark.parametrize("prefer", ["wait=20", "respond-async, WAIT=20", 'wait="20"', "respond-async; wait=20"])
def test_a_client_that_prefers_to_wait_is_held(prefer: str) -> None:
    with Client(Application().app) as client:
        id = enqueue(client, "value")
        held, given_up = (client.get(f"/jobs/{id}", headers={"Prefer": prefer}) for _ in range(2))
        assert isinstance(given_up, Parked)
        client.advance(19)
        assert (held.parked, held.done) == (True, False)
        client.leave(given_up)
        client.run_jobs()
        assert held.json() == {"pages": 3}
        late = client.get(f"/jobs/{enqueue(client, 'value')}", headers={"Prefer": "wait=1000"})
        client.advance(299)
        assert late.parked
        client.advance(1)
        assert late.status == 202


@pytest.mark.parametrize("prefer", ["wait=abc", "wait=-1", "wait=1e400", "wait=nan", "wait", "respond-async", ""])
def test_who_does_not_say_how_long_it_waits_does_not_wait(prefer: str) -> None:
    with Client(Application().app) as client:
        assert client.get(f"/jobs/{enqueue(client, 'value')}", headers={"Prefer": prefer}).status == 202


@pytest.mark.parametrize(("prefer", "seconds"), [("wait=5", 5), ("wait=1000", 20), ("", 20)])
def test_a_client_of_a_handler_is_held_no_longer_than_both_want(prefer: str, seconds: float) -> None:
    with Client(Application().app) as client:
        held = client.get("/held/value", headers={"Prefer": prefer})
        client.advance(seconds - 1)
        assert held.parked
        client.advance(1)
        assert held.status == 202


def test_who_prefers_not_to_wait_is_told_at_once() -> None:
    with Client(Application().app) as client:
        answer = client.get("/held/waits", headers={"prefer": "wait=0"})
        assert (answer.status, answer.json()["state"]) == (202, "ready")
        client.run_jobs()
        told = client.get(answer.headers["location"]).json()
        assert told == {"id": told["id"], "state": "running", "attempt": 1, "fraction": 0.5, "text": "half"}


@pytest.mark.parametrize("name", ["value", "waits", "coroutine"])
def test_a_job_is_cancelled_wherever_it_is(name: str) -> None:
    application = Application()
    with Client(application.app) as client:
        held = client.get(f"/held/{name}")
        id = client.jobs[0].id
        if name != "value":
            client.run_jobs()
        for _ in range(2):
            answer = client.delete(f"/jobs/{id}")
            assert (answer.status, answer.json()) == (200, {"id": id, "state": "cancelled"})
        client.run_jobs()
        client.advance(60)
        assert (client.jobs[0].state, client.jobs[0].result) == ("cancelled", None)
        assert [held.status, client.get(f"/jobs/{id}").status] == [410, 410]
        assert application.ended == (["cancelled True"] if name == "coroutine" else [])


@pytest.mark.parametrize(("name", "status"), [("value", 409), ("fails", 409)])
def test_a_job_that_has_ended_is_not_cancelled(name: str, status: int) -> None:
    with Client(Application().app) as client:
        id = enqueue(client, name)
        client.run_jobs()
        assert client.delete(f"/jobs/{id}").status == status


def test_a_job_is_followed() -> None:
    with Client(Application().app) as client:
        id = enqueue(client, "waits")
        stream = client.get(f"/jobs/{id}", headers={"Accept": "text/event-stream"})
        client.run_jobs()
        client.advance(60)
        assert [message.value for message in stream.messages] == [
            {"state": "scheduled", "attempt": 0},
            {"state": "running", "attempt": 1, "fraction": 0.5, "text": "half"},
            {"state": "completed"},
        ]
        missing = client.get(f"/jobs/{NOBODY}", headers={"Accept": "text/event-stream"})
        assert missing.status == 404


def test_a_handler_of_ones_own_answers_as_the_route_does() -> None:
    application = Application(jobs_path=None)
    application.app.get("/mine/{id}", lambda id: jobs.Handle.of(id).result(timeout=0))
    with Client(application.app) as client:
        id = enqueue(client, "value")
        assert [client.get(f"/mine/{one}").status for one in (id, NOBODY, "nonsense")] == [202, 404, 404]
        client.run_jobs()
        assert client.get(f"/mine/{id}").json() == {"pages": 3}


def test_a_private_job_is_to_clients_as_one_that_there_is_not() -> None:
    app = App()
    work = app.job(name="work", public=False)(lambda: "done")
    app.get("/", lambda: work.enqueue().id)
    app.get("/returned", lambda: work.enqueue().result(0))
    with Client(app) as client:
        id = client.get("/").text
        pending = client.get("/returned")
        assert (pending.status, "location" in pending.headers) == (202, False)
        assert client.delete(f"/jobs/{id}").status == 404
        assert client.get(f"/jobs/{id}", headers={"Prefer": "wait=20"}).status == 404
        client.run_jobs()
        assert (client.jobs[0].state, client.get(f"/jobs/{id}").status) == ("completed", 404)


def test_a_job_knows_the_request_that_enqueued_it_and_its_trace() -> None:
    app = App()
    seen: list[tuple[str | None, str | None]] = []

    @app.job
    def last(job: Job) -> None:
        seen.append((job.request_id, job.traceparent))

    @app.job
    async def first(job: Job) -> None:
        seen.append((job.request_id, job.traceparent))
        await after(1)
        seen.append((job.request_id, job.traceparent))
        last.enqueue()

    @app.post("/")
    def begin(request: Request) -> str:
        first.enqueue()
        return request.id

    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with Client(app) as client:
        for headers, expected in (({"traceparent": trace}, trace), ({"traceparent": "nonsense"}, None)):
            id = client.post("/", headers=headers).text
            client.run_jobs()
            client.advance(1)
            client.run_jobs()
            assert seen == [(id, expected)] * 3
            seen.clear()
