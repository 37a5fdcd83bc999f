"""The way to the core of a program that is not a worker: `publish` and `enqueue` go to a server's admin address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import msgspec

from .._link import port
from .._wire import payloads as p
from ..errors import BodyError, ConnectError

T = TypeVar("T")


def refused(status: int, answer: dict[str, Any]) -> ConnectError:
    """What a request that was not carried out raises."""
    return ConnectError(f"parkade refused the request ({status}): {answer.get('error', 'no reason is given')}")


class Server(Protocol):
    """A connection to a server."""

    def _store(self, id: bytes, name: str, arguments: bytes, told: p.EnqueueOptions) -> str:
        """Enqueues a job, and returns its id when it is stored."""

    def _send(self, channel: str, content_type: str, body: bytes, event: str | None) -> str:
        """Publishes a message, and returns its cursor."""

    def _holder(self) -> port.Holder:
        """For a transaction of the calling thread."""


class ScriptPort:
    """See `Port` in `_link.port`. There is no request, so nothing waits, and everything is done when a call returns."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def stream(self) -> int:
        """There is no request."""
        return 0

    def body(self) -> Any:
        """There is no request."""
        raise BodyError("there is no request here whose body could be read")

    def publish(self, channel: str, content_type: str, body: bytes, event: str | None) -> int:
        """Raises `ConnectError`."""
        self._server._send(channel, content_type, body, event)
        return 0

    def enqueue(self, id: bytes, job: bytes, within: bool) -> None:
        """Raises `ConnectError`."""
        _, name, arguments, told = _decode(job)
        self._server._store(id, name, arguments, told)

    def progress(self, stream: int, progress: bytes) -> None:
        """No job runs here."""

    def is_cancelled(self, stream: int) -> bool:
        """No job runs here."""
        return False

    def parked_seconds(self, stream: int) -> float:
        """Nothing waits here."""
        return 0.0

    async def in_thread(self, function: Callable[[], T]) -> T:
        """There is no loop."""
        return function()

    def holder(self) -> port.Holder:
        """Outside of requests a thread may have a transaction."""
        return self._server._holder()


_decode = msgspec.msgpack.Decoder(tuple[bytes, str, bytes, p.EnqueueOptions]).decode
