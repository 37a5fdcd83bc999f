"""A transaction of code that works for no request: of a script, or of a thread or a hook of a worker. It has a
connection to the server for itself, which speaks frames (PROTOCOL.md, section 7).
"""

from __future__ import annotations

import select
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from socket import SHUT_RDWR, socket
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec.structs import replace

from .._limits import RECEIVE_SIZE
from .._link.enqueued import STORED
from .._sql.open_transactions import requester
from .._waits.wait import AWAIT, encode_park
from .._wire import frames as f
from .._wire import payloads as p
from .._wire.codec import FROM_CORE, read
from .._wire.frames import frame
from ..errors import ConnectError, QueryError, Violation

if TYPE_CHECKING:
    from http.client import HTTPResponse

STREAM = 1
"""The stream of all frames."""


class ScriptTransaction:
    """See `port.Holder`. It is connected when it begins, by the thread that may use it. `of`: the connection, if there
    is one, with which it is closed.
    """

    def __init__(self, connect: Callable[[], tuple[socket, HTTPResponse]], of: object) -> None:
        self._connect = connect
        self.of = of
        self.who = requester()
        self._thread = threading.current_thread()
        self._link: tuple[socket, HTTPResponse] | None = None
        self._frames: Iterator[tuple[int, int, Any]] = iter(())
        self._has_enqueued = False
        self._ended: QueryError | None = None  # how, if it was not the code that ended it

    def ask(self, wait: p.Wait) -> p.Outcome:
        """Returns the outcome of a wait.

        Raises `ConnectError` when no server answers, or when it refuses; `QueryError` when the transaction has ended
        otherwise than by its code.
        """
        outcome = self._exchange(wait, encode_park(wait, AWAIT))
        if isinstance(wait, p.Commit) and isinstance(outcome, p.Rows) and self._has_enqueued:
            self._await_store()
        return outcome

    def _await_store(self) -> None:
        """Where the transaction has not stored its jobs itself, they are stored after the COMMIT."""
        try:
            stored = self._exchange(p.UntilStored(), STORED)
        except QueryError as error:
            raise ConnectError(f"the transaction has committed, but its jobs may not be stored: {error}") from error
        if isinstance(stored, p.Refused):
            raise ConnectError(f"the transaction has committed, but a job of it is not stored: {stored.text}")

    def enqueue(self, job: bytes) -> None:
        """Enqueues a job, encoded for ENQUEUE, that is stored when it commits."""
        self._has_enqueued = True
        try:
            self._send(f.ENQUEUE, job)
        except OSError as error:
            self._end(_lost(None), error)

    def over(self, committed: bool) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. If the transaction is open, the server rolls it back."""
        if self._link is not None:
            link, response = self._link
            self._link = None
            _open.pop(self._thread, None)
            with suppress(OSError):
                link.shutdown(SHUT_RDWR)  # wakes a thread that reads from it
            response.close()
            link.close()

    def _exchange(self, wait: p.Wait, park: bytes) -> p.Outcome:
        if self._link is None:
            if not isinstance(wait, p.Begin):
                raise self._ended or _lost(None)
            self._link = self._connect()
            self._frames = self._read(self._link[1])
            _open[self._thread] = self
        try:
            if _has_come(self._link[0]):  # it has ended, or may not begin: nothing is sent
                return self._receive(None)
            self._send(f.PARK, park)
            return self._receive(wait)
        except (OSError, EOFError, Violation) as error:
            self._end(_lost(wait), error)
        except QueryError:
            raise
        except BaseException as error:  # of a signal's handler: what comes of the wait will never be read
            self._ended = _lost(wait)
            self.close()
            raise error

    def _send(self, kind: int, payload: bytes) -> None:
        if self._link is None:
            raise self._ended or _lost(None)
        self._link[0].sendall(frame(kind, STREAM, payload))

    def _receive(self, wait: p.Wait | None) -> p.Outcome:
        resumed: p.Outcome | None = None
        pieces = []
        while True:
            kind, flags, value = next(self._frames)
            match kind:
                case f.CANCEL:
                    self._end(_ended(wait, value.text), None)
                case f.RESUME:
                    if not flags & f.MORE:
                        outcome: p.Outcome = value.outcome
                        return outcome
                    resumed = value.outcome
                case f.DATA:
                    pieces.append(value)
                    if not flags & f.MORE:
                        assert isinstance(resumed, p.Rows), "nothing else is followed by a body here"
                        return replace(resumed, body=b"".join(pieces))

    def _read(self, response: HTTPResponse) -> Iterator[tuple[int, int, Any]]:
        decoder = f.Decoder()
        while data := response.fp.read1(RECEIVE_SIZE):
            for kind, flags, stream, payload in decoder.feed(data):
                yield kind, flags, read(FROM_CORE, kind, stream, payload)
        raise EOFError("the server has closed the connection")

    def _end(self, error: QueryError, cause: BaseException | None) -> NoReturn:
        self._ended = error
        self.close()
        raise error from cause


def _has_come(link: socket) -> bool:
    """Whether something can be read."""
    waiting = select.poll()
    waiting.register(link, select.POLLIN)
    return bool(waiting.poll(0))


def _lost(wait: p.Wait | None) -> QueryError:
    lost = "the connection to the server was lost"
    if isinstance(wait, p.Commit):
        text = f"{lost}; whether the COMMIT was carried out is not known"
        return QueryError(text, reason="lost", effect="unknown", status=503)
    return QueryError(f"{lost}; its transaction is rolled back", reason="lost", effect="cancelled", status=503)


def _ended(wait: p.Wait | None, reason: str) -> QueryError:
    why = {
        "deadline": "it was idle for longer than the server permits",
        "operator": "an operator ended it",
        "stopping": "the server is stopping",
    }.get(reason, reason)
    if isinstance(wait, p.Commit):
        text = f"the COMMIT was given up: {why}; whether it was carried out is not known"
        return QueryError(text, reason=reason, effect="unknown", status=503)
    return QueryError(f"the transaction was rolled back: {why}", reason=reason, effect="cancelled", status=503)


def open_here() -> ScriptTransaction | None:
    """The open transaction of this thread, which has one at a time."""
    return _open.get(threading.current_thread())


def close_transactions(of: object) -> None:
    """Closes the open transactions of this connection."""
    for transaction in [transaction for transaction in _open.values() if transaction.of is of]:
        transaction.close()


_open: dict[threading.Thread, ScriptTransaction] = {}  # each is removed when it is over
