"""Frames of HTTP/2 by hand: those that no library sends."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress

from hpack import Decoder

from .client import Address, Client, Closed

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
ACK, END_STREAM, END_HEADERS, PADDED = 1, 1, 4, 8


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame (RFC 9113, section 4.1)."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name: bytes, value: bytes, stored: bool = False) -> bytes:
    """A field of HPACK; `stored`: the receiver adds it to its table."""
    return (b"\x40" if stored else b"\0") + bytes([len(name)]) + name + length(len(value)) + value


def length(number: int) -> bytes:
    """The length of a string of HPACK."""
    if number < 127:
        return bytes([number])
    told, number = bytearray([127]), number - 127
    while number >= 128:
        told.append(number % 128 + 128)
        number //= 128
    return bytes([*told, number])


def get(target: bytes) -> bytes:
    """The fields of a request: GET, http, path and authority."""
    return b"\x82\x86" + literal(b":path", target) + literal(b":authority", b"test")


def post(target: bytes, *fields: tuple[bytes, bytes]) -> bytes:
    """The same with POST, and other fields."""
    block = b"\x83\x86" + literal(b":path", target) + literal(b":authority", b"test")
    return block + b"".join(literal(*field) for field in fields)


class Frames:
    """A connection whose frames are made by hand, and are kept as they come back. Nothing is answered by itself."""

    def __init__(self, address: Address, settings: bytes = b"") -> None:
        self._client = Client(address)
        self._decoder = Decoder()
        self.received: list[tuple[int, int, int, bytes]] = []
        """Kind, flags, stream and payload of each."""
        self.heads: dict[int, list[tuple[str, str]]] = {}
        """The fields of the responses, and their trailers, by stream."""
        self.send(PREFACE, frame(SETTINGS, 0, 0, settings))

    def send(self, *frames: bytes) -> Frames:
        """Sends."""
        self._client.send(*frames)
        return self

    def next(self) -> tuple[int, int, int, bytes]:
        """The next frame. Raises `Closed` or `ConnectionError` at the end."""
        head = self._client.exactly(9)
        payload = self._client.exactly(int.from_bytes(head[:3], "big"))
        got = (head[3], head[4], int.from_bytes(head[5:], "big"), payload)
        self.received.append(got)
        if got[0] == HEADERS:
            told = self._decoder.decode(payload)
            fields = [(str(name), str(value)) for name, value in told]
            self.heads[got[2]] = self.heads.get(got[2], []) + fields
        return got

    def until_quiet(self) -> Frames:
        """Reads until the server has read everything, or has closed."""
        mark = struct.pack(">Q", len(self.received) + 1)
        with suppress(ConnectionError):
            self.send(frame(PING, 0, 0, mark))
        return self.until_closed(lambda got: got[0] == PING and got[3] == mark)

    def until_closed(self, is_last: Callable[[tuple[int, int, int, bytes]], bool] = lambda got: False) -> Frames:
        """Reads until the server closes, or a frame is this one."""
        with suppress(Closed, ConnectionError):
            while not is_last(self.next()):
                pass
        return self

    def until_ended(self, stream: int) -> Frames:
        """Reads until a stream has ended or was reset, or the server has closed."""
        return self.until_closed(
            lambda got: got[2] == stream and (got[0] == RST_STREAM or (got[0] in (DATA, HEADERS) and bool(got[1] & 1)))
        )

    def status(self, stream: int) -> int | None:
        """The status of a response, None if there is none."""
        return next((int(value) for name, value in self.heads.get(stream, []) if name == ":status"), None)

    def body(self, stream: int) -> bytes:
        """What has come of a body."""
        return b"".join(payload for kind, _, number, payload in self.received if (kind, number) == (DATA, stream))

    def is_whole(self, stream: int) -> bool:
        """Whether a response has come to its end."""
        return any(
            number == stream and kind in (DATA, HEADERS) and flags & 1 for kind, flags, number, _ in self.received
        )

    def reset(self, stream: int) -> int | None:
        """The code with which the server has reset a stream."""
        codes = [
            int.from_bytes(said, "big") for kind, _, on, said in self.received if (kind, on) == (RST_STREAM, stream)
        ]
        return codes[0] if codes else None

    @property
    def goaway(self) -> int | None:
        """The code with which the server says goodbye."""
        codes = [int.from_bytes(said[4:8], "big") for kind, _, _, said in self.received if kind == GOAWAY]
        return codes[-1] if codes else None

    def __enter__(self) -> Frames:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
