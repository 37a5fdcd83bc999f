"""Gates at which a handler waits until the test opens them: `server.open_gate(name)`.

A file is the signal, because it works across processes.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

GATES = Path(os.environ.get("GATES", "."))
PAUSE = 0.003
SECONDS = 60.0  # beyond it, something is wrong with the test


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
