"""The events of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, final

from msgspec import Struct

from .._wire import payloads as p
from .._wire.frames import Parts


class Reply(Struct, frozen=True, gc=False):
    """Bytes that the session itself has to send: write them."""

    data: bytes


class Continued(Struct, frozen=True):
    """Frames of a streamed answer that were held back: write them."""

    parts: Parts


class Greeted(Struct, frozen=True):
    """The core's HELLO, with its information: `core`, `target`, perhaps `dev`."""

    info: Mapping[str, Any]


@final
class Opened(Struct, frozen=True, gc=False):
    """A request to answer, its body complete."""

    stream: int
    request: p.Request


class OpenedEarly(Struct, frozen=True, gc=False):
    """A request to answer, whose body is still arriving: `Session.bodies` gives it. Only of a route that reads bodies
    in pieces.
    """

    stream: int
    request: p.Request


class BodyArrived(Struct, frozen=True, gc=False):
    """More of the body of a request is there, or its end."""

    stream: int


class Called(Struct, frozen=True, gc=False):
    """A wait is over, its rows complete; call the function with its state, and answer."""

    stream: int
    function: str
    state: bytes
    outcome: p.Outcome


class Given(Struct, frozen=True, gc=False):
    """One attempt of a job to make."""

    stream: int
    run: p.Run


class Resumed(Struct, frozen=True, gc=False):
    """These streams, which were awaiting, are held again; rows are complete."""

    streams: list[int]
    outcome: p.Outcome


class Cancelled(Struct, frozen=True, gc=False):
    """The answer is no longer wanted.

    If the stream is still held, a closing frame is due nevertheless: `error(stream, "cancelled")`.
    """

    stream: int
    reason: str


class Writable(Struct, frozen=True, gc=False):
    """The part of a streamed answer that was held back has been sent: more may follow."""

    stream: int


class FileReleased(Struct, frozen=True, gc=False):
    """The file that was named on the stream may be closed and removed."""

    stream: int


class MessageArrived(Struct, frozen=True, gc=False):
    """A whole message of the client of a WebSocket; text is UTF-8. `Session.consumed` makes room for others."""

    stream: int
    is_text: bool
    data: bytes


class SocketClosed(Struct, frozen=True, gc=False):
    """The client has closed its WebSocket: nothing more comes of it, and `Session.close_socket` is due."""

    stream: int
    code: int
    text: str


class Pinged(Struct, frozen=True, gc=False):
    """Answer with `pong(token)` from the thread that runs the application."""

    token: int


class Draining(Struct, frozen=True, gc=False):
    """A notice: the worker will be stopped in this many seconds. It continues; GOODBYE comes when no work is left."""

    seconds: float


class Ended(Struct, frozen=True, gc=False):
    """The link is over: the core said goodbye (`stopping`: nothing is left to do), or broke a rule (`violation`).

    If this end must say goodbye itself, a `Reply` came before.
    """

    code: str
    text: str


Event: TypeAlias = (
    Reply
    | Continued
    | Greeted
    | Opened
    | OpenedEarly
    | BodyArrived
    | Called
    | Given
    | Resumed
    | Cancelled
    | Writable
    | FileReleased
    | MessageArrived
    | SocketClosed
    | Pinged
    | Draining
    | Ended
)
