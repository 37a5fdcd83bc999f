"""How a wait ended: the outcomes of PROTOCOL.md, `RESUME`."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from .._limits import INLINE_MAX
from .jobs import Completed, NoResult, Pending, Stored
from .queries import Failed, Rows
from .values import Array, Count, FaultStatus


class Elapsed(Array, frozen=True, tag="elapsed"):
    pass


class Message(Array, frozen=True, tag="message"):
    cursor: str
    content_type: str
    body: bytes
    gap: bool
    event: str | None = None


class HeldMessage(Array, frozen=True):
    cursor: str
    content_type: str
    body: bytes
    event: str | None


class Held(Array, frozen=True, tag="history"):
    """What a channel holds, and its cursor after that."""

    cursor: str
    messages: list[HeldMessage]


class Published(Array, frozen=True, tag="published"):
    cursor: str


class Timeout(Array, frozen=True, tag="timeout"):
    cursor: str


class Outcomes(Array, frozen=True, tag="outcomes"):
    """Several waits are over. `first` is the number of the one that was first, and then the only one here. `body` is an
    array of outcomes, encoded: see `read_outcomes`; None if it follows.
    """

    first: Count | None
    body: Annotated[bytes, Meta(max_length=INLINE_MAX)] | None


class Said(Array, frozen=True, tag="said"):
    """A message of a WebSocket's client; `body` is None if it follows."""

    text: bool
    body: Annotated[bytes, Meta(max_length=INLINE_MAX)] | None


class Closed(Array, frozen=True, tag="closed"):
    """A WebSocket is over: 1005 if its client gave no code, 1006 if the connection was lost."""

    code: Annotated[int, Meta(ge=1_000, le=4_999)]


class Unparked(Array, frozen=True, tag="unparked"):
    pass


class Refused(Array, frozen=True, tag="refused"):
    text: str
    status: FaultStatus


Outcome: TypeAlias = (
    Elapsed
    | Message
    | Held
    | Published
    | Timeout
    | Outcomes
    | Said
    | Closed
    | Unparked
    | Refused
    | Rows
    | Failed
    | Stored
    | Completed
    | Pending
    | NoResult
)


class WholeRows(Rows, array_like=True, frozen=True, tag="rows"):
    """As one of several outcomes: they never follow."""

    columns: list[tuple[str, str]]
    command: str
    count: Count
    body: bytes


Single: TypeAlias = (
    Elapsed
    | Message
    | Held
    | Published
    | Timeout
    | Unparked
    | Refused
    | WholeRows
    | Failed
    | Stored
    | Completed
    | Pending
    | NoResult
)

_read_outcomes = msgspec.msgpack.Decoder(list[Single]).decode


def read_outcomes(body: bytes) -> list[Any]:
    """Those of several waits, in their order. Raises `ValueError` for what is none."""
    return _read_outcomes(body)
