"""Waits of tasks in an application of ASGI, as a process under a scripted core."""

from __future__ import annotations

from typing import Any

from conftest import StartCore
from parkade._wire import frames as f

SOURCE = """
import asyncio
from parkade import App, channel, transaction
from parkade.jobs import Jobs

jobs = Jobs()

@jobs.job
def tidy(): pass

async def order():
    async with transaction() as t:
        await t.query("insert into orders values (1)")
        tidy.enqueue()

async def application(scope, receive, send):
    if scope["type"] == "http":
        await asyncio.create_task(order())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ordered"})
    else:
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
"""
B = 1 << 31
DONE: list[Any] = ["rows", [], "DONE", 0, b"null"]


def test_the_jobs_of_a_transaction_are_written_before_its_commit(core: StartCore) -> None:
    """Also if the stream is still parked for the branch of the statement before."""
    worker = core(SOURCE, "application:application")
    worker.ready()
    stream = worker.request(None)
    assert worker.names(2) == [f"PARK {B}", f"PARK {stream}"]
    worker.send(f.RESUME, 0, [DONE, [B]])
    assert worker.names(1) == [f"PARK {B + 1}"]
    worker.send(f.RESUME, 0, [DONE, [B + 1]])
    assert worker.names(2) == [f"ENQUEUE {stream}", f"PARK {B + 2}"]
    worker.send(f.RESUME, 0, [DONE, [B + 2]])
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.next()[2].body == b"ordered"
