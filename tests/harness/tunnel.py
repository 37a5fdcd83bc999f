"""A stream of HTTP/2 that is to become a WebSocket (RFC 8441), with the methods of a connection of HTTP/1.1."""

from __future__ import annotations

from contextlib import suppress

from .client import SECONDS, Answer, Broken, Closed
from .http2 import Http2
from .until import Stopwatch


class Tunnel:
    """One stream. Its window is given back when its bytes are taken."""

    def __init__(
        self,
        connection: Http2,
        target: str,
        *fields: str,
        protocol: str | None = "websocket",
        version: str | None = "13",
    ) -> None:
        self.connection = connection
        connection.window_is_given_back = False
        while not connection.connection.remote_settings.enable_connect_protocol:
            connection.receive()
        told = [(":protocol", protocol)] if protocol else []
        told += [("sec-websocket-version", version)] if version else []
        others = [field.split(": ", 1) for field in fields]
        told += [(name.lower(), value) for name, value in others]
        self.number = connection.ask("CONNECT", target, *told, end=False)

    def opening(self) -> Answer:
        """Status and fields of the response."""
        return self.connection.opening(self.number)

    def answer(self) -> Answer:
        """The complete response, of a server that does not accept it."""
        return self.connection.answer(self.number)

    def send(self, *pieces: bytes) -> Tunnel:
        """Sends, waiting for window if necessary."""
        self.connection.send(self.number, b"".join(pieces), end=False)
        return self

    def fill(self, piece: bytes, seconds: float) -> bool:
        """Sends until the server gives no window for so many seconds. False if it takes everything."""
        self.connection.socket.settimeout(seconds)
        with suppress(TimeoutError):
            for _ in range(10_000):
                self.send(piece)
            return False
        self.connection.socket.settimeout(SECONDS)
        return True

    def take(self) -> bytes:
        """What has come, at least a byte."""
        stream, watch = self.connection.streams[self.number], Stopwatch()
        while not any(stream.pieces):
            if stream.ended:
                raise Closed("the server ended the stream")
            if stream.reset is not None:
                raise Broken(f"the stream was reset: {stream.reset}")
            assert watch.seconds < SECONDS, "the stream does not go on"
            self.connection.receive()
        data = b"".join(stream.pieces)
        stream.pieces.clear()
        self.connection.acknowledge(self.number)
        self.connection.flush()
        return data

    def ends(self, seconds: float = SECONDS) -> bool:
        """Whether the server ends or resets the stream without sending another byte. Then this end is closed, too."""
        stream, watch = self.connection.streams[self.number], Stopwatch()
        with suppress(Closed, ConnectionError):
            while not stream.ended and stream.reset is None:
                if watch.seconds > seconds:
                    return False
                self.connection.receive()
            if stream.reset is None:
                self.end()
        return not any(stream.pieces)

    def end(self) -> None:
        """Ends the stream from this side."""
        self.connection.connection.end_stream(self.number)
        self.connection.flush()

    def reset(self) -> None:
        """Resets the stream."""
        self.connection.reset(self.number)

    def close(self) -> None:
        """Closes the whole connection."""
        self.connection.close()
