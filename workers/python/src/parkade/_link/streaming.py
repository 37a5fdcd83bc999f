"""Sends the answers of coroutines and plain functions that are made piece by piece, while their clients read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from .._session.session import Session
from .._wire.frames import Parts
from .answers import FAULTS, Application, AsyncChunks, Chunks, Streamed
from .exchange import Exchange

T = TypeVar("T")


class Link(Protocol):
    """What it needs from its link."""

    loop: asyncio.AbstractEventLoop

    def write(self, data: bytes) -> None:
        """Writes with the rest of this turn of the loop."""

    def write_parts(self, parts: Parts) -> None:
        """The same for frames in parts; large ones at once."""

    def flush(self) -> None:
        """Writes now what this turn has produced so far."""

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Runs a plain function in a thread."""


class Streaming:
    """Sends answers in pieces."""

    def __init__(self, link: Link, session: Session, application: Application) -> None:
        self._link = link
        self._session = session
        self._application = application

    async def send(self, exchange: Exchange, answer: Streamed) -> None:
        """Sends the whole answer."""
        link, session, stream = self._link, self._session, exchange.stream
        link.write(session.begin(stream, answer.head))
        try:
            if isinstance(answer.chunks, AsyncChunks):
                async for chunk in answer.chunks:
                    if self._put(exchange, chunk):
                        await self._writable(exchange)
            else:
                make = partial(next, answer.chunks, None)
                while (chunk := await link.in_thread(make) if exchange.occupies else make()) is not None:
                    await self._put_plain(exchange, chunk)
            await exchange.end()
            link.write(session.finish(stream))
        except FAULTS as error:
            text = self._application.failed(error)
            await exchange.end()
            link.write(session.error(stream, "application", text))
        finally:
            await self._close(answer.chunks, exchange.occupies)

    async def _close(self, chunks: Chunks | AsyncChunks, occupies: bool) -> None:
        """Closes the generator of an answer, also of one that was broken off; its `finally` may raise."""
        try:
            if isinstance(chunks, AsyncChunks):
                await chunks.aclose()
            elif occupies:
                await self._link.in_thread(chunks.close)
            else:
                chunks.close()
        except FAULTS as error:
            self._application.failed(error)

    def _put(self, exchange: Exchange, chunk: bytes) -> bool:
        """Whether the client has to read before more may be sent."""
        if exchange.stream in self._session.cancelled:
            raise asyncio.CancelledError  # an endless iterator that never suspends would never see the task's own
        self._link.write_parts(self._session.data(exchange.stream, chunk))
        return self._session.blocked(exchange.stream)

    async def _put_plain(self, exchange: Exchange, chunk: bytes) -> None:
        """Sends a chunk of a plain iterator, which never suspends. Others get their turn before the next chunk."""
        link, session = self._link, self._session
        if self._put(exchange, chunk):
            if exchange.occupies:  # suspended until the client reads, so it occupies the worker no longer
                link.write(session.credit(1))
            try:
                await self._writable(exchange)
            finally:
                if exchange.occupies:
                    link.write(session.credit(-1))
        link.flush()
        await asyncio.sleep(0)

    async def _writable(self, exchange: Exchange) -> None:
        exchange.writable = self._link.loop.create_future()
        await exchange.writable
