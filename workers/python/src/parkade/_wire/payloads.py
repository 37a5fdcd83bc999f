"""The payloads: one struct for each array of PROTOCOL.md, section 3, with the name of its frame."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw

from .._limits import (
    BRANCH_FIRST,
    BRANCHES_MAX,
    CHANNEL_NAME_MAX,
    CREDIT_MAX,
    EVENT_NAME_MAX,
    INLINE_MAX,
    MESSAGE_MAX,
    NAME_MAX,
    PATH_MAX,
    WATCHED_BYTES_MAX,
    WATCHED_COUNT_MAX,
)
from .jobs import Access as Access
from .jobs import Completed as Completed
from .jobs import Enqueue as Enqueue
from .jobs import EnqueueOptions as EnqueueOptions
from .jobs import NoResult as NoResult
from .jobs import Pending as Pending
from .jobs import Progress as Progress
from .jobs import Result as Result
from .jobs import ResultOptions as ResultOptions
from .jobs import Run as Run
from .jobs import Stored as Stored
from .jobs import UntilResult as UntilResult
from .jobs import UntilStored as UntilStored
from .jobs import fault_of_job as fault_of_job
from .outcomes import Closed as Closed
from .outcomes import Elapsed as Elapsed
from .outcomes import Held as Held
from .outcomes import HeldMessage as HeldMessage
from .outcomes import Message as Message
from .outcomes import Outcome as Outcome
from .outcomes import Outcomes as Outcomes
from .outcomes import Published as Published
from .outcomes import Refused as Refused
from .outcomes import Said as Said
from .outcomes import Timeout as Timeout
from .outcomes import Unparked as Unparked
from .outcomes import read_outcomes as read_outcomes
from .queries import ARRAY_DEPTH_MAX as ARRAY_DEPTH_MAX
from .queries import Begin as Begin
from .queries import BeginOptions as BeginOptions
from .queries import Commit as Commit
from .queries import EndOptions as EndOptions
from .queries import Failed as Failed
from .queries import Query as Query
from .queries import QueryOptions as QueryOptions
from .queries import Rollback as Rollback
from .queries import Rows as Rows
from .values import Array, Count, Map, Seconds, has_control_character
from .values import byte_length as byte_length

StreamId: TypeAlias = Annotated[int, Meta(ge=1, le=0xFFFF_FFFF)]
SWITCHING_PROTOCOLS = 101
Status: TypeAlias = Annotated[int, Meta(ge=200, le=599)]
State: TypeAlias = Annotated[bytes, Meta(max_length=INLINE_MAX)]


class Hello(Array, frozen=True):
    version_min: Count
    version_max: Count
    features: Count
    info: dict[str, Any]


class Request(Array, frozen=True):
    """`head` stays encoded until it is needed: see `read_head`."""

    route: Count | None
    parameters: list[str]
    deadline: Seconds | None
    body: Annotated[bytes, Meta(max_length=INLINE_MAX)] | None
    head: Raw


class RequestHead(Array, frozen=True):
    """`headers` stays encoded until it is needed: see `read_headers`."""

    method: str
    path: str
    query: str
    headers: Raw
    client: str
    scheme: str
    version: str
    id: str = ""
    client_port: Annotated[int, Meta(ge=0, le=65_535)] = 0
    server: str = ""
    server_port: Annotated[int, Meta(ge=0, le=65_535)] = 0


class Response(Array, frozen=True):
    """Status 101 accepts a WebSocket."""

    status: Annotated[int, Meta(ge=SWITCHING_PROTOCOLS, le=599)]
    headers: list[Any] | None  # str, then str or bytes: msgspec has no such union, so they are checked below
    body: Any  # bytes, str or None

    def __post_init__(self) -> None:
        if SWITCHING_PROTOCOLS < self.status < 200:
            raise ValueError("status is 200 to 599")
        check_headers(self.headers or [])
        if self.body is not None and byte_length(self.body) > INLINE_MAX:
            raise ValueError("a longer body follows")


class Window(Array, frozen=True):
    bytes: Count


class Error(Array, frozen=True):
    """`after` is for a retry, in seconds; None leaves it to the core."""

    reason: Literal["application", "cancelled", "overloaded", "retry", "discard", "unknown"]
    text: str
    after: Any = UNSET

    def __post_init__(self) -> None:
        if self.reason == "retry":
            msgspec.convert(self.after, Seconds | None)


class Timer(Array, frozen=True, tag="timer"):
    seconds: Seconds


class NextOptions(Map, frozen=True):
    timeout: Seconds | None = None
    since: str | None = None


class Next(Array, frozen=True, tag="next"):
    channel: str
    options: NextOptions


class StreamOptions(Map, frozen=True):
    since: str | None = None


class Stream(Array, frozen=True, tag="stream"):
    channel: str
    options: StreamOptions


class OnClose(Array, frozen=True):
    """The function that is called when a WebSocket is over, with the state of the other one."""

    function: Annotated[str, Meta(max_length=NAME_MAX)]
    kind: Literal["sync", "async"]


class SocketOptions(Map, frozen=True):
    since: str | None = None
    on_close: OnClose | None = None
    subprotocols: tuple[str, ...] = ()


class Socket(Array, frozen=True, tag="socket"):
    channel: str
    options: SocketOptions


class HistoryOptions(Map, frozen=True):
    count: Count | None = None


class History(Array, frozen=True, tag="history"):
    channel: str
    options: HistoryOptions


class UntilPublished(Array, frozen=True, tag="published"):
    number: Count


class FileOptions(Map, frozen=True):
    pass


class File(Array, frozen=True, tag="file"):
    path: str
    options: FileOptions

    def __post_init__(self) -> None:
        check_path(self.path)


class FilesOptions(Map, frozen=True):
    depth: Count = 0
    hidden: bool = False
    precompressed: bool = False
    index: str | None = None

    def __post_init__(self) -> None:
        if self.index is not None and (not self.index or set(self.index) & set("/\\\0")):
            raise ValueError("index is the name of a file")


class Files(Array, frozen=True, tag="files"):
    """`path` is that of a request, as sent; None is the one that waits."""

    folder: str
    path: str | None
    options: FilesOptions

    def __post_init__(self) -> None:
        check_path(self.folder)
        if self.path is not None:
            check_path(self.path)


def check_path(path: str) -> None:
    """Raises `ValueError` for a text that is no path."""
    if not 1 <= byte_length(path) <= PATH_MAX or "\0" in path:
        raise ValueError("a path has 1 to 65,536 bytes, none of them NUL")


class UntilBranches(Array, frozen=True, tag="branches"):
    """Until no branch of the stream is open."""


class AllOf(Array, frozen=True, tag="all_of"):
    """Until all of these are over. They stay undecoded: see `read_wait`."""

    waits: Annotated[list[Any], Meta(max_length=BRANCHES_MAX)]


class FirstOf(Array, frozen=True, tag="first_of"):
    """Until one of these is over."""

    waits: Annotated[list[Any], Meta(min_length=1, max_length=BRANCHES_MAX)]


Wait: TypeAlias = (
    Timer
    | Next
    | Stream
    | Socket
    | History
    | UntilPublished
    | Query
    | Begin
    | Commit
    | Rollback
    | UntilStored
    | UntilBranches
    | AllOf
    | FirstOf
    | UntilResult
    | File
    | Files
    | Access
)


class Added(Array, frozen=True):
    """What a worker adds to a response that the core gives alone."""

    status: Annotated[int, Meta(ge=200, le=299)] | None
    headers: list[Any] | None

    def __post_init__(self) -> None:
        check_headers(self.headers or [])


class Answer(Array, frozen=True, tag="answer"):
    response: Response | None
    added: Added | None = None


class Call(Array, frozen=True, tag="call"):
    function: str
    state: State
    kind: Literal["sync", "async"] = "sync"

    def __post_init__(self) -> None:
        if byte_length(self.function) > NAME_MAX:
            raise ValueError(f"a function's name has at most {NAME_MAX} bytes")


class Await(Array, frozen=True, tag="await"):
    pass


class Branch(Array, frozen=True, tag="branch"):
    """The frame's own stream is a new one, a branch of this one."""

    of: Annotated[int, Meta(ge=1, lt=BRANCH_FIRST)]


Then: TypeAlias = Answer | Call | Await | Branch


class Resume(Array, frozen=True):
    """Either both `function` and `states` are given, one state for each stream, or neither: then the streams are
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
        if self.body_follows and len(self.streams) != 1:
            raise ValueError("rows that follow go to one stream")

    @property
    def body_follows(self) -> bool:
        """Whether DATA brings the rows, the outcomes, or what was said: then MORE is set."""
        return isinstance(self.outcome, Rows | Outcomes | Said) and self.outcome.body is None


class Publish(Array, frozen=True):
    channel: str
    content_type: str
    body: Any  # bytes or str
    event: str | None = None
    number: Count | None = None

    def __post_init__(self) -> None:
        if (reason := fault_of_channel(self.channel)) is not None:
            raise ValueError(reason)
        if byte_length(self.content_type) > NAME_MAX:
            raise ValueError(f"a content type has at most {NAME_MAX} bytes")
        if byte_length(self.body) > MESSAGE_MAX:
            raise ValueError(f"a message has at most {MESSAGE_MAX} bytes")
        if self.event is not None and (reason := fault_of_event(self.event)) is not None:
            raise ValueError(reason)


class Nothing(Array, frozen=True):
    """BEGAN's and UNPARK's payload."""


class Text(Array, frozen=True):
    """CANCEL's reason."""

    text: str


WatchedPath: TypeAlias = Annotated[str, Meta(max_length=WATCHED_BYTES_MAX)]
Watched: TypeAlias = Annotated[list[WatchedPath], Meta(max_length=WATCHED_COUNT_MAX)]
"""Where code was loaded from."""


class Failure(Array, frozen=True, omit_defaults=True):
    """FAILED's."""

    text: str
    watch: tuple[WatchedPath, ...] = ()


class Credit(Array, frozen=True):
    delta: Annotated[int, Meta(ge=-CREDIT_MAX, le=CREDIT_MAX)]


class Drain(Array, frozen=True):
    seconds: Seconds


class Token(Array, frozen=True):
    """PING's and PONG's."""

    token: Count


class Goodbye(Array, frozen=True):
    code: str
    text: str


class Close(Array, frozen=True):
    code: Count
    text: str


def read_head(raw: Raw) -> RequestHead:
    """The head of a `Request`. Raises `ValueError` if it is invalid."""
    return _decode_head(raw)


def read_headers(raw: Raw) -> list[Any]:
    """The headers of a `RequestHead`: name (str), value (bytes), name, value… Raises `ValueError` if they are not such
    an array.
    """
    headers = _decode_headers(raw)
    check_headers(headers)
    return headers


def read_fields(raw: Raw) -> list[tuple[bytes, bytes]]:
    """The same as pairs of bytes, for code that runs for every request: it trusts the core, as slices and `zip` take
    twice as long.
    """
    each = iter(_decode_headers(raw))
    return [(name.encode(), next(each)) for name in each]


def fault_of_channel(name: str) -> str | None:
    """Why no core accepts this name of a channel, or None (PROTOCOL.md, `PARK`)."""
    if not 1 <= len(name.encode("utf-8", "replace")) <= CHANNEL_NAME_MAX:
        return "a channel's name must have 1 to 200 bytes"
    if has_control_character(name):
        return "a channel's name must not contain control characters"
    return None


def fault_of_event(name: str) -> str | None:
    """Why no core accepts this name of an event, or None (PROTOCOL.md, `PUBLISH`)."""
    if not 1 <= len(name.encode("utf-8", "replace")) <= EVENT_NAME_MAX:
        return "the name of an event must have 1 to 200 bytes"
    if has_control_character(name):
        return "the name of an event must not contain control characters"
    return "the event gap is the server's own" if name == "gap" else None


_decode_head = msgspec.msgpack.Decoder(RequestHead).decode
_decode_headers = msgspec.msgpack.Decoder(list[Any]).decode


_NAME_TYPES = frozenset({str})
_VALUE_TYPES = frozenset({bytes, str})


def check_headers(headers: list[Any]) -> None:
    """Raises `ValueError` if they are not name, value, name, value…"""
    if len(headers) % 2:
        raise ValueError("headers are pairs")
    # The types of nearly all, without a call for each of them.
    if not _NAME_TYPES.issuperset(map(type, names := headers[::2])) and not all(
        isinstance(name, str) for name in names
    ):
        raise ValueError("a header's name is text")
    if not _VALUE_TYPES.issuperset(map(type, values := headers[1::2])) and not all(
        isinstance(value, bytes | str) for value in values
    ):
        raise ValueError("a header's value is bytes or text")
