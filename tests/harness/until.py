"""How these tests wait: a state is polled until it is reached or the time is up.

Nothing sleeps and hopes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SECONDS = 20.0
"""The maximum time for a state. Far above what a healthy server needs, so that no test fails because the machine is
busy.
"""

BUSY = 5.0
"""How many seconds a slow and busy machine may add to a time that a test measures.

The faults that a test rules out take longer: a lock that is never released, a grace of 20 s, a job of a minute.
"""

PAUSE = 0.01
"""The pause between two attempts at first. Later it is a twentieth of the time that has passed, up to `PAUSE_MAX`: who
waits for long need not ask a hundred times a second.
"""

PAUSE_MAX = 0.1


def until(what: str, look: Callable[[], T], seconds: float = SECONDS, told: Callable[[], object] | None = None) -> T:
    """Polls until the result is true, and returns it.

    At the deadline: AssertionError with what was missing, and the result of `told`.
    """
    watch = Stopwatch()
    while True:
        seen = look()
        if seen:
            return seen
        if watch.seconds > seconds:
            more = f"\n{told()}" if told is not None else f"; last seen: {seen!r}"
            raise AssertionError(f"not within {seconds} s: {what}{more}")
        time.sleep(min(max(PAUSE, watch.seconds / 20), PAUSE_MAX))


class Stopwatch:
    """The number of seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began
