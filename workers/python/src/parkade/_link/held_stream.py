"""Waits of plain code, which keeps its worker or its thread meanwhile: branches of the stream that it holds."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Protocol

from msgspec import Struct

from .._wire import payloads as p
from .._wire.codec import encode_payload
from .port import Statement


class Link(Protocol):
    """A link that can wait while a stream is held."""

    def hold(self, stream: int, park: bytes) -> p.Outcome:
        """Waits for something while code of the stream goes on holding it: a PARK, encoded with `await`.

        Raises as `port.Holder.ask` does, and `ValueError` for a query that is too long for a frame.
        """


class HeldStream(Struct, frozen=True):
    """See `port.Holder`."""

    _link: Link
    who: int  # the stream

    def ask(self, wait: Statement) -> p.Outcome:
        return self._link.hold(self.who, encode_payload((wait, p.Await())))

    def over(self, committed: bool) -> None:
        """Plain code awaits no handles."""


def cancelled() -> CancelledError:
    """What code gets that waits for something when its request is cancelled, plain code and coroutines alike. It is no
    `Exception`, so that frameworks do not answer, or log, it.
    """
    return CancelledError("the request was cancelled")


RESPONDED = "the request has its response: nothing can be waited for any more"
