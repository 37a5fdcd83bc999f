"""How a coroutine reaches the core in a test: what it waits for, and what it has enqueued."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Protocol, cast

import msgspec

from .._limits import BRANCHES_MAX
from .._link.enqueued import Enqueued
from .._link.exchange import NOT_STORED, TOO_MANY
from .._wire import payloads as p
from .._wire.ready import Park, read_wait
from ..errors import WaitError
from ._jobs import Jobs
from ._response import Parked
from ._waits import Parking

answering: ContextVar[Parked | None] = ContextVar("answering", default=None)
"""The request or job that a plain function is about."""


class Parker(Protocol):
    """Whatever parks and unparks the request of an exchange: the core of a test."""

    jobs: Jobs

    def wait(self, response: Parked, wait: p.Wait) -> tuple[Parking, asyncio.Future[p.Outcome]]:
        """Begins a wait of a coroutine."""

    def leave(self, response: Parked, parking: Parking) -> None:
        """A coroutine no longer waits for that."""


class Exchange:
    """See `_link.port.Exchange`."""

    def __init__(self, core: Parker, response: Parked, occupies: bool) -> None:
        self._core = core
        self.response = response
        self.occupies = occupies
        self.streams = False
        self.is_job = False
        self.enqueued = Enqueued()

    async def wait(self, park: bytes) -> p.Outcome:
        if self.response.gone:
            raise WaitError("the client has left")
        wait = cast(p.Wait, read_wait(msgspec.msgpack.decode(park, type=Park).wait))
        if self.response.begun and isinstance(wait, p.UntilStored):
            raise WaitError(NOT_STORED)
        if isinstance(wait, p.UntilStored):  # the jobs of a test are stored at once
            asked = self.enqueued.parked(park)
            self.enqueued.hear(p.Stored([self._core.jobs.effective(id) for id in asked]))
            return p.Elapsed()
        if len(self.response.parkings) > BRANCHES_MAX:
            raise WaitError(TOO_MANY)
        parking, future = self._core.wait(self.response, wait)
        try:
            outcome = await future
        except asyncio.CancelledError:
            self._core.leave(self.response, parking)
            raise
        if isinstance(wait, p.Commit | p.Rollback):
            self._core.jobs.end_transaction(self.response, isinstance(wait, p.Commit) and isinstance(outcome, p.Rows))
        return outcome
