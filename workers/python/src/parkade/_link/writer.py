"""Writes frames to the link of a worker that runs one request at a time, whose application may have threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .._wire.frames import Parts
from .gathering import gathered, rest_of


class Writer:
    """Whole writes, one at a time.

    An uncontended lock costs 0.1 to 0.2 µs, as much as a plain handler, and hardly any application publishes from a
    thread of its own. So there is none until the first thread does.
    """

    __slots__ = ("_lock", "_main", "_send", "_send_parts", "_shared", "_writing")

    def __init__(self, send: Callable[[bytes], int], send_parts: Callable[[Parts], int]) -> None:
        """Both write some of the bytes, nearly always all, and return how many."""
        self._send = send
        self._send_parts = send_parts
        self._main = threading.get_ident()
        self._lock = threading.Lock()
        self._shared = False  # once true, every writer takes the lock
        self._writing = False  # whether the main thread is writing without it

    def write(self, data: bytes) -> None:
        """For the thread that made this writer."""
        self._writing = True  # set before `_shared` is read, because a thread sets that before it reads this
        if self._shared:
            self._writing = False
            with self._lock:
                self._send_all(data)
            return
        try:
            sent = self._send(data)
            if sent != len(data):
                self._send_all(data[sent:])
        finally:
            self._writing = False

    def write_parts(self, parts: Parts) -> None:
        """The same as `write` for frames in parts."""
        self._writing = True
        if self._shared:
            self._writing = False
            with self._lock:
                self._send_all_parts(parts)
            return
        try:
            self._send_all_parts(parts)
        finally:
            self._writing = False

    def write_from_any(self, data: bytes) -> None:
        """For any thread."""
        if threading.get_ident() == self._main:
            self.write(data)
            return
        self.write_made(lambda: data)

    def write_made(self, make: Callable[[], bytes]) -> None:
        """For any other thread than the one that made this writer: calls `make` and writes its result at once."""
        with self._lock:
            self._shared = True
            while self._writing:  # at most once in a process: the main thread may have begun before it could know
                time.sleep(0.001)
            self._send_all(make())

    def _send_all(self, data: bytes) -> None:
        while len(data) != (sent := self._send(data)):  # the pipe was full, and a signal came
            data = data[sent:]

    def _send_all_parts(self, parts: Parts) -> None:
        rest = gathered(parts) if parts else parts
        while rest:
            rest = rest_of(rest, self._send_parts(rest))
