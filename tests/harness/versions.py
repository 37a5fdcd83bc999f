"""The same request over both versions of HTTP."""

from __future__ import annotations

from typing import Protocol

from .client import Answer
from .server import Server

VERSIONS = ["HTTP/1.1", "HTTP/2"]

Fields = tuple[tuple[str, str], ...]


class Ask(Protocol):
    """Sends a request on a new connection."""

    def __call__(self, target: str, method: str = "GET", body: bytes = b"", fields: Fields = ()) -> Answer: ...


def asking_over(version: str, server: Server) -> Ask:
    """What sends requests over that version."""

    def over_1(target: str, method: str = "GET", body: bytes = b"", fields: Fields = ()) -> Answer:
        with server.connect() as client:
            lines = [f"{name}: {value}" for name, value in fields]
            return client.ask(method, target, *lines, body=body).answer(head=method == "HEAD")

    def over_2(target: str, method: str = "GET", body: bytes = b"", fields: Fields = ()) -> Answer:
        with server.connect2() as client:
            return client.answer(client.ask(method, target, *fields, body=body or None))

    return over_1 if version == "HTTP/1.1" else over_2
