"""WebSockets that were accepted: their messages, and the window of each direction (PROTOCOL.md, *A WebSocket*)."""

from __future__ import annotations

from .._limits import SOCKET_MESSAGE_OVERHEAD, WINDOW
from .._wire import frames as f
from .._wire.frames import frame
from ..errors import Violation
from .bodies import InWindow, window
from .events import MessageArrived, Writable


class _Socket:
    """A message is never cut: while there is any window, it may have any size."""

    __slots__ = ("arrived", "window")

    def __init__(self) -> None:
        self.window = WINDOW
        self.arrived = InWindow()


class Sockets:
    """Those of streams that are held, and not cancelled."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[int, _Socket] = {}

    def __contains__(self, stream: int) -> bool:
        return stream in self._of

    def open(self, stream: int) -> None:
        """It is accepted."""
        self._of[stream] = _Socket()

    def receive(self, stream: int, is_text: bool, data: bytes) -> MessageArrived:
        """MESSAGE of one that is open. Raises `Violation` if the core may not send one."""
        if not self._of[stream].arrived.take(len(data) + SOCKET_MESSAGE_OVERHEAD):
            raise Violation(f"MESSAGE beyond the window of stream {stream}")
        return MessageArrived(stream, is_text, data)

    def consumed(self, stream: int, size: int) -> bytes:
        """The application has taken a message of so many bytes. Returns what is to be written."""
        socket = self._of.get(stream)
        granted = 0 if socket is None else socket.arrived.consume(size + SOCKET_MESSAGE_OVERHEAD)
        return window(stream, granted) if granted else b""

    def grant(self, stream: int, size: int) -> Writable | None:
        """WINDOW of one that is open."""
        socket = self._of[stream]
        was_full = socket.window <= 0
        socket.window += size
        return Writable(stream) if was_full and socket.window > 0 else None

    def is_full(self, stream: int) -> bool:
        """Whether the client has to read before it gets another message: `Writable` says when."""
        socket = self._of.get(stream)
        return socket is not None and socket.window <= 0

    def message(self, stream: int, is_text: bool, data: bytes) -> bytes:
        """MESSAGE for the client; nothing if the socket is over. Not while `is_full`."""
        socket = self._of.get(stream)
        if socket is None:
            return b""
        if socket.window <= 0:
            raise RuntimeError(f"more messages on stream {stream} while its window is used up")
        socket.window -= len(data) + SOCKET_MESSAGE_OVERHEAD
        return frame(f.MESSAGE, stream, data, f.TEXT if is_text else 0)

    def close(self, stream: int) -> None:
        """The stream is closed or cancelled: what comes of the socket has crossed that."""
        self._of.pop(stream, None)
