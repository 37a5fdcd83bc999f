"""Files that this worker has named in a PARK (PROTOCOL.md, *A part of a file*): they stay until the core says so."""

from __future__ import annotations

from collections.abc import Container

from .events import Event, FileReleased


class Naming:
    """The streams, which are closed, on which the core will say so."""

    __slots__ = ("_streams", "is_offered")

    def __init__(self) -> None:
        self._streams: set[int] = set()
        self.is_offered = False
        """Whether the core takes such files."""

    def __contains__(self, stream: int) -> bool:
        return stream in self._streams

    def add(self, stream: int, cancelled: Container[int]) -> None:
        """The stream is about to be parked with a file. Of one that was cancelled nothing is said any more."""
        if stream not in cancelled:
            self._streams.add(stream)

    def release(self, stream: int, events: list[Event]) -> bool:
        """A WINDOW or a CANCEL. Returns whether it is about such a file."""
        if stream not in self._streams:
            return False
        self._streams.discard(stream)
        events.append(FileReleased(stream))
        return True

    def release_all(self, events: list[Event]) -> None:
        """Nothing is heard any more."""
        for stream in sorted(self._streams):
            self.release(stream, events)
