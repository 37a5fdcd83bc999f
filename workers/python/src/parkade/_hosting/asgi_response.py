"""A response, from the messages of its ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, cast

from .._compiled import accelerator
from .._limits import INLINE_MAX
from .._link.answers import FAULTS, Chunks, Streamed
from .._wire.codec import encode_payload
from ..errors import InvalidResult
from .asgi_heads import fields_of, head_of, hints_of
from .asgi_request import LEFT
from .asgi_sender import NEW, OVER, PARKING, REFUSED, STARTED, STREAMING, TRAILING, Phase, Sender
from .file_part import length_of, park_of
from .park import parked
from .parking import parked_with, refused
from .sent_file import path_of, pieces_of


class Disconnected(OSError):
    """What `send` raises when nobody wants the response."""


class AsgiResponse(Sender):
    """One response. What is complete with its first piece is one frame."""

    __slots__ = ()

    @property
    def is_over(self) -> bool:
        """Whether its last frame has been written."""
        return self._phase == OVER or self._phase == REFUSED

    @property
    def has_begun(self) -> bool:
        """Whether something of it was sent, and not its end."""
        return self._phase == STREAMING or self._phase == TRAILING

    async def _send(self, message: Mapping[str, Any]) -> None:
        """See the specification. Returns when the client has room for more.

        Raises `OSError` when nobody wants the response, and `InvalidResult` for what cannot be sent.
        """
        kind, phase = message["type"], self._phase
        if self._request.end is LEFT:
            self._check_wanted()
        if phase == NEW and kind == "http.response.start":
            self._head = accelerator.asgi_head(message) or head_of(message)
            self._phase = STARTED
            if message.get("trailers"):
                self._trailers = []
            if parked and (wait := parked_with(self._exchange.stream, self._head[1])) is not None:
                self._phase, self._wait = PARKING, wait
        elif kind == "http.response.body" and phase in (STARTED, STREAMING):
            body, has_more = message.get("body", b""), message.get("more_body", False)
            if type(body) is not bytes:
                body = _bytes_of(body)
            if phase == STARTED and not has_more and len(body) <= INLINE_MAX and self._trailers is None:
                if self._exchange.waiters is not None:
                    await self._settle()
                self._phase = OVER
                self._link.respond(self._exchange.stream, encode_payload((*self._head, body)))
                self._request.complete()
            else:
                await self._stream(body, has_more)
        elif kind == "http.response.pathsend" and phase == STARTED:
            await self._send_file(path_of(message))
        elif kind == "http.response.body" and phase == PARKING:
            await self._park(message.get("body", b""), message.get("more_body", False))
        elif kind == "http.response.trailers" and phase == TRAILING:
            await self._trail(message)
        elif kind == "http.response.early_hint" and phase == NEW:
            self._link.early_hints(self._exchange.stream, hints_of(message))
        elif phase != REFUSED:
            raise _misplaced(kind, phase)

    async def _park(self, body: bytes, has_more: bool) -> None:
        """An exception would get to the frameworks, which answer it, or take it for another."""
        link, exchange, raw = self._link, self._exchange, self._request.raw
        try:
            if body:
                raise refused(len(body))
            if has_more:
                return
            assert self._wait is not None
            park = self._parking.park_of(self._wait, *self._head, raw)
        except FAULTS as error:
            await self.replace(self._parking.refusal(error, raw))
            self._phase = REFUSED
        else:
            if exchange.waiters is not None:
                await self._settle()
            self._phase = OVER
            link.park_answer(exchange.stream, park)
        self._request.complete()

    async def _stream(self, body: bytes, has_more: bool) -> None:
        link, exchange = self._link, self._exchange
        if self._phase == STARTED and exchange.waiters is not None:
            await exchange.claim()
            self._check_wanted()
        if self._phase == STARTED:  # no other task has begun it meanwhile
            self._phase = STREAMING
            self._request.streams()
            link.begin_answer(exchange.stream, encode_payload((*self._head, None)))
        elif self._phase != STREAMING:
            raise _misplaced("http.response.body", self._phase)
        if body:
            await link.send_answer(exchange, body)
        self._check_wanted()
        if has_more:
            return
        if self._trailers is None:
            await self.end()
        else:
            self._phase = TRAILING

    async def _trail(self, message: Mapping[str, Any]) -> None:
        trailers = self._trailers = [*(self._trailers or []), *fields_of(message)]
        if not message.get("more_trailers"):
            await self.end(trailers)

    async def _send_file(self, path: str) -> None:
        file = await asyncio.to_thread(open, path, "rb", 0)
        try:
            files = self._link.named_files
            if (
                self._trailers is not None
                or not files.are_taken
                or (park := park_of(self._head, file.fileno(), 0, path)) is None
            ):
                async with aclosing(pieces_of(file, length_of(self._head[1]))) as pieces:
                    async for piece in pieces:
                        await self._stream(piece, has_more=True)
                await self._stream(b"", has_more=False)
                return
            if self._exchange.waiters is not None:
                await self._settle()
            self._phase = OVER
            self._request.streams()
            await files.send(self._exchange.stream, park)
            self._check_wanted()
            self._request.complete()
        finally:
            file.close()

    async def end(self, trailers: list[Any] | None = None) -> None:
        """Everything was sent."""
        if self._exchange.waiters is not None:
            await self._settle()
        self._phase = OVER
        self._link.finish_answer(self._exchange.stream, trailers)
        self._request.complete()

    async def _settle(self) -> None:
        """Before the stream is closed. The state changes only then: this may be cancelled, and another task may be
        first. Raises as `send` does.
        """
        phase = self._phase
        await self._exchange.end()
        self._check_wanted()
        if self._phase != phase:
            raise _misplaced("http.response.body", self._phase)

    def _check_wanted(self) -> None:
        if self._request.end is LEFT:
            raise Disconnected("the client has left, or the deadline has passed")

    async def replace(self, response: bytes | Streamed) -> None:
        """Sends another one instead of this, of which nothing was sent."""
        link, exchange = self._link, self._exchange
        if exchange.waiters is not None:
            await self._settle()
        self._phase = OVER
        if isinstance(response, bytes):
            link.respond(exchange.stream, response)
            return
        link.begin_answer(exchange.stream, response.head)
        for piece in cast(Chunks, response.chunks):
            await link.send_answer(exchange, piece)
        link.finish_answer(exchange.stream)

    async def break_off(self) -> None:
        """The client sees that the rest is missing. Does nothing if the stream is closed."""
        await self._link.break_off(self._exchange)
        self._phase = OVER

    def missing(self) -> str | None:
        """What the application should have sent before it returned."""
        return _MISSING[self._phase]


_MISSING = {
    NEW: "the application returned without a response",
    STARTED: "the application returned without http.response.body, after http.response.start",
    PARKING: "the application returned without http.response.body, after the http.response.start of park(…)",
    STREAMING: "the application returned before the end of its response: an http.response.body without more_body",
    TRAILING: "the application returned without the http.response.trailers that it had announced",
    REFUSED: None,
    OVER: None,
}


_KINDS = (
    "http.response.start",
    "http.response.body",
    "http.response.trailers",
    "http.response.early_hint",
    "http.response.pathsend",
)


def _misplaced(kind: object, phase: Phase) -> InvalidResult:
    if kind not in _KINDS:
        return InvalidResult(f"the application sent {kind!r}, which is not a message of a response")
    if phase == OVER:
        return InvalidResult(f"the application sent {kind} after the end of its response")
    if phase == TRAILING:
        return InvalidResult(f"the application sent {kind} after the end of its body")
    if kind == "http.response.trailers":
        return InvalidResult("http.response.trailers come after the body, and http.response.start announces them")
    if phase == NEW:
        return InvalidResult(f"the application sent {kind} before http.response.start")
    if kind == "http.response.early_hint":
        return InvalidResult("the application sent http.response.early_hint after http.response.start")
    return InvalidResult("the application sent http.response.start a second time")


def _bytes_of(body: object) -> bytes:
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise InvalidResult(f"the body of a message is {type(body).__name__}, not bytes")
