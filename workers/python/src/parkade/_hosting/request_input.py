"""`wsgi.input`: the body of a request, as a file."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BUFFER_BYTES = 65_536
"""What one DATA frame has at most."""


def input_of(read_body: Callable[[], bytes]) -> io.BufferedReader:
    """Reads what `read_body` gives, piece by piece, until that is nothing."""
    return io.BufferedReader(_Pieces(read_body), BUFFER_BYTES)


class _Pieces(io.RawIOBase):
    """The pieces of a body, end to end."""

    def __init__(self, read_body: Callable[[], bytes]) -> None:
        self._read_body = read_body
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Waits until there is something, unless it is the end."""
        if not self._rest:
            self._rest = memoryview(self._read_body())
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
