"""The link of an application that has only plain functions: one request at a time, each answer written at once."""

from __future__ import annotations

import os
import select
import threading
import traceback
from asyncio import CancelledError
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

from .._limits import CREDIT_BLOCKING, RECEIVE_SIZE, SUSPENDED_MAX
from .._session.events import (
    Called,
    Cancelled,
    Continued,
    Ended,
    Event,
    Given,
    Opened,
    OpenedEarly,
    Pinged,
    Reply,
    Resumed,
    Writable,
)
from .._session.session import Session
from .._wire import payloads as p
from ..errors import BodyError, WaitError
from . import gathering, port
from .answers import (
    Answer,
    Application,
    Attempted,
    BodyCutOff,
    Chunks,
    ClientLeft,
    Handed,
    Parked,
    Plain,
    Sent,
    Streamed,
)
from .held_stream import RESPONDED, HeldStream, cancelled
from .link import Link
from .writer import Writer

T = TypeVar("T")


def run(link: Link, session: Session, application: Application) -> str:
    """Serves until the core says goodbye or is gone; returns the reason if that is a fault, otherwise an empty text.

    Raises the exceptions of start-up hooks, before READY.
    """
    blocking = Blocking(link, session, application)
    port.connect(blocking)
    application.start()
    blocking.write(session.ready(CREDIT_BLOCKING, application.ready()))
    ended = blocking.serve()
    if ended is None:
        return ""
    if ended.code == "stopping":
        application.stop()
        return ""
    return f"{ended.code}: {ended.text}"


class Blocking:
    """Reads, runs, writes.

    Answers are never written several at a time, because an unanswered stream counts as untouched for the core.
    """

    def __init__(self, link: Link, session: Session, application: Application) -> None:
        self._receive = link.receive
        self._session = session
        self._application = application
        self._running = 0  # the stream for which the application's code is running
        self._kept: list[Event] = []  # read while that ran; handled after everything that was read before
        self._thread = threading.get_ident()
        self._poll = select.poll()
        self._poll.register(link.reader, select.POLLIN)
        self._reading = threading.RLock()  # for reads while code runs: a thread of it may wait for something
        self._is_held = False  # whether a wait of the running stream may be left
        self._outcomes: dict[int, p.Outcome] = {}  # of waits of the running stream, by their branches
        self._suspended: dict[int, Chunks] = {}  # answers whose client reads more slowly than we write
        self._writer = Writer(partial(os.write, link.writer), partial(gathering.write, link.writer))
        self.write, self._write_parts = self._writer.write, self._writer.write_parts

    def stream(self) -> int:
        """Also in another thread, if it has the context of the running request: Django and Flask run coroutines so."""
        running = self._running
        return running if threading.get_ident() == self._thread or port.plain.get() == running else 0

    def body(self) -> Body:
        return Body(self, self.stream())

    def publish(self, channel: str, content_type: str, body: bytes, event: str | None) -> int:
        stream = self.stream()
        number = next(port.numbers) if stream else 0
        self._say(partial(self._session.publish, stream, channel, content_type, body, event, number))
        return number

    def enqueue(self, id: bytes, job: bytes, within: bool) -> None:
        self._say(partial(self._session.enqueue, self.stream(), job))

    def progress(self, stream: int, progress: bytes) -> None:
        self._say(partial(self._session.progress, stream, progress))

    def _say(self, make: Callable[[], bytes]) -> None:
        """Writes what `make` returns. In a thread, the closing frame that the main thread may be about to write comes
        after it, or is known to `make`.
        """
        if threading.get_ident() == self._thread:
            self.write(make())
        else:
            self._writer.write_made(make)

    def is_cancelled(self, stream: int) -> bool:
        """Reads what has arrived, because nothing else does while the code runs; requests in it are run later."""
        if threading.get_ident() == self._thread and self._reading.acquire(blocking=False):  # otherwise a thread reads
            try:
                while self._poll.poll(0) and (data := self._receive()):
                    self._kept += self._session.receive(data)
            finally:
                self._reading.release()
        return not self._session.held(stream) or stream in self._session.cancelled

    def read_body(self) -> bytes:
        """The next piece of the running request's body, which was opened early; nothing after its end.

        Raises `BodyCutOff` if the rest will not come, or the request has its response.
        """
        session, stream = self._session, self._running
        if threading.get_ident() != self._thread:
            raise BodyError("the body of a request is read by the thread that its application runs in")
        if not session.held(stream):
            raise BodyCutOff("the request has its response")
        while True:
            piece, granted = session.bodies.read(stream)
            if granted:
                self.write(granted)
            if piece is not None:
                return piece
            if stream in session.cancelled:
                raise BodyCutOff("the client left in the middle of its request")
            self._read(min(session.decoder.wanted, RECEIVE_SIZE) or RECEIVE_SIZE)

    def begin_answer(self, head: bytes, first: bytes) -> None:
        """Begins the answer of the running request: a RESPONSE, encoded with nil for its body, and its first piece.

        Returns when the client has room for more. Raises `ClientLeft` if nobody wants it.
        """
        self._hear()
        begun = self._session.begin(self._running, head)
        self._send(begun, first)

    def send_answer(self, piece: bytes) -> None:
        """Sends the next piece of an answer that has begun; otherwise the same."""
        self._hear()
        self._send(b"", piece)

    def send_file(self, park: bytes) -> bool:
        """Answers the running request with a part of a file: a PARK, encoded. Returns when the file may be closed, or
        False if the core sends no files.
        """
        session, stream = self._session, self._running
        if not session.naming.is_offered or threading.get_ident() != self._thread:
            return False
        session.naming.add(stream, session.cancelled)
        self.write(session.park(stream, park))
        while stream in session.naming:
            self._read()
        return True

    def _send(self, begun: bytes, piece: bytes) -> None:
        session, stream = self._session, self._running
        if threading.get_ident() != self._thread:
            raise RuntimeError("an answer is sent by the thread that its application runs in")
        self._write_parts([begun, *session.data(stream, piece)])
        while session.blocked(stream):
            self._read()
        if stream in session.cancelled:
            raise ClientLeft

    def holder(self) -> port.Holder | None:
        stream = self.stream()
        return HeldStream(self, stream) if stream else port.outside and port.outside()

    def hold(self, stream: int, park: bytes) -> p.Outcome:
        """Waits for something while code of the running stream goes on holding it: a PARK, encoded with `await`.

        Raises as `port.Holder.ask` does, and `ValueError` for a query that is too long for a frame.
        """
        session, is_shared = self._session, threading.get_ident() != self._thread
        with self._reading:
            if stream != self._running or not session.held(stream):
                raise WaitError(RESPONDED)
            if stream in session.cancelled:
                raise cancelled()
            self._is_held = True  # until it is over
            branch, frame = session.branch(stream, park)
            self._writer.write_from_any(frame)
            while session.awaiting(branch):
                self._read()
            self._is_held = is_shared
            outcome = self._outcomes.pop(branch, None)
        if outcome is None or isinstance(outcome, p.Unparked):
            raise cancelled()
        return outcome

    def _leave(self) -> None:
        """The code of the running stream is over, or put aside: what it still waits for is withdrawn. Its threads wait
        for nothing more.
        """
        if not self._is_held:  # nearly always
            return
        session, stream, self._running = self._session, self._running, 0
        for branch in session.branches_of(stream):
            self.write(session.unpark(branch))
        with self._reading:
            while session.is_branched(stream):
                self._read()
            self._outcomes.clear()
            self._is_held = False

    def _hear(self) -> None:
        """Reads what has arrived."""
        if self._reading.acquire(blocking=False):  # otherwise a thread reads
            try:
                while self._poll.poll(0):
                    self._read()
            finally:
                self._reading.release()

    def _read(self, size: int = RECEIVE_SIZE) -> None:
        """Reads while code runs. Raises `ConnectionError` if the core is gone."""
        with self._reading:
            if not (data := self._receive(size)):
                raise ConnectionError("the core is gone")
            self._keep(self._session.receive(data))

    def _keep(self, events: list[Event]) -> None:
        """What the core asks of the link is answered at once; the rest has to wait for the code that runs."""
        for event in events:
            if type(event) is Reply:
                self._writer.write_from_any(event.data)
            elif type(event) is Continued:
                self._writer.write_from_any(b"".join(event.parts))
            elif type(event) is Pinged:
                self._writer.write_from_any(self._session.pong(event.token))
            elif type(event) is Resumed:
                self._outcomes.update(dict.fromkeys(event.streams, event.outcome))
            else:
                self._kept.append(event)

    def parked_seconds(self, stream: int) -> float:
        return 0.0  # no coroutines here

    async def in_thread(self, function: Callable[[], T]) -> T:
        return function()  # no loop either

    def serve(self) -> Ended | None:
        """Serves until the core says goodbye, or is gone (then None)."""
        session, runs, attempt = self._session, self._application.runs, self._application.attempt
        receive, write, cancelled = self._receive, self.write, session.cancelled
        respond, park, end = session.respond, session.park, session.end
        while data := receive():
            events = session.receive(data)
            while events:
                for event in events:
                    if type(event) is not Opened and type(event) is not Given:
                        if type(event) is Ended:
                            return event
                        self._other(event)
                        continue
                    self._running = stream = event.stream
                    if cancelled and stream in cancelled:
                        write(session.error(stream, "cancelled"))
                        continue
                    try:
                        if type(event) is Opened:
                            request = event.request
                            answer = runs[request.route](request)
                        else:
                            answer = attempt(stream, event.run)
                            if type(answer) is Plain:
                                answer = answer.run()
                    except BaseException as error:
                        self._fail(stream, error)
                        continue
                    if self._is_held:
                        self._leave()
                    if type(answer) is bytes:
                        write(respond(stream, answer))
                    elif type(answer) is Attempted:
                        write(end(stream, answer.kind, answer.payload))
                    elif type(answer) is Parked:
                        write(park(stream, answer.park))
                    else:
                        self._answer(stream, cast(Answer, answer))
                events, self._kept = self._kept, []
        return None

    def _other(self, event: object) -> None:
        session = self._session
        match event:
            case Reply(data=data):
                self.write(data)
            case Continued(parts=parts):
                self._write_parts(parts)
            case Called(stream=stream) | OpenedEarly(stream=stream) if stream in session.cancelled:
                self.write(session.error(stream, "cancelled"))
            case OpenedEarly(stream=stream, request=request):
                self._running = stream
                try:
                    whole = self._application.runs[request.route](request)
                except BaseException as error:
                    self._fail(stream, error)
                else:
                    self._answer(stream, cast(Answer, whole))
            case Called(stream=stream, function=function, state=state, outcome=outcome):
                self._running = stream
                try:
                    answer = self._application.call(stream, function, state, outcome)
                    answer = answer.run() if isinstance(answer, Plain) else cast(Answer, answer)
                except BaseException as error:
                    self._fail(stream, error)
                else:
                    self._answer(stream, answer)
            case Writable(stream=stream) if stream in self._suspended and stream not in session.cancelled:
                self._go_on(stream, self._suspended[stream])
            case Cancelled(stream=stream) if stream in self._suspended:
                self._close(self._suspended[stream])
                self.write(session.error(stream, "cancelled"))
                self._unsuspend(stream)
            case Pinged(token=token):
                self.write(session.pong(token))
            case _:
                pass  # DRAIN changes nothing here; a request that was cancelled before it began is handled above

    def _fail(self, stream: int, error: BaseException) -> None:
        """A BaseException that is not an Exception, from a foreign library for instance, ends only the request."""
        self._leave()
        if isinstance(error, CancelledError) and stream in self._session.cancelled:
            self.write(self._session.error(stream, "cancelled"))
            return
        self.write(self._session.error(stream, "application", "".join(traceback.format_exception(error))))

    def _answer(self, stream: int, answer: Answer) -> None:
        session = self._session
        self._leave()
        if type(answer) is bytes:
            self.write(session.respond(stream, answer))
            return
        match answer:
            case Handed():
                pass
            case Sent(is_whole=True):
                self.write(session.finish(stream))
            case Sent():
                self.write(session.error(stream, "application"))
            case Parked(park=park):
                self.write(session.park(stream, park))
            case Attempted(kind=kind, payload=payload):
                self.write(session.end(stream, kind, payload))
            case Streamed(head=head, chunks=chunks):
                self.write(session.begin(stream, head))
                self._go_on(stream, cast(Chunks, chunks))

    def _go_on(self, stream: int, chunks: Chunks) -> None:
        """Writes an answer to its end, or until the client has to read first; then others are served."""
        session = self._session
        self._running = stream
        while True:
            try:
                chunk = next(chunks, None)
            except BaseException as error:
                self._leave()
                self.write(session.error(stream, "application", self._application.failed(error)))
                break
            if chunk is None:
                self._leave()
                self.write(session.finish(stream))
                break
            self._write_parts(session.data(stream, chunk))
            if session.blocked(stream):
                self._leave()
                self._suspend(stream, chunks)
                return
        self._unsuspend(stream)

    def _suspend(self, stream: int, chunks: Chunks) -> None:
        if stream in self._suspended:
            return
        if len(self._suspended) == SUSPENDED_MAX:
            self._close(chunks)
            self.write(
                self._session.error(stream, "overloaded", f"{SUSPENDED_MAX} answers wait for their clients to read")
            )
            return
        self._suspended[stream] = chunks
        self.write(self._session.credit(1))  # this also says that answers no longer come in order (PROTOCOL.md, Credit)

    def _unsuspend(self, stream: int) -> None:
        if self._suspended.pop(stream, None) is not None:
            self.write(self._session.credit(-1))

    def _close(self, chunks: Chunks) -> None:
        try:
            chunks.close()
        except BaseException as error:
            self._application.failed(error)


class Body:
    """The body of one request: see `port.ArrivingBody`."""

    __slots__ = ("_link", "_stream")

    def __init__(self, link: Blocking, stream: int) -> None:
        self._link = link
        self._stream = stream

    def read(self) -> bytes:
        if self._link.stream() not in (self._stream, 0):
            raise BodyCutOff("the request has its response")
        return self._link.read_body()

    async def next_piece(self) -> bytes:
        return self.read()
