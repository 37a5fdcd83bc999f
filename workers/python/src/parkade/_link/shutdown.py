"""The end of a worker with an event loop: when it begins, and the last moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator

from .._limits import STOP_MARGIN_SECONDS


class Shutdown:
    """Awaited, it returns when the worker is about to be stopped. Any number of tasks may await it, any number of
    times.
    """

    def __init__(self, at_last: Callable[[], None]) -> None:
        """`at_last` is called a moment before the worker is stopped, if it has not ended by itself."""
        self._at_last = at_last
        self.is_at_last = False
        """Whether that moment has come."""
        self._begun = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def __await__(self) -> Generator[object, None, None]:
        yield from self._begun.wait().__await__()

    def is_set(self) -> bool:
        """Whether it is about to be stopped."""
        return self._begun.is_set()

    def begin(self, seconds: float) -> None:
        """It will be stopped in so many seconds. May be told again, with another time."""
        self._begun.set()
        if self._timer is not None:
            self._timer.cancel()
        margin = min(STOP_MARGIN_SECONDS, seconds / 4)
        self._timer = asyncio.get_running_loop().call_later(seconds - margin, self._end)

    def _end(self) -> None:
        self.is_at_last = True
        self._at_last()
