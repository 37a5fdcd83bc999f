"""Plain functions in a worker with an event loop: they run in threads."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar

from gates import hold as hold_gate

from parkade import App, Job, after, channel

app = App()
who: ContextVar[str] = ContextVar("who", default="nobody")


@app.on_start
async def start() -> None:
    who.set("the start hook")


@app.get("/lag/{turns:int}")
async def lag(turns: int) -> list[float]:
    """How long the loop stood still in each of this many turns, sorted: seconds beyond the intended time."""
    late = []
    for _ in range(turns):
        before = time.monotonic()
        await asyncio.sleep(0.001)
        late.append(time.monotonic() - before - 0.001)
    return sorted(late)


@app.get("/two/{name:path}")
async def two(name: str) -> list[str]:
    first = await channel(name).next()
    assert first is not None
    second = await channel(name).next(since=first.cursor)
    assert second is not None
    return [first.text, second.text]


@app.get("/hold/{gate}")
def hold(gate: str) -> str:
    print(f"holds at {gate} in {where()}.\n", end="", flush=True)  # in one piece, because other threads print too
    hold_gate(gate)
    return gate


@app.get("/loop", deadline=0.5)
def loop() -> None:
    print(f"loops in {os.getpid()} since {time.monotonic()}", flush=True)
    while True:
        pass


@app.get("/sleep", deadline=0.5)
def sleep() -> None:
    print(f"sleeps in {os.getpid()} since {time.monotonic()}", flush=True)
    time.sleep(3_600)


@app.get("/hola/{name}")
async def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/where")
def where() -> str:
    return f"{threading.current_thread().name}, by {who.get()}"


@app.get("/then/{name}")
def then(name: str) -> object:
    return after(0.01).then(behind, name=name)


def behind(name: str) -> str:
    return f"{name} in {threading.current_thread().name}"


@app.post("/tell/{name}")
def tell(name: str) -> str:
    """Publishes and enqueues wherever a plain function may do so."""
    channel(name).publish("1")
    record.enqueue(name)
    asyncio.run(_tell(name))
    return "told"


async def _tell(name: str) -> None:
    await asyncio.to_thread(channel(name).publish, "2")
    await asyncio.to_thread(record.enqueue, name)


@app.job
def record(name: str, job: Job) -> str:
    job.progress(0.5, "half")
    channel(f"{name}/recorded").publish(threading.current_thread().name)
    return name


@app.get("/pieces/{count:int}")
def pieces(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b"x" * 65_536


@app.get("/dies")
def dies() -> None:
    os._exit(3)
