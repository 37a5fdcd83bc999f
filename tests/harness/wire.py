"""The protocol (PROTOCOL.md) from the worker's side: every frame made by hand, valid or not."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from .client import SECONDS
from .until import Stopwatch

HELLO, READY, FAILED = 0x01, 0x02, 0x03
REQUEST, RESPONSE, DATA, WINDOW, ERROR = 0x10, 0x11, 0x12, 0x13, 0x14
PARK, RESUME, PUBLISH, CANCEL = 0x20, 0x21, 0x22, 0x23
CREDIT, DRAIN, PING, PONG, GOODBYE = 0x30, 0x31, 0x32, 0x33, 0x34
MORE = 1

ROUTES = [
    {"methods": ["GET", "POST"], "path": "/hola/{name}", "kind": "sync"},
    {"methods": ["GET"], "path": "/async", "kind": "async"},
    {"methods": ["GET"], "path": "/constant", "kind": "constant", "answer": [200, None, b"constant"]},
]


def frame(kind: int, stream: int, payload: object = b"", flags: int = 0, length: int | None = None) -> bytes:
    """A frame. A payload other than bytes is encoded; `length` may be wrong."""
    data = payload if isinstance(payload, bytes) else msgspec.msgpack.encode(payload)
    return struct.pack(">IBBHI", len(data) if length is None else length, kind, flags, 0, stream) + data


def hello(first: int = 1, last: int = 1) -> bytes:
    """The first frame of a worker."""
    return frame(HELLO, 0, [first, last, 0, {"language": "test", "runtime": "0", "pid": 1}])


def ready(
    credit: int = 8, concurrent: bool = False, routes: Sequence[Mapping[str, Any]] = ROUTES, **more: Any
) -> bytes:
    """READY: requests may be sent."""
    told = {"interface": "native", "concurrent": concurrent, "routes": list(routes), **more}
    return frame(READY, 0, [credit, told])


def response(
    stream: int, body: bytes = b"Hola", status: int = 200, headers: Sequence[object] | None = None, flags: int = 0
) -> bytes:
    """A response."""
    return frame(RESPONSE, stream, [status, headers, body], flags)


@dataclass(frozen=True)
class Frame:
    """A frame of the core."""

    kind: int
    flags: int
    stream: int
    payload: Any


class Worker:
    """The worker's end of a link; the test writes its frames."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(SECONDS)
        self._read = bytearray()
        self.pid = int(self._until_newline())

    def send(self, *frames: bytes) -> Worker:
        """Writes raw bytes."""
        self._connection.sendall(b"".join(frames))
        return self

    def start(self, **application: Any) -> Worker:
        """Sends HELLO and READY."""
        self.next(HELLO)
        return self.send(hello(), ready(**application))

    def frame(self) -> Frame | None:
        """The next frame; None if the core has closed the link."""
        head = self._exactly(12)
        if head is None:
            return None
        length, kind, flags, _, stream = struct.unpack(">IBBHI", head)
        payload = self._exactly(length)
        if payload is None:
            return None
        return Frame(kind, flags, stream, payload if kind == DATA else msgspec.msgpack.decode(payload))

    def _exactly(self, count: int) -> bytes | None:
        while len(self._read) < count:
            try:
                piece = self._connection.recv(65_536)
            except ConnectionError:
                return None
            if not piece:
                return None
            self._read += piece
        found = bytes(self._read[:count])
        del self._read[:count]
        return found

    def _until_newline(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            line += self._exactly(1) or b"\n"
        return line

    def next(self, kind: int, seconds: float = SECONDS) -> Frame:
        """The next frame of that kind; meanwhile pings are answered and other frames skipped."""
        watch = Stopwatch()
        self._connection.settimeout(seconds)
        while (found := self.frame()) is not None:
            if found.kind == kind:
                return found
            if watch.seconds > seconds:
                raise TimeoutError(f"no frame {kind:#x} came")
            if found.kind == PING:
                self.send(frame(PONG, 0, found.payload))
        raise AssertionError(f"the core closed the link before it said {kind:#x}")

    def request(self) -> int:
        """The stream of the next request."""
        return self.next(REQUEST).stream

    def serve(self, body: bytes = b"Hola") -> None:
        """Answers every request, in a thread, until the core or the test closes the link."""
        self._connection.settimeout(None)
        threading.Thread(target=self._serve, args=[body], daemon=True).start()

    def _serve(self, body: bytes) -> None:
        with contextlib.suppress(OSError):
            while (found := self.frame()) is not None and found.kind != GOODBYE:
                if found.kind == REQUEST:
                    self.send(response(found.stream, body))
                elif found.kind == PING:
                    self.send(frame(PONG, 0, found.payload))
        self.close()

    def until_closed(self) -> list[Frame]:
        """All remaining frames of the core."""
        said = []
        while (found := self.frame()) is not None:
            said.append(found)
        return said

    def close(self) -> None:
        """Ends the link and the process."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class Workers:
    """The source of workers: as `--python`, it makes the core start a relay to here."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pk-")
        folder = Path(self._folder.name)
        self.environment = {"FAKE_WORKERS": str(folder / "w.sock")}
        self.python = folder / "python"
        self.python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).with_name("relay.py")}" "$@"\n')
        os.chmod(self.python, 0o755)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.environment["FAKE_WORKERS"])
        self._listener.listen()
        self._listener.settimeout(SECONDS)
        self._met: list[Worker] = []

    def next(self) -> Worker:
        """The next worker that the core starts."""
        worker = Worker(self._listener.accept()[0])
        self._met.append(worker)
        return worker

    def close(self) -> None:
        """Ends all that were accepted."""
        for worker in self._met:
            worker.close()
        self._listener.close()
        self._folder.cleanup()
