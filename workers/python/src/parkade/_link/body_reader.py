"""The bodies of requests, for code that reads them as they arrive, in a worker with an event loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Protocol

from .._session.session import Session
from .answers import BodyCutOff
from .outlet import Outlet


class Link(Protocol):
    """Writes frames."""

    def write(self, data: bytes) -> None:
        """Writes them soon, from the loop."""


class BodyReader:
    """Gives the pieces of bodies that were opened early (`Session.bodies`), and waits for those that are missing.

    Coroutines wait for a future, plain functions in their threads for an event. A thread looks for a piece, and says
    that it waits, with the lock of the outlet, with which the loop takes what arrives.
    """

    def __init__(self, link: Link, session: Session, outlet: Outlet) -> None:
        self._link = link
        self._session = session
        self._outlet = outlet
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._blocked: dict[int, threading.Event] = {}

    def of(self, stream: int) -> Body:
        """The body of one request."""
        return Body(self, stream)

    async def next_piece(self, stream: int) -> bytes:
        """The next piece; nothing after the end.

        Raises `BodyCutOff` if the rest will not come, or nobody needs it because the stream is closed.
        """
        while True:
            piece, granted = self._piece(stream)
            if granted:
                self._link.write(granted)
            if piece is not None:
                return piece
            if stream not in self._waiting:
                self._waiting[stream] = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._waiting[stream])

    def read(self, stream: int) -> bytes:
        """The same in a thread."""
        while True:
            with self._outlet.lock:
                piece, granted = self._piece(stream)
                if granted:
                    self._outlet.put(granted)
                arrived = None if piece is not None else self._blocked.setdefault(stream, threading.Event())
            if granted:
                self._outlet.send()
            if arrived is None:
                return piece or b""
            arrived.wait()

    def _piece(self, stream: int) -> tuple[bytes | None, bytes]:
        """See `Bodies.read`."""
        session = self._session
        if stream in session.cancelled or not (session.held(stream) or session.awaiting(stream)):
            raise BodyCutOff("the client left in the middle of its request, or has its response")
        return session.bodies.read(stream)

    def wake(self, stream: int) -> None:
        """Something has changed: those that wait look again."""
        if self._waiting and (future := self._waiting.pop(stream, None)) is not None and not future.done():
            future.set_result(None)
        if self._blocked and (arrived := self._blocked.pop(stream, None)) is not None:
            arrived.set()


class Body:
    """The body of one request: see `port.ArrivingBody`."""

    __slots__ = ("_reader", "_stream")

    def __init__(self, reader: BodyReader, stream: int) -> None:
        self._reader = reader
        self._stream = stream

    def read(self) -> bytes:
        return self._reader.read(self._stream)

    async def next_piece(self) -> bytes:
        return await self._reader.next_piece(self._stream)
