"""The body of a request as it arrives: a file for plain functions, pieces for coroutines."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from functools import partial
from typing import IO, TYPE_CHECKING

from .._link.port import ArrivingBody
from ..errors import BodyError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BUFFER_BYTES = 65_536
"""What one DATA frame has at most."""


def file_of(read: Callable[[], bytes]) -> io.BufferedReader:
    """Reads what `read` gives, piece by piece, until that is nothing."""
    return io.BufferedReader(_Pieces(read), BUFFER_BYTES)


def on_disk(read: Callable[[], bytes]) -> tuple[IO[bytes], int]:
    """All that `read` gives, in a temporary file that is gone when nobody needs it, and its length.

    Raises `OSError` if the disk has no room for it.
    """
    from tempfile import TemporaryFile  # here, since few workers need it

    file = TemporaryFile(buffering=BUFFER_BYTES)  # noqa: SIM115 (it is for the caller)
    for piece in iter(read, b""):
        try:
            file.write(piece)
            file.flush()
        except OSError as error:
            raise OSError(error.errno, f"cannot store a body: {error.strerror}") from error
    length = file.tell()
    file.seek(0)
    return file, length


class BodyStream(io.BufferedReader):
    """The body of a request of a route with `stream=True`: `request.stream()`.

    A coroutine takes the pieces as they come: `async for piece in request.stream()`. For a plain function it is a
    binary file that waits for its client: `read`, `readline`, `readinto`, `for line in …`; `shutil.copyfileobj` and
    whatever else reads files accept it. It is read once, in one of the two ways, and has no position to go back to.

    Raises `IncompleteBody`, an `OSError`, when the rest will not come. A coroutine is cancelled then.
    """

    def __init__(self, body: ArrivingBody) -> None:
        super().__init__(_Pieces(partial(_read_in_thread, body)), BUFFER_BYTES)
        self._body = body

    def __aiter__(self) -> BodyStream:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._body.next_piece()
        if not piece:
            raise StopAsyncIteration
        return piece


class WholeBody:
    """A body that has arrived: see `ArrivingBody`."""

    def __init__(self, body: bytes) -> None:
        self._rest = body

    def read(self) -> bytes:
        """All of it, the first time."""
        piece, self._rest = self._rest, b""
        return piece

    async def next_piece(self) -> bytes:
        """The same."""
        return self.read()


def _read_in_thread(body: ArrivingBody) -> bytes:
    if asyncio._get_running_loop() is not None:
        raise BodyError(
            "a coroutine that reads a body as a file would hold up all others: `async for piece in request.stream()`"
        )
    return body.read()


class _Pieces(io.RawIOBase):
    """The pieces of a body, end to end."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Waits until there is something, unless it is the end."""
        if not self._rest:
            self._rest = memoryview(self._read())
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
