"""The pipe to the core, for a worker in which an event loop and threads write."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import threading
from collections.abc import Callable
from typing import Protocol

from .._wire.frames import Parts
from .gathering import IOV_MAX, gathered, rest_of, write


class Owner(Protocol):
    """Receives the events of the pipe, in the loop."""

    def pipe_is_full(self) -> None:
        """The core reads more slowly than the worker writes."""

    def pipe_is_empty(self) -> None:
        """Everything queued has been written."""

    def pipe_is_lost(self) -> None:
        """The core has gone."""


class Outlet:
    """Frames leave in the order in which they were queued, whichever thread writes them: the pipe gets whole entries.

    `lock` is held for a write, which never blocks. It is also held from the session's decision about a frame until that
    is queued, so that nothing comes in between. A full pipe blocks the thread that writes; the loop is told of room.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: Owner) -> None:
        self.lock = threading.Lock()
        self._loop = loop
        self._owner = owner
        self._descriptor: int | None = None  # None: not open yet, or closed; what is queued is kept, or lost
        self._queue: Parts = []
        self.put: Callable[[bytes], None] = self._queue.append
        """Queues whole frames after all that were queued before. Any thread may call it."""
        self.put_parts: Callable[[Parts], None] = self._queue.extend
        """The same for frames in parts, between which nothing comes."""
        self._rest: Parts = []  # of what did not fit
        self._watched = False  # whether the loop waits for room
        self._empty: list[asyncio.Future[None]] = []

    def open(self, descriptor: int) -> None:
        """Writes there from now on."""
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor

    # In the loop

    def flush(self) -> bool:
        """Writes as much as fits; returns whether that was everything."""
        with self.lock:
            done = self._write()
        if not done and not self._watched and self._descriptor is not None:
            self._watched = True
            self._loop.add_writer(self._descriptor, self._writable)
            self._owner.pipe_is_full()
        return done

    async def sent(self) -> None:
        """Returns when everything queued is in the pipe."""
        if not self.flush():
            future: asyncio.Future[None] = self._loop.create_future()
            self._empty.append(future)
            await future

    async def close(self) -> None:
        """Writes what is left, and closes the pipe."""
        await self.sent()
        with self.lock:
            descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _writable(self) -> None:
        with self.lock:
            done = self._write()
        if done:
            self._watched = False
            if self._descriptor is not None:
                self._loop.remove_writer(self._descriptor)
            self._owner.pipe_is_empty()
            waiting, self._empty = self._empty, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    # In a thread

    def send(self) -> None:
        """Returns when everything queued is in the pipe."""
        while True:
            with self.lock:
                if self._write() or (descriptor := self._descriptor) is None:
                    return
            room = select.poll()
            room.register(descriptor, select.POLLOUT)
            room.poll()

    # With the lock

    def _write(self) -> bool:
        if self._descriptor is None:
            return True
        queue = self._queue
        while self._rest or queue:
            parts = self._rest or gathered(_take_all(queue))
            try:
                sent = write(self._descriptor, parts)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._lose()
                return True
            self._rest = rest_of(parts, sent)
            if self._rest and (sent == 0 or len(parts) <= IOV_MAX):
                return False
        return True

    def _lose(self) -> None:
        self._descriptor, self._rest = None, []
        self._queue.clear()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._owner.pipe_is_lost)


def _take_all(queue: Parts) -> Parts:
    """Takes what is queued now; entries that others add meanwhile stay."""
    taken = queue[:]
    del queue[: len(taken)]
    return taken
