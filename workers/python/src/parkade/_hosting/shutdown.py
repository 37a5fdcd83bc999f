"""`parkade.shutdown` in the scope: long streams end themselves before anything is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Generator


class Shutdown:
    """Awaited, it returns when the worker is about to be stopped. Any number of tasks may await it, any number of
    times.
    """

    def __init__(self, draining: asyncio.Event) -> None:
        self._draining = draining

    def __await__(self) -> Generator[object, None, None]:
        yield from self._draining.wait().__await__()

    def is_set(self) -> bool:
        """Whether it is about to be stopped."""
        return self._draining.is_set()
