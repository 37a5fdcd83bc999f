"""Work after a response, as seen from outside: posts, and the resulting lines in a file."""

import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from servers import Recipe, Server, Unavailable
from settings import ON_DISK

Maker = Callable[[Path], Recipe]
"""For a server that keeps all its data in this folder."""

LOOK_SECONDS = 0.002


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for the data of a measured server, on a disk."""
    with tempfile.TemporaryDirectory(prefix="parkade-bench-", dir=ON_DISK) as name:
        yield Path(name)


def post(server: Server, path: str, body: str = "") -> bytes:
    """The response, over a new connection."""
    connection = HTTPConnection("127.0.0.1", server.ports.main, timeout=60)
    try:
        connection.request("POST", path, body, {"content-type": "text/plain", "connection": "close"})
        answer = connection.getresponse()
        told = answer.read()
        if answer.status >= 300:
            raise Unavailable(f"{path} answers {answer.status} {told[:100]!r}")
        return told
    finally:
        connection.close()


class Client:
    """Many posts over one connection, without the overhead of a client library."""

    def __init__(self, server: Server) -> None:
        self._connection = socket.create_connection(("127.0.0.1", server.ports.main), timeout=60)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, path: str) -> bytes:
        self._connection.sendall(f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: 0\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._received()
        head, _, body = answer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 2"):
            raise Unavailable(f"{path} answers {head[:80]!r} {body[:100]!r}")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        while len(body) < int(fields.get(b"content-length", b"0")):
            body += self._received()
        return body

    def close(self) -> None:
        self._connection.close()

    def _received(self) -> bytes:
        if not (piece := self._connection.recv(65536)):
            raise Unavailable("the connection was closed")
        return piece


def lines(file: Path) -> int:
    """The number of different lines."""
    return len(set(file.read_bytes().splitlines())) if file.exists() else 0


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def until(what: str, look: Callable[[], bool], seconds: float) -> float:
    """The time at which it was seen."""
    end = time.monotonic() + seconds
    while not look():
        if time.monotonic() > end:
            raise Unavailable(f"not within {seconds:g} s: {what}")
        time.sleep(LOOK_SECONDS)
    return time.monotonic()


def until_quiet(file: Path, rest: float, seconds: float) -> None:
    """Waits until nothing more has been written for this long."""
    end = time.monotonic() + seconds
    seen, since = size(file), time.monotonic()
    while time.monotonic() < min(end, since + rest):
        time.sleep(LOOK_SECONDS)
        if (now := size(file)) != seen:
            seen, since = now, time.monotonic()


def rate(file: Path, first: int, last: int, seconds: float) -> float:
    """Bytes per second, one for each job, counted between two numbers of bytes."""
    began = until("the first job", lambda: size(file) > first, seconds)
    begun = size(file)
    ended = until(f"{last:,} jobs", lambda: size(file) >= last, seconds)
    return (size(file) - begun) / (ended - began)
