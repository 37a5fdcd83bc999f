"""Jobs that are coroutines, and a plain one, enqueued and awaited in coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from gates import hold, hold_async
from jobs_ran import note
from owners import owner_only_async

from parkade import App, Job, JobError, after

app = App()
app.queue("single", concurrency=1)
app.queue("pair", concurrency=2)


class Asked(msgspec.Struct):
    job: str
    args: list[Any] = []
    count: int = 1
    options: dict[str, Any] = {}
    timeout: float | None = None


# Jobs


@app.job(public=False)
async def hidden(gate: str) -> str:
    await hold_async(gate)
    return gate


@app.job(access=owner_only_async)
async def owned(owner: str, gate: str | None = None, load: str = "") -> str:
    if gate is not None:
        await hold_async(gate)
    return f"{owner} has it"


@app.job
async def write(line: str) -> str:
    note(line)
    return line


@app.job
async def wait_at(gate: str, job: Job) -> str:
    note(f"begin {gate} {job.attempt}")
    try:
        await hold_async(gate)
    except asyncio.CancelledError:
        note(f"cancelled {gate}")
        raise
    note(f"end {gate} {job.attempt}")
    return gate


@app.job
def wait_plainly_at(gate: str, job: Job) -> str:
    note(f"begin {gate} {job.attempt}")
    hold(gate)
    note(f"end {gate} {job.attempt}")
    return gate


@app.job(retries=1, deadline=0.3)
async def oversleep(line: str, job: Job) -> str:
    note(f"{line} {job.attempt}")
    if job.attempt == 1:
        await asyncio.sleep(3_600)
    return line


@app.job
async def steps(gate: str, job: Job) -> dict[str, int]:
    job.progress(0.25, "a quarter")
    await hold_async(gate)
    job.progress(None, "some more")
    await hold_async(f"{gate}-2")
    return {"pages": 3}


@app.job
async def parent(line: str, count: int) -> list[str]:
    """Waits for its children."""
    handles = [write.enqueue(f"{line} {number}") for number in range(count)]
    return [await handle.result() for handle in handles]


@app.job
async def stepwise(line: str) -> str:
    await after(0.05)
    await write.enqueue(line)
    return line


@app.job(retries=0)
async def broken(line: str) -> None:
    note(line)
    raise ValueError("it is broken")


# Requests


@app.get("/hola/{name}")
async def hola(name: str) -> str:
    return f"Hola {name}"


@app.post("/enqueue")
async def enqueue(body: Asked) -> list[str]:
    return [app.jobs[body.job].options(**body.options).enqueue(*body.args).id for _ in range(body.count)]


@app.post("/stored")
async def stored(body: Asked) -> list[str]:
    """The ids of the jobs in the store."""
    handles = [app.jobs[body.job].options(**body.options).enqueue(*body.args) for _ in range(body.count)]
    return [(await handle).id for handle in handles]


@app.post("/returned")
async def returned(body: Asked) -> object:
    return app.jobs[body.job].options(**body.options).enqueue(*body.args).result(body.timeout)


@app.post("/awaited")
async def awaited(body: Asked) -> list[Any]:
    try:
        return ["got", await app.jobs[body.job].options(**body.options).enqueue(*body.args).result(body.timeout)]
    except JobError as error:
        return [error.reason, str(error)]


@app.post("/streamed")
async def streamed(body: str) -> AsyncIterator[bytes]:
    write.enqueue(body)
    yield b"one"
    yield b"two"


@app.post("/before-a-wait")
async def before_a_wait(body: str) -> object:
    write.enqueue(body)
    return after(0, "waited")


@app.post("/before-an-awaited-wait")
async def before_an_awaited_wait(body: str) -> str:
    write.enqueue(body)
    await after(0)
    return "waited"
