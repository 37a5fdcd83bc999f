"""The channels of a test, with their histories in memory."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from .._waits.channel import BEGINNING
from .._wire import payloads as p
from .._wire.ready import ChannelOptions, ChannelPattern

EPOCH = "7e57"
USUAL = ChannelOptions(count=100, bytes=1_048_576, age=300)  # as the server's settings are without a file
MESSAGE_OVERHEAD_BYTES = 256  # that the server counts for each message in a history
HISTORY_ANSWER_BYTES_MAX = 768 * 1024  # of one answer of `history()`; then: the oldest messages are left out


@dataclass(slots=True)
class _Kept:
    message: p.Message
    bytes: int
    at: float


@dataclass(slots=True)
class _Channel:
    """`sequence` is the number of its last message."""

    limits: ChannelOptions
    sequence: int = 0
    kept: deque[_Kept] = field(default_factory=deque)
    bytes: int = 0

    def trim(self, now: float) -> None:
        while self.kept and self._exceeds(now):
            self.bytes -= self.kept.popleft().bytes

    def _exceeds(self, now: float) -> bool:
        count, size, age = self.limits.count, self.limits.bytes, self.limits.age
        return (
            (count is not None and len(self.kept) > count)
            or (size is not None and self.bytes > size)
            or (age is not None and now - self.kept[0].at >= age)
        )


class Channels:
    """Histories, and the cursor of each channel."""

    def __init__(self, patterns: Iterable[ChannelPattern], now: Callable[[], float]) -> None:
        self._patterns = list(patterns)
        self._now = now
        self._channels: dict[str, _Channel] = {}

    def publish(self, name: str, content_type: str, body: bytes, event: str | None) -> p.Message:
        """Appends a message; gives it with its cursor."""
        channel = self._open(name)
        channel.sequence += 1
        message = p.Message(_cursor(channel.sequence), content_type, body, False, event)
        size = len(body) + len(content_type) + len((event or "").encode()) + len(name.encode()) + MESSAGE_OVERHEAD_BYTES
        channel.kept.append(_Kept(message, size, self._now()))
        channel.bytes += size
        channel.trim(self._now())
        return message

    def cursor(self, name: str) -> str:
        """The current cursor of the channel."""
        return _cursor(self._open(name).sequence)

    def held(self, name: str, count: int | None) -> p.Held:
        """The newest messages, at most so many, and so many bytes."""
        left = HISTORY_ANSWER_BYTES_MAX
        newest: list[p.HeldMessage] = []
        for kept in reversed(self._open(name).kept):
            left -= kept.bytes
            if len(newest) == count or (newest and left < 0):
                break
            message = kept.message
            newest.append(p.HeldMessage(message.cursor, message.content_type, message.body, message.event))
        return p.Held(self.cursor(name), newest[::-1])

    def since(self, name: str, cursor: str | None) -> tuple[list[p.Message], bool]:
        """The messages after a cursor, and whether some before them are no longer held: the first one says so. Where
        there is none yet, the next message has to say it. None without a cursor.
        """
        if cursor is None:
            return [], False
        channel = self._open(name)
        oldest = channel.sequence - len(channel.kept)
        own = [known for known in map(_known, cursor.split(",")) if known is not None]
        known, gap = oldest, False
        if cursor != BEGINNING:
            is_strange = not own or max(own) > channel.sequence
            known, gap = (oldest, True) if is_strange else (max(max(own), oldest), max(own) < oldest)
        messages = [kept.message for kept in channel.kept][known - oldest :]
        return ([told_of_gap(messages[0]), *messages[1:]] if gap and messages else messages), gap

    def _open(self, name: str) -> _Channel:
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = _Channel(_limits(self._patterns, name))
        channel.trim(self._now())
        return channel


def told_of_gap(message: p.Message) -> p.Message:
    """The message, for somebody who has missed others before it."""
    return msgspec.structs.replace(message, gap=True)


def _known(tag: str) -> int | None:
    """The sequence of a cursor, or of an entity tag that is one; None when it makes no sense here."""
    epoch, _, sequence = tag.strip().removeprefix("W/").strip('"').partition(".")
    return int(sequence, 16) if epoch == EPOCH and re.fullmatch("[0-9a-f]{1,16}", sequence) else None


def _cursor(sequence: int) -> str:
    return f"{EPOCH}.{sequence:x}"


def _limits(patterns: list[ChannelPattern], name: str) -> ChannelOptions:
    """Those of the longest pattern that fits; a whole name is longer than the prefix of the same length."""
    fits = [
        pattern
        for pattern in patterns
        if pattern.pattern == name or (pattern.pattern.endswith("*") and name.startswith(pattern.pattern[:-1]))
    ]
    if not fits:
        return USUAL
    own = max(fits, key=lambda fit: (len(fit.pattern.removesuffix("*")), not fit.pattern.endswith("*"))).options
    given = {limit: value for limit, value in msgspec.structs.asdict(own).items() if value is not None}
    return msgspec.structs.replace(USUAL, **given)
