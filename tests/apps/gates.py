"""Where a handler waits until the test lets it go on: `server.open_gate(name)`.

A file is the signal, for it crosses processes.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

GATES = Path(os.environ.get("GATES", "."))
PAUSE = 0.003
SECONDS = 60.0  # then something is wrong with the test


def hold(name: str) -> None:
    """Blocks the worker."""
    deadline = time.monotonic() + SECONDS
    while not (GATES / name).exists() and time.monotonic() < deadline:
        time.sleep(PAUSE)


async def hold_async(name: str) -> None:
    """Suspends the coroutine."""
    deadline = time.monotonic() + SECONDS
    while not (GATES / name).exists() and time.monotonic() < deadline:
        await asyncio.sleep(PAUSE)
