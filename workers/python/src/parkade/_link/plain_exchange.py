"""One request that a thread answers, for code that reads its body and sends its answer itself, and waits meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

from msgspec import Struct

from .._session.session import Session
from .._wire.frames import Parts
from .answers import ClientLeft
from .outlet import Outlet
from .port import ArrivingBody


class Wakers:
    """The threads that wait until something has happened to their streams."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[threading.Event]] = {}

    def register(self, stream: int) -> threading.Event:
        """What is set then. Needs the lock of the outlet, from the look that made waiting necessary on."""
        waker = threading.Event()
        self._waiting.setdefault(stream, []).append(waker)
        return waker

    def wake(self, stream: int) -> None:
        """Something has happened: those that wait look again. Needs the lock."""
        for waker in self._waiting.pop(stream, ()):
            waker.set()


class PlainExchange(Struct, frozen=True):
    """It has the methods of `Blocking` of the same names."""

    _session: Session
    _outlet: Outlet
    _wakers: Wakers
    _body: ArrivingBody
    _stream: int
    _close: Callable[..., None]
    """Writes the closing frame of the stream: a method of the session that makes it, and its arguments."""

    def stream(self) -> int:
        return self._stream

    def read_body(self) -> bytes:
        return self._body.read()

    def begin_answer(self, head: bytes, first: bytes) -> None:
        session, stream = self._session, self._stream
        self._send(lambda: [session.begin(stream, head), *session.data(stream, first)])

    def send_answer(self, piece: bytes) -> None:
        session, stream = self._session, self._stream
        self._send(lambda: session.data(stream, piece))

    def send_file(self, park: bytes) -> bool:
        session, stream = self._session, self._stream
        if not session.naming.is_offered:
            return False
        with self._outlet.lock:
            session.naming.add(stream, session.cancelled)
        self._close(stream, session.park, park)
        self._outlet.send()
        while True:
            with self._outlet.lock:
                if stream not in session.naming:
                    return True
                waker = self._wakers.register(stream)
            waker.wait()

    def _send(self, make: Callable[[], Parts]) -> None:
        session, stream = self._session, self._stream
        with self._outlet.lock:
            self._outlet.put_parts(make())
        self._outlet.send()
        while True:
            with self._outlet.lock:
                if stream in session.cancelled:
                    raise ClientLeft
                if not session.blocked(stream):
                    return
                waker = self._wakers.register(stream)
            waker.wait()
