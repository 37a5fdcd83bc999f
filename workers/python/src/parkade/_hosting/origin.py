"""The request of an application of WSGI or ASGI, or the job, that the calling code works for.

Hardly any request is asked for, so what is told of it is read only then.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import cast

from .._link import port
from .._link.exchange import Exchange
from .._requests.request import Request
from .._wire import payloads as p
from .asgi_request import AsgiRequest

answering: dict[int, p.Request] = {}
"""The requests of WSGI, by their streams, while their application is answering them."""

_job: ContextVar[tuple[int, str, str | None]] = ContextVar("parkade.origin", default=(0, "", None))


def begin_job(request_id: str, traceparent: str | None) -> None:
    """The calling code works for a job of that origin."""
    _job.set((port.stream(), request_id, traceparent))


def origin() -> tuple[str, str | None] | None:
    """The id of the request, and its `traceparent`; None if there is none, or it is not known."""
    number = port.stream()
    of, request_id, traceparent = _job.get()
    if number and number == of:
        return request_id, traceparent
    raw = asking()
    if raw is None:
        return None
    request = Request(raw)
    traces = request.headers.getlist("traceparent")
    return request.id, traces[0] if len(traces) == 1 else None


def asking() -> p.Request | None:
    """The request; None if there is none, or it is not known."""
    return answering.get(port.stream()) or _of_asgi()


def _of_asgi() -> p.Request | None:
    exchange = cast("Exchange | None", port.exchange.get())
    listener = None if exchange is None else exchange.listener
    return listener.raw if isinstance(listener, AsgiRequest) else None
