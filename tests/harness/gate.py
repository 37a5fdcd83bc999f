"""A TCP proxy between parkade and PostgreSQL. A test can hold, delay, discard or cut its traffic."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .postgres import Postgres
from .until import SECONDS, until

# The first eight bytes of a connection: length and code (PostgreSQL's manual, section 55.7).
CANCEL_REQUEST = 80_877_102
SSL_REQUEST = 80_877_103

EXECUTE = b"E\0\0\0\x09\0\0\0\0\0"
"""The message Execute of an unnamed portal, for `hold_at`."""

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection


class Way:
    """One direction of all connections of a kind: open, held, slow or dead. Held bytes stay in order."""

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._is_held = False
        self._vanishes = False
        self._delay = 0.0
        self._marks: list[bytes] = []
        self._questions: list[tuple[bytes, Way]] = []
        self._unanswered: set[Passage] = set()
        self._holding: set[Passage] = set()
        self.passed = 0
        """Bytes that were passed on."""

    def hold(self) -> None:
        """Nothing is passed on until `release`."""
        self._set(is_held=True)

    def hold_at(self, mark: bytes) -> None:
        """A connection with these bytes (in one piece) is held right before them; the others continue."""
        with self._changed:
            self._marks.append(mark)

    def hold_answers(self, mark: bytes, answers: Way) -> None:
        """When these bytes have been passed on, the other direction of their connection is held."""
        with self._changed:
            self._questions.append((mark, answers))

    def release(self) -> None:
        """Everything is passed on again, and all marks are removed. Discarded bytes stay lost."""
        self._set()

    def vanish(self) -> None:
        """Bytes are discarded without notice, as by a cut network."""
        self._set(vanishes=True)

    def delay(self, seconds: float) -> None:
        """All bytes are delayed by this much."""
        self._set(delay=seconds)

    def until_held(self, count: int = 1, seconds: float = SECONDS) -> None:
        """Waits until this many connections have bytes that are held here."""
        until(f"{count} connections are held", lambda: len(self._holding) >= count, seconds)

    def _set(self, *, is_held: bool = False, vanishes: bool = False, delay: float = 0.0) -> None:
        with self._changed:
            self._is_held, self._vanishes, self._delay = is_held, vanishes, delay
            if not is_held:
                self._marks.clear()
                self._questions.clear()
                self._unanswered.clear()
                self._holding.clear()
            self._changed.notify_all()

    def carry(self, passage: Passage, data: bytes, sink: socket.socket) -> None:
        """Passes bytes on, when that is allowed."""
        if self._delay:
            time.sleep(self._delay)
        while data:
            with self._changed:
                for mark, answers in self._questions:
                    if mark in data:
                        answers._unanswered.add(passage)
                at = min((found for mark in self._marks if (found := data.find(mark)) >= 0), default=len(data))
                if self._is_held or at == 0 or passage in self._unanswered:
                    self._wait(passage)
                    at = len(data)
                if passage.is_cut or self._vanishes:
                    return
            sink.sendall(data[:at])
            self.passed += at
            data = data[at:]

    def _wait(self, passage: Passage) -> None:
        self._holding.add(passage)
        self._changed.wait_for(lambda: passage.is_cut or passage not in self._holding)


class Traffic:
    """All connections of a kind."""

    def __init__(self, changed: threading.Condition) -> None:
        self.to_server = Way(changed)
        self.to_client = Way(changed)
        self.count = 0
        """The number of connections so far."""

    def hold(self) -> None:
        """Both directions."""
        self.to_server.hold()
        self.to_client.hold()

    def hold_answers_to(self, mark: bytes) -> None:
        """A connection that sends these bytes to the server (in one piece) gets no answer; the others continue."""
        self.to_server.hold_answers(mark, self.to_client)

    def vanish(self) -> None:
        """Both directions."""
        self.to_server.vanish()
        self.to_client.vanish()

    def delay(self, seconds: float) -> None:
        """Both directions."""
        self.to_server.delay(seconds)
        self.to_client.delay(seconds)

    def release(self) -> None:
        """Both directions."""
        self.to_server.release()
        self.to_client.release()


@dataclass(eq=False)
class Passage:
    """One connection with its continuation."""

    traffic: Traffic
    client: socket.socket
    server: socket.socket
    is_cut: bool = False
    open_ways: int = 2

    def carry(self, source: socket.socket, sink: socket.socket, way: Way, first: bytes = b"") -> None:
        """Until the source ends; then passes on its end, or its reset."""
        try:
            way.carry(self, first, sink)
            while data := source.recv(65_536):
                way.carry(self, data, sink)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            self.cut()

    def cut(self) -> None:
        """Ends both sides at once, with bytes still in transit."""
        self.is_cut = True
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                end.shutdown(socket.SHUT_RDWR)  # wakes the threads that use it
            end.close()


class Gate:
    """Listens in front of a server. `sessions` are the connections with queries, `cancels` those of a CancelRequest."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._changed = threading.Condition()
        self._passages: set[Passage] = set()
        self._is_closed = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
        self.port: int = self._listener.getsockname()[1]
        self.sessions = Traffic(self._changed)
        self.cancels = Traffic(self._changed)
        self._start(self._accept, self._listener)

    def url(self, database: str = "postgres") -> str:
        """The address for clients of the database behind it."""
        return self._postgres.url_of(database, port=self.port)

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cut(self) -> None:
        """Ends every connection at once, on both sides."""
        with self._changed:
            for passage in list(self._passages):
                passage.cut()
            self._changed.notify_all()

    def refuse(self) -> None:
        """Refuses new connections. Existing ones continue."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def accept(self) -> None:
        """After `refuse`: listens on the same port again."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=1_024)
        self._start(self._accept, self._listener)

    @property
    def open(self) -> int:
        """The number of open connections."""
        return len(self._passages)

    def close(self) -> None:
        """Ends everything."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self.refuse()
        self.cut()

    def _start(self, act: Callable[..., None], *given: object) -> None:
        threading.Thread(target=act, args=given, daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                self._start(self._begin, client)

    def _begin(self, client: socket.socket) -> None:
        """The first message determines the kind of a connection."""
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            first = client.recv(8, socket.MSG_WAITALL)
            if first[4:] == struct.pack("!I", SSL_REQUEST):
                client.sendall(b"N")
                first = client.recv(8, socket.MSG_WAITALL)
            server = socket.create_connection(self._postgres.address)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            client.close()
            return
        traffic = self.cancels if first[4:] == struct.pack("!I", CANCEL_REQUEST) else self.sessions
        passage = Passage(traffic, client, server)
        with self._changed:
            traffic.count += 1
            self._passages.add(passage)
        self._start(self._carry, passage, client, server, traffic.to_server, first)
        self._carry(passage, server, client, traffic.to_client)

    def _carry(self, passage: Passage, *way: Any) -> None:
        passage.carry(*way)
        with self._changed:
            self._changed.notify_all()  # the other direction may be held, and this one may have been cut
            passage.open_ways -= 1
            if passage.open_ways == 0:
                self._passages.discard(passage)
                passage.client.close()
                passage.server.close()
