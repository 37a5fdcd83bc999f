"""A response, from the messages of its ASGI application."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, cast

from .._compiled import accelerator
from .._limits import INLINE_MAX
from .._link.answers import FAULTS, Chunks, Streamed
from .._link.concurrent import Concurrent
from .._link.exchange import Exchange
from .._wire.codec import encode_payload
from ..errors import InvalidResult
from .asgi_heads import fields_of, head_of, hints_of
from .asgi_request import LEFT, AsgiRequest
from .file_part import park_of
from .park import parked
from .parking import Parking, parked_with, refused
from .sent_file import path_of, pieces_of


class Disconnected(OSError):
    """What `send` raises when nobody wants the response."""


class _Phase(enum.Enum):
    NEW = enum.auto()
    STARTED = enum.auto()
    """The head is known. It is sent with the first bytes of the body, as the specification says."""
    PARKING = enum.auto()
    """The head is that of a response of `park`: nothing of it is sent."""
    REFUSED = enum.auto()
    """Another response was sent instead of one of `park`: whatever follows of that is dropped."""
    STREAMING = enum.auto()
    TRAILING = enum.auto()
    """The body is complete, and trailers are to come."""
    OVER = enum.auto()


_NEW: _Phase = _Phase.NEW
_STARTED: _Phase = _Phase.STARTED
_PARKING: _Phase = _Phase.PARKING
_REFUSED: _Phase = _Phase.REFUSED
_STREAMING: _Phase = _Phase.STREAMING
_TRAILING: _Phase = _Phase.TRAILING
_OVER: _Phase = _Phase.OVER


class AsgiResponse:
    """One response. What is complete with its first piece is one frame."""

    __slots__ = ("_exchange", "_head", "_link", "_parking", "_phase", "_request", "_trailers", "_wait")

    def __init__(self, link: Concurrent, exchange: Exchange, request: AsgiRequest, parking: Parking) -> None:
        self._link = link
        self._exchange = exchange
        self._request = request
        self._parking = parking
        self._phase = _NEW
        self._head: tuple[int, list[Any]] = (0, [])
        self._trailers: list[Any] | None = None  # those that have come, if any are to come

    @property
    def is_over(self) -> bool:
        """Whether its last frame has been written."""
        return self._phase is _OVER or self._phase is _REFUSED

    @property
    def has_begun(self) -> bool:
        """Whether something of it was sent, and not its end."""
        return self._phase is _STREAMING or self._phase is _TRAILING

    async def send(self, message: Mapping[str, Any]) -> None:
        """See the specification. Returns when the client has room for more.

        Raises `OSError` when nobody wants the response, and `InvalidResult` for what cannot be sent.
        """
        kind, phase = message["type"], self._phase
        if self._request.end is LEFT:
            raise Disconnected("the client has left, or the deadline has passed")
        if phase is _NEW and kind == "http.response.start":
            self._head = accelerator.asgi_head(message) or head_of(message)
            self._phase = _STARTED
            if message.get("trailers"):
                self._trailers = []
            if parked and (wait := parked_with(self._exchange.stream, self._head[1])) is not None:
                self._phase, self._wait = _PARKING, wait
        elif kind == "http.response.body" and (phase is _STARTED or phase is _STREAMING):
            body, has_more = message.get("body", b""), message.get("more_body", False)
            if type(body) is not bytes:
                body = _bytes_of(body)
            if phase is _STARTED and not has_more and len(body) <= INLINE_MAX and self._trailers is None:
                self._phase = _OVER
                if self._exchange.waiters is not None:
                    await self._link.settle(self._exchange)
                self._link.respond(self._exchange.stream, encode_payload((*self._head, body)))
                self._request.complete()
            else:
                await self._stream(body, has_more)
        elif kind == "http.response.pathsend" and phase is _STARTED:
            await self._send_file(path_of(message))
        elif kind == "http.response.body" and phase is _PARKING:
            await self._park(message.get("body", b""), message.get("more_body", False))
        elif kind == "http.response.trailers" and phase is _TRAILING:
            self._trail(message)
        elif kind == "http.response.early_hint" and phase is _NEW:
            self._link.early_hints(self._exchange.stream, hints_of(message))
        elif phase is not _REFUSED:
            raise _misplaced(kind, phase)

    async def _park(self, body: bytes, has_more: bool) -> None:
        """An exception would get to the frameworks, which answer it, or take it for another."""
        link, exchange, raw = self._link, self._exchange, self._request.raw
        try:
            if body:
                raise refused(len(body))
            if has_more:
                return
            park = self._parking.park_of(self._wait, *self._head, raw)
        except FAULTS as error:
            await self.replace(self._parking.refusal(error, raw))
            self._phase = _REFUSED
        else:
            self._phase = _OVER
            if exchange.waiters is not None:
                await link.settle(exchange)
            link.park_answer(exchange.stream, park)
        self._request.complete()

    async def _stream(self, body: bytes, has_more: bool) -> None:
        link, exchange = self._link, self._exchange
        if self._phase is _STARTED:
            self._phase = _STREAMING
            if exchange.waiters is not None:
                await link.settle(exchange)
            self._request.streams()
            link.begin_answer(exchange.stream, encode_payload((*self._head, None)))
        if body:
            await link.send_answer(exchange, body)
        if self._request.end is LEFT:
            raise Disconnected("the client has left, or the deadline has passed")
        if has_more:
            return
        if self._trailers is None:
            self.end()
        else:
            self._phase = _TRAILING

    def _trail(self, message: Mapping[str, Any]) -> None:
        trailers = self._trailers = [*(self._trailers or []), *fields_of(message)]
        if not message.get("more_trailers"):
            self.end(trailers)

    async def _send_file(self, path: str) -> None:
        file = await asyncio.to_thread(open, path, "rb", 0)
        try:
            files = self._link.named_files
            if (
                self._trailers is not None
                or not files.are_taken
                or (park := park_of(self._head, file.fileno(), 0, path)) is None
            ):
                async with aclosing(pieces_of(file)) as pieces:
                    async for piece in pieces:
                        await self._stream(piece, has_more=True)
                await self._stream(b"", has_more=False)
                return
            self._phase = _OVER
            if self._exchange.waiters is not None:
                await self._link.settle(self._exchange)
            self._request.streams()
            await files.send(self._exchange.stream, park)
            if self._request.end is LEFT:
                raise Disconnected("the client has left, or the deadline has passed")
            self._request.complete()
        finally:
            file.close()

    def end(self, trailers: list[Any] | None = None) -> None:
        """Everything was sent."""
        self._phase = _OVER
        self._link.finish_answer(self._exchange.stream, trailers)
        self._request.complete()

    async def replace(self, response: bytes | Streamed) -> None:
        """Sends another one instead of this, of which nothing was sent."""
        self._phase = _OVER
        link, exchange = self._link, self._exchange
        if exchange.waiters is not None:
            await link.settle(exchange)
        if isinstance(response, bytes):
            link.respond(exchange.stream, response)
            return
        link.begin_answer(exchange.stream, response.head)
        for piece in cast(Chunks, response.chunks):
            await link.send_answer(exchange, piece)
        link.finish_answer(exchange.stream)

    def break_off(self) -> None:
        """The client sees that the rest is missing. Does nothing if the stream is closed."""
        self._phase = _OVER
        self._link.break_off(self._exchange.stream)

    def missing(self) -> str | None:
        """What the application should have sent before it returned."""
        return _MISSING[self._phase]


_MISSING = {
    _NEW: "the application returned without a response",
    _STARTED: "the application returned without http.response.body, after http.response.start",
    _PARKING: "the application returned without http.response.body, after the http.response.start of park(…)",
    _STREAMING: "the application returned before the end of its response: an http.response.body without more_body",
    _TRAILING: "the application returned without the http.response.trailers that it had announced",
    _REFUSED: None,
    _OVER: None,
}


_KINDS = (
    "http.response.start",
    "http.response.body",
    "http.response.trailers",
    "http.response.early_hint",
    "http.response.pathsend",
)


def _misplaced(kind: object, phase: _Phase) -> InvalidResult:
    if kind not in _KINDS:
        return InvalidResult(f"the application sent {kind!r}, which is not a message of a response")
    if phase is _OVER:
        return InvalidResult(f"the application sent {kind} after the end of its response")
    if phase is _TRAILING:
        return InvalidResult(f"the application sent {kind} after the end of its body")
    if kind == "http.response.trailers":
        return InvalidResult("http.response.trailers come after the body, and http.response.start announces them")
    if phase is _NEW:
        return InvalidResult(f"the application sent {kind} before http.response.start")
    if kind == "http.response.early_hint":
        return InvalidResult("the application sent http.response.early_hint after http.response.start")
    return InvalidResult("the application sent http.response.start a second time")


def _bytes_of(body: object) -> bytes:
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise InvalidResult(f"the body of a message is {type(body).__name__}, not bytes")
