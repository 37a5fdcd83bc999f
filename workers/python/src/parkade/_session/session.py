"""The worker's end of a link, without I/O: bytes in, events out; methods give the bytes to write (PROTOCOL.md,
sections 2 to 4).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import msgspec

from .._limits import BRANCH_FIRST, LOG_TEXT_MAX
from .._wire import frames as f
from .._wire import payloads as p
from .._wire.codec import FROM_CORE, encode_payload, read
from .._wire.frames import Parts, frame
from .._wire.ready import Application, Ready
from .._wire.values import end_of
from ..errors import Violation
from .arrivals import Arrivals
from .bodies import Bodies
from .branches import Branches, park_of
from .events import (
    BodyArrived,
    Called,
    Cancelled,
    Continued,
    Draining,
    Ended,
    Event,
    Given,
    Opened,
    OpenedEarly,
    Pinged,
    Reply,
    Resumed,
    SocketClosed,
    Writable,
)
from .hello import HINTS_AND_TRAILERS, LONG_MESSAGES, PARTS, Phase, answer_to
from .naming import Naming
from .openings import plain_openings
from .sockets import Sockets
from .streams import AWAITING, HELD, SOCKET, Awaiting, Collecting, Held, Opening, Responding, Socket, Stream

_READY: Phase = Phase.READY
_OVER: Phase = Phase.OVER

_HELD = (Held, Responding, Socket)
_NOTHING = encode_payload(p.Nothing())

# Used for every request and every job: names in this module spare attribute lookups.
_PLAIN_RESPONSE = f.PLAIN_RESPONSE
_PLAIN_BEGAN = f.PLAIN_BEGAN
_pack_plain = f.pack_plain


class Session:
    """One link's state.

    `concurrent` workers may hold answers back and await; others are given what they run in the order of arrival. A
    request of a route in `opens_early` whose body follows is given at once (`OpenedEarly`), others with the whole body.
    """

    def __init__(self, opens_early: Container[int | None] = ()) -> None:
        self.opens_early = opens_early
        self.decoder = f.Decoder()  # says how many bytes to read next
        self._phase = Phase.NEW
        self._concurrent = False
        self._streams: dict[int, Stream] = {}
        self._highest = 0
        self._arrivals = Arrivals()
        self.has_trailers = False  # whether the core takes EARLY_HINTS and TRAILERS
        self.bodies = Bodies()  # of requests that were opened early
        self.sockets, self.naming = Sockets(), Naming()
        self._branches = Branches()
        self.watch: list[str] = []  # where the code was loaded from, for READY and FAILED
        self.cancelled: set[int] = set()  # held streams whose answer is no longer wanted

    def held(self, stream: int) -> bool:
        """Whether a closing frame is due on the stream."""
        return isinstance(self._streams.get(stream), _HELD)

    def awaiting(self, stream: int) -> bool:
        """Whether a coroutine of this worker continues the stream later: it is parked, or its rows are arriving."""
        return self.is_parked(stream) or self._awaits_rows(stream)

    def is_parked(self, stream: int) -> bool:
        """Whether it is parked with `await`, and the core has not said that the wait is over."""
        return self._streams.get(stream) is AWAITING

    def _awaits_rows(self, stream: int) -> bool:
        return isinstance(state := self._streams.get(stream), Collecting) and isinstance(state.event, Resumed)

    def is_branched(self, stream: int) -> bool:
        return bool(self.branches_of(stream))

    def branches_of(self, stream: int) -> list[int]:
        """The branches of it that are open."""
        return self._branches.of(stream) if self._branches else []

    def may_await(self, stream: int) -> bool:
        """Whether it can be parked with `await`: it is held, wanted, and nothing of its answer was written."""
        return self._streams.get(stream) is HELD and stream not in self.cancelled

    def is_responding(self, stream: int) -> bool:
        """Whether an answer has begun, and its rest is due."""
        return isinstance(self._streams.get(stream), Responding)

    def takes_writes(self, stream: int) -> bool:
        """Whether jobs and messages are written on the stream, which waits for them; otherwise on the link's own."""
        return (self.held(stream) and stream not in self.cancelled) or self.awaiting(stream)

    # In

    def receive(self, data: bytes) -> list[Event]:
        """The events in `data`, in order. Nothing comes after an `Ended`."""
        events: list[Event] = []
        if self._phase is _READY and not self._arrivals and not self.decoder.missing:
            data, self._highest = plain_openings(self.decoder.joined(data), self._streams, self._highest, events)
        elif self._phase is _OVER:
            return events
        if data:
            self._receive(data, events)
        return events

    def _receive(self, data: bytes, events: list[Event]) -> None:
        try:
            for kind, flags, stream, payload in self.decoder.feed(data):
                value = read(FROM_CORE, kind, stream, payload)
                if value is not None:
                    self._take(kind, flags, stream, value, events)
                if self._phase is _OVER:
                    break
        except Violation as violation:
            self._phase = Phase.OVER
            events.append(Reply(self.goodbye("violation", str(violation))))
            events.append(Ended("violation", str(violation)))

    def _take(self, kind: int, flags: int, stream: int, value: Any, events: list[Event]) -> None:
        if self._phase is not _READY and kind not in _BEFORE_READY:
            raise Violation(f"{f.NAMES[kind]} before its time")
        match kind:
            case f.REQUEST:
                self._request(flags, stream, value, events)
            case f.RUN:
                self._begin(stream, Given(stream, value), events)
            case f.RESUME:
                self._resume(flags, value, events)
            case f.DATA:
                self._data(flags, stream, value, events)
            case f.WINDOW:
                self._window(stream, value.bytes, events)
            case f.MESSAGE if self._is_socket(stream, "MESSAGE"):
                if (message := self.sockets.receive(stream, flags, value)) is not None:
                    events.append(message)
            case f.CLOSE if self._is_socket(stream, "CLOSE"):
                events.append(SocketClosed(stream, value.code, value.text))
            case f.MESSAGE | f.CLOSE:
                pass  # it crossed the end of the WebSocket
            case f.CANCEL:
                self._cancel(stream, value.text, events)
            case f.PING:
                events.append(Pinged(value.token))
            case f.DRAIN:
                events.append(Draining(value.seconds))
            case f.GOODBYE:
                self._phase = Phase.OVER
                self.naming.release_all(events)
                events.append(Ended(value.code, value.text))
            case f.HELLO:
                self._hello(value, events)
            case _:
                raise Violation(f"{f.NAMES[kind]} was not agreed upon")

    def _hello(self, hello: p.Hello, events: list[Event]) -> None:
        if self._phase is not Phase.NEW:
            raise Violation("a second HELLO")
        told, agrees = answer_to(hello)
        self.naming.is_offered = bool(hello.features & PARTS)
        self._phase = Phase.GREETED if agrees else Phase.OVER
        self.has_trailers = bool(hello.features & HINTS_AND_TRAILERS)
        self.sockets.has_long_messages = bool(hello.features & LONG_MESSAGES)
        events += told

    def _request(self, flags: int, stream: int, request: p.Request, events: list[Event]) -> None:
        if flags & f.MORE and request.route in self.opens_early:
            self.bodies.open(stream)
            self._begin(stream, OpenedEarly(stream, request), events)
            return
        self._give(stream, Opened(stream, request), bool(flags & f.MORE), events)

    def _resume(self, flags: int, resume: p.Resume, events: list[Event]) -> None:
        follows = resume.body_follows
        if follows is not bool(flags & f.MORE):
            raise Violation("RESUME whose MORE and rows do not go together")
        if resume.function is not None and resume.states is not None:
            for stream, state in zip(resume.streams, resume.states, strict=True):
                self._give(stream, Called(stream, resume.function, state, resume.outcome), follows, events)
            return
        resumed = Resumed(resume.streams, resume.outcome)
        for stream in resume.streams:
            if self._streams.get(stream) is not AWAITING:
                raise Violation(f"RESUME of stream {stream}, which awaits nothing")
            if follows:
                self._streams[stream] = Collecting(resumed)
            else:
                self._hold(stream)
        if not follows:
            events.append(resumed)

    def _hold(self, stream: int) -> None:
        if self._branches and stream in self._branches:
            self._close_branch(stream)
        else:
            self._streams[stream] = HELD

    def _close_branch(self, branch: int) -> None:
        self._branches.close(branch)
        del self._streams[branch]

    def _open(self, stream: int, state: Stream) -> None:
        if not self._highest < stream < BRANCH_FIRST:
            raise Violation(f"stream {stream} is opened after stream {self._highest}")
        self._highest = stream
        self._streams[stream] = state

    def _give(self, stream: int, event: Opened | Called, follows: bool, events: list[Event]) -> None:
        if follows:
            self._open(stream, Collecting(event))
            self._arrivals.collect(stream)
        else:
            self._begin(stream, event, events)

    def _begin(self, stream: int, event: Opening, events: list[Event]) -> None:
        self._open(stream, HELD)
        if self._arrivals and not self._concurrent:
            self._arrivals.wait(event)
        else:
            events.append(event)

    def _data(self, flags: int, stream: int, data: bytes, events: list[Event]) -> None:
        self._known(stream, "DATA")
        if self.bodies.receive(stream, data, is_last=not flags & f.MORE):
            events.append(BodyArrived(stream))
            return
        collecting = self._streams.get(stream)
        if collecting is None:
            return  # it crossed the closing frame
        if not isinstance(collecting, Collecting):
            raise Violation(f"DATA on stream {stream}, which has none to come")
        if not collecting.window.receive(len(data)):
            raise Violation(f"DATA beyond the window of stream {stream}")
        collecting.chunks.append(data)
        if not flags & f.MORE:
            self._complete(stream, collecting, events)
            return
        if granted := collecting.window.consume(len(data)):
            events.append(Reply(frame(f.WINDOW, stream, encode_payload([granted]))))

    def _complete(self, stream: int, collecting: Collecting, events: list[Event]) -> None:
        self._hold(stream)
        event = collecting.complete()
        if isinstance(event, Resumed):
            events.append(event)
        else:
            events += self._arrivals.collected(stream, event, not self._concurrent)

    def _window(self, stream: int, grant: int, events: list[Event]) -> None:
        self._known(stream, "WINDOW")
        if stream in self.sockets:
            events += self.sockets.grant(stream, grant)
            return
        responding = self._streams.get(stream)
        if not isinstance(responding, Responding) or stream in self.cancelled:
            self.naming.release(stream, events)  # or it crossed the end of the answer
            return
        responding.window += grant
        if not responding.rest:
            return
        if parts := responding.flush(stream):
            events.append(Continued(parts))
        if not responding.rest:
            events.append(Writable(stream))

    def _is_socket(self, stream: int, name: str) -> bool:
        """Whether the stream is a WebSocket that is not over. Raises `Violation` if it never was one."""
        self._known(stream, name)
        if stream not in self.sockets and stream in self._streams and stream not in self.cancelled:
            raise Violation(f"{name} on stream {stream}, which is no WebSocket")
        return stream in self.sockets

    def _cancel(self, stream: int, reason: str, events: list[Event]) -> None:
        self._known(stream, "CANCEL")
        for branch in self.branches_of(stream):
            self._close_branch(branch)
        match self._streams.get(stream):
            case None:  # it crossed the closing frame
                self.naming.release(stream, events)
                return
            case Awaiting():
                del self._streams[stream]
            case Collecting(event=Resumed()):
                events.append(Reply(self.error(stream, "cancelled")))  # its coroutine has not continued it
            case Collecting():
                events.append(Reply(self.error(stream, "cancelled")))
                events += self._arrivals.collected(stream, None, not self._concurrent)
                return
            case _:
                self.cancelled.add(stream)
                self.sockets.close(stream)
        events.append(Cancelled(stream, reason))

    def _known(self, stream: int, name: str) -> None:
        if self._highest < stream < BRANCH_FIRST:
            raise Violation(f"{name} on stream {stream}, which was never opened")

    # Out

    def ready(self, credit: int, application: Application) -> bytes:
        """READY: from here on the core gives requests."""
        self._phase = Phase.READY
        self._concurrent = application.concurrent
        if self.watch:
            application = msgspec.structs.replace(application, watch=self.watch)
        return frame(f.READY, 0, encode_payload(Ready(credit, application)))

    def failed(self, text: str) -> bytes:
        """FAILED, with the end of `text` if it is too long."""
        watch = [self.watch] if self.watch else []
        return frame(f.FAILED, 0, encode_payload([end_of(text, LOG_TEXT_MAX), *watch]))

    def began(self, stream: int) -> bytes:
        """BEGAN: the code of the stream, which is held, is about to begin."""
        return _pack_plain(1, _PLAIN_BEGAN, stream) + _NOTHING

    def respond(self, stream: int, response: bytes) -> bytes:
        """A complete response, encoded; it closes the stream."""
        if self.cancelled and stream in self.cancelled:
            return self.error(stream, "cancelled")
        del self._streams[stream]
        if not self.bodies.is_empty:
            self.bodies.close(stream)
        return _pack_plain(len(response), _PLAIN_RESPONSE, stream) + response

    def _close(self, stream: int) -> None:
        del self._streams[stream]
        self.bodies.close(stream)
        self.sockets.close(stream)

    def begin(self, stream: int, head: bytes) -> bytes:
        """The head of a response, encoded with nil for its body; `data` follows, and `finish`."""
        if stream in self.cancelled:
            return b""
        self._streams[stream] = Responding()
        return frame(f.RESPONSE, stream, head, f.MORE)

    def data(self, stream: int, chunk: bytes) -> Parts:
        """As much of the chunk as the window allows; the rest is kept until WINDOW. Not while `blocked`."""
        responding = self._streams[stream]
        if stream in self.cancelled or not isinstance(responding, Responding):
            return []
        if responding.rest:
            raise RuntimeError(f"more data on stream {stream} while its window is used up")
        return responding.send(stream, chunk)

    def blocked(self, stream: int) -> bool:
        """Whether a part of the answer is held back until the client has read more."""
        responding = self._streams.get(stream)
        return isinstance(responding, Responding) and len(responding.rest) > 0 and stream not in self.cancelled

    def early_hints(self, stream: int, headers: list[Any]) -> bytes:
        """EARLY_HINTS (name, value, name…), before an answer; nothing if it has begun, or nobody wants it."""
        is_wanted = self.has_trailers and self.may_await(stream)
        return frame(f.EARLY_HINTS, stream, encode_payload([headers])) if is_wanted else b""

    def finish(self, stream: int, trailers: list[Any] | None = None) -> bytes:
        """The end of a streamed answer, with trailers if any; it closes the stream. Not while `blocked`."""
        if stream in self.cancelled:
            return self.error(stream, "cancelled")
        self._close(stream)
        is_wanted = trailers and self.has_trailers
        return frame(f.TRAILERS, stream, encode_payload([trailers])) if is_wanted else frame(f.DATA, stream, b"")

    def accept(self, stream: int, head: bytes) -> bytes:
        """RESPONSE with 101, encoded with nil for its body: from now on the stream is one of `sockets`."""
        if stream in self.cancelled:
            return b""
        self._streams[stream] = SOCKET
        self.sockets.open(stream)
        return frame(f.RESPONSE, stream, head, f.MORE)

    def close_socket(self, stream: int, code: int, text: str) -> bytes:
        """CLOSE of a WebSocket; it closes the stream."""
        if stream in self.cancelled:
            return self.error(stream, "cancelled")
        self._close(stream)
        return frame(f.CLOSE, stream, encode_payload([code, text]))

    def park(self, stream: int, park: bytes) -> bytes:
        """PARK, encoded, with another `then` than `await`; it closes the stream."""
        if stream in self.cancelled:
            return self.error(stream, "cancelled")
        del self._streams[stream]  # as in `respond`, and it has never been a socket
        if not self.bodies.is_empty:
            self.bodies.close(stream)
        return frame(f.PARK, stream, park)

    def park_awaiting(self, stream: int, park: bytes) -> bytes:
        """PARK, encoded, with `await`: `Resumed` or `Cancelled` will name the stream. Its answer has not begun."""
        if self._streams.get(stream) is not HELD or stream in self.cancelled:
            raise RuntimeError(f"stream {stream} cannot be parked now")
        self._streams[stream] = AWAITING
        return frame(f.PARK, stream, park)

    def branch(self, stream: int, park: bytes) -> tuple[int, bytes]:
        """The branch of a stream that is held or awaiting, and its PARK, from one encoded with `await`."""
        payload = park_of(stream, park)
        branch = self._branches.open(stream)
        self._streams[branch] = AWAITING
        return branch, frame(f.PARK, branch, payload)

    def unpark(self, stream: int) -> bytes:
        """UNPARK of an awaiting stream, which `Resumed` will name then; nothing when its rows are coming already."""
        if not self.awaiting(stream):
            raise RuntimeError(f"stream {stream} is not parked")
        if self._awaits_rows(stream):
            return b""
        return frame(f.UNPARK, stream, _NOTHING)

    def end(self, stream: int, kind: int, payload: bytes) -> bytes:
        """How a job's attempt ended, encoded: RESULT, or ERROR with a reason of its own. It closes the stream."""
        if stream in self.cancelled:
            return self.error(stream, "cancelled")
        del self._streams[stream]
        if not self.bodies.is_empty:
            self.bodies.close(stream)
        return frame(kind, stream, payload)

    def progress(self, stream: int, progress: bytes) -> bytes:
        """PROGRESS, encoded, of a job; nothing unless it is held and wanted."""
        if not self.held(stream) or stream in self.cancelled:
            return b""
        return frame(f.PROGRESS, stream, progress)

    def enqueue(self, stream: int, job: bytes) -> bytes:
        """ENQUEUE, encoded, for that stream (0 for none), or on the link's own if it has ended."""
        if self._streams.get(stream) is HELD and not self.cancelled:  # nearly always
            return frame(f.ENQUEUE, stream, job)
        return frame(f.ENQUEUE, stream, job) if self.takes_writes(stream) else self.enqueue_alone(job)

    @staticmethod
    def enqueue_alone(job: bytes) -> bytes:
        """ENQUEUE, encoded, without a stream. Any thread may call it."""
        return frame(f.ENQUEUE, 0, job)

    def error(self, stream: int, reason: str, text: str = "") -> bytes:
        """ERROR: `application`, `cancelled` or `overloaded`, with a text for the log; it closes the stream."""
        self._close(stream)
        self.cancelled.discard(stream)
        return frame(f.ERROR, stream, encode_payload([reason, end_of(text, LOG_TEXT_MAX)]))

    def publish(
        self, stream: int, channel: str, content_type: str, body: bytes, event: str | None, number: int
    ) -> bytes:
        """PUBLISH for that stream (0 for none), or on the link's own if it has ended. `number` is for its cursor."""
        if self.takes_writes(stream):
            return frame(f.PUBLISH, stream, encode_payload([channel, content_type, body, event, number]))
        told = [channel, content_type, body] if event is None else [channel, content_type, body, event]
        return frame(f.PUBLISH, 0, encode_payload(told))

    def credit(self, delta: int) -> bytes:
        """CREDIT: this many streams more, or fewer."""
        return frame(f.CREDIT, 0, encode_payload([delta]))

    def pong(self, token: int) -> bytes:
        """The answer to a PING."""
        return frame(f.PONG, 0, encode_payload([token]))

    def goodbye(self, code: str, text: str) -> bytes:
        """GOODBYE: nothing is written after it."""
        return frame(f.GOODBYE, 0, encode_payload([code, text]))


_BEFORE_READY = {f.HELLO, f.PING, f.DRAIN, f.GOODBYE}
