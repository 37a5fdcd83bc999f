"""Requests and jobs that tell which request they belong to, in every way that they may run."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from typing import Any

from parkade import App, Job, Request, Wait, after, query, transaction

CONCURRENT = "CONCURRENT" in os.environ
app = App(concurrent=CONCURRENT)
log = logging.getLogger("tracing")


@app.job
def told(job: Job) -> dict[str, Any]:
    return {"request_id": job.request_id, "traceparent": job.traceparent}


@app.job
def told_later(job: Job) -> Wait:
    return after(0).then(telling)


def telling(outcome: None, job: Job) -> dict[str, Any]:
    return {"request_id": job.request_id, "traceparent": job.traceparent}


if CONCURRENT:

    @app.job
    async def told_awaited(job: Job) -> dict[str, Any]:
        await after(0.01)
        return {"request_id": job.request_id, "traceparent": job.traceparent}

    @app.post("/within")
    async def within() -> str:
        async with transaction() as t:
            await t.query("select 1")
            handle = told.enqueue()
        return handle.id


@app.job
def enqueues(job: Job) -> str:
    return told.enqueue().id


@app.job
def logs(job: Job) -> None:
    log.warning("a job has something to say")


@app.job(retries=0)
def fails(job: Job) -> None:
    raise ValueError("it cannot")


if "TICKING" in os.environ:

    @app.every(1)
    def ticks(job: Job) -> None:
        log.warning("ticked for %s", job.request_id)


@app.post("/jobs/{name}")
def begin(name: str) -> str:
    return app.jobs[name].enqueue().id


@app.get("/hola")
def hola() -> str:
    return "hola"


@app.get("/pieces")
def pieces() -> Iterator[str]:
    yield "one"
    told.enqueue()
    yield "two"


SEEN = "select query from pg_stat_activity where pid = pg_backend_pid()"
PREPARED = "select count(*) from pg_prepared_statements where statement like 'select query from%'"


@app.get("/seen/{name}")
def seen(name: str) -> Wait:
    """The text of this statement, as PostgreSQL got it."""
    return query(f"{SEEN} and $1 <> ''", name).value()


@app.get("/prepared")
def prepared() -> Wait:
    return query(PREPARED).value()


@app.job
def sees() -> Wait:
    return query(SEEN).value().then(saw)


def saw(text: str) -> str:
    return text


@app.get("/broken")
def broken() -> Wait:
    return query("selct 1")


@app.get("/traceparent")
def traceparent(request: Request) -> str:
    return str(request.headers.get("traceparent"))


@app.get("/slow")
def slow() -> str:
    time.sleep(0.3)
    return "slow"
