"""A client of HTTP/2 in clear text, with prior knowledge. The h2 library checks its frames."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
from hyperframe.frame import GoAwayFrame

from .client import SECONDS, Address, Answer, Broken, Closed
from .until import Stopwatch


@dataclass
class _Stream:
    interim: list[Answer] = field(default_factory=list)
    """What came before the response: statuses below 200."""
    head: Answer | None = None
    pieces: list[bytes] = field(default_factory=list)
    trailers: list[tuple[str, str]] = field(default_factory=list)
    unacknowledged: int = 0
    """Bytes whose window has not been given back."""
    ended: bool = False
    reset: int | None = None


class Http2:
    """One connection. A stream is identified by its number."""

    def __init__(
        self, address: Address, seconds: float = SECONDS, window: int | None = None, strict: bool = True
    ) -> None:
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(seconds)
        self.socket.connect(address)
        config = h2.config.H2Configuration(
            header_encoding="utf-8",
            validate_outbound_headers=strict,
            normalize_outbound_headers=strict,
            split_outbound_cookies=False,
        )
        self.connection = h2.connection.H2Connection(config)
        # The library treats GOAWAY as the end of the connection, but it only prevents new streams (RFC 9113, section
        # 6.8).
        self.connection._frame_dispatch_table[GoAwayFrame] = self._note_goaway
        self.connection.initiate_connection()
        if window is not None:
            self.connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.streams: dict[int, _Stream] = {}
        self.goaway: GoAwayFrame | None = None
        self.window_is_given_back = window is None
        self.flush()

    def __enter__(self) -> Http2:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Sending

    def ask(
        self,
        method: str,
        target: str,
        *fields: tuple[str, str],
        body: bytes | None = None,
        end: bool = True,
        authority: str | None = "test",
    ) -> int:
        """Sends a request and its body, as far as the window allows; returns the stream. `end`: nothing follows."""
        stream: int = self.connection.get_next_available_stream_id()
        self.expect(stream)
        host = [] if authority is None else [(":authority", authority)]
        head = [(":method", method), (":scheme", "http"), *host, (":path", target), *fields]
        self.connection.send_headers(stream, head, end_stream=end and body is None)
        self.flush()
        if body is not None:
            self.send(stream, body, end)
        return stream

    def expect(self, stream: int) -> None:
        """A head by hand follows on this stream."""
        self.streams[stream] = _Stream()

    def send(self, stream: int, body: bytes, end: bool = True) -> None:
        """Sends a part of the body, waiting for window if necessary."""
        rest = memoryview(body)
        while rest:
            if self.streams[stream].ended or self.streams[stream].reset is not None:
                return  # the server needs no more
            room = min(self.connection.local_flow_control_window(stream), self.connection.max_outbound_frame_size)
            if room == 0:
                self.receive()
                continue
            piece, rest = bytes(rest[:room]), rest[room:]
            self.connection.send_data(stream, piece, end_stream=end and not rest)
            self.flush()

    def reset(self, stream: int) -> None:
        """Cancels the request."""
        self.connection.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
        self.acknowledge(stream)
        self.flush()

    def acknowledge(self, number: int) -> None:
        """Gives back the window of what has come on this stream, with the next flush. Only that of the connection, if
        the stream has ended."""
        stream = self.streams[number]
        self.connection.acknowledge_received_data(stream.unacknowledged, number)
        stream.unacknowledged = 0

    def flush(self) -> None:
        """Writes what is queued."""
        self.socket.sendall(self.connection.data_to_send())

    # Receiving

    def get(self, target: str, *fields: tuple[str, str]) -> Answer:
        """Sends a request and returns its response."""
        return self.answer(self.ask("GET", target, *fields))

    def answer(self, number: int) -> Answer:
        """The complete response of a stream."""
        head = self.opening(number)
        stream, watch = self.streams[number], Stopwatch()
        while not stream.ended:
            self._need(stream, watch)
        return Answer(head.version, head.status, head.fields, b"".join(stream.pieces))

    def interim(self, number: int) -> Answer:
        """The next response of a stream that another one follows."""
        stream, watch = self.streams[number], Stopwatch()
        while not stream.interim:
            assert stream.head is None, "the response has come"
            self._need(stream, watch)
        return stream.interim.pop(0)

    def opening(self, number: int) -> Answer:
        """Status and fields of a stream's response."""
        stream, watch = self.streams[number], Stopwatch()
        while stream.head is None:
            self._need(stream, watch)
        return stream.head

    def piece(self, number: int) -> bytes:
        """The next part of a stream's body; empty at its end."""
        stream, watch = self.streams[number], Stopwatch()
        while not stream.pieces and not stream.ended:
            self._need(stream, watch)
        return stream.pieces.pop(0) if stream.pieces else b""

    def until_goaway(self) -> GoAwayFrame:
        """Waits until the server announces that it accepts no more streams."""
        watch = Stopwatch()
        while self.goaway is None:
            assert watch.seconds < SECONDS, "no GOAWAY comes"
            self.receive()
        return self.goaway

    def until_closed(self) -> None:
        """Answers PINGs until the server closes the connection."""
        watch = Stopwatch()
        try:
            while watch.seconds < SECONDS:
                self.receive()
        except Closed:
            return
        raise AssertionError("the server does not close")

    def ends(self) -> bool:
        """Whether the server ends the connection, whatever it sends before."""
        try:
            while self.socket.recv(65_536):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True

    def _need(self, stream: _Stream, watch: Stopwatch) -> None:
        # The server's PINGs prevent the timeout of the socket.
        assert watch.seconds < SECONDS, "the stream does not go on"
        if stream.reset is not None:
            raise Broken(f"the stream was reset: {h2.errors.ErrorCodes(stream.reset)!r}")
        self.receive()

    def receive(self) -> None:
        """Handles the next events, and answers PINGs."""
        data = self.socket.recv(65_536)
        if not data:
            raise Closed("the server closed the HTTP/2 connection")
        for event in self.connection.receive_data(data):
            self._take(event)
        # A server that has closed after its last response reads no more; what it has sent can still be read.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.flush()

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.InformationalResponseReceived(stream_id=number, headers=headers):
                self.streams[number].interim.append(_head(headers))
            case h2.events.ResponseReceived(stream_id=number, headers=headers):
                self.streams[number].head = _head(headers)
            case h2.events.DataReceived(stream_id=number, data=data, flow_controlled_length=length):
                self.streams[number].pieces.append(data)
                self.streams[number].unacknowledged += length
                if self.window_is_given_back:
                    self.acknowledge(number)
            case h2.events.TrailersReceived(stream_id=number, headers=trailers):
                self.streams[number].trailers = list(trailers)
            case h2.events.StreamEnded(stream_id=number):
                self.streams[number].ended = True
            case h2.events.StreamReset(stream_id=number, error_code=code):
                self.streams[number].reset = int(code)
                # Otherwise the other streams would lack it for ever.
                self.acknowledge(number)
            case _:
                pass

    def _note_goaway(self, frame: GoAwayFrame) -> tuple[list[Any], list[Any]]:
        self.goaway = frame
        return [], []

    def close(self) -> None:
        """Closes."""
        self.socket.close()


def _head(headers: list[Any]) -> Answer:
    fields = [(name, value) for name, value in headers if not name.startswith(":")]
    status = next(int(value) for name, value in headers if name == ":status")
    return Answer("HTTP/2", status, fields, b"")
