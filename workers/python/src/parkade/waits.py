"""What an answer may wait for: a timer, a channel; `queries` has the third, `job_values` the fourth.

One object, used in three ways: returned, returned with `.then`, awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

import msgspec

from ._limits import FRAME_MAX, MESSAGE_MAX, NAME_MAX
from ._link import port
from ._link.exchange import AWAITED
from ._wire import payloads as p
from ._wire.codec import encode_payload
from .errors import InvalidChannel, InvalidMessage, QueryError, Refused, WaitError
from .functions import Function, describe
from .rows import value_of_rows


def after(seconds: float, response: object = None) -> Wait:
    """Until `seconds` have passed.

    Returned, the answer is then `response`, anything that a handler may return (204 for None); awaited, it gives None.

    Raises `ValueError` for seconds that are negative or not finite.
    """
    return Wait(p.Timer(check_seconds(seconds)), response)


def channel(name: str) -> Channel:
    """The channel of that name: 1 to 200 bytes of UTF-8 without control characters.

    Raises `InvalidChannel` for another.
    """
    if (reason := p.fault_of_channel(name)) is not None:
        raise InvalidChannel(reason)
    return Channel(name)


class Message:
    """What was published on a channel.

    `gap` says that messages between the wait's cursor and this one are no longer held.
    """

    # Not a dataclass, as the two below: msgspec would write those into JSON field by field, where a message stands for
    # its value.
    __slots__ = ("_value", "body", "content_type", "cursor", "gap")

    def __init__(self, body: bytes, content_type: str, cursor: str, gap: bool = False) -> None:
        self.body = body
        self.content_type = content_type
        self.cursor = cursor
        self.gap = gap

    @property
    def value(self) -> Any:
        """What was published: decoded JSON, text, or bytes, by the content type.

        Raises `InvalidMessage` when it says that it is JSON, and is none or nested too deeply.
        """
        try:
            return self._value
        except AttributeError:
            pass
        try:
            self._value: Any = _value_of(self.body, self.content_type)
        except (ValueError, RecursionError) as error:
            why = _TOO_DEEP if isinstance(error, RecursionError) else str(error)
            raise InvalidMessage(f"what was published as {self.content_type} ({self.cursor}): {why}") from error
        return self._value

    @property
    def text(self) -> str:
        """The body as UTF-8; what is none becomes U+FFFD."""
        return self.body.decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"<Message {self.cursor} {self.content_type} {len(self.body)} bytes>"


class Channel:
    """A named stream of messages that requests wait for. Make it with `channel(name)`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"channel({self.name!r})"

    def next(self, timeout: float | None = None, since: str | None = None) -> Wait:
        """Until the next message, or for `timeout` seconds.

        `since` is a cursor: the first message behind it, at once if there is one.

        Returned, the message is the answer, its cursor the ETag, 204 when the time is up; without `since` the client's
        own cursor counts (`request.cursor`). With `.then` and awaited, it gives a `Message`, or None when the time is
        up; without `since` it begins now.

        With `timeout` here, rather than `asyncio.timeout` around it, the core does the waiting to the end: two messages
        on the link less.
        """
        return Wait(p.Next(self.name, p.NextOptions(None if timeout is None else check_seconds(timeout), since)))

    def stream(self, since: str | None = None) -> Wait:
        """Every message from now on, as server-sent events, until the client leaves. Only to be returned."""
        return Wait(p.Stream(self.name, p.StreamOptions(since)))

    def publish(self, value: object, content_type: str | None = None) -> None:
        """Publishes a message to everybody who waits. It has happened before the answer that is given after it.

        str goes as text/plain, bytes as application/octet-stream, all else as JSON; a `content_type` of your own
        replaces that. Raises `TypeError` for what is not JSON-able, `ValueError` over 524,288 bytes, `WaitError` where
        there is no core.
        """
        body, usual = _encode(value)
        if len(body) > MESSAGE_MAX:
            raise ValueError(f"a message has at most {MESSAGE_MAX} bytes, not {len(body)}")
        content_type = content_type or usual
        if len(content_type.encode()) > NAME_MAX:
            raise ValueError(f"a content type has at most {NAME_MAX} bytes")
        port.port().publish(self.name, content_type, body)


_NO_STATE: Mapping[str, Any] = {}


class Wait:
    """What a request waits for, and what happens then. Make it with `after`, `channel` or `query`. It does not
    change.
    """

    __slots__ = ("function", "response", "state", "wait")

    def __init__(
        self,
        wait: p.Wait,
        response: object = None,
        function: Function | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.wait = wait
        self.response = response  # a timer's
        self.function = function
        self.state: Mapping[str, Any] = state or _NO_STATE

    def then(self, function: Callable[..., Any], /, **state: Any) -> Wait:
        """Returned, this has any worker call `function` when the wait is over; what that returns is the answer.

        It may return another wait. It stands at the top of a module. Its first parameter gets the outcome (None for a
        timer; a `Message`, or None when the time is up) unless `state` names it; a parameter annotated `Request` gets
        the request, without its body; when a job waited, one annotated `Job`, or called `job` without a type of its
        own, gets that. `state` comes by name, by MessagePack and the annotations. Raises `SignatureError` for a
        function that is nested, a lambda, or does not take this state.
        """
        if isinstance(self.wait, p.Stream):
            raise WaitError("a stream of messages goes to the client as it is: it has no then")
        return Wait(self.wait, self.response, describe(function, frozenset(state)), state)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._outcome().__await__()

    async def _outcome(self) -> Any:
        if self.function is not None:
            raise WaitError("a wait with .then is returned, not awaited")
        if isinstance(self.wait, p.Stream):
            raise WaitError("a stream is returned, not awaited: await channel(name).next(since=cursor) again and again")
        exchange = port.exchange.get()
        if exchange is None:
            raise WaitError(AWAITED)
        outcome = await exchange.wait(encode_park(self.wait, AWAIT))
        return self.response if isinstance(outcome, p.Elapsed) else self._value(outcome)

    def _value(self, outcome: p.Outcome) -> Any:
        """What awaiting gives."""
        return value_of_outcome(outcome, shape_of(self.wait))

    def __repr__(self) -> str:
        then = f".then({self.function.name})" if self.function is not None else ""
        return f"<Wait {self.wait}{then}>"


AWAIT = p.Await()


def encode_park(wait: p.Wait, then: object) -> bytes:
    """A PARK, encoded. Raises `ValueError` for a query with so much in it that no frame has room."""
    encoded = encode_payload((wait, then))
    if len(encoded) > FRAME_MAX:
        raise ValueError(f"a query has at most {FRAME_MAX} bytes with its parameters, not {len(encoded)}")
    return encoded


def shape_of(wait: p.Wait) -> str:
    """Whether a query's outcome is `rows`, `one` or a `value`; it says so for every wait."""
    return wait.options.shape if type(wait) is p.Query else "rows"


def value_of_outcome(outcome: p.Outcome, shape: str = "rows") -> Any:
    """What a wait gives to who waited: a `Message`; what a query found, in its shape; None for a timer, and when the
    time is up.

    Raises `Refused` when there was no wait, `QueryError` for a query that failed.
    """
    match outcome:
        case p.Rows():
            return value_of_rows(outcome, shape)
        case p.Failed():
            raise error_of(outcome)
        case p.Message(cursor=cursor, content_type=content_type, body=body, gap=gap):
            return Message(body, content_type, cursor, gap)
        case p.Refused(text=text, status=status):
            raise Refused(text, status)
        case _:
            return None


def error_of(failed: p.Failed) -> QueryError:
    """What a query that failed raises."""
    reason, state, text, effect, status = msgspec.structs.astuple(failed)
    return QueryError(text, reason=reason, sqlstate=state, effect=effect, status=status)


def encode_message(value: object) -> Any:
    """For JSON encoders: a message inside an answer stands for its value."""
    if isinstance(value, Message):
        return value.text if isinstance(value.value, bytes) else value.value
    raise TypeError(f"{type(value).__name__} is not JSON-able")


_json = msgspec.json.Encoder(enc_hook=encode_message).encode


def _encode(value: object) -> tuple[bytes, str]:
    match value:
        case str():
            return value.encode(), "text/plain; charset=utf-8"
        case bytes() | bytearray() | memoryview():
            return bytes(value), "application/octet-stream"
        case Message():
            return value.body, value.content_type
        case _:
            return _json(value), "application/json"


_TOO_DEEP = "its arrays and objects are nested more deeply than Python reads; body and text can be read"


def _value_of(body: bytes, content_type: str) -> Any:
    media = content_type.partition(";")[0].strip().lower()
    if media == "application/json" or media.endswith("+json"):
        return msgspec.json.decode(body)
    return body.decode("utf-8", "replace") if media.startswith("text/") else body


def check_seconds(seconds: float) -> float:
    """Seconds as they are. Raises `ValueError` when they are negative or not finite."""
    if not (isinstance(seconds, (int, float)) and 0 <= seconds <= 1e15):  # neither infinity nor NaN is in there
        raise ValueError(f"seconds are a finite number, not negative: {seconds!r}")
    return seconds
