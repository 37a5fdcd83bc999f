"""Runs the handler of a WebSocket: what refuses it, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, cast

from .._hooks import Hook, settle
from .._link import port
from .._link.answers import FAULTS, Answer, Sent
from .._link.client_socket import FAILED, NORMAL, RESTART, ClientSocket, Phase
from .._link.exchange import Exchange
from .._log import log_error, log_fault
from .._requests.request import Request
from .._routing.parameters import Call
from .._routing.routes import Route
from .._unicode import encoded
from .._waits.wait import Wait
from .._websocket import REASON_MAX, SocketRequest, WebSocket
from .._wire import payloads as p
from ..errors import HTTPError, InvalidResult, WebSocketClosed
from .failures import Failures
from .results import Results

VIOLATES_POLICY = 1008
"""How a client is told that what it has sent is refused (RFC 6455, section 7.4.1)."""


def is_asked(raw: p.Request) -> bool:
    """Whether the request asks for a WebSocket."""
    return p.read_head(raw.head).scheme in ("ws", "wss")


def no_upgrade() -> HTTPError:
    """The answer to any other request."""
    upgrade = {"upgrade": "websocket", "connection": "upgrade"}
    return HTTPError(426, "this address is for WebSockets: connect with a WebSocket client", upgrade)


class SocketRuns:
    """Those of one route. Before the WebSocket is accepted, what hooks and handler return or raise is a response."""

    def __init__(self, route: Route, call: Call, before: Sequence[Hook], results: Results, failures: Failures) -> None:
        self._route = route
        self._call = call
        self._before = before
        self._results = results
        self._failures = failures

    async def run(self, raw: p.Request) -> Answer:
        """Answers a request of the route."""
        request = SocketRequest(raw, self._route.name, self._route.pattern.names)
        if not is_asked(raw):
            return await self._failures.answer_async(no_upgrade(), raw, request)
        exchange = cast(Exchange, port.exchange.get())
        client = cast(_Link, port.port()).client_sockets.asked(exchange, True, raw.deadline)
        request.socket = WebSocket(request, client)
        error: BaseException | None = None
        result: object = None
        try:
            result = await self._result(raw, request)
        except FAULTS as raised:
            error = raised
        except asyncio.CancelledError:
            if client.end is not None:
                await client.close(RESTART, "")
            raise
        finally:
            client.forget()
        if client.phase is Phase.ASKED:
            return await self._refusal(client, result, error, raw, request)
        await self._finish(client, result, error, request)
        return Sent()

    async def _result(self, raw: p.Request, request: SocketRequest) -> object:
        for hook in self._before:
            if (early := await settle(hook, hook.function(request))) is not None:
                return early
        return await self._call(raw, request)

    async def _refusal(
        self, client: ClientSocket, result: object, error: BaseException | None, raw: p.Request, request: Request
    ) -> Answer:
        client.refused()
        try:
            if error is None and (result is None or isinstance(result, Wait)):
                told = "before it had accepted the WebSocket: receive or send something first"
                what = "a wait, which cannot refuse it" if result is not None else "nothing"
                error = InvalidResult(f"returned {what}, {told}")
            if error is None:
                return await self._results.answer_async(result, 200, raw, request)
        except FAULTS as another:
            error = another
        return await self._failures.answer_async(error, raw, request)

    async def _finish(
        self, client: ClientSocket, result: object, error: BaseException | None, request: Request
    ) -> None:
        code, reason = NORMAL, ""
        what = f"{request.method} {request.raw_path}"
        members = {"method": request.method, "path": request.raw_path}
        if isinstance(error, WebSocketClosed) and client.end is not None:
            pass
        elif isinstance(error, HTTPError) and error.status < 500:
            code, reason = VIOLATES_POLICY, reason_of(error.detail)
        elif error is not None:
            code = FAILED
            log_error(what, error, **members)
        elif result is not None:
            code = FAILED
            log_fault(
                f"{what}: the handler returned {type(result).__name__} after it had accepted the WebSocket: send it",
                **members,
            )
        await client.close(code, reason)


def reason_of(text: str) -> str:
    """As much of it as a close frame can carry."""
    return encoded(text)[:REASON_MAX].decode(errors="ignore")


class _ClientSockets(Protocol):
    def asked(self, exchange: Exchange, is_cancelled_then: bool, patience: float | None) -> ClientSocket: ...


class _Link(Protocol):
    client_sockets: _ClientSockets
