"""A frame: a header of 12 bytes, then its payload (PROTOCOL.md, section 1)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

from .._limits import FRAME_MAX
from ..errors import Violation

HELLO = 0x01
READY = 0x02
FAILED = 0x03
REQUEST = 0x10
RESPONSE = 0x11
DATA = 0x12
WINDOW = 0x13
ERROR = 0x14
BEGAN = 0x15
EARLY_HINTS = 0x16
TRAILERS = 0x17
PARK = 0x20
RESUME = 0x21
PUBLISH = 0x22
CANCEL = 0x23
UNPARK = 0x24
CREDIT = 0x30
DRAIN = 0x31
PING = 0x32
PONG = 0x33
GOODBYE = 0x34
ENQUEUE = 0x38
RUN = 0x39
RESULT = 0x3A
PROGRESS = 0x3B
MESSAGE = 0x40
CLOSE = 0x41

NAMES = {
    number: name
    for name, number in list(globals().items())
    if name.isupper() and isinstance(number, int) and number < 0x80
}

MORE = 1
TEXT = 2

Frame: TypeAlias = tuple[int, int, int, bytes]  # kind, flags, stream, payload

_header = struct.Struct(">IBBxxI")
_pack = _header.pack
_unpack = _header.unpack_from
HEADER_SIZE = _header.size


Parts: TypeAlias = list[bytes | memoryview]
"""Whole frames that are written together, with large payloads where they are: joining them would copy those."""


def header(kind: int, stream: int, size: int, flags: int = 0) -> bytes:
    """The header of a frame whose payload of that size comes after it."""
    return _pack(size, kind, flags, stream)


def frame(kind: int, stream: int, payload: bytes, flags: int = 0) -> bytes:
    """One frame as bytes. `payload` has at most `FRAME_MAX` bytes, which the caller checks."""
    return _pack(len(payload), kind, flags, stream) + payload


# The same header with kind and flags as one number, for the frames that every request and every job costs: a
# number less to make and to take apart, and one comparison for both.

_plain = struct.Struct(">IHxxI")
pack_plain = _plain.pack
unpack_plain = _plain.unpack_from
PLAIN_REQUEST = REQUEST << 8  # without MORE, and without a flag of a later version
PLAIN_RUN = RUN << 8
PLAIN_RESPONSE = RESPONSE << 8
PLAIN_BEGAN = BEGAN << 8


LARGE_SIZE_MIN = 4_096
"""From this size on, it is cheaper to keep the parts of a payload than to join all data that comes with them."""


class Decoder:
    """Takes bytes as they arrive and returns the complete frames in them, of known and unknown kinds."""

    __slots__ = ("_head", "_parts", "_rest", "missing", "wanted")

    def __init__(self) -> None:
        self._rest = b""
        self.missing = 0
        """How many bytes a large frame lacks that has begun. Only its payload is put together, once it is complete."""
        self.wanted = 0
        """How many bytes to read next, so that the payload of a large frame comes by itself and is not copied; 0 if no
        such frame has begun, or is likely to come next.
        """
        self._head = (0, 0, 0)
        self._parts: Parts = []

    def joined(self, data: bytes) -> bytes:
        """`data` after the incomplete frame from before, which is forgotten here: feed it again. Not if a large one is
        `missing` something.
        """
        if not self._rest:
            return data
        data, self._rest = self._rest + data, b""
        return data

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with `data`, in order. Exhaust it before feeding more.

        Raises `Violation` at a length over `FRAME_MAX`, as soon as the header has arrived; earlier frames have been
        returned.
        """
        position = length = 0
        if missing := self.missing:
            if len(data) < missing:
                self._parts.append(data)
                self.missing = self.wanted = missing - len(data)
                return
            position = length = missing
            self.missing = 0
            yield *self._head, self._payload(data, missing)
        else:
            data = self.joined(data)
        size = len(data)
        while size - position >= HEADER_SIZE:
            length, kind, flags, stream = _unpack(data, position)
            if length > FRAME_MAX:
                raise Violation(f"a length of {length} bytes is over {FRAME_MAX}")
            start = position + HEADER_SIZE
            position = start + length
            if position > size and length >= LARGE_SIZE_MIN:
                self._head = (kind, flags, stream)
                self._parts = [memoryview(data)[start:]] if start < size else []
                self.missing = self.wanted = position - size
                return
            if position > size:
                position = start - HEADER_SIZE
                break
            yield kind, flags, stream, data[start:position]
        self._rest = data[position:] if position < size else b""
        self.wanted = HEADER_SIZE if position == size and length >= LARGE_SIZE_MIN else 0

    def _payload(self, data: bytes, missing: int) -> bytes:
        if not self._parts and len(data) == missing:
            return data
        parts, self._parts = [*self._parts, memoryview(data)[:missing]], []
        return b"".join(parts)
