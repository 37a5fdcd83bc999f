"""WebSockets that were accepted: their messages, and the window of each direction (PROTOCOL.md, *A WebSocket*)."""

from __future__ import annotations

from .._limits import FRAME_MAX, SOCKET_MESSAGE_MAX, SOCKET_MESSAGE_OVERHEAD, SOCKET_PIECE, WINDOW
from .._wire import frames as f
from .._wire.frames import frame
from ..errors import Violation
from .bodies import InWindow, window
from .events import Event, MessageArrived, Reply, Writable


class _Arriving:
    """A message of the client of which pieces are missing."""

    __slots__ = ("is_text", "pieces", "size")

    def __init__(self, is_text: bool) -> None:
        self.is_text = is_text
        self.pieces: list[bytes] = []
        self.size = 0


class _Socket:
    """While there is any window, a message may begin, whatever its size. `rest` is what is left to be sent of one that
    has begun: each of its pieces needs a window.
    """

    __slots__ = ("arrived", "arriving", "rest", "window")

    def __init__(self) -> None:
        self.window = WINDOW
        self.rest = memoryview(b"")
        self.arrived = InWindow()
        self.arriving: _Arriving | None = None

    def is_full(self) -> bool:
        return self.window <= 0 or len(self.rest) > 0


class Sockets:
    """Those of streams that are held, and not cancelled."""

    __slots__ = ("_of", "has_long_messages")

    def __init__(self) -> None:
        self._of: dict[int, _Socket] = {}
        self.has_long_messages = False
        """Whether both ends take messages that are longer than a frame."""

    def __contains__(self, stream: int) -> bool:
        return stream in self._of

    def open(self, stream: int) -> None:
        """It is accepted."""
        self._of[stream] = _Socket()

    def receive(self, stream: int, flags: int, data: bytes) -> MessageArrived | None:
        """MESSAGE of one that is open; None while pieces are missing. Raises `Violation` for one beyond the rules."""
        socket = self._of[stream]
        arriving, is_text, more = socket.arriving, bool(flags & f.TEXT), bool(flags & f.MORE)
        if arriving is None:
            if not socket.arrived.take(len(data) + SOCKET_MESSAGE_OVERHEAD):
                raise Violation(f"MESSAGE beyond the window of stream {stream}")
            if not more:
                return MessageArrived(stream, is_text, data)
            if not self.has_long_messages:
                raise Violation("MESSAGE with MORE was not agreed upon")
            arriving = socket.arriving = _Arriving(is_text)
        else:
            socket.arrived.take(len(data))  # a message that has begun needs no window
        arriving.pieces.append(data)
        arriving.size += len(data)
        if arriving.size > SOCKET_MESSAGE_MAX:
            raise Violation(f"a message of more than {SOCKET_MESSAGE_MAX} bytes on stream {stream}")
        if more:
            return None
        socket.arriving = None
        return MessageArrived(stream, arriving.is_text, b"".join(arriving.pieces))

    def consumed(self, stream: int, size: int) -> bytes:
        """The application has taken a message of so many bytes. Returns what is to be written."""
        socket = self._of.get(stream)
        granted = 0 if socket is None else socket.arrived.consume(size + SOCKET_MESSAGE_OVERHEAD)
        return window(stream, granted) if granted else b""

    def grant(self, stream: int, size: int) -> list[Event]:
        """WINDOW of one that is open."""
        socket = self._of[stream]
        was_full = socket.is_full()
        socket.window += size
        sent = self._flush(stream, socket)
        events: list[Event] = [Reply(sent)] if sent else []
        if was_full and not socket.is_full():
            events.append(Writable(stream))
        return events

    def is_full(self, stream: int) -> bool:
        """Whether the client has to read before it gets another message: `Writable` says when."""
        socket = self._of.get(stream)
        return socket is not None and socket.is_full()

    def is_sending(self, stream: int) -> bool:
        """Whether the rest of a message waits for the client to read: `Writable` says when it is sent."""
        socket = self._of.get(stream)
        return socket is not None and len(socket.rest) > 0

    def check(self, size: int) -> None:
        """Raises `ValueError` if the core does not take a message of so many bytes."""
        if size > FRAME_MAX and not self.has_long_messages:
            raise ValueError(f"the server takes messages of at most {FRAME_MAX:,} bytes, not {size:,}")

    def message(self, stream: int, is_text: bool, data: bytes) -> bytes:
        """MESSAGE for the client; nothing if the socket is over. Not while `is_full`.

        What does not fit into a frame is sent in pieces, as the window allows; the rest is kept.
        """
        socket = self._of.get(stream)
        if socket is None:
            return b""
        if socket.is_full():
            raise RuntimeError(f"more messages on stream {stream} while its window is used up")
        flags = f.TEXT if is_text else 0
        if len(data) <= FRAME_MAX:
            return self.piece(stream, data, flags)
        socket.rest = memoryview(data)[SOCKET_PIECE:]
        return self.piece(stream, data[:SOCKET_PIECE], flags | f.MORE) + self._flush(stream, socket)

    def _flush(self, stream: int, socket: _Socket) -> bytes:
        """As much of the rest as there is window for."""
        out = []
        while socket.rest and socket.window > 0:
            piece, socket.rest = bytes(socket.rest[:SOCKET_PIECE]), socket.rest[SOCKET_PIECE:]
            out.append(self.piece(stream, piece, f.MORE if socket.rest else 0))
        return b"".join(out)

    def piece(self, stream: int, data: bytes, flags: int) -> bytes:
        """One MESSAGE."""
        self._of[stream].window -= len(data) + SOCKET_MESSAGE_OVERHEAD
        return frame(f.MESSAGE, stream, data, flags)

    def close(self, stream: int) -> None:
        """The stream is closed or cancelled: what comes of the socket has crossed that."""
        self._of.pop(stream, None)
