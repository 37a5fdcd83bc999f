"""Files that the core sends for coroutines: the code that has named one waits until it is open there."""

from __future__ import annotations

import asyncio
from typing import Protocol

from .._session.session import Session


class Link(Protocol):
    """Writes frames."""

    def write(self, data: bytes) -> None:
        """Writes them soon, from the loop."""


class NamedFiles:
    """Those of all streams."""

    def __init__(self, link: Link, session: Session) -> None:
        self._link = link
        self._session = session
        self._waiting: dict[int, asyncio.Future[None]] = {}

    @property
    def are_taken(self) -> bool:
        """Whether the core sends such files."""
        return self._session.naming.is_offered

    async def send(self, stream: int, park: bytes) -> None:
        """Parks the stream with a part of a file, encoded. Returns when the file may be closed and removed."""
        self._session.naming.add(stream, self._session.cancelled)
        self._link.write(self._session.park(stream, park))
        while stream in self._session.naming:
            future = self._waiting[stream] = asyncio.get_running_loop().create_future()
            await future

    def release(self, stream: int) -> None:
        """The core has it open, or needs it no longer."""
        if (future := self._waiting.pop(stream, None)) is not None and not future.done():
            future.set_result(None)
