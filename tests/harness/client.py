"""A client that sends exactly the given bytes, and parses responses strictly."""

from __future__ import annotations

import json
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

SECONDS = 20.0
"""The maximum time for a response, unless the test gives another."""

Address = tuple[str, int] | str


def request(method: str, target: str, *fields: str, body: bytes = b"", host: str = "test") -> bytes:
    """A request of HTTP/1.1 with a Host, and a Content-Length if there is a body."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *fields]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def chunked(*pieces: bytes) -> bytes:
    """A chunked body."""
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@dataclass(frozen=True)
class Answer:
    """A complete response. `fields` keeps order and repetition; names are lower case."""

    version: str
    status: int
    fields: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str:
        values = self.all(name)
        assert len(values) == 1, f"{name} is there {len(values)} times: {self.fields}"
        return values[0]

    def __contains__(self, name: str) -> bool:
        return bool(self.all(name))

    def all(self, name: str) -> list[str]:
        """Every value of that field."""
        return [value for given, value in self.fields if given == name]

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Closed(AssertionError):
    """The connection ended before a response was complete."""


class Broken(AssertionError):
    """The bytes are not HTTP/1.1, or end too early."""


class Client:
    """One connection. `sent` and `send` take raw bytes.

    `segment`: bytes of a TCP segment. On a network there are 1,460; on the loopback interface 65,483, and then the
    kernel buffers megabytes from a server whose client does not read. `host` is the Host of all requests, `source` the
    address that the connection comes from.
    """

    def __init__(
        self,
        address: Address,
        seconds: float = SECONDS,
        receive_buffer: int | None = None,
        segment: int | None = None,
        host: str = "test",
        source: tuple[str, int] | None = None,
    ) -> None:
        self.host = host
        family = (
            socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        )
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if segment is not None:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment)
        self.socket.settimeout(seconds)
        if source is not None:
            self.socket.bind(source)
        self.socket.connect(address)
        if family != socket.AF_UNIX:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Sending

    def send(self, *pieces: bytes) -> Client:
        """Sends, and waits until the kernel has taken everything."""
        self.socket.sendall(b"".join(pieces))
        return self

    def send_what_goes(self, data: bytes) -> int:
        """Sends without waiting; returns how many bytes the kernel took, 0 if the connection is gone."""
        try:
            return self.socket.send(data, socket.MSG_DONTWAIT)
        except (BlockingIOError, ConnectionError):
            return 0

    def fill(self, piece: bytes, seconds: float) -> bool:
        """Sends until nothing is taken for so many seconds. False if everything is."""
        self.socket.settimeout(seconds)
        with suppress(TimeoutError):
            for _ in range(10_000):
                self.socket.sendall(piece)
            return False
        self.socket.settimeout(SECONDS)
        return True

    def ask(self, method: str, target: str, *fields: str, body: bytes = b"") -> Client:
        """Sends a request without waiting."""
        return self.send(request(method, target, *fields, body=body, host=self.host))

    def get(self, target: str, *fields: str) -> Answer:
        """Sends a request and returns its response."""
        return self.ask("GET", target, *fields).answer()

    def post(self, target: str, body: bytes = b"", *fields: str) -> Answer:
        """Sends a request with a body, and returns its response."""
        return self.ask("POST", target, *fields, *([] if body else ["Content-Length: 0"]), body=body).answer()

    # Receiving

    def answer(self, head: bool = False, seconds: float | None = None) -> Answer:
        """The next complete response. `head`: the request was HEAD, so that no body follows."""
        if seconds is not None:
            self.socket.settimeout(seconds)
        opened = self.opening()
        return Answer(opened.version, opened.status, opened.fields, b"" if head else b"".join(self.pieces(opened)))

    def opening(self) -> Answer:
        """The next response's status and fields; its body has to be read with `pieces`."""
        block = self.until_bytes(b"\r\n\r\n")
        first, *lines = block[:-4].split(b"\r\n")
        version, _, rest = first.decode("latin-1").partition(" ")
        if version != "HTTP/1.1" or not rest[:3].isdigit() or rest[3:4] != " " or b"\n" in block.replace(b"\r\n", b""):
            raise Broken(f"no answer begins so: {block[:200]!r}")
        fields = []
        for line in lines:
            name, colon, value = line.decode("latin-1").partition(": ")
            if not colon or not name or name.strip() != name:
                raise Broken(f"no field: {line!r}")
            fields.append((name.lower(), value))
        return Answer(version, int(rest[:3]), fields, b"")

    def pieces(self, opened: Answer) -> Iterator[bytes]:
        """The pieces of a body: its chunks, or everything at once."""
        if opened.status < 200 or opened.status in (204, 304):
            assert "content-length" not in opened
            assert "transfer-encoding" not in opened
        elif "transfer-encoding" in opened:
            assert opened["transfer-encoding"] == "chunked"
            assert "content-length" not in opened
            yield from self._chunks()
        elif "content-length" in opened:
            yield self.exactly(int(opened["content-length"]))
        else:
            yield self.rest()

    def _chunks(self) -> Iterator[bytes]:
        while True:
            size = int(self.until_bytes(b"\r\n")[:-2], 16)
            piece = self.exactly(size)
            if self.exactly(2) != b"\r\n":
                raise Broken("a chunk does not end with CR LF")
            if size == 0:
                return
            yield piece

    def until_bytes(self, end: bytes) -> bytes:
        """Everything up to and including `end`."""
        while end not in self._read:
            self._more()
        found, _, self._read = self._read.partition(end)
        return found + end

    def exactly(self, count: int) -> bytes:
        """This many bytes."""
        pieces = [self._read]
        have = len(self._read)
        while have < count:
            self._read = b""
            self._more()
            pieces.append(self._read)
            have += len(self._read)
        data = b"".join(pieces)
        self._read = data[count:]
        return data[:count]

    def rest(self) -> bytes:
        """Everything until the server closes. Raises `ConnectionResetError` if it resets."""
        pieces = [self._read]
        self._read = b""
        while piece := self.socket.recv(65_536):
            pieces.append(piece)
        return b"".join(pieces)

    def take(self) -> bytes:
        """What has come, at least a byte."""
        if not self._read:
            self._more()
        data, self._read = self._read, b""
        return data

    def _more(self) -> None:
        piece = self.socket.recv(65_536)
        if not piece:
            raise Closed(f"the server closed behind {self._read[:200]!r}")
        self._read += piece

    # States

    def is_readable(self, seconds: float = 0.0) -> bool:
        """Whether something can be read: bytes, or the end."""
        return bool(self._read) or bool(select.select([self.socket], [], [], seconds)[0])

    def ends(self, seconds: float = SECONDS) -> bool:
        """Whether the server closes or resets the connection without sending another byte."""
        self.socket.settimeout(seconds)
        try:
            return not self._read and self.socket.recv(1) == b""
        except ConnectionError:
            return True

    # Leaving

    def half_close(self) -> Client:
        """Closes the sending side."""
        self.socket.shutdown(socket.SHUT_WR)
        return self

    def reset(self) -> None:
        """Closes with a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        """Closes."""
        self.socket.close()
