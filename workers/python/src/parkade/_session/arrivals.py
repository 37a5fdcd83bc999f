"""The order in which a worker that is not concurrent begins what it was given."""

from __future__ import annotations

from collections import deque

from .streams import Opening


class Arrivals:
    """What must not begin before a body that came first is complete."""

    __slots__ = ("_behind", "_collecting")

    def __init__(self) -> None:
        self._collecting: deque[int] = deque()  # streams whose bodies are arriving, in the order of arrival
        self._behind: deque[Opening] = deque()

    def __bool__(self) -> bool:
        """Whether a body is arriving."""
        return bool(self._collecting)

    def collect(self, stream: int) -> None:
        """The body of the stream is arriving."""
        self._collecting.append(stream)

    def wait(self, event: Opening) -> None:
        """It came after a body that is still arriving."""
        self._behind.append(event)

    def collected(self, stream: int, event: Opening | None, in_order: bool) -> list[Opening]:
        """A body is complete, or never will be: what may begin now, up to the next body that is still arriving."""
        self._collecting.remove(stream)
        if event is not None:
            self._behind.append(event)
        by_arrival = sorted(self._behind, key=lambda event: event.stream)
        if not (self._collecting and in_order):
            self._behind.clear()
            return by_arrival
        first = self._collecting[0]
        self._behind = deque(event for event in by_arrival if event.stream > first)
        return [event for event in by_arrival if event.stream < first]
