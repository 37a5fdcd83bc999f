"""The bodies of requests, for coroutines that read them as they arrive."""

from __future__ import annotations

import asyncio
from typing import Protocol

from .._session.session import Session
from .answers import BodyCutOff


class Link(Protocol):
    """Writes frames."""

    def write(self, data: bytes) -> None:
        """Writes them soon."""


class BodyReader:
    """Gives the pieces of bodies that were opened early (`Session.bodies`), and waits for those that are missing."""

    def __init__(self, link: Link, session: Session) -> None:
        self._link = link
        self._session = session
        self._waiting: dict[int, asyncio.Future[None]] = {}

    async def read(self, stream: int) -> bytes:
        """The next piece; nothing after the end.

        Raises `BodyCutOff` if the rest will not come, or nobody needs it because the stream is closed.
        """
        session = self._session
        while session.held(stream) and stream not in session.cancelled:
            piece, granted = session.bodies.read(stream)
            if granted:
                self._link.write(granted)
            if piece is not None:
                return piece
            if stream not in self._waiting:
                self._waiting[stream] = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._waiting[stream])
        raise BodyCutOff("the client left in the middle of its request, or has its response")

    def wake(self, stream: int) -> None:
        """Something has changed: those that wait look again."""
        if self._waiting and (future := self._waiting.pop(stream, None)) is not None and not future.done():
            future.set_result(None)
