"""Runs the plain functions of a worker with an event loop in threads, so that coroutines continue meanwhile.

The session belongs to the loop. A thread uses it only for a stream of its own, from BEGAN to the closing frame, and
holds `Outlet.lock` then. The loop holds it while it reads, since `Session.receive` may cancel any stream. It needs no
lock for the frames of its own streams: no thread writes those.
"""

from __future__ import annotations

import asyncio
import traceback
from asyncio import CancelledError
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, TypeVar, cast

from msgspec import Struct

from .._limits import SUSPENDED_MAX
from .._session.session import Session
from . import port
from .answers import FAULTS, Answer, Application, Attempted, Chunks, Parked, Sent, Streamed
from .held_waits import HeldWaits
from .outlet import Outlet
from .plain_exchange import PlainExchange, Wakers
from .threads import Threads

T = TypeVar("T")


class PlainFunctions:
    """The plain functions of a worker with an event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        session: Session,
        outlet: Outlet,
        application: Application,
        count: int,
    ) -> None:
        """Each function gets a copy of the context that is current now."""
        self.session = session
        self.outlet = outlet
        self.application = application
        self.context = copy_context()
        self._loop = loop
        self._threads = Threads(count, outlet.send)
        self._queued: set[int] = set()  # streams whose function has not begun
        self._own: set[int] = set()  # streams whose function has begun
        self._aside: dict[int, tuple[Chunks, Context]] = {}  # answers whose client has to read first
        self._wakers = Wakers()
        self.held = HeldWaits(loop, session, self._own.__contains__, self._write)

    # In the loop

    def add(self, stream: int, run: Callable[[], Answer]) -> None:
        """Queues the function that answers a stream."""
        self._queued.add(stream)
        self._threads.add(_Unit(self, stream, run))

    def cancel(self, stream: int) -> bool:
        """The stream was cancelled. Returns whether a plain function has it. If that has not begun, the stream is
        answered at once; an answer that was put aside is ended; a running function checks for itself, or is woken.
        """
        with self.outlet.lock:
            if stream in self._queued:
                self._queued.remove(stream)
                self.outlet.put(self.session.error(stream, "cancelled"))
                return True
        self.held.cancel(stream)
        return self.writable(stream)

    def _write(self, data: bytes) -> None:
        self.outlet.put(data)
        self.outlet.flush()

    def writable(self, stream: int) -> bool:
        """The client has read. Returns whether a plain function answers the stream."""
        if stream in self._aside:
            self._threads.add(_Continuation(self, stream))
        return self.wake(stream)

    def wake(self, stream: int) -> bool:
        """Something has happened to the stream. Returns whether a plain function answers it."""
        with self.outlet.lock:
            self._wakers.wake(stream)
            return stream in self._own

    async def call(self, function: Callable[[], T]) -> T:
        """Runs a plain function for a coroutine, when its turn comes. It sees the coroutine's context, and the
        coroutine sees what it sets there.

        A coroutine that is cancelled meanwhile waits for the function, unless that has not begun.
        """
        called = _Call(function, self._loop, copy_context())
        self._threads.add(called)
        try:
            result = await asyncio.shield(called.future)
        except asyncio.CancelledError:
            if not called.withdraw():
                await asyncio.wait([called.future])
                called.future.exception()  # marks it as seen
            raise
        finally:
            adopt(called.context)
        return cast(T, result)

    # In a thread, or with the lock

    def exchange(self) -> PlainExchange:
        """The request whose function calls this."""
        return PlainExchange(self.session, self.outlet, self._wakers, port.port().body(), port.plain.get(), self._close)

    def owns(self, stream: int) -> bool:
        """Whether a thread writes the frames of the stream. Needs the lock."""
        return stream in self._own

    def begin(self, stream: int) -> bool:
        """Writes BEGAN for the function of the stream. False when it was cancelled before."""
        with self.outlet.lock:
            if stream not in self._queued or stream in self.session.cancelled:
                return False  # it was answered, or the loop is about to
            self._queued.remove(stream)
            self._own.add(stream)
            self.outlet.put(self.session.began(stream))
        return True

    def answer(self, stream: int, answer: Answer) -> None:
        """Writes what the function returned. `Handed` has been written."""
        session = self.session
        if type(answer) is bytes:  # nearly always
            self._close(stream, session.respond, answer)
        elif type(answer) is Parked:
            self._close(stream, session.park, answer.park)
        elif type(answer) is Attempted:
            self._close(stream, session.end, answer.kind, answer.payload)
        elif type(answer) is Sent and answer.is_whole:
            self._close(stream, session.finish)
        elif type(answer) is Sent:
            self._close(stream, session.error, "application")
        elif type(answer) is Streamed:
            self._stream(stream, answer)

    def fail(self, stream: int, error: BaseException) -> None:
        """A BaseException that is not an Exception, from a foreign library for instance, ends only the request."""
        if isinstance(error, CancelledError) and stream in self.session.cancelled and stream in self._own:
            self._close(stream, self.session.error, "cancelled")
            return
        text = "".join(traceback.format_exception(error))
        if stream in self._own:
            self._close(stream, self.session.error, "application", text)
        else:
            self.application.failed(error)

    def _close(self, stream: int, say: Callable[..., bytes], *rest: Any) -> None:
        """Nothing begins to wait for the stream any more, and what still does is ended first."""
        with self.outlet.lock:
            self._own.remove(stream)
            if not self.held.holds(stream):  # nearly always
                self.outlet.put(say(stream, *rest))
                return
        self.held.leave(stream)
        with self.outlet.lock:
            self.outlet.put(say(stream, *rest))

    # Streamed answers

    def _stream(self, stream: int, answer: Streamed) -> None:
        with self.outlet.lock:
            self.outlet.put(self.session.begin(stream, answer.head))
        self.write(stream, cast(Chunks, answer.chunks))

    def write(self, stream: int, chunks: Chunks) -> None:
        """Writes an answer to its end, or until the client has to read first; then the thread takes other work."""
        while True:
            try:
                chunk = None if stream in self.session.cancelled else next(chunks, None)
            except FAULTS as error:
                self._end(chunks)
                self._close(stream, self.session.error, "application", self.application.failed(error))
                return
            if chunk is None:
                break
            if self._is_put_aside(stream, chunk, chunks):
                return
            self.outlet.send()
        self._end(chunks)
        self._close(stream, self.session.finish)

    def _is_put_aside(self, stream: int, chunk: bytes, chunks: Chunks) -> bool:
        """Writes a piece of an answer. Returns whether the client has to read before the next one."""
        with self.outlet.lock:
            self.outlet.put_parts(self.session.data(stream, chunk))
            if not self.session.blocked(stream):
                return False
            if is_room := len(self._aside) < SUSPENDED_MAX:
                self._aside[stream] = chunks, copy_context()
                self.outlet.put(self.session.credit(1))  # the core no longer counts the worker as occupied
        if not is_room:
            self._end(chunks)
            text = f"{SUSPENDED_MAX} answers wait for their clients to read"
            self._close(stream, self.session.error, "overloaded", text)
        return True

    def go_on(self, stream: int) -> None:
        """The client of an answer that was put aside has read, or left."""
        with self.outlet.lock:
            if stream not in self._aside or self.session.blocked(stream):
                return
            chunks, context = self._aside.pop(stream)
            self.outlet.put(self.session.credit(-1))
        context.run(self.write, stream, chunks)

    def _end(self, chunks: Chunks) -> None:
        """Closes the generator of an answer that was broken off; its `finally` may raise."""
        try:
            chunks.close()
        except FAULTS as error:
            self.application.failed(error)


def adopt(context: Context) -> None:
    """Sets each context variable to its value in that context."""
    for variable in context:
        if (value := context[variable]) is not variable.get(None):
            variable.set(value)


class _Unit(Struct, eq=False):
    """The function that answers a stream."""

    _plain_functions: PlainFunctions
    _stream: int
    _run: Callable[[], Answer]

    def begin(self) -> bool:
        return self._plain_functions.begin(self._stream)

    def run(self) -> None:
        self._plain_functions.outlet.send()  # the core knows that it begins, whatever the function does to the process
        self._plain_functions.context.copy().run(self._answer)

    def _answer(self) -> None:
        port.plain.set(self._stream)
        try:
            self._plain_functions.answer(self._stream, self._run())
        except BaseException as error:
            self._plain_functions.fail(self._stream, error)


class _Continuation(Struct, eq=False):
    """A streamed answer whose client has read."""

    _plain_functions: PlainFunctions
    _stream: int

    def begin(self) -> bool:
        return True

    def run(self) -> None:
        try:
            self._plain_functions.go_on(self._stream)
        except BaseException as error:
            self._plain_functions.fail(self._stream, error)


class _Call:
    """A function that a coroutine waits for."""

    def __init__(self, function: Callable[[], object], loop: asyncio.AbstractEventLoop, context: Context) -> None:
        self.future: asyncio.Future[object] = loop.create_future()
        self.context = context
        self._function = function
        self._loop = loop
        self._tickets = [None]  # one ticket: either it begins, or it is withdrawn

    def withdraw(self) -> bool:
        """Returns whether it will never begin."""
        return self._take()

    def begin(self) -> bool:
        return self._take()

    def _take(self) -> bool:
        try:
            self._tickets.pop()
        except IndexError:
            return False
        return True

    def run(self) -> None:
        try:
            result = self.context.run(self._function)
        except BaseException as error:
            self._loop.call_soon_threadsafe(self._failed, error)
        else:
            self._loop.call_soon_threadsafe(self._ended, result)

    def _ended(self, result: object) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, StopIteration):  # a future refuses it
            error, raised = RuntimeError("a plain function raised StopIteration"), error
            error.__cause__ = raised
        if not self.future.done():
            self.future.set_exception(error)
