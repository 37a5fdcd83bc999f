"""Waits of plain code in the threads of a worker with an event loop, which keeps its thread meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait

from msgspec import Struct

from .._session.session import Session
from .._wire import payloads as p
from .._wire.codec import encode_payload
from ..errors import WaitError
from . import port
from .exchange import Exchange
from .held_stream import RESPONDED, cancelled


class HeldWaits:
    """What plain functions wait for: branches of their streams, which the loop begins and ends.

    `owns` says whether a thread answers the stream, and `write` writes with the rest of a turn of the loop.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        session: Session,
        owns: Callable[[int], bool],
        write: Callable[[bytes], None],
    ) -> None:
        self._loop = loop
        self._session = session
        self._owns = owns
        self._write = write
        self._waiting: dict[int, tuple[int, Future[p.Outcome]]] = {}  # by their branches, with their streams

    # In a thread

    def hold(self, stream: int, park: bytes) -> p.Outcome:
        """See `held_stream.Link`."""
        future: Future[p.Outcome] = Future()
        self._loop.call_soon_threadsafe(self._begin, stream, park, future)
        try:
            outcome = future.result()
        except CancelledError:
            raise cancelled() from None
        except BaseException:  # of a handler of signals, or the reason why it did not begin
            self._loop.call_soon_threadsafe(self._withdraw, stream, future)
            raise
        if isinstance(outcome, p.Unparked):
            raise cancelled()
        return outcome

    def holds(self, stream: int) -> bool:
        """Whether something of the stream is waited for. No thread has to wait to be told."""
        return bool(self._waiting) and any(holder == stream for holder, _ in list(self._waiting.values()))

    def leave(self, stream: int) -> None:
        """The stream is about to be closed, and no longer owned: withdraws what other threads wait for, and returns
        when that is over.
        """
        left = [future for holder, future in list(self._waiting.values()) if holder == stream]
        self._loop.call_soon_threadsafe(self._withdraw, stream, None)
        wait(left)

    # In the loop

    def _begin(self, stream: int, park: bytes, future: Future[p.Outcome]) -> None:
        if not self._owns(stream):
            future.set_exception(WaitError(RESPONDED))
        elif stream in self._session.cancelled:
            future.cancel()
        else:
            try:
                branch, data = self._session.branch(stream, park)
            except ValueError as error:
                future.set_exception(error)
                return
            self._waiting[branch] = stream, future
            self._write(data)

    def end(self, branch: int, outcome: p.Outcome) -> bool:
        """The wait is over. Returns whether it was one of these."""
        if branch not in self._waiting:
            return False
        _, future = self._waiting.pop(branch)
        future.set_result(outcome)
        return True

    def cancel(self, stream: int) -> None:
        """The stream was cancelled, and its branches with it."""
        for branch, (holder, future) in list(self._waiting.items()):
            if holder == stream:
                del self._waiting[branch]
                future.cancel()

    def _withdraw(self, stream: int, one: Future[p.Outcome] | None) -> None:
        for branch, (holder, future) in self._waiting.items():
            if holder == stream and one in (None, future):
                self._write(self._session.unpark(branch))


class HeldExchange(Struct, frozen=True):
    """A thread that a coroutine of the loop waits for, and that has its context. See `port.Holder`."""

    who: Exchange
    _loop: asyncio.AbstractEventLoop

    def ask(self, wait: port.Statement) -> p.Outcome:
        asked = asyncio.run_coroutine_threadsafe(self.who.wait(encode_payload((wait, p.Await()))), self._loop)
        try:
            return asked.result()
        except CancelledError:
            raise cancelled() from None
        except BaseException:
            asked.cancel()
            raise

    def over(self, committed: bool) -> None:
        """Its handles are the coroutine's."""
        self._loop.call_soon_threadsafe(port.tell_enqueued, self.who, committed)
