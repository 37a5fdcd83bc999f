"""A request, as its ASGI application receives it: the body, and the word that its client has left."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import time
from typing import Any

from msgspec import Struct

from .._link.answers import BodyCutOff
from .._link.concurrent import Concurrent
from .._link.exchange import Exchange
from .._wire import payloads as p
from .request_body import RequestBody


class End(enum.Enum):
    """How the need for a response ended."""

    LEFT = enum.auto()
    """Nobody wants the response: the client has left, or the deadline has passed."""
    COMPLETE = enum.auto()
    """The response is complete, or was broken off."""


LEFT: End = End.LEFT
COMPLETE: End = End.COMPLETE


def due_of(raw: p.Request) -> float | None:
    """When its deadline passes, for one that has just come (`time.monotonic`)."""
    return None if raw.deadline is None else time.monotonic() + raw.deadline


class AsgiRequest(Struct, eq=False):
    """One request. `_due` is when its deadline passes. Its application goes on when the client leaves, or is cancelled
    (`_cancels`), until it asks for the other.

    It is the listener of its exchange (`_link.exchange.Listener`). A `Struct`, since every request makes one.
    """

    _link: Concurrent
    _exchange: Exchange
    raw: p.Request
    _due: float | None
    _cancels: bool = False
    end: End | None = None
    """Read by the response with every message, therefore no property."""
    _body: RequestBody | None = None  # until it is asked for
    _waiting: list[asyncio.Future[None]] | None = None
    _timer: asyncio.TimerHandle | None = None

    async def receive(self) -> dict[str, Any]:
        """See the specification: the body, then `http.disconnect` when the client has left or has its response."""
        if self.end is None:
            body = self._body
            if body is None:
                body = self._body = RequestBody(self._link, self._exchange.stream, self.raw)
            if not body.is_read:
                with contextlib.suppress(BodyCutOff):
                    return await body.message()
            if self.end is None:
                await self._ended()
        return {"type": "http.disconnect"}

    def on_disconnect(self, action: str) -> None:
        """What happens to the application when the client leaves: it is told (`notify`), or cancelled (`cancel`)."""
        self._cancels = is_to_cancel(action)
        if self._cancels and self.end is LEFT:
            self._exchange.task.cancel()

    def cancelled(self, reason: str) -> bool:
        """See `Listener`. An application that goes on without its client has its deadline nevertheless."""
        self.end = LEFT
        if reason != "client_left" or self._cancels:
            return True  # and what it awaits hears of it
        self._wake()
        if (deadline := self.raw.deadline) is not None:
            seconds = deadline if self._due is None else max(0.0, self._due - time.monotonic())
            self._timer = self._exchange.task.get_loop().call_later(seconds, self._exchange.task.cancel)
        return False

    def streams(self) -> None:
        """The response has begun: the deadline was for its beginning. It counts again when the client leaves."""
        self._due = None

    def complete(self) -> None:
        """Its response has been sent."""
        if self.end is None:
            self.end = COMPLETE
            if self._waiting is not None:
                self._wake()
            if self._body is not None and not self._body.is_read:
                self._link.body_reader.wake(self._exchange.stream)

    def close(self) -> None:
        """The application has returned."""
        if self.end is None:
            self.complete()
        if self._timer is not None:
            self._timer.cancel()

    async def _ended(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting = [*(self._waiting or []), future]
        await future

    def _wake(self) -> None:
        for future in self._waiting or []:
            if not future.done():
                future.set_result(None)
        self._waiting = None


def is_to_cancel(action: str) -> bool:
    """What an application asks for: `cancel` or `notify`. Raises `ValueError`."""
    if action not in ("notify", "cancel"):
        raise ValueError(f"on_disconnect is 'notify' or 'cancel', not {action!r}")
    return action == "cancel"
