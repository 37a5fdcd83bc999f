"""A pooler in front of PostgreSQL: clients share a few connections, each for one transaction at a time."""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from .gate import CANCEL_REQUEST, SSL_REQUEST
from .postgres import Postgres

START = 196_608
"""Version 3.0 of the protocol."""

Key = bytes
"""Process and secret of a `CancelRequest`, in wire format."""


@dataclass
class Process:
    """A connection to the server, which outlives its clients."""

    stream: socket.socket
    key: Key
    greeting: bytes
    """The parameters that the server sends at the start: clients get a copy, because they never see that start."""


@dataclass(eq=False)
class Session:
    """A client of the pooler."""

    stream: socket.socket
    key: Key = field(default_factory=lambda: secrets.token_bytes(8))
    process: Process | None = None


class Pooler:
    """Listens in front of a server. Nothing of a session outlives its transaction here: that is its purpose."""

    def __init__(self, postgres: Postgres, processes: int = 2) -> None:
        self._postgres = postgres
        self._changed = threading.Condition()
        self._places = processes
        self._idle: list[Process] = []
        self._sessions: dict[Key, Session] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
        self.port: int = self._listener.getsockname()[1]
        self.clients = 0
        """The number of sessions so far."""
        self.cancels = 0
        """The number of `CancelRequest`s that were passed on to a process."""
        self._held = 0
        self.said: list[bytes] = []
        """The kinds of messages that clients have sent, with their contents."""
        self.before_cancel: Callable[[], object] = lambda: None
        """Called with a cancel before it is passed on, when it has already been acknowledged."""
        self._start(self._accept)

    def url(self, database: str = "postgres") -> str:
        """The address for clients of the database behind it."""
        return self._postgres.url_of(database, port=self.port)

    @property
    def is_quiet(self) -> bool:
        """No cancel is on its way."""
        return self._held == 0

    def __enter__(self) -> Pooler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends everything."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._changed:
            for session in self._sessions.values():
                shut(session.stream)
                if session.process is not None:
                    shut(session.process.stream)
            for process in self._idle:
                process.stream.close()
            self._idle.clear()
            self._places = 0

    def _start(self, act: Callable[..., None], *given: object) -> None:
        threading.Thread(target=act, args=given, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                stream, _ = self._listener.accept()
                self._start(self._begin, stream)

    def _begin(self, stream: socket.socket) -> None:
        """The first message determines the kind of a connection."""
        with stream, contextlib.suppress(OSError, EOFError):
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code, body = first_message(stream)
            while code == SSL_REQUEST:
                stream.sendall(b"N")
                code, body = first_message(stream)
            if code == CANCEL_REQUEST:
                stream.close()
                self._cancel(body)
            else:
                self._serve(Session(stream), body)

    def _cancel(self, key: Key) -> None:
        """Passes the cancel on to the process that this client has now, if it has one."""
        with self._changed:
            self._held += 1
        self.before_cancel()
        with self._changed:
            self._held -= 1
            session = self._sessions.get(key)
            process = session and session.process
            if process is None:
                return
            self.cancels += 1
            with socket.create_connection(self._postgres.address) as canceller:
                canceller.sendall(struct.pack("!ii", 16, CANCEL_REQUEST) + process.key)
                canceller.recv(1)  # its end: the signal has been sent

    def _serve(self, session: Session, start: bytes) -> None:
        with self._changed:
            self.clients += 1
            self._sessions[session.key] = session
        try:
            process = self._take(session, start)
            greeting = process.greeting
            self._give_back(session)
            session.stream.sendall(greeting + message(b"K", session.key) + message(b"Z", b"I"))
            while self._transaction(session, start):
                pass
        finally:
            with self._changed:
                del self._sessions[session.key]
                self._drop(session)

    def _transaction(self, session: Session, start: bytes) -> bool:
        """From the first message to the `ReadyForQuery` at the end; false if the client has said goodbye."""
        kind, body = next_message(session.stream)
        if kind == b"X":
            return False
        process = self._take(session, start)
        while True:
            self.said.append(kind + body)
            process.stream.sendall(message(kind, body))
            if kind in b"QS":
                status = pass_answer(process.stream, session.stream)
                if status == b"I":
                    break
            kind, body = next_message(session.stream)
            if kind == b"X":
                return False
        self._give_back(session)
        return True

    def _take(self, session: Session, start: bytes) -> Process:
        """Waits for a process, and assigns it to this client."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or self._places > 0)
            if self._idle:
                session.process = self._idle.pop(0)  # the least recently used one: seldom the same twice
                return session.process
            self._places -= 1
        session.process = connect(self._postgres.address, start)
        return session.process

    def _give_back(self, session: Session) -> None:
        """Its prepared statements are gone; behind a real pooler they would be useless, too."""
        process = session.process
        assert process is not None
        process.stream.sendall(message(b"Q", b"discard plans; deallocate all\0"))
        pass_answer(process.stream, None)
        with self._changed:
            session.process = None
            self._idle.append(process)
            self._changed.notify_all()

    def _drop(self, session: Session) -> None:
        """A client that leaves in the middle ends its process."""
        if session.process is not None:
            session.process.stream.close()
            session.process = None
            self._places += 1
            self._changed.notify_all()


def connect(address: tuple[str, int], start: bytes) -> Process:
    """A connection to the server, when it is ready. The server must not require a password."""
    stream = socket.create_connection(address)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.sendall(struct.pack("!ii", len(start) + 8, START) + start)
    greeting, key = b"", b""
    while True:
        kind, body = next_message(stream)
        assert kind != b"E", body
        if kind == b"K":
            key = body
        elif kind == b"Z":
            return Process(stream, key, greeting)
        else:
            greeting += message(kind, body)


def pass_answer(source: socket.socket, sink: socket.socket | None) -> bytes:
    """Up to `ReadyForQuery`; returns its status."""
    while True:
        kind, body = next_message(source)
        if sink is not None:
            sink.sendall(message(kind, body))
        if kind == b"Z":
            return body


def message(kind: bytes, body: bytes) -> bytes:
    """In wire format."""
    return kind + struct.pack("!i", len(body) + 4) + body


def first_message(stream: socket.socket) -> tuple[int, bytes]:
    """The first message of a connection: its code, and the rest."""
    length, code = struct.unpack("!ii", exactly(stream, 8))
    return code, exactly(stream, length - 8)


def next_message(stream: socket.socket) -> tuple[bytes, bytes]:
    """Kind and body."""
    kind = exactly(stream, 1)
    (length,) = struct.unpack("!i", exactly(stream, 4))
    return kind, exactly(stream, length - 4)


def exactly(stream: socket.socket, count: int) -> bytes:
    """This many bytes; raises an error if the connection ends before."""
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def shut(stream: socket.socket) -> None:
    """Wakes the thread that reads it."""
    with contextlib.suppress(OSError):
        stream.shutdown(socket.SHUT_RDWR)
