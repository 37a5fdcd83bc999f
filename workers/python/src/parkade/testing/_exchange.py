"""How a coroutine reaches the core in a test: what it waits for, and what it has enqueued."""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

import msgspec

from .._link.enqueued import Enqueued
from .._wire import payloads as p
from .._wire.ready import Park, read_wait
from ..errors import WaitError
from ._jobs import Jobs
from ._response import Parked


class Parker(Protocol):
    """Whatever parks and unparks the request of an exchange: the core of a test."""

    jobs: Jobs

    def wait(self, response: Parked, wait: p.Wait) -> asyncio.Future[p.Outcome]:
        """Parks the request of a coroutine."""

    def give_up(self, response: Parked) -> None:
        """The request no longer waits."""


class Exchange:
    """See `_link.port.Exchange`."""

    def __init__(self, core: Parker, response: Parked, occupies: bool) -> None:
        self._core = core
        self.response = response
        self.occupies = occupies
        self.enqueued = Enqueued()
        self.within: list[bytes] = []  # jobs that wait for the COMMIT

    async def wait(self, park: bytes) -> p.Outcome:
        if self.response.parking is not None:
            raise WaitError("this request is waiting already: a request waits for one thing at a time")
        if self.response.begun:
            raise WaitError("a wait can only be awaited before the answer to its request has begun")
        if self.response.gone:
            raise WaitError("the client has left")
        wait = cast(p.Wait, read_wait(msgspec.msgpack.decode(park, type=Park).wait))
        if isinstance(wait, p.UntilStored):  # the jobs of a test are stored at once
            asked = self.enqueued.parked(park)
            self.enqueued.hear(p.Stored([self._core.jobs.effective(id) for id in asked]))
            return p.Elapsed()
        try:
            outcome = await self._core.wait(self.response, wait)
        except asyncio.CancelledError:
            self._core.give_up(self.response)
            raise
        if isinstance(wait, p.Commit | p.Rollback):
            within, self.within = self.within, []
            for job in within if isinstance(wait, p.Commit) and isinstance(outcome, p.Rows) else []:
                self._core.jobs.enqueue(job)
        return outcome
