"""A WebSocket, for the coroutine that has it: the messages of both ends, and how it ended."""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from .._wire import payloads as p
from .._wire.codec import encode_payload
from .exchange import Exchange

if TYPE_CHECKING:  # every application imports this module, and only workers have a session
    from .._session.events import MessageArrived
    from .._session.session import Session

NORMAL, GONE, FAILED, RESTART = 1000, 1006, 1011, 1012
"""Codes of RFC 6455, section 7.4.1; the last is from the registry of IANA."""


class Link(Protocol):
    """What a WebSocket needs from its link."""

    def socket_opens(self, stream: int, socket: ClientSocket) -> None:
        """What comes of the client of this stream is told to it."""

    def socket_ends(self, stream: int) -> None:
        """That is over."""

    def write(self, data: bytes) -> None:
        """Writes with the rest of this turn of the loop."""

    async def room(self, exchange: Exchange) -> None:
        """Waits until the client has read more, or is no longer there."""


class End(Struct, frozen=True):
    """How it ended, or was cut off."""

    code: int
    reason: str
    is_ours: bool
    """The code closed it, or it was refused; otherwise its client did, or the server."""


class Phase(enum.Enum):
    """How far it is."""

    ASKED = enum.auto()
    """It was neither accepted nor refused."""
    OPEN = enum.auto()
    CLOSED = enum.auto()
    """Its last frame was written."""


class ClientSocket:
    """One WebSocket. It is the listener of its exchange (`exchange.Listener`).

    When its client has closed it, code that receives is told; code that never has, and has nothing to receive, is
    cancelled if it `is_cancelled_then`. When the connection broke, so is code that is not receiving at that moment.
    Whatever still runs `patience` seconds later is cancelled.
    """

    __slots__ = (
        "_arrived",
        "_exchange",
        "_has_read",
        "_link",
        "_patience",
        "_receivers",
        "_session",
        "_timer",
        "end",
        "is_cancelled_then",
        "phase",
    )

    def __init__(
        self, link: Link, session: Session, exchange: Exchange, is_cancelled_then: bool, patience: float | None
    ) -> None:
        self._link = link
        self._session = session
        self._exchange = exchange
        self._patience = patience
        self._arrived: deque[MessageArrived] = deque()  # at most a window
        self._receivers: list[asyncio.Future[None]] = []
        self._has_read = False
        self._timer: asyncio.TimerHandle | None = None
        self.is_cancelled_then = is_cancelled_then
        self.phase = Phase.ASKED
        self.end: End | None = None
        """None until it has ended. What came before can still be received, unless the code closed it itself."""

    async def accept(self, fields: list[Any]) -> bool:
        """Accepts it, with these headers (name, value, name…). Returns whether its client is still there."""
        await self._exchange.claim()  # from here on, its stream is not parked
        if self.end is not None or self.phase is not Phase.ASKED:
            return False
        self.phase = Phase.OPEN
        self._exchange.stays = True
        self._link.socket_opens(self._exchange.stream, self)
        self._link.write(
            self._session.accept(self._exchange.stream, encode_payload((p.SWITCHING_PROTOCOLS, fields, None)))
        )
        return True

    async def receive(self) -> MessageArrived | None:
        """The next message of the client; None after its end."""
        self._has_read = True
        while not self._arrived:
            if self.end is not None:
                return None
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._receivers.append(future)
            await future
        message = self._arrived.popleft()
        if granted := self._session.sockets.consumed(message.stream, len(message.data)):
            self._link.write(granted)
        return message

    async def send(self, is_text: bool, data: bytes) -> bool:
        """Sends a message, when the client has room for it. Returns False if it has ended.

        One that is longer than a frame is sent as the client reads. It goes on when this is cancelled, since no other
        may follow before its end. Raises `ValueError` if it is longer, and the core takes no such message.
        """
        sockets, stream = self._session.sockets, self._exchange.stream
        sockets.check(len(data))
        while self.end is None and sockets.is_full(stream):
            await self._link.room(self._exchange)
        if self.end is not None or self.phase is not Phase.OPEN:
            return False
        self._link.write(sockets.message(stream, is_text, data))
        if not sockets.is_sending(stream):
            return True
        await self._rest_is_sent()
        return self.end is None

    async def _rest_is_sent(self) -> None:
        """Waits until the message that is being sent has been, if there is one."""
        while self.end is None and self._session.sockets.is_sending(self._exchange.stream):
            await self._link.room(self._exchange)

    async def close(self, code: int, reason: str) -> None:
        """Closes one that was accepted, behind what was sent. Nothing more is received; what its code awaits in other
        tasks ends.
        """
        if self.phase is Phase.OPEN:
            await self._rest_is_sent()
        if self.phase is Phase.OPEN:
            self.phase = Phase.CLOSED
            self._arrived.clear()
            self._ended(End(code, reason, is_ours=True))
            await self._exchange.end()
            if self._session.held(self._exchange.stream):
                self._link.write(self._session.close_socket(self._exchange.stream, code, reason))

    def refused(self) -> None:
        """Another response was sent than that which accepts it."""
        self.phase = Phase.CLOSED
        self._ended(End(GONE, "", is_ours=True))

    def forget(self) -> None:
        """Its code has returned: whatever happens to its client cancels what is left to be done."""
        self._exchange.listener = None
        self._link.socket_ends(self._exchange.stream)
        if self._timer is not None:
            self._timer.cancel()

    # What happens to it

    def message(self, message: MessageArrived) -> None:
        """Of its client."""
        self._arrived.append(message)
        self._wake()

    def closed(self, code: int, reason: str) -> None:
        """Its client has closed it."""
        self._ended(End(code, reason, is_ours=False))
        self._exchange.wake_writer()
        self._limit()
        if self.is_cancelled_then and not self._has_read and not self._arrived:
            self._exchange.task.cancel()

    def cancelled(self, reason: str) -> bool:
        """See `exchange.Listener`."""
        was_told = self.end is not None or any(not future.done() for future in self._receivers)
        self._ended(End(GONE if reason == "client_left" else RESTART, "", is_ours=False))
        if reason != "client_left":
            return True
        self._limit()
        return self.is_cancelled_then and not was_told

    def _ended(self, end: End) -> None:
        if self.end is None:
            self.end = end
        self._wake()

    def _wake(self) -> None:
        for future in self._receivers:
            if not future.done():
                future.set_result(None)
        self._receivers.clear()

    def _limit(self) -> None:
        if self._patience is not None and self._timer is None:
            task = self._exchange.task
            self._timer = task.get_loop().call_later(self._patience, task.cancel)
