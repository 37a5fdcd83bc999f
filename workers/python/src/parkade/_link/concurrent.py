"""The link of an application with coroutines: many requests at once, on an event loop."""

from __future__ import annotations

import asyncio
import os
import select
import threading
from typing import cast

from .._answers import FAULTS, Answer, Application, AsyncChunks, Attempted, Chunks, Coming, Parked, Streamed
from .._events import Called, Cancelled, Ended, Event, Given, Opened, Pinged, Reply, Resumed, Writable
from .._session import Session
from .._wire import payloads as p
from ..errors import WaitError
from ..limits import CREDIT_CONCURRENT
from . import port
from .enqueued import Enqueued
from .exchange import Exchange
from .link import Link
from .runners import Runners


def run(link: Link, session: Session, application: Application) -> str:
    """As `blocking.run`, on uvloop where it is installed."""
    return _loop_of_choice().run_until_complete(_run(link, session, application))


async def _run(link: Link, session: Session, application: Application) -> str:
    loop = asyncio.get_running_loop()
    concurrent = Concurrent(loop, session, application, link)
    port.connect(concurrent)
    await application.start_concurrent()
    await loop.connect_read_pipe(lambda: concurrent, os.fdopen(link.reader, "rb", 0))
    await loop.connect_write_pipe(lambda: _Outlet(concurrent), os.fdopen(link.writer, "wb", 0))
    told = application.ready()
    concurrent.plain = frozenset(number for number, route in enumerate(told.routes) if route.kind == "sync")
    concurrent.write(session.ready(CREDIT_CONCURRENT, told))
    ended = await concurrent.over
    if ended is None:
        return ""
    if ended.code == "stopping":
        await application.stop_concurrent()
    await concurrent.close()
    return "" if ended.code == "stopping" else f"{ended.code}: {ended.text}"


def _loop_of_choice() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return cast(asyncio.AbstractEventLoop, uvloop.new_event_loop())


class Concurrent(asyncio.Protocol):
    """Reads, starts tasks, writes what they answered once for each batch that was read."""

    def __init__(self, loop: asyncio.AbstractEventLoop, session: Session, application: Application, link: Link) -> None:
        self.loop = loop
        self.over: asyncio.Future[Ended | None] = loop.create_future()  # None when the core is gone
        self.plain: frozenset[int] = frozenset()  # routes whose functions occupy this worker
        self._session = session
        self._application = application
        self._runs = application.runs
        self._inlet: asyncio.ReadTransport | None = None
        self._outlet: asyncio.WriteTransport | None = None
        self._thread = threading.get_ident()
        self._running = 0  # what the application's code is running for outside of a coroutine
        self._kept: list[Event] = []  # read while that ran, to be done behind what was read before
        self._receive = link.receive
        self._poll = select.poll()
        self._poll.register(link.reader, select.POLLIN)
        self._out: list[bytes] = []
        self._flush_is_due = False
        self._closed: asyncio.Future[None] = loop.create_future()
        self._runners = Runners(self, session, self._finish)
        self._exchanges = self._runners.exchanges

    # The port

    def publish(self, channel: str, content_type: str, body: bytes) -> None:
        data = self._session.publish(channel, content_type, body)
        if threading.get_ident() == self._thread:
            self.write(data)
        else:
            self.loop.call_soon_threadsafe(self.write, data)

    def enqueue(self, id: bytes, job: bytes, within: bool) -> None:
        exchange = cast("Exchange | None", port.exchange.get())
        if threading.get_ident() == self._thread:
            self._enqueue(self._running, exchange, id, job, within)
        else:  # asyncio.to_thread takes the exchange along, a thread of one's own does not
            self.loop.call_soon_threadsafe(self._enqueue, 0, exchange, id, job, within)

    def _enqueue(self, stream: int, exchange: Exchange | None, id: bytes, job: bytes, within: bool) -> None:
        if exchange is not None:
            stream = exchange.stream
            if self._session.takes_jobs(stream):
                exchange.enqueued = exchange.enqueued or Enqueued()
                exchange.enqueued.add(id, within)
        if data := self._session.enqueue(stream, job):
            self.write(data)

    def progress(self, stream: int, progress: bytes) -> None:
        if threading.get_ident() != self._thread:
            self.loop.call_soon_threadsafe(self.progress, stream, progress)
        elif data := self._session.progress(stream, progress):
            self.write(data)

    def is_cancelled(self, stream: int) -> bool:
        session = self._session
        if stream == self._running and threading.get_ident() == self._thread:
            # A plain function keeps the loop from reading; what comes is done when it has ended.
            while self._poll.poll(0) and (data := self._receive()):
                self._kept += session.receive(data)
        return stream in session.cancelled or not (session.held(stream) or session.awaiting(stream))

    def parked_seconds(self, stream: int) -> float:
        exchange = self._exchanges.get(stream)  # none: it has not waited yet
        return 0.0 if exchange is None else exchange.parked_seconds

    def park(self, stream: int, park: bytes) -> None:
        """Parks a held stream with `await`. Raises `WaitError` when its answer has begun or was given."""
        if not self._session.may_await(stream):
            raise WaitError("a wait is awaited while its request is being answered, before the answer has begun")
        self.write(self._session.park_awaiting(stream, park))

    def unpark(self, stream: int) -> None:
        """Takes a PARK with `await` back: RESUME comes at once. Nothing when the stream is not parked, or its rows are
        coming.
        """
        if self._session.awaiting(stream) and (data := self._session.unpark(stream)):
            self.write(data)

    def awaiting(self, stream: int) -> bool:
        """Whether the stream is parked with `await`, or its rows are coming."""
        return self._session.awaiting(stream)

    def write(self, data: bytes) -> None:
        """Writes with the rest of this turn of the loop."""
        self._out.append(data)
        if not self._flush_is_due:
            self._flush_is_due = True
            self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Writes now what this turn has brought so far."""
        self._flush_is_due = False
        if self._out and self._outlet is not None:
            self._outlet.write(b"".join(self._out))
            self._out.clear()

    async def close(self) -> None:
        """Writes what is left and closes this end."""
        self.flush()
        if self._outlet is not None:
            self._outlet.close()
        await self._closed

    # The outlet

    def outlet_made(self, outlet: asyncio.WriteTransport) -> None:
        self._outlet = outlet

    def pause_writing(self) -> None:
        """The core reads more slowly than we write: nothing new is begun until it has caught up, so what is kept is
        bounded by the credit.
        """
        cast(asyncio.ReadTransport, self._inlet).pause_reading()

    def resume_writing(self) -> None:
        cast(asyncio.ReadTransport, self._inlet).resume_reading()

    def outlet_lost(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)
        self._end(None)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._inlet = cast(asyncio.ReadTransport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._end(None)

    def data_received(self, data: bytes) -> None:
        self._flush_is_due = True  # nothing below needs a turn of its own: the runners flush behind their first steps
        cancelled = self._session.cancelled
        events = self._session.receive(data)
        while events:
            for event in events:
                if type(event) is Opened and event.stream not in cancelled:
                    route = event.request.route
                    self._running = event.stream
                    self._begin(event.stream, self._runs[route](event.request), route in self.plain)
                elif type(event) is Given and event.stream not in cancelled:
                    self._running = event.stream
                    self._begin(event.stream, self._application.attempt(event.stream, event.run), False)
                else:
                    self._take(event)
            events, self._kept = self._kept, []
        self._running = 0
        self._runners.start()

    # Events

    def _take(self, event: Event) -> None:
        session = self._session
        match event:
            case Opened(stream=stream) | Called(stream=stream) | Given(stream=stream) if stream in session.cancelled:
                self._out.append(session.error(stream, "cancelled"))
            case Called(stream=stream, function=function, state=state, outcome=outcome):
                self._running = stream
                self._begin(stream, self._application.call(stream, function, state, outcome), False)
            case Resumed(streams=streams, outcome=outcome):
                for stream in streams:
                    self._resume(stream, outcome)
            case Reply(data=data):
                self._out.append(data)
            case Writable(stream=stream):
                _resolve(self._exchanges[stream].writable)
            case Cancelled(stream=stream):
                self._cancel(stream)
            case Pinged(token=token):
                self._out.append(session.pong(token))
            case Ended():
                self._end(event)
            case _:
                pass  # DRAIN changes nothing here

    def _begin(self, stream: int, answer: Answer | Coming, occupies: bool) -> None:
        if type(answer) is bytes:
            self._out.append(self._session.respond(stream, answer))
        elif type(answer) is Parked:
            self._out.append(self._session.park(stream, answer.park))
        elif type(answer) is Attempted:
            self._out.append(self._session.end(stream, answer.kind, answer.payload))
        else:
            coming = _at_once(answer) if type(answer) is Streamed else cast(Coming, answer)
            self._runners.add(stream, coming, occupies)

    def _resume(self, stream: int, outcome: p.Outcome) -> None:
        if (exchange := self._exchanges.get(stream)) is not None:
            exchange.resume(outcome)
        else:  # its task was cancelled by the application itself, and is gone
            self.write(self._session.error(stream, "application", "the request's own task was cancelled"))

    def _cancel(self, stream: int) -> None:
        exchange = self._exchanges.get(stream)
        if exchange is not None:
            exchange.task.cancel("the request was cancelled")
            exchange.give_up()  # what waits may be a task that it has started

    def _end(self, ended: Ended | None) -> None:
        if not self.over.done():
            self.over.set_result(ended)

    # Answers

    async def _finish(self, exchange: Exchange, answer: Answer) -> None:
        session, stream = self._session, exchange.stream
        if exchange.waiters is not None:
            exchange.give_up()  # a task that it has started may wait still, for nobody
            await exchange.held_again()
        if not session.held(stream):
            pass  # it was cancelled while it was parked
        elif type(answer) is bytes:
            self.write(session.respond(stream, answer))
        elif type(answer) is Streamed:
            await self._stream(exchange, answer)
        elif type(answer) is Parked:
            self.write(session.park(stream, answer.park))
        elif type(answer) is Attempted:
            self.write(session.end(stream, answer.kind, answer.payload))

    async def _stream(self, exchange: Exchange, answer: Streamed) -> None:
        session, stream = self._session, exchange.stream
        self.write(session.begin(stream, answer.head))
        try:
            if isinstance(answer.chunks, AsyncChunks):
                async for chunk in answer.chunks:
                    if self._send(exchange, chunk):
                        await self._writable(exchange)
            else:
                for chunk in answer.chunks:
                    await self._send_plain(exchange, chunk)
            self.write(session.finish(stream))
        except FAULTS as error:
            self.write(session.error(stream, "application", self._application.failed(error)))
        finally:
            await self._close(answer.chunks)

    async def _close(self, chunks: Chunks | AsyncChunks) -> None:
        """An answer that was broken off ends its generator too, whose `finally` may raise."""
        try:
            if isinstance(chunks, AsyncChunks):
                await chunks.aclose()
            else:
                chunks.close()
        except FAULTS as error:
            self._application.failed(error)

    def _send(self, exchange: Exchange, chunk: bytes) -> bool:
        """Whether the client has to read before more may be sent."""
        if exchange.stream in self._session.cancelled:
            raise asyncio.CancelledError  # an endless iterator that never suspends would not meet the task's own
        self.write(self._session.data(exchange.stream, chunk))
        return self._session.blocked(exchange.stream)

    async def _send_plain(self, exchange: Exchange, chunk: bytes) -> None:
        """A piece of a plain iterator, which never suspends: it leaves and others are heard before the next is made."""
        if self._send(exchange, chunk):
            if exchange.occupies:  # put aside until the client reads on: it does so no longer
                self.write(self._session.credit(1))
            try:
                await self._writable(exchange)
            finally:
                if exchange.occupies:
                    self.write(self._session.credit(-1))
        self.flush()
        await asyncio.sleep(0)

    async def _writable(self, exchange: Exchange) -> None:
        exchange.writable = self.loop.create_future()
        await exchange.writable


class _Outlet(asyncio.BaseProtocol):
    """Tells of the pipe to the core, as `Concurrent` itself is told of the other."""

    def __init__(self, concurrent: Concurrent) -> None:
        self._concurrent = concurrent

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._concurrent.outlet_made(cast(asyncio.WriteTransport, transport))

    def pause_writing(self) -> None:
        self._concurrent.pause_writing()

    def resume_writing(self) -> None:
        self._concurrent.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._concurrent.outlet_lost()


async def _at_once(answer: Answer) -> Answer:
    return answer


def _resolve(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
