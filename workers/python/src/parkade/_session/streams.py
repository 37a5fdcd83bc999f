"""The states of a stream, at the worker's end: one class for each, with its own data."""

from __future__ import annotations

from typing import TypeAlias

from msgspec.structs import replace

from .._limits import WINDOW
from .events import Called, Given, Opened, Resumed


class Held:
    """The worker owes this stream a closing frame, and has written nothing of its answer."""


class Awaiting:
    """Parked, and a coroutine of this worker continues it."""


class Collecting:
    """A request, or the rows of a query, whose body is still arriving: `event` is the event without the body.

    `window` is how much the core may still send, `consumed` how much has not been granted again.
    """

    __slots__ = ("chunks", "consumed", "event", "window")

    def __init__(self, event: Opened | Called | Resumed) -> None:
        self.event = event
        self.chunks: list[bytes] = []
        self.window = WINDOW
        self.consumed = 0

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


Opening: TypeAlias = Opened | Called | Given
Stream: TypeAlias = Held | Awaiting | Collecting | Responding

HELD = Held()
AWAITING = Awaiting()
