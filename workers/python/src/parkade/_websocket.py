"""A WebSocket, as its handler has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ._link.client_socket import NORMAL, ClientSocket, Phase
from ._mappings import Headers
from ._requests.request import Request
from ._waits.channel import encode_value
from .errors import WebSocketClosed

REASON_MAX = 123  # bytes, as RFC 6455, section 5.5, leaves them in a control frame


class WebSocket:
    """A WebSocket. The handler of `app.websocket` gets it, and is a coroutine:

    ```python
    @app.websocket("/rooms/{room}")
    async def chat(socket: WebSocket, room: str) -> None:
        async for message in socket:
            await socket.send(f"{room}: {message}")
    ```

    The first `receive`, `send` or turn of the loop accepts it, unless `accept` did. To refuse it, raise `HTTPError` or
    return a response before that. It is closed with 1000 when the handler returns, and with 1011 when it fails.

    The loop ends when the client closes the WebSocket or leaves. A handler that never receives is cancelled then, and
    so is one that is waiting for something else when the connection breaks. All waits can be awaited, and several tasks
    may send. Only one task may receive.
    """

    __slots__ = ("_client", "request", "subprotocol")

    request: Request
    """The request that asked for it: headers, cookies, path, client."""
    subprotocol: str | None
    """The sub-protocol that was agreed on by `accept`; None for none."""

    def __init__(self, request: Request, client: ClientSocket) -> None:
        self._client = client
        self.request = request
        self.subprotocol = None

    @property
    def subprotocols(self) -> list[str]:
        """The sub-protocols that the client offers, in its order."""
        return offered_in(self.request.headers.getlist("sec-websocket-protocol"))

    @property
    def is_closed(self) -> bool:
        """Whether it has ended: by its client, the server, or `close`."""
        return self._client.end is not None

    async def accept(
        self, subprotocol: str | None = None, headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()
    ) -> None:
        """Accepts it, with one of the client's sub-protocols, and with further headers of the response.

        Only needed for these: the first receive or send accepts it, too. Raises `ValueError` for a
        sub-protocol that the client does not offer, `RuntimeError` if it was accepted, `WebSocketClosed`.
        """
        if self._client.phase is not Phase.ASKED:
            raise RuntimeError("this WebSocket was accepted already: call accept before the first receive and send")
        fields = Headers(headers)
        if subprotocol is not None:
            if subprotocol not in self.subprotocols:
                offered = ", ".join(self.subprotocols) or "none"
                raise ValueError(f"the client does not offer the sub-protocol {subprotocol!r}, but {offered}")
            fields["sec-websocket-protocol"] = subprotocol
        if not await self._client.accept(fields._flat()):
            raise self._closed()
        self.subprotocol = subprotocol

    async def receive(self) -> str | bytes:
        """The next message of the client: str for text, bytes for binary.

        Messages that came before the end are received first. Then it raises `WebSocketClosed`, which `async for` turns
        into the end of the loop.
        """
        if self._client.phase is Phase.ASKED:
            await self.accept()
        message = await self._client.receive()
        if message is None:
            raise self._closed()
        return message.data.decode() if message.is_text else message.data

    def __aiter__(self) -> WebSocket:
        return self

    async def __anext__(self) -> str | bytes:
        try:
            return await self.receive()
        except WebSocketClosed:
            raise StopAsyncIteration from None

    async def send(self, message: object) -> None:
        """Sends a message: str is text, bytes are binary, a `Message` of a channel is what was published, and
        everything else is JSON, as text.

        Waits while 256 KiB are on their way to the client, and until the last 256 KiB of a message of more than 1 MiB
        are. Raises `WebSocketClosed` when it has ended, `TypeError` for a value that is not JSON-able.
        """
        data, content_type = encode_value(message)
        if self._client.phase is Phase.ASKED:
            await self.accept()
        if not await self._client.send(_is_text(content_type), data):
            raise self._closed()

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Closes it, with a code (1000, or 3000 to 4999 for one of your own) and a reason of at most 123 bytes.

        After that, nothing can be awaited for it, and the waits of the handler's other tasks end. Does nothing if it is
        closed. Raises `ValueError` for a code or a reason that cannot be sent, `RuntimeError` if it was not accepted.
        """
        _check_close(code, reason)
        if self._client.phase is Phase.ASKED and self._client.end is None:
            raise RuntimeError("this WebSocket is not accepted: raise HTTPError, or return a response, to refuse it")
        await self._client.close(code, reason)

    def _closed(self) -> WebSocketClosed:
        end = self._client.end
        return WebSocketClosed(1006) if end is None else WebSocketClosed(end.code, end.reason)

    def __repr__(self) -> str:
        return f"<WebSocket {self.request.raw_path}>"


def offered_in(fields: Iterable[str]) -> list[str]:
    """The sub-protocols in these header fields, in their order."""
    return [name for field in fields for part in field.split(",") if (name := part.strip())]


class Close:
    """Returned for a message of a WebSocket (`channel(…).socket(on_message=…)`), it closes that WebSocket, with a code
    (1000, or 3000 to 4999 for one of your own) and a reason of at most 123 bytes.

    Raises `ValueError` for a code or a reason that cannot be sent.
    """

    __slots__ = ("code", "reason")

    code: int
    """RFC 6455, section 7.4."""
    reason: str
    """What the client is told with it."""

    def __init__(self, code: int = NORMAL, reason: str = "") -> None:
        _check_close(code, reason)
        self.code = code
        self.reason = reason

    def __repr__(self) -> str:
        return f"Close({self.code}, {self.reason!r})"


class SocketRequest(Request):
    """The request of a WebSocket, from which its handler's parameters are taken."""

    socket: WebSocket


_CODES = frozenset((*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)))


def _check_close(code: int, reason: str) -> None:
    if code not in _CODES:
        raise ValueError(f"WebSockets are closed with 1000 to 1003, 1007 to 1014 or 3000 to 4999, not {code!r}")
    if len(reason.encode()) > REASON_MAX:
        raise ValueError(f"the reason why a WebSocket is closed has at most {REASON_MAX} bytes")


def _is_text(content_type: str) -> bool:
    return content_type.startswith("text/") or "json" in content_type
