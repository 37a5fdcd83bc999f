"""An ASGI application (ASGI 3) as a link runs it: many requests at once, on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from .._link import port
from .._link.answers import FAULTS, Run, Sent
from .._link.concurrent import Concurrent
from .._link.exchange import Exchange
from .._log import log, log_error
from .._requests.request import Request
from .._responses.encoding import encode
from .._responses.error_pages import failure_response, is_fault
from .._wire import payloads as p
from .._wire.ready import Application as ReadyApplication
from ..errors import InvalidResult, WaitError
from .asgi_request import LEFT, AsgiRequest, due_of
from .asgi_response import AsgiResponse, Disconnected
from .asgi_socket import AsgiSocket
from .coroutines import within
from .frameworks import framework_of
from .http_errors import handle_errors
from .interfaces import AsgiCallable
from .lifespan import Lifespan
from .own_part import own_part, ready
from .park import parked
from .parking import Parking, log_failure
from .root_path import RootPath
from .scope import scope_of

_SENT = Sent()


class Asgi:
    """See `Application` in `_link.answers`. `dev` shows tracebacks to the client."""

    concurrent = True
    opens_early: frozenset[int | None] = frozenset({None})  # not those that ask about jobs
    plain: frozenset[int | None] = frozenset()
    deferred: frozenset[int | None] = frozenset()

    def __init__(
        self, application: AsgiCallable, dev: bool = False, root_path: str = "", on_disconnect: str = "notify"
    ) -> None:
        self._application = application
        self._root_path = RootPath(root_path)
        self._cancels = on_disconnect == "cancel"
        self._dev = dev
        self._lifespan = Lifespan(application)
        framework = framework_of(application, self._root_path)
        handle_errors(application, dev)
        self._parking = Parking(framework, dev)
        self._own = own = own_part(dev, framework)
        self.runs: Mapping[int | None, Run] = {**own.runs, None: self._run}
        self.call, self.attempt = within(framework, own.call), within(framework, own.attempt)

    def ready(self) -> ReadyApplication:
        """See `own_part.ready`."""
        return msgspec.structs.replace(ready(self._own, "asgi", concurrent=True), websocket=True)

    async def start_concurrent(self) -> None:
        """Begins the lifespan. Raises `LoadError` if the application says that it cannot start."""
        self._link = cast(Concurrent, port.port())
        await self._lifespan.start()
        lifespan = "" if self._lifespan.is_supported else ", without a lifespan"
        log(f"an ASGI application runs on {type(asyncio.get_running_loop()).__module__}{lifespan}")

    async def stop_concurrent(self) -> None:
        """Waits for what runs after responses that were sent, ends the lifespan, then whatever is left in the loop, as
        `asyncio.run` does.
        """
        await self._link.idle()
        await self._lifespan.stop()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()

    async def _run(self, raw: p.Request) -> Sent:
        exchange = cast(Exchange, port.exchange.get())
        scope = scope_of(raw.head, self._root_path, self._link.has_trailers)
        scope["state"] = self._lifespan.state.copy()
        scope["parkade.shutdown"] = self._link.shutdown
        if scope["type"] == "websocket":
            return await self._run_socket(raw, scope, exchange)
        request = AsgiRequest(self._link, exchange, raw, due_of(raw), self._cancels)
        response = AsgiResponse(self._link, exchange, request, self._parking, parked)
        exchange.listener = request
        scope["parkade.on_disconnect"] = request.on_disconnect
        try:
            await self._application(scope, request.receive, response.send)
            if not response.is_over:
                await self._unfinished(raw, request, response)
        except FAULTS as error:
            await self._failed(error, raw, request, response)
        except asyncio.CancelledError:
            if request.end is LEFT and not response.is_over:
                await response.break_off()
            raise
        finally:
            exchange.listener = None
            request.close()
            if parked:
                parked.pop(exchange.stream, None)
        return _SENT

    async def _run_socket(self, raw: p.Request, scope: dict[str, Any], exchange: Exchange) -> Sent:
        client = self._link.client_sockets.asked(exchange, self._cancels, raw.deadline)
        request = AsgiRequest(self._link, exchange, raw, due_of(raw))
        denial = AsgiResponse(self._link, exchange, request, self._parking, parked)
        socket = AsgiSocket(exchange, client, denial)
        scope["parkade.on_disconnect"] = socket.on_disconnect
        failure: BaseException | None = None
        try:
            await self._application(scope, socket.receive, socket.send)
        except FAULTS as error:
            failure = error
        except asyncio.CancelledError:
            await socket.cancelled()
            raise
        finally:
            client.forget()
        head = p.read_head(raw.head)
        await socket.finish(failure, head, lambda error: failure_response(error, Request(raw), self._dev))
        return _SENT

    async def _unfinished(self, raw: p.Request, request: AsgiRequest, response: AsgiResponse) -> None:
        if request.end is LEFT:
            await response.break_off()
        elif (missing := response.missing()) is not None:
            await self._failed(InvalidResult(missing), raw, request, response)

    async def _failed(self, error: BaseException, raw: p.Request, request: AsgiRequest, response: AsgiResponse) -> None:
        """Also after the response: frameworks raise again what they have answered with 500."""
        is_late = response.is_over or response.has_begun
        if (is_late or is_fault(error)) and not (request.end is LEFT and isinstance(error, Disconnected | WaitError)):
            log_failure(error, p.read_head(raw.head))
        if response.is_over:
            return
        if request.end is LEFT or response.has_begun:
            await response.break_off()
        else:
            await response.replace(encode(failure_response(error, Request(raw), self._dev)))

    def failed(self, error: BaseException) -> str:
        """Nothing of it is streamed by the link."""
        log_error("while an answer was being streamed", error)
        return ""

    def start(self) -> None:
        """It has an event loop."""

    def stop(self) -> None:
        """It has an event loop."""
