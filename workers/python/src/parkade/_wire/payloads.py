"""What the payloads hold: one struct for each array of PROTOCOL.md, section 3, named as the page names the frame."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from ..limits import CHANNEL_NAME_MAX, CREDIT_MAX, INLINE_MAX, MESSAGE_MAX, NAME_MAX

STATEMENT_MAX = 262_144  # bytes of a statement; then: ValueError
PARAMETERS_MAX = 65_535  # PostgreSQL counts them in 16 bits; then: ValueError
ARRAY_DEPTH_MAX = 6  # arrays in one another, as many as PostgreSQL takes (MAXDIM); then: ValueError
SHARED_MAX = 200  # bytes of the key of a shared query, as of a channel's name; then: ValueError

# A year of 10^15 seconds is no time anybody waits: the bound is there because it refuses infinity and NaN.
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e15)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
StreamId: TypeAlias = Annotated[int, Meta(ge=1, le=0xFFFF_FFFF)]
Status: TypeAlias = Annotated[int, Meta(ge=200, le=599)]
State: TypeAlias = Annotated[bytes, Meta(max_length=INLINE_MAX)]


class _Array(Struct, array_like=True, frozen=True, gc=False):
    """A payload: an array whose further elements, from a later version, are ignored."""


class _Map(Struct, frozen=True, gc=False, omit_defaults=True):
    """A map: unknown keys are ignored, missing ones have their default."""


class Hello(_Array, frozen=True):
    version_min: Count
    version_max: Count
    features: Count
    info: dict[str, Any]


class Request(_Array, frozen=True):
    """`head` stays encoded until somebody asks: see `read_head`."""

    route: Count | None
    parameters: list[str]
    deadline: Seconds | None
    body: Annotated[bytes, Meta(max_length=INLINE_MAX)] | None
    head: Raw


class RequestHead(_Array, frozen=True):
    """`headers` stays encoded until somebody asks: see `read_headers`."""

    method: str
    path: str
    query: str
    headers: Raw
    client: str
    scheme: str
    version: str


class Response(_Array, frozen=True):
    status: Status
    headers: list[Any] | None  # str, then str or bytes: msgspec has no such union, so they are checked below
    body: Any  # bytes, str or None

    def __post_init__(self) -> None:
        _check_headers(self.headers or [])
        if self.body is not None and byte_length(self.body) > INLINE_MAX:
            raise ValueError("a longer body follows")


class Window(_Array, frozen=True):
    bytes: Count


class Error(_Array, frozen=True):
    reason: Literal["application", "cancelled", "overloaded"]
    text: str


class Timer(_Array, frozen=True, tag="timer"):
    seconds: Seconds


class NextOptions(_Map, frozen=True):
    timeout: Seconds | None = None
    since: str | None = None


class Next(_Array, frozen=True, tag="next"):
    channel: str
    options: NextOptions


class StreamOptions(_Map, frozen=True):
    since: str | None = None


class Stream(_Array, frozen=True, tag="stream"):
    channel: str
    options: StreamOptions


class QueryOptions(_Map, frozen=True):
    """`deadline` and `ttl` in seconds; a `ttl` goes only with `shared`, and `shared` not with `within`."""

    database: str = "default"
    shape: Literal["rows", "one", "value"] = "rows"
    deadline: Seconds | None = None
    int8: Literal["number", "string"] = "number"
    shared: str | None = None
    ttl: Seconds = 0
    within: bool = False

    def __post_init__(self) -> None:
        if self.shared is None:
            if self.ttl:
                raise ValueError("a ttl goes with shared")
            return
        if not 1 <= byte_length(self.shared) <= SHARED_MAX:
            raise ValueError(f"a shared key has 1 to {SHARED_MAX} bytes")
        if self.within:
            raise ValueError("what is within a transaction is shared with nobody")


class Query(_Array, frozen=True, tag="query"):
    """`parameters` hold None, bool, int (64 bits), float, str, bytes, lists of these and `{"json": text}`."""

    text: str
    parameters: list[Any]
    options: QueryOptions

    def __post_init__(self) -> None:
        if not 1 <= byte_length(self.text) <= STATEMENT_MAX:
            raise ValueError(f"a statement has 1 to {STATEMENT_MAX} bytes")
        if "\0" in self.text:
            raise ValueError("a statement has no NUL")
        if len(self.parameters) > PARAMETERS_MAX:
            raise ValueError(f"a statement has at most {PARAMETERS_MAX} parameters")


class BeginOptions(_Map, frozen=True):
    database: str = "default"
    isolation: Literal["read committed", "repeatable read", "serializable"] | None = None
    read_only: bool = False
    deadline: Seconds | None = None


class Begin(_Array, frozen=True, tag="begin"):
    options: BeginOptions


class EndOptions(_Map, frozen=True):
    deadline: Seconds | None = None


class Commit(_Array, frozen=True, tag="commit"):
    options: EndOptions


class Rollback(_Array, frozen=True, tag="rollback"):
    options: EndOptions


Wait: TypeAlias = Timer | Next | Stream | Query | Begin | Commit | Rollback


class Answer(_Array, frozen=True, tag="answer"):
    response: Response | None


class Call(_Array, frozen=True, tag="call"):
    function: str
    state: State

    def __post_init__(self) -> None:
        if byte_length(self.function) > NAME_MAX:
            raise ValueError(f"a function's name has at most {NAME_MAX} bytes")


class Await(_Array, frozen=True, tag="await"):
    pass


Then: TypeAlias = Answer | Call | Await


class Elapsed(_Array, frozen=True, tag="elapsed"):
    pass


class Message(_Array, frozen=True, tag="message"):
    cursor: str
    content_type: str
    body: bytes
    gap: bool


class Timeout(_Array, frozen=True, tag="timeout"):
    cursor: str


class Unparked(_Array, frozen=True, tag="unparked"):
    pass


class Refused(_Array, frozen=True, tag="refused"):
    text: str


class Rows(_Array, frozen=True, tag="rows"):
    """A query that was carried out. `columns` are names and types, `body` is JSON text; None when it follows."""

    columns: list[tuple[str, str]]
    command: str
    count: Count
    body: Annotated[bytes, Meta(max_length=INLINE_MAX)] | None


class Failed(_Array, frozen=True, tag="failed"):
    """A query that was not. `status` is what the client would be told; `text` is for logs and developers."""

    reason: str
    sqlstate: str | None
    text: str
    effect: Literal["none", "completed", "unknown", "cancelled"]
    status: Annotated[int, Meta(ge=400, le=599)]


Outcome: TypeAlias = Elapsed | Message | Timeout | Unparked | Refused | Rows | Failed


class Resume(_Array, frozen=True):
    """`function` and `states` are there together, one state for each stream, or neither is: then the streams are
    awaiting.
    """

    outcome: Outcome
    streams: list[StreamId]
    function: str | None = None
    states: list[State] | None = None

    def __post_init__(self) -> None:
        if (self.function is None) != (self.states is None):
            raise ValueError("function and states come together")
        if self.states is not None and len(self.states) != len(self.streams):
            raise ValueError("one state for each stream")


class Publish(_Array, frozen=True):
    channel: str
    content_type: str
    body: Any  # bytes or str

    def __post_init__(self) -> None:
        if (reason := fault_of_channel(self.channel)) is not None:
            raise ValueError(reason)
        if byte_length(self.content_type) > NAME_MAX:
            raise ValueError(f"a content type has at most {NAME_MAX} bytes")
        if byte_length(self.body) > MESSAGE_MAX:
            raise ValueError(f"a message has at most {MESSAGE_MAX} bytes")


class Nothing(_Array, frozen=True):
    """UNPARK's payload."""


class Text(_Array, frozen=True):
    """FAILED's text, and CANCEL's reason."""

    text: str


class Credit(_Array, frozen=True):
    delta: Annotated[int, Meta(ge=-CREDIT_MAX, le=CREDIT_MAX)]


class Drain(_Array, frozen=True):
    seconds: Seconds


class Token(_Array, frozen=True):
    """PING's and PONG's."""

    token: Count


class Goodbye(_Array, frozen=True):
    code: str
    text: str


class Close(_Array, frozen=True):
    code: Count
    text: str


def read_head(raw: Raw) -> RequestHead:
    """The head of a `Request`. Raises `ValueError` when it is none."""
    return _decode_head(raw)


def read_headers(raw: Raw) -> list[Any]:
    """The headers of a `RequestHead`: name (str), value (bytes), name, value… Raises `ValueError` when they are no such
    array.
    """
    headers = _decode_headers(raw)
    _check_headers(headers)
    return headers


def byte_length(body: object) -> int:
    """How long a body is on the wire; text stands for its UTF-8 bytes.

    Raises `ValueError` when it is neither bytes nor text.
    """
    match body:
        case bytes():
            return len(body)
        case str():
            return len(body.encode())
        case _:
            raise ValueError("a body is bytes or text")


def fault_of_channel(name: str) -> str | None:
    """Why no core accepts this name of a channel, or None (PROTOCOL.md, `PARK`)."""
    if not 1 <= len(name.encode("utf-8", "replace")) <= CHANNEL_NAME_MAX:
        return "a channel's name has 1 to 200 bytes"
    if any(character < " " or "\x7f" <= character <= "\x9f" for character in name):
        return "a channel's name has no control character"
    return None


_decode_head = msgspec.msgpack.Decoder(RequestHead).decode
_decode_headers = msgspec.msgpack.Decoder(list[Any]).decode


def _check_headers(headers: list[Any]) -> None:
    if len(headers) % 2:
        raise ValueError("headers are pairs")
    if not all(isinstance(name, str) for name in headers[::2]):
        raise ValueError("a header's name is text")
    if not all(isinstance(value, bytes | str) for value in headers[1::2]):
        raise ValueError("a header's value is bytes or text")
