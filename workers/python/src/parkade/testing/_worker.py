"""The worker's part in a test: runs the application's code, in an event loop and a thread if it has coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from .._handling.handling import Handling
from .._link import port
from .._link.answers import Answer, AsyncChunks, Chunks, Coming, Deferred, Plain, Streamed, begun
from .._wire import payloads as p
from ..errors import WaitError
from ._exchange import Exchange, answering
from ._loop import Collected, cancel_all, joined, limited, until
from ._response import Parked
from ._thread import Thread

T = TypeVar("T")

Begin: TypeAlias = Callable[[], Answer | Coming | Plain | Deferred]
"""Begins an answer, as the methods of `Handling` do."""


class Worker:
    """Runs what answers a request. `finish` gets each answer, and `exchange` makes the way of a coroutine to the core:
    its second argument is whether a plain function is in it.
    """

    def __init__(
        self,
        handling: Handling,
        finish: Callable[[Parked, Answer], None],
        exchange: Callable[[Parked, bool], Exchange],
    ) -> None:
        self._handling = handling
        self._finish = finish
        self._exchange = exchange
        self._loop = asyncio.new_event_loop() if handling.concurrent else None
        self._loop_thread = ThreadPoolExecutor(1, "parkade-loop")  # it ends with the last reference to this
        self.thread = Thread()

    def start(self) -> None:
        """Runs the start-up hooks."""
        if self._loop is not None:
            self._turn(self._start())
        else:
            self._handling.start()

    async def _start(self) -> None:
        await self._handling.start_concurrent()
        self.thread.context = copy_context()

    def stop(self) -> None:
        """Runs the shut-down hooks."""
        if self._loop is not None:
            self.thread.context.run(self._turn, self._handling.stop_concurrent())
            self._turn(cancel_all(self._loop))
            self._loop.close()
            self._loop_thread.shutdown()
            self.thread.close()
        else:
            self._handling.stop()

    def request(self, response: Parked, raw: p.Request) -> None:
        """Answers a request."""
        self.run(response, partial(begun, self._handling, raw))

    def run(self, response: Parked, begin: Begin) -> None:
        """Runs an answer until it is there, or its coroutine waits."""
        answer = begin()
        occupies, response.context = False, None
        if isinstance(answer, Plain):
            answer = self._run_plain(response, answer.run)
        elif isinstance(answer, Deferred):
            occupies, answer = answer.occupies, answer.begin()
        if isinstance(answer, Awaitable):
            exchange = self._exchange(response, occupies)
            response.task = self.thread.context.copy().run(self._task, exchange, answer)
            self.go_on(response)
        else:
            self._finish(response, answer)

    def _run_plain(self, response: Parked, run: Callable[[], Answer]) -> Answer:
        if self._loop is None:
            token = answering.set(response)
            try:
                return run()
            finally:
                answering.reset(token)
        response.context = self.thread.context.copy()
        response.context.run(answering.set, response)
        return self.thread.run(run, response.context)

    def _task(self, exchange: Exchange, answer: Coming) -> asyncio.Task[Answer]:
        port.exchange.set(exchange)
        return self._running_loop().create_task(_whole(exchange, answer))

    def go_on(self, response: Parked) -> None:
        """Runs the loop until the coroutine has ended or waits."""
        task = cast("asyncio.Task[Answer]", response.task)
        self._turn(until(task, lambda: response.parking is not None))
        if task.done():
            response.task = None
            is_cut_off = response.arriving is not None and response.arriving.is_cut_off
            self._finish(response, b"" if is_cut_off and task.cancelled() else task.result())

    def cancel(self, response: Parked, reason: str) -> None:
        """Cancels the coroutine, if there is one, and waits for its end."""
        if response.task is not None and self._loop is not None:
            response.task.cancel(reason)
            self._turn(asyncio.wait([response.task]))

    def outcome(self) -> asyncio.Future[p.Outcome]:
        """The outcome of a wait that a coroutine awaits."""
        return self._running_loop().create_future()

    def collect(self, chunks: Chunks, response: Parked) -> bytes:
        """A streamed body."""
        context = response.context
        return joined(chunks) if context is None else self.thread.run(partial(joined, chunks), context)

    def _turn(self, coming: Coroutine[Any, Any, T]) -> T:
        """Runs the loop until this has ended. A test that is a coroutine has a loop of its own in this thread, where no
        second one can run: then another thread does it, and the test waits.
        """
        loop = self._running_loop()
        if asyncio._get_running_loop() is None:
            return loop.run_until_complete(coming)
        return self._loop_thread.submit(copy_context().run, loop.run_until_complete, coming).result()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise WaitError("this application has no coroutines")
        return self._loop


async def _whole(exchange: Exchange, coming: Coming) -> Answer:
    """As `coming`, with the whole body if a coroutine streams it; its context is left for the iterator of a plain
    function, which runs in the thread.
    """
    try:
        answer = await coming
        if isinstance(answer, Streamed) and isinstance(answer.chunks, AsyncChunks):
            exchange.response.begun = True
            answer = Streamed(answer.head, Collected([piece async for piece in limited(answer.chunks)]))
        return answer
    finally:
        if exchange.occupies:
            exchange.response.context = copy_context()
