"""Coroutines: many requests at once in one worker."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator

from gates import hold_async

from parkade import App, History, Message, Request, Status, after, channel

app = App()


@app.get("/hola/{name}")
async def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/pid")
async def pid() -> str:
    return str(os.getpid())


@app.get("/hold/{gate}")
async def hold(gate: str) -> str:
    print(f"holds at {gate}", flush=True)
    try:
        await hold_async(gate)
    except asyncio.CancelledError:
        print(f"cancelled while holding at {gate}", flush=True)
        raise
    return gate


@app.get("/beside/{gate}")
async def beside(gate: str) -> str:
    """Its own task waits, and so do others."""
    await asyncio.gather(after(60), after(61), hold(gate))
    return gate


@app.get("/deaf/{gate}")
async def deaf(gate: str) -> str:
    """Ignores its cancellation."""
    while True:
        try:
            await hold_async(gate)
        except asyncio.CancelledError:
            print("cancelled, and goes on", flush=True)
            continue
        return gate


@app.get("/sleep/{seconds:float}")
async def sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return f"slept {seconds}"


@app.get("/block/{seconds:float}")
async def block(seconds: float) -> str:
    time.sleep(seconds)
    return f"blocked {seconds}"


@app.get("/loop")
async def loop() -> None:
    print(f"loops in {os.getpid()} since {time.monotonic()}", flush=True)
    while True:
        pass


@app.get("/after/{seconds:float}")
async def after_seconds(seconds: float) -> str:
    print("awaits a timer", flush=True)
    try:
        await after(seconds)
    except asyncio.CancelledError:
        print("cancelled while awaiting a timer", flush=True)
        raise
    return f"after {seconds}"


@app.get("/back/{kind}/{seconds:float}")
async def back(kind: str, seconds: float) -> object:
    """Continues in a function of this kind."""
    return after(seconds).then({"plain": back_plainly, "coroutine": back_in_the_loop}[kind])


def back_plainly(_: object) -> str:
    return "back"


async def back_in_the_loop(_: object) -> str:
    return "back"


@app.get("/next/{name:path}")
async def next_message(name: str, timeout: float | None = None) -> dict[str, object]:
    message = await channel(name).next(timeout=timeout)
    return told(message)


@app.get("/impatient/{name:path}")
async def impatient(name: str, patience: float) -> str:
    """Abandons its first wait, then waits for something else."""
    try:
        await asyncio.wait_for(_message(name), patience)
    except asyncio.TimeoutError:
        await after(patience)
        return "gave up"
    return "came in time"


async def _message(name: str) -> None:
    await channel(name).next()


@app.get("/two/{name:path}")
async def two(name: str) -> list[dict[str, object]]:
    first = await channel(name).next()
    assert first is not None
    return [told(first), told(await channel(name).next(since=first.cursor))]


@app.get("/events/{name:path}")
async def events(name: str) -> object:
    return channel(name).stream()


@app.get("/stream/{gate}")
async def stream(gate: str) -> AsyncIterator[str]:
    yield "before"
    print("streams", flush=True)
    try:
        await hold_async(gate)
    except asyncio.CancelledError:
        print("cancelled while streaming", flush=True)
        raise
    yield "behind"


@app.get("/bytes/{count:int}")
async def some_bytes(count: int) -> bytes:
    return b"x" * count


@app.get("/plain-bytes/{count:int}")
def some_bytes_of_a_plain_function(count: int) -> bytes:
    return b"x" * count


@app.get("/endless/{size:int}")
async def endless(size: int) -> AsyncIterator[bytes]:
    while True:
        yield b"x" * size
        await asyncio.sleep(0)


@app.post("/publish/{name:path}")
async def publish(name: str, request: Request) -> Status:
    channel(name).publish(request.body, request.content_type or None)
    return Status(202)


@app.post("/publish-awaited/{name:path}")
async def publish_awaited(name: str, request: Request) -> str:
    return json.dumps(await channel(name).publish(request.body, "text/plain"))


@app.get("/history/{name:path}")
async def history(name: str) -> History:
    return await channel(name).history()


@app.post("/echo")
async def echo(request: Request) -> bytes:
    return request.body


@app.get("/kill")
async def kill() -> str:
    os.kill(os.getpid(), 9)
    return "not reached"


def told(message: Message | None) -> dict[str, object]:
    if message is None:
        return {"value": None}
    return {"value": message.value, "cursor": message.cursor, "gap": message.gap}
