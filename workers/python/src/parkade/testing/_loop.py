"""Runs the event loop of a testing client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import Any

from .._link.answers import Chunks

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


class Collected(Chunks):
    """The pieces that a coroutine has made."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None: ...


async def limited(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The pieces of a streamed body. Raises `AssertionError` instead of going on for ever."""
    size = 0
    async for piece in pieces:
        size += len(piece)
        _check(size)
        yield piece


def joined(pieces: Iterable[bytes]) -> bytes:
    """A streamed body."""
    body = bytearray()
    for piece in pieces:
        body += piece
        _check(len(body))
    return bytes(body)


def _check(size: int) -> None:
    if size > BODY_MAX:
        raise AssertionError(f"a streamed answer has more than {BODY_MAX} bytes: is it endless?")
