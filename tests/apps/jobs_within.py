"""Jobs that are enqueued within transactions: a request lists the steps."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from gates import hold_async
from jobs_ran import note

from parkade import App, JobError, WaitError, after, transaction
from parkade.jobs import Handle

app = App()


class Step(msgspec.Struct):
    """One of these steps."""

    sql: str | None = None
    parameters: list[Any] = []
    enqueue: str | None = None
    options: dict[str, Any] = {}
    gate: str | None = None
    rollback: bool = False
    fail: bool = False
    is_awaited: bool = False
    result: bool = False


class Asked(msgspec.Struct):
    """The steps in the block, and those after it."""

    steps: list[Step]
    behind: list[Step] = []
    database: str = "default"


@app.job
def write(line: str) -> str:
    note(line)
    return line


@app.job
async def write_within(line: str) -> str:
    """Enqueues another job within its own transaction."""
    async with transaction() as t:
        await t.query("insert into orders (line) values ($1)", line)
        write.enqueue(line)
    return line


@app.get("/ready")
async def ready() -> str:
    return "ready"


@app.post("/enqueue")
async def enqueue(body: str) -> str:
    return write_within.enqueue(body).id


@app.post("/transaction")
async def steps(body: Asked) -> list[str]:
    """Returns the ids that the jobs have in the store."""
    handles: list[Handle] = []
    try:
        async with transaction(body.database) as t:
            for step in body.steps:
                if step.sql is not None:
                    await t.query(step.sql, *step.parameters)
                elif step.rollback:
                    await t.rollback()
                elif step.fail:
                    raise LookupError
                else:
                    await _other(step, handles)
    except LookupError:
        pass
    for step in body.behind:
        await _other(step, handles)
    ids = []
    for handle in handles:
        try:
            ids.append((await handle).id)
        except WaitError as error:
            ids.append(str(error))
    return ids


@app.post("/plain")
async def plain(body: Asked) -> list[str]:
    """The same, without checking whether it is stored."""
    handles: list[Handle] = []
    async with transaction(body.database) as t:
        for step in body.steps:
            if step.sql is not None:
                await t.query(step.sql, *step.parameters)
            else:
                await _other(step, handles)
    return [handle.id for handle in handles]


@app.post("/beside")
async def beside(body: Asked) -> list[str]:
    """The same while another task waits."""

    async def wait() -> None:
        await after(60)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    ids = await plain(body)
    waiting.cancel()
    return ids


async def _other(step: Step, handles: list[Handle]) -> None:
    if step.gate is not None:
        await hold_async(step.gate)
    if step.enqueue is not None:
        handles.append(write.options(**step.options).enqueue(step.enqueue))
    if step.is_awaited:
        await handles[-1]
    if step.result:
        try:
            await handles[-1].result(5)
        except JobError as error:
            note(f"no result: {error.reason}")
