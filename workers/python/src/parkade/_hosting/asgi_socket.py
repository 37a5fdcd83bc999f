"""A WebSocket, from and to the messages of its ASGI application."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._link.answers import Streamed
from .._link.client_socket import FAILED, NORMAL, RESTART, ClientSocket, Phase
from .._link.exchange import Exchange
from .._mappings import HTTP_TOKEN
from .._responses.encoding import encode
from .._responses.error_pages import is_fault
from .._responses.response import Response
from .._wire import payloads as p
from .._wire.codec import encode_payload
from ..errors import InvalidResult
from .asgi_heads import head_of
from .asgi_request import is_to_cancel
from .asgi_response import AsgiResponse, Disconnected
from .parking import log_failure

_DENIED = encode_payload((403, [], b""))
_CODES = range(1000, 5000)
_REASON_MAX = 123  # bytes, as RFC 6455, section 5.5, leaves them in a control frame


class AsgiSocket:
    """One WebSocket. `denial` is the response that its application may send instead of accepting it."""

    __slots__ = ("_denial", "_exchange", "_has_connected", "_is_denied", "_socket")

    def __init__(self, exchange: Exchange, socket: ClientSocket, denial: AsgiResponse) -> None:
        self._exchange = exchange
        self._socket = socket
        self._denial = denial
        self._has_connected = False
        self._is_denied = False  # or is being

    async def receive(self) -> dict[str, Any]:
        """See the specification."""
        if not self._has_connected:
            self._has_connected = True
            return {"type": "websocket.connect"}
        message = await self._socket.receive()
        if message is None:
            end = self._socket.end
            assert end is not None
            return {"type": "websocket.disconnect", "code": end.code, "reason": end.reason}
        if message.is_text:
            return {"type": "websocket.receive", "text": message.data.decode()}
        return {"type": "websocket.receive", "bytes": message.data}

    async def send(self, message: Mapping[str, Any]) -> None:
        """See the specification. Returns when the client has had room for the message.

        Raises `OSError` when the client has left, and `InvalidResult` for what cannot be sent.
        """
        kind, socket = message["type"], self._socket
        if socket.end is not None and not socket.end.is_ours:
            if kind == "websocket.close":
                return  # it is closed
            raise Disconnected("the client has closed the WebSocket, or has left")
        match kind, socket.phase:
            case "websocket.send", Phase.OPEN:
                if not await socket.send(*_content_of(message)):
                    raise Disconnected("the WebSocket is closed")
            case "websocket.close", Phase.OPEN:
                await socket.close(*_close_of(message))
            case "websocket.accept", Phase.ASKED if not self._is_denied:
                await self._accept(message)
            case "websocket.close", Phase.ASKED if not self._is_denied:
                await self._deny(_DENIED)
            case "websocket.http.response.start" | "websocket.http.response.body", Phase.ASKED:
                self._is_denied = True
                await self._denial.send({**message, "type": kind.removeprefix("websocket.")})
                if self._denial.is_over:
                    socket.refused()
            case _:
                raise _misplaced(kind, socket.phase)

    async def _accept(self, message: Mapping[str, Any]) -> None:
        _, fields = head_of({"status": 200, "headers": message.get("headers") or ()})
        if (subprotocol := message.get("subprotocol")) is not None:
            if not isinstance(subprotocol, str) or not HTTP_TOKEN.fullmatch(subprotocol):
                raise InvalidResult(f"the subprotocol of websocket.accept is a token, as text, not {subprotocol!r}")
            fields += "sec-websocket-protocol", str(subprotocol)
        if not await self._socket.accept(fields):
            raise Disconnected("the client has left")

    async def _deny(self, response: bytes | Streamed) -> None:
        self._is_denied = True
        await self._denial.replace(response)
        self._socket.refused()

    def on_disconnect(self, action: str) -> None:
        """See `AsgiRequest.on_disconnect`."""
        self._socket.is_cancelled_then = is_to_cancel(action)

    async def finish(
        self, error: BaseException | None, head: p.RequestHead, failed: Callable[[BaseException], Response]
    ) -> None:
        """The application has returned, or failed with this. `failed` makes the response of an exception."""
        socket, denial = self._socket, self._denial
        has_left = socket.end is not None
        is_unanswered = socket.phase is Phase.ASKED and not denial.is_over
        is_answer = is_unanswered and not self._is_denied and error is not None and not is_fault(error)
        if error is None and is_unanswered and not has_left:
            error = InvalidResult(str(denial.missing() if self._is_denied else _UNANSWERED))
        has_failed = error is not None and not (has_left and isinstance(error, Disconnected))
        if error is not None and has_failed and not is_answer:
            log_failure(error, head)
        if socket.phase is Phase.OPEN:
            await socket.close(FAILED if has_failed else NORMAL, "")
        elif is_unanswered and (has_left or denial.has_begun):
            await denial.break_off()
        elif is_unanswered and error is not None:
            await self._deny(encode(failed(error)))

    async def cancelled(self) -> None:
        """The application was cancelled: by the core, because its worker stops, or by itself, which the link tells."""
        if self._socket.end is None:
            await self._exchange.end()
        elif self._socket.phase is Phase.OPEN:
            await self._socket.close(RESTART, "")
        elif not self._denial.is_over:
            await self._denial.break_off()


_UNANSWERED = "the application returned without websocket.accept or websocket.close"


def _content_of(message: Mapping[str, Any]) -> tuple[bool, bytes]:
    """Whether it is text, and its bytes. Raises `InvalidResult`."""
    text, data = message.get("text"), message.get("bytes")
    if isinstance(text, str):
        content = text.encode()
    elif text is None and isinstance(data, bytes | bytearray | memoryview):
        content = bytes(data)
    else:
        raise InvalidResult("the application sent websocket.send with neither text (str) nor bytes")
    return text is not None, content


def _close_of(message: Mapping[str, Any]) -> tuple[int, str]:
    code, reason = message.get("code"), message.get("reason") or ""
    code = NORMAL if code is None else code
    if not isinstance(code, int) or code not in _CODES:
        raise InvalidResult(f"the code of websocket.close is a number from 1000 to 4999, not {code!r}")
    if not isinstance(reason, str) or len(reason.encode()) > _REASON_MAX:
        raise InvalidResult(f"the reason of websocket.close is text of at most {_REASON_MAX} bytes")
    return int(code), reason


def _misplaced(kind: object, phase: Phase) -> InvalidResult:
    if kind not in _KINDS:
        return InvalidResult(f"the application sent {kind!r}, which is not a WebSocket message")
    if phase is Phase.CLOSED:
        return InvalidResult(f"the application sent {kind} after it had closed or denied the WebSocket")
    if phase is Phase.OPEN:
        return InvalidResult(f"the application sent {kind} after websocket.accept")
    return InvalidResult(f"the application sent {kind} before websocket.accept, or after it had begun to deny")


_KINDS = {
    "websocket.accept",
    "websocket.send",
    "websocket.close",
    "websocket.http.response.start",
    "websocket.http.response.body",
}
