"""The link of an application with coroutines: many requests at once, on an event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar, cast

import msgspec

from .._limits import CREDIT_CONCURRENT, WRITE_SIZE_MIN
from .._log import log_warning
from .._session.events import (
    BodyArrived,
    Called,
    Cancelled,
    Continued,
    Draining,
    Ended,
    Event,
    FileReleased,
    Given,
    MessageArrived,
    Opened,
    OpenedEarly,
    Pinged,
    Reply,
    Resumed,
    SocketClosed,
    Writable,
)
from .._session.session import Session
from .._wire import payloads as p
from .._wire.frames import Parts
from ..errors import WaitError
from . import port, process
from .answers import (
    Answer,
    Application,
    Attempted,
    Coming,
    Deferred,
    Parked,
    Plain,
    Streamed,
    at_once,
    begun,
)
from .body_reader import Body, BodyReader
from .client_sockets import ClientSockets
from .enqueued import Enqueued
from .exchange import ENDS, Exchange
from .held_stream import HeldStream
from .held_waits import HeldExchange
from .inlet import read_on
from .link import Link
from .loops import loop_of_choice
from .named_files import NamedFiles
from .outlet import Outlet
from .plain_functions import PlainFunctions
from .runners import Runners
from .shutdown import Shutdown
from .stacks import print_overdue
from .streaming import Streaming

T = TypeVar("T")


def run(link: Link, session: Session, application: Application, threads: int = 1) -> str:
    """The same as `blocking.run`, on uvloop if it is installed. `threads` is how many threads run plain functions."""
    return loop_of_choice().run_until_complete(_run(link, session, application, threads))


async def _run(link: Link, session: Session, application: Application, threads: int) -> str:
    loop = asyncio.get_running_loop()
    logging.getLogger("parkade").debug("coroutines run on %s", type(loop).__module__)
    concurrent = Concurrent(loop, session, application)
    port.connect(concurrent)
    await application.start_concurrent()
    await loop.connect_read_pipe(lambda: concurrent, os.fdopen(link.reader, "rb", 0))
    concurrent.open(link, threads)
    process.tell_more(loop, concurrent.tell_overdue)
    told = msgspec.structs.replace(application.ready(), threads=threads)
    concurrent.write(session.ready(CREDIT_CONCURRENT, told))
    ended = await concurrent.over
    if ended is None:
        return ""
    if ended.code == "stopping":
        await application.stop_concurrent()
    await concurrent.close()
    return "" if ended.code == "stopping" else f"{ended.code}: {ended.text}"


class Concurrent(asyncio.Protocol):
    """Reads, starts tasks, and writes their answers once for each batch. Plain functions run in threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop, session: Session, application: Application) -> None:
        self.loop = loop
        self.over: asyncio.Future[Ended | None] = loop.create_future()  # None when the core is gone
        self._session = session
        self._application = application
        self._inlet: asyncio.ReadTransport | None = None
        self._reader = -1  # the descriptor under it
        self._outlet = Outlet(loop, self)
        self._thread = threading.get_ident()
        self.put = self._outlet.put
        self._flush_is_due = False
        self._plain_functions: PlainFunctions | None = None  # until the start-up hooks have run
        self._runners = Runners(self, session, self._finish)
        self._exchanges = self._runners.exchanges
        self._branches: dict[int, Exchange] = {}
        self._streaming = Streaming(self, session, application)
        self.body_reader = BodyReader(self, session, self._outlet)
        self.client_sockets = ClientSockets(self, session)
        self.named_files = NamedFiles(self, session)
        self.has_trailers = session.has_trailers  # and early hints
        self.awaiting, self.is_parked = session.awaiting, session.is_parked
        self.is_responding, self.is_reading = session.is_responding, session.bodies.is_arriving
        self.shutdown = Shutdown(self._stop_rest)

    def open(self, link: Link, threads: int) -> None:
        """Writes there from now on, and runs plain functions, which see the current context."""
        self._reader = link.reader
        self._outlet.open(link.writer)
        self._plain_functions = PlainFunctions(self.loop, self._session, self._outlet, self._application, threads)
        self.plain_exchange = self._plain_functions.exchange

    # The port

    def stream(self) -> int:
        exchange = cast("Exchange | None", port.exchange.get())
        return port.plain.get() if exchange is None else exchange.stream

    def body(self) -> Body:
        return self.body_reader.of(self.stream())

    def publish(self, channel: str, content_type: str, body: bytes, event: str | None) -> int:
        stream = self.stream()
        if stream:
            number = next(port.numbers)
            self._say(stream, partial(self._session.publish, stream, channel, content_type, body, event, number))
            return number
        self.put(self._session.publish(0, channel, content_type, body, event, 0))  # it is unknown for which request
        self._written()
        return 0

    def holder(self) -> port.Holder | None:
        exchange = cast("Exchange | None", port.exchange.get())
        if exchange is not None:
            return None if asyncio._get_running_loop() is self.loop else HeldExchange(exchange, self.loop)
        functions, stream = self._plain_functions, port.plain.get()
        if not stream:
            return port.outside and port.outside()
        return HeldStream(functions.held, stream) if functions is not None and functions.owns(stream) else None

    def enqueue(self, id: bytes, job: bytes, within: bool) -> None:
        exchange = cast("Exchange | None", port.exchange.get())
        stream = port.plain.get() if exchange is None else exchange.stream
        self._say(stream, partial(self._enqueue, exchange, stream, id, job, within))

    def _enqueue(self, exchange: Exchange | None, stream: int, id: bytes, job: bytes, within: bool) -> bytes:
        if exchange is not None and self._session.takes_writes(stream):
            enqueued = exchange.enqueued = exchange.enqueued or Enqueued()
            enqueued.add(id, within)
            if enqueued.keep(job, within):
                return b""
        return self._session.enqueue(stream, job)

    def enqueue_kept(self, stream: int, enqueued: Enqueued) -> None:
        with self._outlet.lock:
            data = b"".join(self._session.enqueue(stream, job) for job in enqueued.take_kept())
        if data:
            self.write(data)

    def progress(self, stream: int, progress: bytes) -> None:
        self._say(stream, partial(self._session.progress, stream, progress))

    def _say(self, stream: int, make: Callable[[], bytes]) -> None:
        """Writes what `make` returns for a stream. `make` looks at the state of the stream, so it runs where nothing
        else changes that state meanwhile.
        """
        with self._outlet.lock:
            is_here = threading.get_ident() == self._thread or (
                self._plain_functions is not None and self._plain_functions.owns(stream)
            )
            if is_here and (data := make()):
                self.put(data)
        if not is_here:
            self.loop.call_soon_threadsafe(self._say, stream, make)
        self._written()

    def _written(self) -> None:
        """Writes what was queued: the loop with the rest of its turn; a thread now, waiting for room."""
        if threading.get_ident() != self._thread:
            self._outlet.send()
        elif not self._flush_is_due:
            self._flush_is_due = True
            self.loop.call_soon(self.flush)

    def is_cancelled(self, stream: int) -> bool:
        session = self._session
        return stream in session.cancelled or not (session.held(stream) or session.awaiting(stream))

    def parked_seconds(self, stream: int) -> float:
        exchange = self._exchanges.get(stream)  # none: it has not waited yet
        return 0.0 if exchange is None else exchange.parked_seconds

    def park(self, stream: int, park: bytes) -> None:
        """Parks a held stream with `await`. Raises `WaitError` if its answer has begun or ended."""
        if not self._session.may_await(stream):
            raise WaitError(ENDS)
        self.write(self._session.park_awaiting(stream, park))

    def branch(self, exchange: Exchange, park: bytes) -> int:
        """Begins one more wait of an exchange that is parked, or is never parked; returns the number of the branch.

        Raises `WaitError` if it has ended.
        """
        if self.is_cancelled(exchange.stream):
            raise WaitError(ENDS)
        branch, data = self._session.branch(exchange.stream, park)
        self._branches[branch] = exchange
        self.write(data)
        return branch

    def unpark(self, stream: int) -> None:
        """Withdraws a PARK with `await`: RESUME comes at once. Does nothing if the stream is not parked, or its rows
        are arriving.
        """
        if self._session.awaiting(stream) and (data := self._session.unpark(stream)):
            self.write(data)

    async def in_thread(self, function: Callable[[], T]) -> T:
        return await cast(PlainFunctions, self._plain_functions).call(function)

    def write(self, data: bytes) -> None:
        """Writes with the rest of this turn of the loop."""
        self.put(data)
        if not self._flush_is_due:
            self._flush_is_due = True
            self.loop.call_soon(self.flush)

    def write_parts(self, parts: Parts) -> None:
        """The same for frames in parts. The core begins with large ones while the code makes the next."""
        self._outlet.put_parts(parts)
        if sum(map(len, parts)) >= WRITE_SIZE_MIN:
            self.flush()
        elif parts and not self._flush_is_due:
            self._flush_is_due = True
            self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Writes now what this turn has produced so far."""
        self._flush_is_due = False
        self._outlet.flush()

    def flush_on(self) -> None:
        """The same in the middle of a turn that ends with a flush."""
        self._outlet.flush()

    async def close(self) -> None:
        """Writes what is left and closes this end."""
        await self._outlet.close()

    # The outlet

    def pipe_is_full(self) -> None:
        """Nothing new is begun until the core has caught up, so the credit bounds what is kept."""
        if self._inlet is not None:
            self._inlet.pause_reading()

    def pipe_is_empty(self) -> None:
        if self._inlet is not None:
            self._inlet.resume_reading()

    def pipe_is_lost(self) -> None:
        self._end(None)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._inlet = cast(asyncio.ReadTransport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._end(None)

    def data_received(self, data: bytes) -> None:
        self._flush_is_due = True  # nothing below needs its own turn: the runners flush after their first steps
        application, cancelled = self._application, self._session.cancelled
        plain_functions = cast(PlainFunctions, self._plain_functions)
        runs, plain, deferred = application.runs, application.plain, application.deferred
        add = self._runners.add
        with self._outlet.lock:
            events = self._session.receive(data)
            if self._session.decoder.wanted:
                events += read_on(self._reader, self._session)
        for event in events:
            if type(event) is Opened and (stream := event.stream) not in cancelled:
                request = event.request
                route = request.route
                if route in plain:
                    plain_functions.add(stream, partial(runs[route], request))
                elif route in deferred:
                    self._defer(stream, partial(runs[route], request), True)
                elif type(answer := runs[route](request)) is CoroutineType:  # nearly always
                    add((stream, answer, False))
                else:
                    self._begin(stream, answer)
            elif type(event) is Given and event.stream not in cancelled:
                self._begin(event.stream, application.attempt(event.stream, event.run))
            else:
                self._take(event)
        self._runners.start()

    # Events

    def _take(self, event: Event) -> None:
        session = self._session
        match event:
            case Opened(stream=stream) | OpenedEarly(stream=stream) | Called(stream=stream) | Given(stream=stream) if (
                stream in session.cancelled
            ):
                self.put(session.error(stream, "cancelled"))
            case OpenedEarly(stream=stream, request=request):
                self._begin(stream, begun(self._application, request))
            case BodyArrived(stream=stream):
                self.body_reader.wake(stream)
            case MessageArrived() | SocketClosed():
                self.client_sockets.take(event)
            case Called(stream=stream, function=function, state=state, outcome=outcome):
                self._begin(stream, self._application.call(stream, function, state, outcome))
            case Resumed(streams=streams, outcome=outcome):
                for stream in streams:
                    self._resume(stream, outcome)
            case Reply(data=data):
                self.put(data)
            case Continued(parts=parts):
                self._outlet.put_parts(parts)
            case Writable(stream=stream) if not cast(PlainFunctions, self._plain_functions).writable(stream):
                self._exchanges[stream].wake_writer()
            case FileReleased(stream=stream):
                self.named_files.release(stream)
                cast(PlainFunctions, self._plain_functions).wake(stream)
            case Cancelled(stream=stream, reason=why):
                self.body_reader.wake(stream)
                if (
                    not cast(PlainFunctions, self._plain_functions).cancel(stream)
                    and (exchange := self._exchanges.get(stream)) is not None
                ):
                    self._cancel(exchange, why)
                    for branch in exchange.close_branches():
                        del self._branches[branch]
            case Pinged(token=token):
                self.put(session.pong(token))
            case Draining(seconds=seconds):
                self.shutdown.begin(seconds)
            case Ended():
                self._end(event)
            case _:
                pass

    def _begin(self, stream: int, answer: Answer | Coming | Plain | Deferred) -> None:
        if type(answer) is CoroutineType:  # nearly always
            self._runners.add((stream, answer, False))
        elif type(answer) is Plain:
            cast(PlainFunctions, self._plain_functions).add(stream, answer.run)
        elif type(answer) is Deferred:
            self._defer(stream, answer.begin, answer.occupies)
        elif type(answer) is bytes or type(answer) is Attempted:  # a failure, before anything has begun
            self._runners.add((stream, at_once(answer), False))
        else:
            self._runners.add((stream, cast(Coming, answer), False))

    def _defer(self, stream: int, begin: Callable[[], Coming], occupies: bool) -> None:
        self._runners.add((stream, self._when_told(stream, begin), occupies))

    async def _when_told(self, stream: int, begin: Callable[[], Coming]) -> Answer:
        """Begins when BEGAN is in the pipe: whatever the code does to the process, the core knows that it began."""
        self.put(self._session.began(stream))
        await self._outlet.sent()
        return await begin()

    def _resume(self, stream: int, outcome: p.Outcome) -> None:
        if (exchange := self._exchanges.get(stream)) is not None:
            exchange.resume(outcome)
        elif (exchange := self._branches.pop(stream, None)) is not None:
            exchange.end_branch(stream, outcome)
            if exchange.stream not in self._exchanges:
                self._end_alone(exchange.stream)
        elif not cast(PlainFunctions, self._plain_functions).held.end(stream, outcome):
            self._end_alone(stream)

    def _end_alone(self, stream: int) -> None:
        """The request's task was cancelled by the application itself, and is gone."""
        if self._session.held(stream) and not self._session.is_branched(stream):
            self.write(self._session.error(stream, "application", "the request's own task was cancelled"))

    def _cancel(self, exchange: Exchange, reason: str) -> None:
        if exchange.listener is None or exchange.listener.cancelled(reason):
            exchange.task.cancel("the request was cancelled")
        else:
            exchange.wake_writer()
        exchange.give_up()  # what waits may be a task that it has started

    def tell_overdue(self) -> None:
        """Prints the stacks of coroutines that were cancelled but still run: they are the reason why the core asks."""
        cancelled = self._session.cancelled
        print_overdue(exchange.task for stream, exchange in self._exchanges.items() if stream in cancelled)

    def _end(self, ended: Ended | None) -> None:
        if not self.over.done():
            self.over.set_result(ended)

    # The answer of code that sends it itself

    def respond(self, stream: int, response: bytes) -> None:
        """Sends a complete RESPONSE, encoded."""
        self.write(self._session.respond(stream, response))

    def park_answer(self, stream: int, park: bytes) -> None:
        """Parks the stream, encoded: the core answers, or has a function called."""
        self.write(self._session.park(stream, park))

    def early_hints(self, stream: int, headers: list[Any]) -> None:
        """Sends early hints, unless the answer has begun."""
        self.write(self._session.early_hints(stream, headers))

    def begin_answer(self, stream: int, head: bytes) -> None:
        """Sends the head: a RESPONSE, encoded with nil for its body."""
        self.write(self._session.begin(stream, head))

    async def send_answer(self, exchange: Exchange, piece: bytes) -> None:
        """Sends a piece. Returns when the client has room for more, or when nobody wants it."""
        session, stream = self._session, exchange.stream
        while session.blocked(stream):  # another task is sending
            await self.room(exchange)
        self.write_parts(session.data(stream, piece))
        while session.blocked(stream):
            await self.room(exchange)

    def finish_answer(self, stream: int, trailers: list[Any] | None = None) -> None:
        """Ends an answer whose pieces were sent."""
        self.write(self._session.finish(stream, trailers))

    async def break_off(self, exchange: Exchange) -> None:
        """Ends an answer before its end, unless it has ended."""
        await exchange.end()
        stream = exchange.stream
        if stream in self._session.cancelled:
            self.write(self._session.error(stream, "cancelled"))
        elif self._session.may_await(stream):
            self.write(self._session.error(stream, "overloaded", "its worker is being stopped"))
        elif self._session.held(stream):
            self.write(self._session.error(stream, "application"))

    def _stop_rest(self) -> None:
        """Cancels the coroutines of requests that are left, so that they clean up, before the core kills them. It
        cancels jobs itself, whose attempts do not count then.
        """
        exchanges = [exchange for exchange in self._exchanges.values() if not exchange.is_job]
        for exchange in exchanges:
            self._cancel(exchange, "stopping")
        if exchanges:
            log_warning(f"the worker stops: {len(exchanges)} requests that were still running were cancelled")

    async def idle(self) -> None:
        """Returns when all code of requests has ended, also what runs after its answer."""
        if tasks := {exchange.task for exchange in self._exchanges.values()}:
            await asyncio.wait(tasks)

    async def room(self, exchange: Exchange) -> None:
        """Waits until the client of its answer or WebSocket has read more, or is no longer there."""
        if exchange.writable is None or exchange.writable.done():
            exchange.writable = self.loop.create_future()
        await asyncio.shield(exchange.writable)

    # Answers

    async def _finish(self, exchange: Exchange, answer: Answer) -> None:
        session, stream = self._session, exchange.stream
        if exchange.waiters is not None:
            await (exchange.claim() if type(answer) is Streamed else exchange.end())
        if not session.held(stream):
            pass  # it was cancelled while it was parked
        elif type(answer) is bytes:
            self.write(session.respond(stream, answer))
        elif type(answer) is Streamed:
            await self._streaming.send(exchange, answer)
        elif type(answer) is Parked:
            self.write(session.park(stream, answer.park))
        elif type(answer) is Attempted:
            self.write(session.end(stream, answer.kind, answer.payload))
        else:  # its code was to send all of it
            self.write(session.error(stream, "application", "the response has no end"))
