"""A client of WebSockets that keeps no more of what it has received than the window that it asked for."""

from __future__ import annotations

import random
import struct
import zlib

from .websocket import WebSocket

FAR_REPEATS = [random.Random(period).randbytes(period) * 4 for period in (1_000, 3_000, 7_000, 14_000, 31_000)]
"""Messages that are short only with a window that reaches as far back as they repeat."""


class Receiver:
    """Reads frames by hand: wsproto inflates with more at hand than the window."""

    def __init__(self, agreed: str, bits: int) -> None:
        self._forgets, self._bits = "server_no_context_takeover" in agreed, bits
        self._inflated = zlib.decompressobj(-bits)
        self._unread = b""

    def next(self, client: WebSocket) -> bytes:
        """The next message, which is one frame."""
        first, size = self._exactly(client, 2)
        if size == 126:
            (size,) = struct.unpack("!H", self._exactly(client, 2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._exactly(client, 8))
        payload = self._exactly(client, size)
        if not first & 0x40:
            return payload
        if self._forgets:
            self._inflated = zlib.decompressobj(-self._bits)
        whole, rest = [], payload + b"\0\0\xff\xff"
        # A few bytes at a time: whatever else has been inflated by the same call is at hand, too.
        while piece := self._inflated.decompress(rest, 16):
            whole.append(piece)
            rest = self._inflated.unconsumed_tail
        return b"".join(whole)

    def _exactly(self, client: WebSocket, count: int) -> bytes:
        while len(self._unread) < count:
            self._unread += client.client.take()
        taken, self._unread = self._unread[:count], self._unread[count:]
        return taken
