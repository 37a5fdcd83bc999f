"""A minimal client of HTTP/1.1 for the soak: sends one request, and reads the response piece by piece."""

import asyncio
import contextlib
import socket
import struct
import time
from dataclasses import dataclass

from kinds import Leaving, Request

ANSWER_SECONDS_MAX = 25.0
"""Every statement that a client stays for is short: one that takes longer has got lost."""

RESET = struct.pack("ii", 1, 0)
"""SO_LINGER without a timeout: closing sends RST."""

READ_BYTES = 64 * 1024


class Broken(Exception):
    """The server has closed or reset the connection before the end of the response."""


class Late(Exception):
    """There was no response in time."""


class Left(Exception):
    """The client itself has left, as intended; its time in seconds since 1970."""

    def __init__(self, moment: float) -> None:
        super().__init__(moment)
        self.moment = moment


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._left_at: float | None = None
        self._seen = 0
        """Bytes of the current response's body."""

    @classmethod
    async def open(cls, port: int) -> "Connection":
        try:
            return cls(*await asyncio.open_connection("127.0.0.1", port, limit=READ_BYTES))
        except OSError as reason:
            raise Broken(str(reason)) from reason

    async def exchange(self, request: Request) -> Answer:
        """If this raises, the connection is closed."""
        leaving = request.leaving
        self._seen = 0
        self._writer.write(f"GET {request.path} HTTP/1.1\r\nHost: soak\r\n\r\n".encode())
        seconds = leaving.seconds if leaving else ANSWER_SECONDS_MAX
        # A timer that closes is cheaper than a task for each request.
        timer = asyncio.get_running_loop().call_later(seconds, self._leave, leaving)
        try:
            answer = await self._answer(leaving, request.stall)
            if self._left_at is None:
                return answer
            # It was closed while the last bytes were on their way from the buffer to here.
            raise EOFError
        except (OSError, EOFError, asyncio.LimitOverrunError) as reason:
            self._writer.transport.abort()
            if self._left_at is None:
                raise Broken(str(reason)) from reason
            raise (Left(self._left_at) if leaving else Late()) from reason
        finally:
            timer.cancel()

    def close(self) -> None:
        self._writer.transport.abort()

    def _leave(self, leaving: Leaving | None) -> None:
        if self._left_at is not None:
            # By bytes and by time: whichever comes first.
            return
        self._left_at = time.time()
        if leaving and leaving.resets:
            with contextlib.suppress(OSError):
                self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._writer.transport.abort()

    async def _answer(self, leaving: Leaving | None, stall: float) -> Answer:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        status = int(head[0].split()[1])
        fields = dict(line.split(": ", 1) for line in head[1:] if line)
        if fields.get("transfer-encoding") == "chunked":
            return Answer(status, await self._chunks(leaving, stall))
        return Answer(status, await self._piece(int(fields.get("content-length", 0)), leaving))

    async def _chunks(self, leaving: Leaving | None, stall: float) -> bytes:
        parts: list[bytes] = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            parts.append(await self._piece(size, leaving))
            await self._reader.readexactly(2)
            if len(parts) == 2 and stall:
                await asyncio.sleep(stall)
        await self._reader.readexactly(2)
        return b"".join(parts)

    async def _piece(self, size: int, leaving: Leaving | None) -> bytes:
        parts: list[bytes] = []
        while size:
            part = await self._reader.read(min(size, READ_BYTES))
            if not part:
                raise EOFError("in the middle of the body")
            size -= len(part)
            parts.append(part)
            self._seen += len(part)
            if leaving and self._seen >= leaving.bytes:
                self._leave(leaving)
        return b"".join(parts)
