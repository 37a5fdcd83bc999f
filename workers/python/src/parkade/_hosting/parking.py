"""The PARK of a response that stands for a wait."""

from __future__ import annotations

from copy import copy
from typing import Any

from .._link import port
from .._link.answers import Streamed
from .._log import log_error, log_fault
from .._mappings import Headers
from .._requests.request import Request
from .._responses.encoding import encode
from .._responses.error_pages import failure_response
from .._routing.routes import park as encode_wait
from .._waits.wait import Wait, added_to
from .._wire import payloads as p
from ..errors import InvalidResult
from .foreign_response import own_result
from .framework import Framework
from .park import MARK, parked

_LEFT_OUT = frozenset(
    {MARK, "content-type", "content-length", "connection", "keep-alive", "transfer-encoding", "upgrade", "date"}
)
"""What is about a response without a body, or is the server's to say. Frameworks give every response a type."""

_OF_A_BODY = ("content-encoding", "content-range", "content-md5", "content-digest", "digest", "etag")
"""What only somebody who has seen the body can know."""

_REASON = (
    "The request is parked, so there is no body yet. Have the middleware skip such responses, or return an answer at "
    "once instead of park(…)"
)


class Unparkable(InvalidResult):
    """A response of `park` cannot stand for its wait. It says what changed it, and no traceback shows more."""


def parked_with(stream: int, headers: list[Any]) -> Wait[Any] | None:
    """The wait that the response with these headers (name, value, name…) stands for; None if it is an ordinary one."""
    wait = parked.pop(stream, None)
    if wait is None:
        return None
    number = str(stream)
    for name, value in zip(headers[::2], headers[1::2], strict=True):
        if name.lower() == MARK:
            return wait if _text(value) == number else None
    return None


class Parking:
    """Makes PARKs of the responses of one application. `dev` shows clients what is wrong with one."""

    def __init__(self, framework: Framework, dev: bool) -> None:
        self._framework = framework
        self._dev = dev

    def park_of(self, wait: Wait[Any], status: int, headers: list[Any], raw: p.Request) -> bytes:
        """A PARK, encoded. What the application has set for its response is kept for the answer.

        Raises `Unparkable` for what only fits to a response whose body is there.
        """
        kept = [
            (name.lower(), _text(value).strip())
            for name, value in zip(headers[::2], headers[1::2], strict=True)
            if name.lower() not in _LEFT_OUT
        ]
        if not 200 <= status <= 299:
            raise Unparkable(f"a middleware made {status} the status of a response of park(…). {_REASON}")
        for name, value in kept:
            if name in _OF_A_BODY:
                raise Unparkable(f"a middleware set {name}: {value} on a response of park(…). {_REASON}")
        made = copy(wait)
        try:
            made._added = added_to(wait._wait, wait._added, Headers(kept), None if status == 200 else status)
        except ValueError as error:
            raise Unparkable(f"the response of park(…): {error}") from error
        if isinstance(made._wait, p.Timer) and made._function is None:
            made._response = own_result(made._response)
        function = made._function
        asks = function is not None and (self._framework.keeps_requests or function.request is not None)
        return encode_wait(made, _carried(raw) if asks else None)

    def refusal(self, error: BaseException, raw: p.Request) -> bytes | Streamed:
        """The response instead of one that cannot stand for its wait. Logs why."""
        log_failure(error, p.read_head(raw.head))
        return encode(failure_response(error, Request(raw), self._dev))


def refused(length: int) -> Unparkable:
    """What is raised if a response that stands for a wait has a body."""
    return Unparkable(f"a middleware put {length} bytes into a response of park(…). {_REASON}")


def _carried(raw: p.Request) -> p.Request:
    return p.Request(route=None, parameters=[], deadline=None, body=b"", head=raw.head)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


logged: dict[int, BaseException] = {}
"""Exceptions that a framework has logged already, by the streams of their requests, until the host would log them."""


def log_failure(error: BaseException, head: p.RequestHead) -> None:
    """Logs an exception of the application, or of its response."""
    if logged and logged.pop(port.stream(), None) is error:
        return
    what = f"{head.method} {head.path}"
    if isinstance(error, Unparkable):
        log_fault(f"{what}: {error}", method=head.method, path=head.path)
    else:
        log_error(what, error, method=head.method, path=head.path)
