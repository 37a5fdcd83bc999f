"""One request that a coroutine is answering, or one job: what it waits for, and what it must not do in the meantime."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol

from msgspec import Struct

from .._wire import payloads as p
from ..errors import WaitError
from .enqueued import Enqueued


class Link(Protocol):
    """What an exchange needs from its link."""

    loop: asyncio.AbstractEventLoop

    def park(self, stream: int, park: bytes) -> None:
        """Parks a held stream with `await`. Raises `WaitError` if its answer has begun or ended."""

    def awaiting(self, stream: int) -> bool:
        """Whether the stream is parked with `await`, or its rows are arriving."""

    def unpark(self, stream: int) -> None:
        """Withdraws a PARK with `await`: RESUME comes at once. Does nothing if the stream is not parked, or its rows
        are arriving.
        """


AWAITED = "a wait can only be awaited in the async def that answers a request or is a job"


class Exchange(Struct, eq=False):
    """One stream that a coroutine answers.

    `occupies` is whether the core counts its worker as busy with it (a plain function's); `waiting` what some part of
    it awaits now; `waiters` hear of RESUME (None: it was never parked); `writable` is what a streamed answer waits for
    while its client reads; for `enqueued` see `port.Exchange`; `_parked` is how many seconds it was parked
    before `_parked_at`, since when it is again. A `Struct`, since every request makes one.
    """

    _link: Link
    stream: int
    task: asyncio.Task[Any]
    occupies: bool = False
    waiting: asyncio.Future[p.Outcome] | None = None
    waiters: list[asyncio.Future[p.Outcome]] | None = None
    writable: asyncio.Future[None] | None = None
    enqueued: Enqueued | None = None
    _parked: float = 0.0
    _parked_at: float | None = None

    async def wait(self, park: bytes) -> p.Outcome:
        """See `port.Exchange`."""
        if asyncio.get_running_loop() is not self._link.loop:
            raise WaitError(f"{AWAITED}, not in another event loop")
        if self.waiting is not None and self.waiting.cancelled():
            self.give_up()  # its task was cancelled, and has not had a turn since
        self._waits_for_nothing()
        await self.held_again()
        self._waits_for_nothing()
        self._link.park(self.stream, park)
        self._parked_at = time.monotonic()
        if self.enqueued is not None:
            self.enqueued.parked(park)
        mine = self.waiting = self._resumed()
        try:
            return await mine
        except BaseException:  # withdrawn, for instance by `asyncio.timeout`; or ended by the core
            if self.waiting is mine:
                self.give_up()
            raise
        finally:
            if self.waiting is mine:
                self.waiting = None

    def _waits_for_nothing(self) -> None:
        if self.waiting is not None:
            raise WaitError("this request is waiting already: a request waits for one thing at a time")

    def give_up(self) -> None:
        """The answer is no longer wanted: tasks that still wait are cancelled."""
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None
            self._link.unpark(self.stream)

    async def held_again(self) -> None:
        """Waits for the RESUME of a wait that was abandoned: until then the request can neither be answered nor parked
        again.
        """
        if self._link.awaiting(self.stream):
            await self._resumed()

    @property
    def parked_seconds(self) -> float:
        """How long it has been parked so far."""
        since = self._parked_at
        return self._parked if since is None else self._parked + time.monotonic() - since

    def _resumed(self) -> asyncio.Future[p.Outcome]:
        """A separate future, so that cancelling one waiter does not cancel the others."""
        future: asyncio.Future[p.Outcome] = self._link.loop.create_future()
        self.waiters = [*(self.waiters or []), future]
        return future

    def resume(self, outcome: p.Outcome) -> None:
        """Wakes every task that still waits."""
        self._parked, self._parked_at = self.parked_seconds, None
        if self.enqueued is not None:
            self.enqueued.hear(outcome)
        for future in self.waiters or []:
            if not future.done():
                future.set_result(outcome)
        self.waiters = []
