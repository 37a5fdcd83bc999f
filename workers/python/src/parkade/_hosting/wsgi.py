"""A WSGI application (PEP 3333) as a link runs it: one request at a time, or several in threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .._link.answers import FAULTS, Answer, ClientLeft, Handed, Parked, Run, Sent
from .._link.blocking import Blocking
from .._link.concurrent import Concurrent
from .._link.port import plain, port
from .._log import log_error
from .._requests.request import Request
from .._responses.encoding import encode
from .._responses.error_pages import failure_response, is_fault
from .._wire import payloads as p
from .._wire.ready import Application as ReadyApplication
from .coroutines import blocking, within
from .environ import Environs
from .frameworks import framework_of
from .http_errors import handle_errors
from .interfaces import WsgiCallable
from .origin import answering
from .own_part import own_part, ready
from .park import ParkedResponse, parked
from .parking import Parking, log_failure
from .root_path import RootPath
from .sending import Sending


class Wsgi:
    """See `Application` in `_link.answers`. `dev` shows tracebacks to the client.

    With more than one thread it is run by a link with an event loop, where its coroutines are: jobs, and functions
    after waits.
    """

    opens_early: frozenset[int | None] = frozenset({None})  # not those that ask about jobs
    plain: frozenset[int | None] = frozenset({None})
    deferred: frozenset[int | None] = frozenset()

    def __init__(self, application: WsgiCallable, dev: bool = False, root_path: str = "", threads: int = 1) -> None:
        self._application = application
        self.concurrent = threads > 1
        self._dev = dev
        where = RootPath(root_path)
        self._environs = Environs(where, self.concurrent)
        framework = framework_of(application, where)
        handle_errors(application, dev)
        self._parking = Parking(framework, dev)
        self._own = own = own_part(dev, framework)
        if self.concurrent:
            runs: dict[int | None, Run] = {**own.runs}
            self.call, self.attempt = within(framework, own.call), within(framework, own.attempt)
        else:
            runs = {number: blocking(framework, run) for number, run in own.runs.items()}
            self.call, self.attempt = blocking(framework, own.call), blocking(framework, own.attempt)
        self.runs: Mapping[int | None, Run] = {**runs, None: self._run}

    def ready(self) -> ReadyApplication:
        """See `own_part.ready`."""
        return ready(self._own, "wsgi", self.concurrent, kind="sync")

    def _run(self, raw: p.Request) -> Answer:
        link = port()
        assert isinstance(link, Blocking | Concurrent)
        stream = link.plain_exchange() if isinstance(link, Concurrent) else link
        number = stream.stream()
        plain.set(number)  # for coroutines that a framework runs in another thread, with this context
        answering[number] = raw
        sending = Sending(stream)
        try:
            environ = self._environs.make(raw, stream)
            body = self._application(environ, sending.start_response)
            if parked and isinstance(body, ParkedResponse):  # returned, rather than called
                body = sending.started(body)
            try:
                answer = sending.answer(body)
                if sending.wait is None:
                    return answer
                return Parked(self._parking.park_of(sending.wait, *sending.head, raw))
            finally:
                if (close := getattr(body, "close", None)) is not None:
                    _close(close, raw)
        except ClientLeft:
            return Handed() if sending.is_handed else Sent()
        except FAULTS as error:
            if sending.has_begun or sending.is_handed or is_fault(error):
                log_failure(error, p.read_head(raw.head))
            if sending.is_handed:
                return Handed()
            if sending.has_begun:
                return Sent(is_whole=False)
            return encode(failure_response(error, Request(raw), self._dev))
        finally:
            del answering[number]
            if parked:
                parked.pop(number, None)

    def failed(self, error: BaseException) -> str:
        """Logs an exception from the middle of a streamed answer."""
        log_error("while an answer was being streamed", error)
        return ""

    def start(self) -> None:
        """There are no start-up hooks."""

    def stop(self) -> None:
        """There are no shut-down hooks."""

    async def start_concurrent(self) -> None:
        """There are no start-up hooks."""

    async def stop_concurrent(self) -> None:
        """There are no shut-down hooks."""


def _close(close: Callable[[], object], raw: p.Request) -> None:
    """A failure comes too late to be told to the client, whose response is made."""
    try:
        close()
    except ClientLeft:
        pass
    except FAULTS as error:
        log_failure(error, p.read_head(raw.head))
