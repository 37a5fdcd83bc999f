"""A message that was published on a channel, and the messages that a channel holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

import msgspec

from .._validation.json import decoder_of
from .._validation.models import encode_model
from ..errors import HTTPError, InvalidMessage

T = TypeVar("T")


class Message:
    """What was published on a channel.

    `gap` says that messages between the wait's cursor and this one are no longer held.
    """

    # Not a dataclass, as `Channel` and `Wait` are not: msgspec would write a dataclass into JSON field by field, while
    # a message stands for its value.
    __slots__ = ("_value", "body", "content_type", "cursor", "event", "gap")

    body: bytes
    """What was published, in bytes."""
    content_type: str
    """As the publisher gave it, or as `publish` chose it."""
    cursor: str
    """Where the channel stands after this message: for `next(since=…)` and `stream(since=…)`."""
    gap: bool
    """Whether messages between the wait's cursor and this one are no longer held."""
    event: str | None
    """The name of its event; None without one."""

    def __init__(
        self, body: bytes, content_type: str, cursor: str, gap: bool = False, event: str | None = None
    ) -> None:
        self.body = body
        self.content_type = content_type
        self.cursor = cursor
        self.gap = gap
        self.event = event

    @property
    def value(self) -> Any:
        """What was published: decoded JSON, text, or bytes, by the content type.

        Raises `InvalidMessage` when the content type says JSON and the body is not JSON, or nested too deeply.
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

    @overload
    def json(self) -> Any: ...
    @overload
    def json(self, type: type[T]) -> T: ...
    def json(self, type: Any = Any) -> Any:
        """The body decoded from JSON, as `type` when given (a dataclass, `msgspec.Struct`, pydantic model, …).

        Raises `InvalidMessage` for a body that is not JSON, or not of that type.
        """
        try:
            return decoder_of(type)(self.body)
        except (HTTPError, ValueError) as error:
            raise InvalidMessage(f"what was published as {self.content_type} ({self.cursor}): {error}") from error

    @property
    def text(self) -> str:
        """The body as UTF-8; invalid bytes become U+FFFD."""
        return self.body.decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"<Message {self.cursor} {self.content_type} {len(self.body)} bytes>"


class History(Sequence[Message]):
    """The messages that a channel holds, the oldest first, without a hole up to `cursor`.

    As JSON it is `{"cursor": …, "messages": [{"cursor": …, "event": …, "data": …}, …]}`, with `event` where there is
    one.
    """

    __slots__ = ("_messages", "cursor")

    cursor: str
    """Where the channel stands after the last of them: for `next(since=…)` and `stream(since=…)`."""

    def __init__(self, messages: Iterable[Message], cursor: str) -> None:
        self._messages = tuple(messages)
        self.cursor = cursor

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    @overload
    def json(self) -> list[Any]: ...
    @overload
    def json(self, type: type[T]) -> list[T]: ...
    def json(self, type: Any = Any) -> list[Any]:
        """The body of each message decoded from JSON, as `type` when given.

        Raises `InvalidMessage` as `Message.json` does.
        """
        return [message.json(type) for message in self._messages]

    def __repr__(self) -> str:
        return f"<History {self.cursor} {len(self)} messages>"


def encode_other(value: object) -> Any:
    """For encoders of msgspec: a message inside an answer stands for its value, a history for its messages with their
    cursors; a model of pydantic for what that makes of it. Raises `TypeError` for anything else.
    """
    if isinstance(value, Message):
        return value.text if isinstance(value.value, bytes) else value.value
    if isinstance(value, History):
        return {"cursor": value.cursor, "messages": [_told(message) for message in value]}
    return encode_model(value)


def _told(message: Message) -> dict[str, Any]:
    event = {} if message.event is None else {"event": message.event}
    try:
        data = encode_other(message)
    except InvalidMessage:
        data = message.text
    return {"cursor": message.cursor, **event, "data": data}


_TOO_DEEP = "its arrays and objects are nested too deeply for Python; body and text can still be read"


def _value_of(body: bytes, content_type: str) -> Any:
    media = content_type.partition(";")[0].strip().lower()
    if media == "application/json" or media.endswith("+json"):
        return msgspec.json.decode(body)
    return body.decode("utf-8", "replace") if media.startswith("text/") else body
