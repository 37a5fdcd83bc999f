"""Waiting as these tests do it: a state is asked for again and again, until it is there or the time is up.

Nothing sleeps and hopes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SECONDS = 20.0
"""How long a state may take. Far above what a healthy server needs, so that a busy machine fails no test."""

BUSY = 5.0
"""How many seconds a slow and busy machine may add to a time that a test looks at.

What the test rules out takes longer than that: a lock that nobody gives back, a grace of 20 s, a job of a minute.
"""

PAUSE = 0.01
"""Between two looks."""


def until(what: str, look: Callable[[], T], seconds: float = SECONDS, told: Callable[[], object] | None = None) -> T:
    """Looks until what it sees is true, and gives that.

    At the deadline: AssertionError with what was missing, and with what `told` tells.
    """
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            more = f"\n{told()}" if told is not None else f"; last seen: {seen!r}"
            raise AssertionError(f"not within {seconds} s: {what}{more}")
        time.sleep(PAUSE)


class Stopwatch:
    """`seconds` since it was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began
