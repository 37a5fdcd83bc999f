"""The same as `publishing`, with coroutines."""

from __future__ import annotations

import asyncio
from typing import Any

from publishing import app, told

from parkade import Request, Status, after, channel

__all__ = ["app"]


@app.post("/coroutine/{name}")
async def coroutine(name: str) -> Status:
    channel(name).publish("x")
    await after(0.01)
    return Status(202)


@app.post("/meanwhile/{name}")
async def meanwhile(name: str) -> Status:
    """Publishes in a task next to the wait."""

    async def publishes() -> None:
        await asyncio.sleep(0)
        channel(name).publish("x")

    task = asyncio.ensure_future(publishes())
    await after(0.05)
    await task
    return Status(202)


@app.post("/to_thread/{name}")
async def to_thread(name: str) -> Status:
    await asyncio.to_thread(channel(name).publish, "x")
    return Status(202)


@app.get("/await/{name}")
async def awaited(name: str, request: Request) -> Any:
    return told(await channel(name).next(timeout=2, since=request.cursor))
