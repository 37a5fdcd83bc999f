"""A WSGI application (PEP 3333) as a link runs it: one request at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from .._link.answers import FAULTS, Answer, ClientLeft, Run, Sent
from .._link.blocking import Blocking
from .._link.port import port
from .._log import log_error
from .._requests.request import Request
from .._responses.encoding import encode
from .._responses.error_pages import failure_response
from .._wire import payloads as p
from .._wire.ready import Application as ReadyApplication
from .environ import environ_of
from .interfaces import WsgiCallable
from .sending import Sending


class Wsgi:
    """See `Application` in `_link.answers`. `dev` shows tracebacks to the client."""

    concurrent = False
    opens_early = True
    plain: frozenset[int | None] = frozenset({None})
    deferred: frozenset[int | None] = frozenset()

    def __init__(self, application: WsgiCallable, dev: bool = False) -> None:
        self._application = application
        self._dev = dev
        self.runs: Mapping[int | None, Run] = {None: self._run}

    def ready(self) -> ReadyApplication:
        """Every request goes to the application, which has routes of its own."""
        return ReadyApplication(interface="wsgi", fallback=True)

    def _run(self, raw: p.Request) -> Answer:
        head = p.read_head(raw.head)
        stream = port()
        assert isinstance(stream, Blocking)
        sending = Sending(stream)
        try:
            body = self._application(environ_of(raw, head, stream), sending.start_response)
            try:
                return sending.answer(body)
            finally:
                if (close := getattr(body, "close", None)) is not None:
                    close()
        except ClientLeft:
            return Sent()
        except FAULTS as error:
            log_error(f"{head.method} {head.path}", error, method=head.method, path=head.path)
            if sending.has_begun:
                return Sent(is_whole=False)
            return encode(failure_response(error, Request(raw), self._dev))

    def failed(self, error: BaseException) -> str:
        """Logs an exception from the middle of a streamed answer."""
        log_error("while an answer was being streamed", error)
        return ""

    def start(self) -> None:
        """There are no start-up hooks."""

    def stop(self) -> None:
        """There are no shut-down hooks."""

    async def start_concurrent(self) -> None:
        """There is no event loop."""

    async def stop_concurrent(self) -> None:
        """There is no event loop."""

    def call(self, stream: int, function: str, state: bytes, outcome: p.Outcome) -> NoReturn:
        """Nothing of it waits."""
        raise NotImplementedError

    def attempt(self, stream: int, run: p.Run) -> NoReturn:
        """It declares no jobs."""
        raise NotImplementedError
