"""What a handler reaches of the link it runs under: publishing from anywhere, awaiting in a request's coroutine."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from .._wire import payloads as p
from ..errors import WaitError


class Port(Protocol):
    """A way to the core that does not depend on a request."""

    def publish(self, channel: str, content_type: str, body: bytes) -> None:
        """Hands a message to the core before anything that is written later. Any thread may call it."""


class Exchange(Protocol):
    """One request that a coroutine is answering."""

    async def wait(self, park: bytes) -> p.Outcome:
        """Parks the request with `await` and comes back with the outcome. Raises `WaitError` where that cannot be."""


exchange: ContextVar[Exchange | None] = ContextVar("parkade.exchange", default=None)

_port: Port | None = None


def connect(port: Port | None) -> Port | None:
    """Makes `port` the process's own, since a worker has one link; gives back the one before."""
    global _port
    before, _port = _port, port
    return before


def port() -> Port:
    """The process's way to the core. Raises `WaitError` outside a worker and outside a test client."""
    if _port is None:
        raise WaitError(
            "there is no core here: publish from a worker (`parkade serve`) or under parkade.testing.Client"
        )
    return _port
