"""What a response of ASGI consists of, and the way of its ordinary messages: the accelerator's, or none."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from .._compiled import accelerator
from .._link.concurrent import Concurrent
from .._link.exchange import Exchange
from .._waits.wait import Wait
from .asgi_request import AsgiRequest
from .parking import Parking

Phase: TypeAlias = int
"""How far a response is. The accelerator knows the first three."""
NEW = 0
STARTED = 1
"""The head is known. It is sent with the first bytes of the body, as the specification says."""
OVER = 2
PARKING = 3
"""The head is that of a response of `park`: nothing of it is sent."""
REFUSED = 4
"""Another response was sent instead of one of `park`: whatever follows of that is dropped."""
STREAMING = 5
TRAILING = 6
"""The body is complete, and trailers are to come."""


class _Sender:
    """Without the accelerator. `parked` are the responses of `park` that are on their way to a request."""

    __slots__ = ("_exchange", "_head", "_link", "_parking", "_phase", "_request", "_trailers", "_wait")

    def __init__(
        self,
        link: Concurrent,
        exchange: Exchange,
        request: AsgiRequest,
        parking: Parking,
        parked: Mapping[int, object],
    ) -> None:
        self._link = link
        self._exchange = exchange
        self._request = request
        self._parking = parking
        self._phase: Phase = NEW
        self._head: tuple[int, list[Any]] = (0, [])
        self._trailers: list[Any] | None = None  # those that have come, if any are to come
        self._wait: Wait[Any] | None = None

    def send(self, message: Mapping[str, Any]) -> Awaitable[None]:
        """See the specification. The response is sent when what is returned has been awaited, or before."""
        return self._send(message)

    async def _send(self, message: Mapping[str, Any]) -> None:
        raise NotImplementedError


if TYPE_CHECKING:
    Sender = _Sender
else:
    Sender = accelerator.AsgiSender or _Sender
