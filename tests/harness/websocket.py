"""A client of WebSockets: the handshake by hand, frames by wsproto, or by hand for those that no library sends."""

from __future__ import annotations

import base64
import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wsproto.connection import Connection, ConnectionType
from wsproto.events import (
    BytesMessage,
    CloseConnection,
    Event,
    Message,
    Ping,
    Pong,
    TextMessage,
)
from wsproto.extensions import PerMessageDeflate

from .client import Answer, Client
from .http2 import Http2
from .server import Server
from .tunnel import Tunnel

TEXT, BINARY, CONTINUED, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
"""Kinds of frames (RFC 6455, section 5.2)."""

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def handshake(target: str, *fields: str, key: str = "dGhlIHNhbXBsZSBub25jZQ==", **replaced: str | None) -> bytes:
    """A request for a WebSocket. `replaced` fields have another value, or are left out (None)."""
    usual = {"host": "test", "upgrade": "websocket", "connection": "Upgrade", "sec_websocket_version": "13"}
    told = usual | {"sec_websocket_key": key} | replaced
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in told.items() if value is not None]
    return "\r\n".join([f"GET {target} HTTP/1.1", *lines, *fields, "", ""]).encode("latin-1")


def frame(kind: int, payload: bytes = b"", final: bool = True, masked: bool = True, reserved: int = 0) -> bytes:
    """One frame of a client."""
    first = (0x80 if final else 0) | reserved << 4 | kind
    mark, size = 0x80 if masked else 0, len(payload)
    if size < 126:
        head = struct.pack("!BB", first, mark | size)
    elif size < 65_536:
        head = struct.pack("!BBH", first, mark | 126, size)
    else:
        head = struct.pack("!BBQ", first, mark | 127, size)
    if not masked:
        return head + payload
    mask = os.urandom(4)
    return head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))


class WebSocket:
    """A WebSocket that was accepted, by the response that begins with `opening`."""

    def __init__(self, client: Client | Tunnel, opening: Answer) -> None:
        self.client = client
        self.opening = opening
        extensions = []
        if "sec-websocket-extensions" in self.opening:
            agreed = PerMessageDeflate()
            agreed.finalize(self.opening["sec-websocket-extensions"])
            extensions.append(agreed)
        self._protocol = Connection(ConnectionType.CLIENT, extensions)  # type: ignore[arg-type]
        self._events: Iterator[Event] = iter(())

    def send(self, message: str | bytes, final: bool = True) -> WebSocket:
        """A message, or a fragment of one."""
        kind: type[Message[Any]] = TextMessage if isinstance(message, str) else BytesMessage
        return self.say(kind(data=message, message_finished=final))

    def say(self, event: Event) -> WebSocket:
        """Any frame."""
        self.client.send(self._protocol.send(event))
        return self

    def raw(self, *frames: bytes) -> WebSocket:
        """Frames by hand."""
        self.client.send(*frames)
        return self

    def next(self) -> Event:
        """The next event: a part of a message, a ping, a pong, the close."""
        while True:
            for event in self._events:
                return event
            self._protocol.receive_data(self.client.take())
            self._events = iter(list(self._protocol.events()))

    def receive(self) -> str | bytes:
        """The next message, whole; pings on the way are answered."""
        parts: list[Any] = []
        while True:
            event = self.next()
            if isinstance(event, Ping):
                self.say(event.response())
            elif isinstance(event, Message):
                parts.append(event.data)
                if event.message_finished:
                    return "".join(parts) if isinstance(event.data, str) else b"".join(map(bytes, parts))
            elif not isinstance(event, Pong):
                raise AssertionError(f"no message, but {event}")

    def closed(self, answers: bool = True) -> tuple[int, str]:
        """Waits until the server closes it, answers, and waits for the end of the connection."""
        while not isinstance(event := self.next(), CloseConnection):
            assert not isinstance(event, Message), event
        if answers:
            self.say(event.response())
            assert self.client.ends()
        return event.code, event.reason or ""

    def close(self, code: int = 1000, reason: str = "") -> tuple[int, str]:
        """Closes it; returns what the server answers. Then that ends the connection."""
        self.say(CloseConnection(code=code, reason=reason))
        while not isinstance(event := self.next(), CloseConnection):
            pass
        assert self.client.ends()
        return event.code, event.reason or ""


@dataclass(frozen=True)
class Opener:
    """Opens WebSockets over this version of HTTP, each over a connection of its own."""

    version: str

    def __call__(self, server: Server, target: str, *fields: str, deflate: bool = False, **options: Any) -> WebSocket:
        """A WebSocket of the server. `options`: of the connection of HTTP/1.1."""
        offered = ["Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"] if deflate else []
        fields = (*offered, *fields)
        if self.version == "1.1":
            return _upgraded(server.connect(**options), target, fields)
        return tunnelled(server.connect2(), target, *fields)


def _upgraded(client: Client, target: str, fields: tuple[str, ...]) -> WebSocket:
    key = base64.b64encode(os.urandom(16)).decode()
    opening = client.send(handshake(target, *fields, key=key)).opening()
    assert opening.status == 101, (opening, b"".join(client.pieces(opening)))
    assert opening["upgrade"].lower() == "websocket"
    assert opening["connection"].lower() == "upgrade"
    hashed = hashlib.sha1((key + _GUID).encode()).digest()
    assert opening["sec-websocket-accept"] == base64.b64encode(hashed).decode()
    return WebSocket(client, opening)


def tunnelled(connection: Http2, target: str, *fields: str) -> WebSocket:
    """A WebSocket over a stream of that connection."""
    client = Tunnel(connection, target, *fields)
    opening = client.opening()
    assert opening.status == 200, (opening, client.answer())
    for name in ("upgrade", "connection", "sec-websocket-accept", "content-length"):
        assert name not in opening
    return WebSocket(client, opening)


opened = Opener("1.1")
