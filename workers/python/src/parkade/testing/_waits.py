"""The waits of a test: a clock that the test moves, and everything that is parked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .._waits.channel import BEGINNING
from .._wire import payloads as p
from .._wire.ready import ChannelPattern
from ._channels import Channels, told_of_gap


class Parking:
    """One parked request: what it waits for, and what to do with the outcome. `due` is when that is `outcome`;
    `messages` is a stream's; `gap` says that the next message has to tell of others that were missed.
    """

    def __init__(self, wait: p.Wait, due: float | None, outcome: p.Outcome, over: Callable[[p.Outcome], None]) -> None:
        self.wait = wait
        self.due = due
        self.outcome = outcome
        self.over = over
        self.messages: list[p.Message] = []
        self.gap = False

    def told(self, message: p.Message) -> p.Message:
        """The message, as this one gets it."""
        gap, self.gap = self.gap, False
        return told_of_gap(message) if gap else message


class Waits:
    """The clock, the channels, and everything that is parked, in the order it came."""

    def __init__(self, patterns: Iterable[ChannelPattern]) -> None:
        self.now = 0.0
        self.channels = Channels(patterns, lambda: self.now)
        self.parked: list[Parking] = []
        self._published: list[tuple[str, p.Message]] = []
        self._cursors: list[str] = []  # of all messages
        self._ended: list[p.Completed | p.NoResult] = []

    def park(self, wait: p.Wait, over: Callable[[p.Outcome], None], own_cursor: str | None = None) -> Parking:
        """Parks. A message after the wait's cursor (or the request's own) comes with the next `settle`."""
        seconds = (
            wait.seconds if isinstance(wait, p.Timer) else wait.options.timeout if isinstance(wait, p.Next) else None
        )
        parking = self._park(wait, seconds, p.Elapsed(), over)
        if isinstance(wait, p.Next | p.Stream):
            said = wait.options.since
            cursor = own_cursor or said if said in (None, BEGINNING) else said
            missed, gap = self.channels.since(wait.channel, cursor)
            parking.gap = gap and not missed
            if isinstance(wait, p.Stream):
                parking.messages.extend(missed)
            elif missed:
                self._end(parking, missed[0])
        if seconds == 0 and parking in self.parked:
            self._end_in_time(parking)
        return parking

    def answer_now(self, wait: p.History | p.UntilPublished) -> p.Outcome:
        """What the core says at once."""
        if isinstance(wait, p.History):
            return self.channels.held(wait.channel, wait.options.count)
        if not 1 <= wait.number <= len(self._cursors):
            return p.Refused("the cursor of that message is not known", 500)
        return p.Published(self._cursors[wait.number - 1])

    def park_query(
        self, wait: p.Wait, seconds: float, outcome: p.Outcome, over: Callable[[p.Outcome], None]
    ) -> Parking:
        """Parks for a database that takes this many seconds."""
        parking = self._park(wait, seconds, outcome, over)
        if not seconds:
            self._end(parking, outcome)
        return parking

    def park_result(self, wait: p.UntilResult, over: Callable[[p.Outcome], None]) -> Parking:
        """Parks for a job that has not ended."""
        return self._park(wait, wait.options.timeout, p.Pending(wait.id), over)

    def job_ended(self, outcome: p.Completed | p.NoResult) -> None:
        """A job has ended; requests that wait for it are woken by the next `settle`."""
        self._ended.append(outcome)

    def leave(self, parking: Parking) -> None:
        """The request no longer waits."""
        if parking in self.parked:
            self.parked.remove(parking)

    def publish(self, name: str, content_type: str, body: bytes, event: str | None = None) -> int:
        """Publishes. Requests that wait are woken by the next `settle`: the code that publishes is still running.

        Returns the number of the message.
        """
        message = self.channels.publish(name, content_type, body, event)
        self._cursors.append(message.cursor)
        for parking in self.parked:
            if isinstance(parking.wait, p.Stream) and parking.wait.channel == name:
                parking.messages.append(parking.told(message))
        self._published.append((name, message))
        return len(self._cursors)

    def settle(self) -> None:
        """Wakes the requests that wait for what was published, or for a job that has ended."""
        while self._published or self._ended:
            if self._published:
                name, message = self._published.pop(0)
                self._end_all([one for one in self.parked if _is_next(one.wait, name)], message)
            else:
                outcome = self._ended.pop(0)
                self._end_all([one for one in self.parked if _is_result(one.wait, outcome.id)], outcome)

    def advance(self, seconds: float) -> None:
        """Moves the clock. What is due meanwhile ends in its order; what is parked anew then may end, too."""
        until = self.now + seconds
        while due := [parking for parking in self.parked if parking.due is not None and parking.due <= until]:
            first = min(due, key=lambda parking: parking.due or 0.0)
            self.now = max(self.now, first.due or 0.0)
            self._end_in_time(first)
            self.settle()
        self.now = until

    def _park(
        self, wait: p.Wait, seconds: float | None, outcome: p.Outcome, over: Callable[[p.Outcome], None]
    ) -> Parking:
        parking = Parking(wait, None if seconds is None else self.now + seconds, outcome, over)
        self.parked.append(parking)
        return parking

    def _end_in_time(self, parking: Parking) -> None:
        """Ends a wait whose time is up."""
        if isinstance(parking.wait, p.Next):
            self._end(parking, p.Timeout(self.channels.cursor(parking.wait.channel)))
        else:
            self._end(parking, parking.outcome)

    def _end_all(self, parked: list[Parking], outcome: p.Outcome) -> None:
        for parking in parked:
            if parking in self.parked:  # a request that has gone on meanwhile may have given up another of its waits
                self._end(parking, parking.told(outcome) if isinstance(outcome, p.Message) else outcome)

    def _end(self, parking: Parking, outcome: p.Outcome) -> None:
        self.parked.remove(parking)
        parking.over(outcome)


def _is_next(wait: p.Wait, name: str) -> bool:
    return isinstance(wait, p.Next) and wait.channel == name


def _is_result(wait: p.Wait, id: bytes) -> bool:
    return isinstance(wait, p.UntilResult) and wait.id == id
