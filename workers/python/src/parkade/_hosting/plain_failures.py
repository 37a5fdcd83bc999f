"""During development: the plain 500 that a framework makes of an exception, which says nothing. The host gets the
exception instead, and shows its traceback.

A response is only replaced if it is a framework's own, word for word, so that of an error handler of the application
never is.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from .._link import port
from .interfaces import AsgiCallable, Message, WsgiCallable
from .parking import logged

_STARLETTE = b"Internal Server Error"


class _PlainFailures:
    """What frameworks say of exceptions. Starlette raises them again after its response; Flask and Quart log them,
    and tell them to those who listen.
    """

    def __init__(self) -> None:
        self._told: dict[int, Exception | None] = {}
        self._pages = {_STARLETTE}
        if (werkzeug := sys.modules.get("werkzeug.exceptions")) is not None:
            self._pages.add(werkzeug.InternalServerError().get_body().encode())
        if (flask := sys.modules.get("flask")) is not None:
            flask.got_request_exception.connect(self._tell, weak=False)
        if (quart := sys.modules.get("quart")) is not None:
            quart.got_request_exception.connect(self._tell_async, weak=False)

    def begin(self) -> int:
        """The request that the calling code answers, until `end`."""
        number = port.stream()
        self._told[number] = None
        return number

    def told(self, number: int) -> Exception | None:
        """The exception that a framework has told in it."""
        return self._told.get(number)

    def end(self, number: int) -> None:
        self._told.pop(number, None)

    def is_page(self, body: bytes) -> bool:
        """Whether it is all that such a response says."""
        return body in self._pages

    def may_become_page(self, body: bytes) -> bool:
        return any(page.startswith(body) for page in self._pages)

    def _tell(self, _sender: object, exception: Exception, **_more: object) -> None:
        if (number := port.stream()) in self._told:
            self._told[number] = exception

    async def _tell_async(self, _sender: object, exception: Exception, **_more: object) -> None:
        self._tell(_sender, exception)


class ShowingWsgi:
    """An application of WSGI whose plain failures are exceptions."""

    def __init__(self, application: WsgiCallable) -> None:
        self.application = application
        self._failures = _PlainFailures()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        statuses: list[str] = []

        def start(status: str, *rest: Any) -> Any:
            statuses.append(status)
            return start_response(status, *rest)

        number = self._failures.begin()
        try:
            body = self.application(environ, start)
            error = self._failures.told(number)
        finally:
            self._failures.end(number)
        if error is None or not statuses or statuses[-1][:3] != "500":
            return body
        try:
            pieces = list(body)
        finally:
            if (close := getattr(body, "close", None)) is not None:
                close()
        if self._failures.is_page(b"".join(pieces)):
            logged[number] = error
            raise error
        return pieces


class ShowingAsgi:
    """An application of ASGI whose plain failures are exceptions."""

    def __init__(self, application: AsgiCallable) -> None:
        self.application = application
        self._failures = _PlainFailures()

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return await self.application(scope, receive, send)
        number = self._failures.begin()
        held = _Held(self._failures, receive, send)
        try:
            await self.application(scope, held.receive, held.send)
            if held.is_page and (error := self._failures.told(number)) is not None:
                logged[number] = error
                raise error
        except Exception:
            if not held.is_page:
                await held.release()
            raise
        else:
            await held.release()
        finally:
            self._failures.end(number)


class _Held:
    """The messages of a response that may be a plain failure, until its application has returned."""

    def __init__(
        self,
        failures: _PlainFailures,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        self._failures = failures
        self._receive = receive
        self._send = send
        self._messages: list[Message] = []
        self._body = b""
        self._is_whole = False
        self._passes = False  # nothing more is held

    @property
    def is_page(self) -> bool:
        """Whether it is all of a plain failure. Nothing of it was sent then."""
        return self._is_whole and self._failures.is_page(self._body)

    async def receive(self) -> Message:
        if self._is_whole:
            await self.release()  # it may wait for the word that the response was sent
        return await self._receive()

    async def send(self, message: Message) -> None:
        if self._holds(message):
            self._messages.append(message)
        else:
            if message["type"] != "http.response.early_hint":
                await self.release()
            await self._send(message)

    def _holds(self, message: Message) -> bool:
        kind = message["type"]
        if kind == "http.response.start":
            return not self._passes and not self._messages and message.get("status") == 500
        if kind != "http.response.body" or self._is_whole or not self._messages:
            return False
        self._body += message.get("body", b"")
        self._is_whole = not message.get("more_body", False)
        return self._failures.may_become_page(self._body)

    async def release(self) -> None:
        messages, self._messages = self._messages, []
        self._is_whole, self._passes = False, True
        for message in messages:
            await self._send(message)
