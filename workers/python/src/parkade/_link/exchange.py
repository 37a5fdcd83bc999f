"""One request that a coroutine is answering, or one job: what it waits for, and what it must not do in the meantime."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Struct

from .._limits import BRANCHES_MAX
from .._wire import payloads as p
from .._wire.codec import encode_payload
from ..errors import WaitError
from .enqueued import STORED, Enqueued


class Link(Protocol):
    """What an exchange needs from its link."""

    loop: asyncio.AbstractEventLoop

    def park(self, stream: int, park: bytes) -> None:
        """Parks a held stream with `await`. Raises `WaitError` if its answer has begun or ended."""

    def branch(self, exchange: Exchange, park: bytes) -> int:
        """Begins one more wait of an exchange that is parked, or is never parked; returns the number of the branch.

        Raises `WaitError` if it has ended.
        """

    def awaiting(self, stream: int) -> bool:
        """Whether the stream is parked with `await`, or its rows are arriving."""

    def is_responding(self, stream: int) -> bool:
        """Whether the answer has begun, and its rest is due."""

    def is_reading(self, stream: int) -> bool:
        """Whether a part of the request's body has yet to come: rows would come between its pieces."""

    def enqueue_kept(self, stream: int, enqueued: Enqueued) -> None:
        """Hands the jobs to the core that were kept while the stream was parked for the store."""

    def is_parked(self, stream: int) -> bool:
        """Whether the core has yet to end the wait of the stream or branch."""

    def unpark(self, stream: int) -> None:
        """Withdraws a PARK with `await`: RESUME comes at once. Does nothing if the stream is not parked, or its rows
        are arriving.
        """


AWAITED = "a wait can only be awaited in the async def that answers a request or is a job"
AWAITED_ELSEWHERE = f"{AWAITED}: a plain function returns it, and a view of WSGI returns park(…)"
TOO_MANY = f"a request waits for at most {BRANCHES_MAX + 1} things at a time: await some of them before the others"
NOT_STORED = (
    "the handle of a job cannot be awaited after the response has begun, or the WebSocket was accepted, and need not "
    "be: the job is stored before the response ends, or the next message is sent. To wait for its result, await "
    "handle.result()"
)
ENDS = "nothing can be awaited for a request that has its response, or has ended"
BRANCHES = encode_payload((p.UntilBranches(), p.Await()))
"""The PARK that waits for the branches."""

Outcome = asyncio.Future[p.Outcome]


class Listener(Protocol):
    """Hears that a request was cancelled while its code runs."""

    def cancelled(self, reason: str) -> bool:
        """`reason` is that of CANCEL. Returns whether the code is to be cancelled, too."""


class Exchange(Struct, eq=False):
    """One stream that a coroutine answers.

    Its first wait parks the stream. What other tasks wait for at the same time are branches of it, by number. If its
    own wait is over before they are, it is parked again, until each has had its RESUME; if the core refuses that, it
    stays with its worker meanwhile. A stream whose answer has begun is never parked: all its waits are branches. Where
    any task may begin the answer, what tasks wait for that the request has started is always a branch, and goes on.

    `occupies` is whether the core counts its worker as busy with it (a plain function's); `waiting` what some part of
    it awaits now; `waiters` hear of RESUME (None: it has never waited); `writable` is what a streamed answer waits for
    while its client reads; for `enqueued` see `port.Exchange`; `_claims` counts the tasks that need the stream itself;
    `_ends` says that the stream is about to be closed; `_idle` hear of the end of the last branch; `_parked` is how
    many seconds it was parked before `_parked_at`, since when it is again; `listener` is that of code that sends its
    answer itself, and may outlive its client; `streams` says that an iterator makes its answer; `stays` says that it is
    a WebSocket that was accepted: its stream is never parked, so all its waits are branches; `is_job`, that it is an
    attempt of a job. A `Struct`, since every request makes one.
    """

    _link: Link
    stream: int
    task: asyncio.Task[Any]
    occupies: bool = False
    waiting: Outcome | None = None
    waiters: list[Outcome] | None = None
    writable: asyncio.Future[None] | None = None
    enqueued: Enqueued | None = None
    listener: Listener | None = None
    streams: bool = False
    stays: bool = False
    is_job: bool = False
    _branches: dict[int, Outcome] | None = None
    _gathers: bool = False
    _ends: bool = False
    _claims: int = 0
    _idle: list[asyncio.Future[None]] | None = None
    _parked: float = 0.0
    _parked_at: float | None = None

    async def wait(self, park: bytes) -> p.Outcome:
        """See `port.Exchange`."""
        if asyncio.get_running_loop() is not self._link.loop:
            raise WaitError(f"{AWAITED}, not in another event loop")
        if self._ends:
            raise WaitError(ENDS)
        if self.stays or self._link.is_responding(self.stream):
            if park is STORED:
                raise WaitError(NOT_STORED)
            return await self._branch(park)
        if self.waiting is not None and self.waiting.cancelled():
            self._withdraw()  # its task was cancelled, and has not had a turn since
        if self._link.awaiting(self.stream):
            if park is STORED:
                await self.claim()  # only the stream itself waits for its jobs
            elif self.waiting is not None or self._gathers or self._is_branched():
                return await self._branch(park)
            else:
                await self._resumed()  # what it waited for has been withdrawn
                return await self.wait(park)
        elif park is not STORED and (self._claims or self._is_elsewhere() or self._link.is_reading(self.stream)):
            return await self._branch(park, gathers=not self._claims)
        self._park(park)
        if self.enqueued is not None:
            self.enqueued.parked(park)
        mine = self.waiting = self._resumed()
        try:
            return await mine
        except BaseException:  # withdrawn, for instance by `asyncio.timeout`; or ended by the core
            if self.waiting is mine:
                self._withdraw()
            raise
        finally:
            if self.waiting is mine:
                self.waiting = None

    def _park(self, park: bytes) -> None:
        self._link.park(self.stream, park)
        self._parked_at = time.monotonic()

    async def _branch(self, park: bytes, gathers: bool = False) -> p.Outcome:
        """Waits while the stream is parked for something else, or held; `gathers`: while it is parked for this."""
        branches = self._branches = self._branches or {}
        self.waiters = self.waiters or []
        if len(branches) >= BRANCHES_MAX:
            raise WaitError(TOO_MANY)
        branch = self._link.branch(self, park)
        mine: Outcome = self._link.loop.create_future()
        branches[branch] = mine
        if gathers:
            self._gather()
        try:
            return await mine
        except BaseException:
            if branches.get(branch) is mine:
                self._link.unpark(branch)
            raise

    def _is_elsewhere(self) -> bool:
        """Whether a task waits while another may begin the answer."""
        return (self.streams or self.listener is not None) and asyncio.current_task() is not self.task

    def _gather(self) -> None:
        """Parks the stream until the branches have had their RESUME."""
        self._park(BRANCHES)
        self._gathers = True

    async def claim(self) -> None:
        """Waits until the stream is held, for an answer that begins, and for what covers the jobs that were enqueued on
        it: only an answer to the stream itself does. What tasks wait for in branches goes on; what the stream itself is
        parked for ends before.
        """
        self._claims += 1
        try:
            while self._link.awaiting(self.stream):
                if self._gathers:
                    self._gathers = False
                    self._link.unpark(self.stream)
                await self._resumed()
        finally:
            self._claims -= 1

    def _withdraw(self) -> None:
        self.waiting = None
        self._link.unpark(self.stream)

    def give_up(self) -> None:
        """The answer is no longer wanted: tasks that still wait are cancelled."""
        if self.waiting is not None:
            self.waiting.cancel()
            self._withdraw()
        for future in (self._branches or {}).values():
            future.cancel()  # its task withdraws it

    async def end(self) -> None:
        """Before the stream is closed: ends what tasks still wait for, and nothing more is waited for. Returns when
        each such wait has had its RESUME.
        """
        self._ends = True
        self.give_up()
        while True:
            if self._link.awaiting(self.stream):
                await self._resumed()
            elif self._branches:
                idle = self._link.loop.create_future()
                self._idle = [*(self._idle or []), idle]
                await idle
            else:
                return

    def wake_writer(self) -> None:
        """The client has room again, or has left: what waits for it looks again."""
        if self.writable is not None and not self.writable.done():
            self.writable.set_result(None)

    @property
    def parked_seconds(self) -> float:
        """How long it has been parked so far."""
        since = self._parked_at
        return self._parked if since is None else self._parked + time.monotonic() - since

    def _resumed(self) -> Outcome:
        """A separate future, so that cancelling one waiter does not cancel the others."""
        future: Outcome = self._link.loop.create_future()
        self.waiters = [*(self.waiters or []), future]
        return future

    def _is_branched(self) -> bool:
        """Whether some part of it awaits a branch."""
        return self._branches is not None and any(not future.cancelled() for future in self._branches.values())

    def _has_parked_branches(self) -> bool:
        """Whether the core has yet to end the wait of a branch that some part of it awaits. A branch whose rows are
        arriving is over for the core, which would resume at once a stream that is parked for it.
        """
        branches = (self._branches or {}).items()
        return any(self._link.is_parked(branch) and not future.cancelled() for branch, future in branches)

    def resume(self, outcome: p.Outcome) -> None:
        """Wakes every task that still waits for the stream."""
        self._parked, self._parked_at = self.parked_seconds, None
        is_refused = self._gathers and isinstance(outcome, p.Refused)  # another one would be refused, too
        self._gathers = False
        if self.enqueued is not None:
            self.enqueued.hear(outcome)
            self._link.enqueue_kept(self.stream, self.enqueued)
        for future in self.waiters or []:
            if not future.done():
                future.set_result(outcome)
        self.waiters = []
        if not is_refused and not self._claims and self._has_parked_branches():
            with suppress(WaitError):  # it has been cancelled
                self._gather()

    def end_branch(self, branch: int, outcome: p.Outcome) -> None:
        """Wakes the task that waits for it."""
        branches = self._branches or {}
        future = branches.pop(branch)
        if not future.done():
            future.set_result(outcome)
        self._tell_idle()

    def close_branches(self) -> list[int]:
        """The core has cancelled the stream: nothing more comes for it, and for these branches."""
        branches = list(self._branches or ())
        self._branches = None
        self._tell_idle()
        if self.enqueued is not None:
            self._link.enqueue_kept(self.stream, self.enqueued)
        for future in self.waiters or []:
            if not future.done():
                future.set_result(p.Unparked())
        return branches

    def _tell_idle(self) -> None:
        if not self._branches:
            for idle in self._idle or []:
                if not idle.done():
                    idle.set_result(None)
            self._idle = None
