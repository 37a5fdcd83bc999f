"""Streams of events that the applications of frameworks send."""

import asyncio
from collections.abc import AsyncIterator


async def three() -> AsyncIterator[str]:
    for number in range(3):
        yield f"data: {number}\n\n"
        await asyncio.sleep(0.001)


async def begun() -> AsyncIterator[str]:
    """Says that it was closed."""
    try:
        yield "data: begun\n\n"
        await asyncio.Event().wait()
    finally:
        print("the stream was closed", flush=True)
