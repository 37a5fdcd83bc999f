"""Runs the coroutines that answer requests: those that never wait share a task; each that waits has its own.

A task costs 2 to 3 µs, more than most coroutines that never wait. So a *runner*, which is a task, takes them from a
queue and awaits one after another. As soon as one waits, the runner stays that request's task: its first step was made
in it, and so are all others. Another runner takes the rest of the queue. So a request is alone in its task from its
first suspension on, which a timeout, a task group and a cancellation need, and it keeps the context variables that it
set before.

Requests that shared a task must not notice. A request that leaves a trace in it is the runner's last (`_is_marked`).
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Any, Protocol

from .._limits import FLUSH_COUNT
from .._session.session import Session
from . import port
from .answers import Answer, Attempted, Coming, Sent
from .exchange import Exchange
from .exchange import Link as ExchangeLink
from .shutdown import Shutdown


class Link(ExchangeLink, Protocol):
    """What runners need from their link."""

    shutdown: Shutdown

    put: Callable[[bytes], None]
    """Writes with the next flush."""

    def write(self, data: bytes) -> None:
        """Writes with the rest of this turn of the loop."""

    def flush(self) -> None:
        """Writes now what this turn has produced so far."""

    def flush_on(self) -> None:
        """The same in the middle of a turn that ends with a flush."""

    async def break_off(self, exchange: Exchange) -> None:
        """Ends an answer before its end, unless it has ended."""


class Runners:
    """The queue, and the runners that work on it.

    `exchanges` are the requests that wait, or have waited: those that have a task of their own.
    """

    def __init__(self, link: Link, session: Session, finish: Callable[[Exchange, Answer], Awaitable[None]]) -> None:
        self.exchanges: dict[int, Exchange] = {}
        self._link = link
        self._session = session
        self._finish = finish
        self._queue: deque[tuple[int, Coming, bool]] = deque()
        self.add = self._queue.append
        """Queues an answer: stream, coroutine, and whether it `occupies` (see `Exchange`). `start` begins it."""
        self._stepped: Exchange | None = None  # whose step is, or was, the latest, if it has not ended
        self._spent = 0  # how many requests of this queue kept a runner for themselves

    if sys.version_info >= (3, 12):

        def start(self) -> None:
            """Begins everything queued, and flushes what was answered at once."""
            while self._queue:
                asyncio.Task(self._run(), loop=self._link.loop, eager_start=True)
                self._settle()
            self._link.flush()

    else:

        def start(self) -> None:
            """Begins everything queued, and flushes what was answered at once. Takes another turn of the loop."""
            expected, self._spent = self._spent, 0
            self._start(expected)

        def _start(self, expected: int) -> None:
            # A task makes its first step in the loop's next turn. One runner at a time would need a turn for each
            # request that waits; so there are as many runners as were needed the last time.
            for _ in range(min(max(expected, 1), len(self._queue))):
                asyncio.Task(self._run(), loop=self._link.loop)
            self._link.loop.call_soon(self._started)  # after their first steps

        def _started(self) -> None:
            self._settle()
            self._link.flush()
            if self._queue:
                self._start(2 * self._spent)

    async def _run(self) -> None:
        """A runner."""
        self._settle()
        task: asyncio.Task[Any] = asyncio.current_task()  # type: ignore[assignment]
        queue, session, link, put = self._queue, self._session, self._link, self._link.put
        ended = 0  # since the latest flush
        while queue:
            if ended == FLUSH_COUNT:
                link.flush_on()
                ended = 0
            ended += 1
            stream, coming, occupies = queue.popleft()
            if stream in session.cancelled:
                coming.close()
                link.write(session.error(stream, "cancelled"))
                continue
            self._stepped = exchange = Exchange(link, stream, task, occupies)
            port.exchange.set(exchange)
            context = copy_context()
            try:
                answer = await coming
                if type(answer) is bytes and exchange.waiters is None:
                    # If it never waited, a flush follows. If a task that it has started did, it is parked: see below.
                    (put if self._stepped is exchange else link.write)(session.respond(stream, answer))
                elif type(answer) is Sent and exchange.waiters is None:
                    pass
                elif type(answer) is Attempted and exchange.waiters is None:
                    link.write(session.end(stream, answer.kind, answer.payload))
                else:
                    await self._finish(exchange, answer)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                if isinstance(error, GeneratorExit) and asyncio.current_task(link.loop) is not task:
                    raise  # not raised by code: this is being closed, with its loop
                if exchange.waiters is not None:
                    exchange.give_up()  # a task that it has started may still be waiting
                if link.shutdown.is_at_last and type(error) is asyncio.CancelledError:
                    await link.break_off(exchange)
                else:
                    self._fail(stream, error)
            finally:
                waited = self._stepped is not exchange
                if waited:
                    del self.exchanges[stream]
                else:
                    self._stepped = None
            if waited:
                return
            if _is_marked(task, context):
                self._spent += 1
                return

    def _fail(self, stream: int, error: BaseException) -> None:
        """A `BaseException`. A `CancelledError` that the core did not cause is the application's, too: it awaited a
        task that was cancelled.
        """
        if stream in self._session.cancelled:
            self._link.write(self._session.error(stream, "cancelled"))
        elif self._session.held(stream) and not self._session.is_branched(stream):  # otherwise when the last has ended
            text = "".join(traceback.format_exception(error))
            self._link.write(self._session.error(stream, "application", text))

    def _settle(self) -> None:
        """Called after a step of a runner, before that of another: if its request has not ended, it waits."""
        if (exchange := self._stepped) is not None:
            self._stepped = None
            self.exchanges[exchange.stream] = exchange
            self._spent += 1


def _is_marked(task: Any, context: Context) -> bool:
    """Whether a request that never waited has left something in its task that the next one would find.

    A cancellation that is still to come, a callback that is due when the request ends, a context variable. For the
    first `Task.cancelling` says too little: `uncancel` takes back the count but, before 3.13, not the cancellation.
    Contexts share what they hold until one of them is changed, so that comparing two that are the same costs nothing.
    """
    if task._must_cancel or task._callbacks:
        return True
    try:
        return copy_context() != context
    except Exception:  # of the __eq__ of a value
        return True
