"""The part of the link that a handler or a job can reach: publishing and enqueuing from anywhere, awaiting in a
request's coroutine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol, TypeAlias, TypeVar

from .._wire import payloads as p
from ..errors import WaitError
from .enqueued import Enqueued

T = TypeVar("T")

Statement: TypeAlias = p.Begin | p.Query | p.Commit | p.Rollback
"""What a transaction consists of."""


class ArrivingBody(Protocol):
    """The body of a request, as it arrives. `BodyCutOff` is raised if the rest will not come."""

    def read(self) -> bytes:
        """The next piece, for which a plain function waits; nothing after the end."""

    async def next_piece(self) -> bytes:
        """The same for a coroutine."""


class Port(Protocol):
    """A way to the core that does not depend on a request."""

    def stream(self) -> int:
        """The stream for which the calling code works, as far as that is known; 0 otherwise. Any thread may call it."""

    def body(self) -> ArrivingBody:
        """The body of the request for which the calling code works. It was opened early."""

    def publish(self, channel: str, content_type: str, body: bytes, event: str | None) -> int:
        """Hands a message to the core before anything that is written later. Any thread may call it.

        Returns the number by which the request or job may ask for the message's cursor; 0 outside of both.
        """

    def enqueue(self, id: bytes, job: bytes, within: bool) -> None:
        """Hands a job to the core, encoded for ENQUEUE, `within` the request's transaction or not. Any thread may call
        it.

        While a request is being answered or a job runs, it is stored before the answer is sent; otherwise soon.
        """

    def progress(self, stream: int, progress: bytes) -> None:
        """Reports the progress of the job on that stream, encoded for PROGRESS; does nothing if the job has ended, or
        waits. Any thread may call it.
        """

    def is_cancelled(self, stream: int) -> bool:
        """Whether the result of that stream is no longer wanted. Any thread may call it."""

    def parked_seconds(self, stream: int) -> float:
        """How long the coroutine on that stream has been parked so far. Any thread may call it."""

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Runs a plain function in a thread, for a coroutine of the loop; returns its result."""

    def holder(self) -> Holder | None:
        """What the calling code waits with while it keeps its worker, or its thread. None: it awaits, or there is
        nothing to wait with.
        """


class Exchange(Protocol):
    """One request that a coroutine is answering, or one job."""

    @property
    def occupies(self) -> bool:
        """Whether a plain function answers it: then the function, and an iterator that it returns, run in a thread."""

    streams: bool
    """Whether an asynchronous iterator makes the answer, which may begin while its tasks wait."""

    is_job: bool
    """Whether it is an attempt of a job."""

    @property
    def enqueued(self) -> Enqueued | None:
        """The jobs that it has enqueued so far; None if there are none."""

    async def wait(self, park: bytes) -> p.Outcome:
        """Parks the request with `await` and returns the outcome. Raises `WaitError` if that is impossible."""


class Holder(Protocol):
    """Plain code that waits while it keeps its worker, or its thread."""

    @property
    def who(self) -> object:
        """The request or job that it works for, as `open_transactions.requester` names it."""

    def ask(self, wait: Statement) -> p.Outcome:
        """Returns the outcome of a wait. Raises `WaitError` where nothing can be waited for any more, `CancelledError`
        when the request was cancelled.
        """

    def over(self, committed: bool) -> None:
        """The transaction of the request is over, and with it what it has enqueued."""


def tell_enqueued(exchange: Exchange, committed: bool) -> None:
    """The transaction of the request is over. Called where its coroutine runs."""
    if exchange.enqueued is not None and committed:
        exchange.enqueued.committed()
    elif exchange.enqueued is not None:
        exchange.enqueued.rolled_back()


outside: Callable[[], Holder] | None = None
"""What code of a worker waits with that works for no request: a transaction has it, as a script's does."""

exchange: ContextVar[Exchange | None] = ContextVar("parkade.exchange", default=None)

plain: ContextVar[int] = ContextVar("parkade.plain", default=0)
"""The stream whose plain function, or application of WSGI, runs in this thread; 0 for none. Anything that the function
starts with a copy of its context, as `asyncio.to_thread` does, works for that stream too.
"""

numbers = itertools.count(1)
"""Those of messages. Any thread may take the next one."""

_port: Port | None = None


def connect(port: Port | None) -> Port | None:
    """Makes `port` the process's own, since a worker has one link; returns the one before."""
    global _port
    before, _port = _port, port
    return before


def is_connected() -> bool:
    """Whether there is a way to the core."""
    return _port is not None


def stream() -> int:
    """The stream for which the current code works, as far as that is known; 0 otherwise."""
    return 0 if _port is None else _port.stream()


def port() -> Port:
    """The process's way to the core. Raises `WaitError` outside a worker and outside a test client."""
    if _port is None:
        raise WaitError(
            "there is no core here: publish and enqueue from a worker (`parkade serve`) or under "
            "parkade.testing.Client; a script writes `with parkade.connect():` around it"
        )
    return _port
