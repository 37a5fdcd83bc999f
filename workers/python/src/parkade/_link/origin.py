"""The request of an application of WSGI or ASGI, or the job, that the calling code works for."""

from __future__ import annotations

from contextvars import ContextVar

from .port import stream

_last: ContextVar[tuple[int, str, str | list[tuple[bytes, bytes]] | None]] = ContextVar(
    "parkade.origin", default=(0, "", None)
)
"""The one that was last begun here: its stream, its id, and its `traceparent` or the header fields where that is. Code
that works for another stream does not work for it.
"""

begin = _last.set


def origin() -> tuple[str, str | None] | None:
    """The id of the request, and its `traceparent`; None if there is none, or it is not known."""
    number, request_id, trace = _last.get()
    if not number or number != stream():
        return None
    if isinstance(trace, list):
        values = [value for name, value in trace if name == b"traceparent"]
        trace = values[0].decode("latin-1") if len(values) == 1 else None
    return request_id, trace
