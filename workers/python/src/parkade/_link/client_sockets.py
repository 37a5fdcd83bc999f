"""The WebSockets of a link."""

from __future__ import annotations

from typing import Protocol

from .._session.events import MessageArrived, SocketClosed
from .._session.session import Session
from .client_socket import ClientSocket
from .exchange import Exchange


class Link(Protocol):
    """What they need from their link."""

    def write(self, data: bytes) -> None:
        """Writes with the rest of this turn of the loop."""

    async def room(self, exchange: Exchange) -> None:
        """Waits until the client has read more, or is no longer there."""


class ClientSockets:
    """Those whose code has not returned."""

    def __init__(self, link: Link, session: Session) -> None:
        self._session = session
        self._open: dict[int, ClientSocket] = {}
        self.write, self.room = link.write, link.room

    def asked(self, exchange: Exchange, is_cancelled_then: bool, patience: float | None) -> ClientSocket:
        """The one that the request of the exchange asks for."""
        socket = ClientSocket(self, self._session, exchange, is_cancelled_then, patience)
        exchange.listener = socket
        return socket

    def take(self, event: MessageArrived | SocketClosed) -> None:
        """What has come of the client of one."""
        match self._open.get(event.stream), event:
            case ClientSocket() as socket, MessageArrived():
                socket.message(event)
            case ClientSocket() as socket, SocketClosed(code=code, text=text):
                socket.closed(code, text)

    # As the link of each

    def socket_opens(self, stream: int, socket: ClientSocket) -> None:
        """What comes of the client of this stream is told to it."""
        self._open[stream] = socket

    def socket_ends(self, stream: int) -> None:
        """That is over."""
        self._open.pop(stream, None)
