"""Which event loop coroutines run on."""

from __future__ import annotations

import asyncio
from typing import cast


def loop_of_choice() -> asyncio.AbstractEventLoop:
    """One of uvloop, if that is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return cast(asyncio.AbstractEventLoop, uvloop.new_event_loop())
