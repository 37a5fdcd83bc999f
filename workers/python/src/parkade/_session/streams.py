"""The states of a stream, at the worker's end: one class for each, with its own data."""

from __future__ import annotations

from typing import TypeAlias

from msgspec.structs import replace

from .._limits import INLINE_MAX, WINDOW
from .._wire import frames as f
from .._wire.frames import Parts, header
from .bodies import InWindow
from .events import Called, Given, Opened, OpenedEarly, Resumed


class Held:
    """The worker owes this stream a closing frame, and has written nothing of its answer."""


class Awaiting:
    """Parked, and a coroutine of this worker continues it."""


class Collecting:
    """A request, or the rows of a query, whose body is still arriving: `event` is the event without the body."""

    __slots__ = ("chunks", "event", "window")

    def __init__(self, event: Opened | Called | Resumed) -> None:
        self.event = event
        self.chunks: list[bytes] = []
        self.window = InWindow()

    def complete(self) -> Opened | Called | Resumed:
        """The event with its body."""
        body = b"".join(self.chunks)
        match self.event:
            case Opened(stream=stream, request=request):
                return Opened(stream, replace(request, body=(request.body or b"") + body))
            case Called(outcome=outcome) | Resumed(outcome=outcome):
                return replace(self.event, outcome=replace(outcome, body=body))


class Responding:
    """An answer whose body follows its head. `rest` is the part for which there is no window yet."""

    __slots__ = ("rest", "window")

    def __init__(self) -> None:
        self.window = WINDOW
        self.rest = memoryview(b"")

    def send(self, stream: int, chunk: bytes) -> Parts:
        """As much of the chunk as there is window for; the rest is kept."""
        size = len(chunk)
        if 0 < size <= self.window and size <= INLINE_MAX:  # nearly always
            self.window -= size
            return [header(f.DATA, stream, size, f.MORE), chunk]
        self.rest = memoryview(chunk)
        return self.flush(stream)

    def flush(self, stream: int) -> Parts:
        """As much of the rest as there is window for."""
        out: Parts = []
        while self.rest and self.window:
            size = min(len(self.rest), self.window, INLINE_MAX)
            out += header(f.DATA, stream, size, f.MORE), self.rest[:size]
            self.rest = self.rest[size:]
            self.window -= size
        return out


class Socket:
    """A WebSocket that was accepted: one of `Sockets` unless it is cancelled."""


Opening: TypeAlias = Opened | OpenedEarly | Called | Given
Stream: TypeAlias = Held | Awaiting | Collecting | Responding | Socket

HELD = Held()
AWAITING = Awaiting()
SOCKET = Socket()
