"""Which requests have a transaction open. Each has one at a time."""

from __future__ import annotations

import threading
from typing import Protocol

from .._link import port
from ..errors import WaitError


class OpenTransaction(Protocol):
    """A transaction that has begun."""

    @property
    def is_open(self) -> bool:
        """Whether what is enqueued now belongs to it."""


def requester() -> object:
    """The request or job for which the current code works: its exchange, or its stream; outside of both its thread."""
    exchange = port.exchange.get()
    return port.stream() or threading.current_thread() if exchange is None else exchange


def note_begin(who: object, transaction: OpenTransaction) -> None:
    """Raises `WaitError` if the request has another one open."""
    if who in _open:
        whose = "thread" if isinstance(who, threading.Thread) else "request"
        raise WaitError(f"this {whose} already has an open transaction: end that before you begin another")
    _open[who] = transaction


def note_end(who: object) -> None:
    """It is over, or never began."""
    _open.pop(who, None)


def open_transaction() -> OpenTransaction | None:
    """The open transaction of the request that is being answered."""
    if not _open:  # nearly always
        return None
    found = _open.get(requester())
    return found if found is not None and found.is_open else None


_open: dict[object, OpenTransaction] = {}  # each is removed at the end of its block
