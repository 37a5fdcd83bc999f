"""The bodies of requests that were opened early: what has arrived of them, until it is read."""

from __future__ import annotations

from .._limits import WINDOW
from .._wire import frames as f
from .._wire.codec import encode_payload
from .._wire.frames import frame
from ..errors import Violation

JOINED_SIZE_MAX = 32_768
"""Pieces of this size are given one by one: to join them costs more than another call."""


class InWindow:
    """How much the core may still send of a body, and how much of it was consumed and has not been granted again."""

    __slots__ = ("_consumed", "_left")

    def __init__(self) -> None:
        self._left = WINDOW
        self._consumed = 0

    def receive(self, size: int) -> bool:
        """Whether the core was allowed to send so many bytes."""
        self._left -= size
        return self._left >= 0

    def take(self, size: int) -> bool:
        """The same for a message, which may take more than is left, unless nothing is."""
        was_open = self._left > 0
        self._left -= size
        return was_open

    def consume(self, size: int) -> int:
        """How many bytes to grant now: not for every DATA, half as many frames as bytes allow."""
        self._consumed += size
        if self._consumed < WINDOW // 2:
            return 0
        granted, self._consumed = self._consumed, 0
        self._left += granted
        return granted


class _Body:
    __slots__ = ("is_complete", "is_read", "pieces", "window")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []  # not read yet
        self.is_complete = False
        self.is_read = False  # the core knows that it is
        self.window = InWindow()


def window(stream: int, granted: int) -> bytes:
    """WINDOW: the core may send so many bytes more; at least the body is read."""
    return frame(f.WINDOW, stream, encode_payload([granted]))


class Bodies:
    """Those of streams that are open. At most a window of each is kept."""

    __slots__ = ("_of", "is_empty")

    def __init__(self) -> None:
        self._of: dict[int, _Body] = {}
        self.is_empty = True
        """Read for every request: a method would cost more than what it saves."""

    def open(self, stream: int) -> None:
        """The body of a request follows."""
        self._of[stream] = _Body()
        self.is_empty = False

    def receive(self, stream: int, data: bytes, is_last: bool) -> bool:
        """DATA. Returns whether it belongs to a body. Raises `Violation` if the core sends more than it may."""
        body = self._of.get(stream)
        if body is None or body.is_complete:
            return False
        if not body.window.receive(len(data)):
            raise Violation(f"DATA beyond the window of stream {stream}")
        if data:
            body.pieces.append(data)
        body.is_complete = is_last
        return True

    def is_arriving(self, stream: int) -> bool:
        """Whether a part of the stream's has yet to come: rows would come between its pieces."""
        body = self._of.get(stream)
        return body is not None and not body.is_complete

    def read(self, stream: int) -> tuple[bytes | None, bytes]:
        """What has arrived and was not read: `None` if more has to arrive first, nothing after the end of the body. The
        second value is to be written.
        """
        body = self._of.get(stream)
        if body is None:
            return b"", b""
        if body.is_complete and not body.pieces:
            return b"", b""
        if body.pieces and len(body.pieces[0]) >= JOINED_SIZE_MAX:
            piece = body.pieces.pop(0)
        else:
            piece = b"".join(body.pieces)
            body.pieces.clear()
        granted = 0 if body.is_complete else body.window.consume(len(piece))
        # Until the core knows that somebody reads it, it may send no more than what it had when the request was given.
        is_news = not (body.is_complete or body.is_read)
        body.is_read = True
        return piece or None, window(stream, granted) if granted or is_news else b""

    def close(self, stream: int) -> None:
        """The stream is closed: what comes of the body has crossed that."""
        self._of.pop(stream, None)
        self.is_empty = not self._of
