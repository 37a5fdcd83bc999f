"""Runs the event loop of a testing client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._link.answers import AsyncChunks

BODY_MAX = 64 * 1024 * 1024  # bytes of a streamed answer; then: AssertionError, since a test would never end
TURNS_PARKED = 20  # of the loop, for which a request must stay parked before the client returns


async def until(task: asyncio.Task[Any], parked: Callable[[], bool]) -> None:
    """Turns the loop until the task has ended, or its request is parked and stays so for some turns: another part of
    the coroutine may give the wait up.
    """
    turns = 0
    while not task.done() and turns < TURNS_PARKED:
        await asyncio.sleep(0)
        turns = turns + 1 if parked() else 0


async def cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    """Ends every task but this one."""
    tasks = [task for task in asyncio.all_tasks(loop) if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def drain(run: Callable[[Any], bytes], chunks: AsyncChunks) -> Iterator[bytes]:
    """The pieces that a coroutine makes; `run` runs the loop for the next one."""
    while True:
        try:
            yield run(chunks.__anext__())
        except StopAsyncIteration:
            return


def joined(pieces: Iterable[bytes]) -> bytes:
    """A streamed body."""
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > BODY_MAX:
            raise AssertionError(f"a streamed answer has more than {BODY_MAX} bytes: is it endless?")
    return bytes(body)
