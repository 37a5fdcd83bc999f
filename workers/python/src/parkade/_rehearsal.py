"""The core's part in a test: channels with their histories in memory, and which waits are over when."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ._wire import payloads as p
from ._wire.ready import ChannelOptions, ChannelPattern

EPOCH = "7e57"
HISTORY_COUNT = 1_000  # where the application says nothing


class Channels:
    """Histories, and the cursor of each channel."""

    def __init__(self, patterns: Iterable[ChannelPattern]) -> None:
        self._patterns = list(patterns)
        self._histories: dict[str, list[tuple[int, p.Message]]] = {}
        self._sequences: dict[str, int] = {}

    def publish(self, name: str, content_type: str, body: bytes) -> p.Message:
        """Appends a message; gives it with its cursor."""
        sequence = self._sequences.get(name, 0) + 1
        self._sequences[name] = sequence
        message = p.Message(_cursor(sequence), content_type, body, False)
        history = self._histories.setdefault(name, [])
        history.append((sequence, message))
        del history[: max(0, len(history) - self._count(name))]
        return message

    def cursor(self, name: str) -> str:
        """Where the channel is now."""
        return _cursor(self._sequences.get(name, 0))

    def since(self, name: str, cursor: str | None) -> list[p.Message]:
        """The messages behind a cursor, the first marked when some are no longer held; none without a cursor."""
        if cursor is None:
            return []
        own = [known for known in map(_known, cursor.split(",")) if known is not None]
        known = max(own, default=0)
        held = [(number, message) for number, message in self._histories.get(name, []) if number > known]
        if not held:
            return []
        first, message = held[0]
        gap = not own or first > known + 1
        return [
            p.Message(message.cursor, message.content_type, message.body, gap),
            *(message for _, message in held[1:]),
        ]

    def _count(self, name: str) -> int:
        options = _longest(self._patterns, name)
        return HISTORY_COUNT if options is None or options.count is None else options.count


class Parking:
    """One parked request: what it waits for, and what to do with the outcome. `due` is when that is `outcome`;
    `messages` is a stream's.
    """

    def __init__(self, wait: p.Wait, due: float | None, outcome: p.Outcome, over: Callable[[p.Outcome], None]) -> None:
        self.wait = wait
        self.due = due
        self.outcome = outcome
        self.over = over
        self.messages: list[p.Message] = []


class Rehearsal:
    """A clock that moves when it is told to, the channels, and everything that is parked, in the order it came."""

    def __init__(self, patterns: Iterable[ChannelPattern]) -> None:
        self.now = 0.0
        self.channels = Channels(patterns)
        self.parked: list[Parking] = []
        self._published: list[tuple[str, p.Message]] = []
        self._ended: list[p.Completed | p.NoResult] = []

    def park(self, wait: p.Wait, over: Callable[[p.Outcome], None], own_cursor: str | None = None) -> Parking:
        """Parks. A message behind the wait's cursor (or the request's own) is there with the next `settle`."""
        seconds = (
            wait.seconds if isinstance(wait, p.Timer) else wait.options.timeout if isinstance(wait, p.Next) else None
        )
        parking = self._park(wait, seconds, p.Elapsed(), over)
        if isinstance(wait, p.Next | p.Stream):
            missed = self.channels.since(wait.channel, wait.options.since or own_cursor)
            if isinstance(wait, p.Stream):
                parking.messages.extend(missed)
            elif missed:
                self._end(parking, missed[0])
        return parking

    def park_query(
        self, wait: p.Wait, seconds: float, outcome: p.Outcome, over: Callable[[p.Outcome], None]
    ) -> Parking:
        """Parks for a database that takes so many seconds."""
        parking = self._park(wait, seconds, outcome, over)
        if not seconds:
            self._end(parking, outcome)
        return parking

    def park_result(self, wait: p.UntilResult, over: Callable[[p.Outcome], None]) -> Parking:
        """Parks for a job that has not ended."""
        return self._park(wait, wait.options.timeout, p.Pending(wait.id), over)

    def job_ended(self, outcome: p.Completed | p.NoResult) -> None:
        """A job has; who waits for that is woken by the next `settle`."""
        self._ended.append(outcome)

    def leave(self, parking: Parking) -> None:
        """Nobody waits any more."""
        if parking in self.parked:
            self.parked.remove(parking)

    def publish(self, name: str, content_type: str, body: bytes) -> None:
        """Publishes; who waits is woken by the next `settle`, since the code that publishes is still running."""
        message = self.channels.publish(name, content_type, body)
        for parking in self.parked:
            if isinstance(parking.wait, p.Stream) and parking.wait.channel == name:
                parking.messages.append(message)
        self._published.append((name, message))

    def settle(self) -> None:
        """Wakes everybody who waited for what was published, or for a job that has ended."""
        while self._published or self._ended:
            if self._published:
                name, message = self._published.pop(0)
                self._end_all([one for one in self.parked if _is_next(one.wait, name)], message)
            else:
                outcome = self._ended.pop(0)
                self._end_all([one for one in self.parked if _is_result(one.wait, outcome.id)], outcome)

    def advance(self, seconds: float) -> None:
        """Moves the clock; whatever is due on the way ends in its order, and what it parks anew may end too."""
        until = self.now + seconds
        while due := [parking for parking in self.parked if parking.due is not None and parking.due <= until]:
            first = min(due, key=lambda parking: parking.due or 0.0)
            self.now = max(self.now, first.due or 0.0)
            if isinstance(first.wait, p.Next):
                self._end(first, p.Timeout(self.channels.cursor(first.wait.channel)))
            else:
                self._end(first, first.outcome)
            self.settle()
        self.now = until

    def _park(
        self, wait: p.Wait, seconds: float | None, outcome: p.Outcome, over: Callable[[p.Outcome], None]
    ) -> Parking:
        parking = Parking(wait, None if seconds is None else self.now + seconds, outcome, over)
        self.parked.append(parking)
        return parking

    def _end_all(self, parked: list[Parking], outcome: p.Outcome) -> None:
        for parking in parked:
            self._end(parking, outcome)

    def _end(self, parking: Parking, outcome: p.Outcome) -> None:
        self.parked.remove(parking)
        parking.over(outcome)


def _is_next(wait: p.Wait, name: str) -> bool:
    return isinstance(wait, p.Next) and wait.channel == name


def _is_result(wait: p.Wait, id: bytes) -> bool:
    return isinstance(wait, p.UntilResult) and wait.id == id


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
