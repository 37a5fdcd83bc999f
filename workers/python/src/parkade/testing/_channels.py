"""The channels of a test, with their histories in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .._waits.channel import BEGINNING
from .._wire import payloads as p
from .._wire.ready import ChannelOptions, ChannelPattern

EPOCH = "7e57"
HISTORY_COUNT = 1_000  # messages, where the application sets no limit


class Channels:
    """Histories, and the cursor of each channel."""

    def __init__(self, patterns: Iterable[ChannelPattern]) -> None:
        self._patterns = list(patterns)
        self._histories: dict[str, list[tuple[int, p.Message]]] = {}
        self._sequences: dict[str, int] = {}

    def publish(self, name: str, content_type: str, body: bytes, event: str | None) -> p.Message:
        """Appends a message; gives it with its cursor."""
        sequence = self._sequences.get(name, 0) + 1
        self._sequences[name] = sequence
        message = p.Message(_cursor(sequence), content_type, body, False, event)
        history = self._histories.setdefault(name, [])
        history.append((sequence, message))
        del history[: max(0, len(history) - self._count(name))]
        return message

    def cursor(self, name: str) -> str:
        """The current cursor of the channel."""
        return _cursor(self._sequences.get(name, 0))

    def held(self, name: str, count: int | None) -> p.Held:
        """The newest messages, at most so many."""
        messages = [
            p.HeldMessage(message.cursor, message.content_type, message.body, message.event)
            for _, message in self._histories.get(name, [])
        ]
        return p.Held(self.cursor(name), messages if count is None else messages[max(0, len(messages) - count) :])

    def since(self, name: str, cursor: str | None) -> list[p.Message]:
        """The messages after a cursor; the first has `gap` when some are no longer held. None without a cursor."""
        if cursor is None:
            return []
        is_first = cursor == BEGINNING
        own = [known for known in map(_known, cursor.split(",")) if known is not None]
        known = max(own, default=0)
        held = [(number, message) for number, message in self._histories.get(name, []) if number > known]
        if not held:
            return []
        first, message = held[0]
        gap = not is_first and (not own or first > known + 1)
        return [
            p.Message(message.cursor, message.content_type, message.body, gap, message.event),
            *(message for _, message in held[1:]),
        ]

    def _count(self, name: str) -> int:
        options = _longest(self._patterns, name)
        return HISTORY_COUNT if options is None or options.count is None else options.count


def _known(tag: str) -> int | None:
    """The sequence of a cursor, or of an entity tag that is one; None when it makes no sense here."""
    epoch, _, sequence = tag.strip().removeprefix("W/").strip('"').partition(".")
    return int(sequence, 16) if epoch == EPOCH and re.fullmatch("[0-9a-f]{1,16}", sequence) else None


def _cursor(sequence: int) -> str:
    return f"{EPOCH}.{sequence:x}"


def _longest(patterns: list[ChannelPattern], name: str) -> ChannelOptions | None:
    fits = [
        pattern
        for pattern in patterns
        if pattern.pattern == name or (pattern.pattern.endswith("*") and name.startswith(pattern.pattern[:-1]))
    ]
    return max(fits, key=lambda pattern: len(pattern.pattern)).options if fits else None
