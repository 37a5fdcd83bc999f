"""What the application reaches of a testing client, as of a worker's link."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from . import _test_job_route as job_route
from ._link import port
from ._link.enqueued import Enqueued
from ._rehearsal import Rehearsal
from ._test_beside import Beside
from ._test_jobs import Jobs
from ._wire import payloads as p

T = TypeVar("T")


class Asking:
    """A request that a coroutine answers, and the jobs that it has enqueued."""

    def __init__(self) -> None:
        self.enqueued = Enqueued()
        self.within: list[bytes] = []  # those that wait for the COMMIT


class TestPort:
    """See `_link.port.Port`."""

    __test__ = False  # pytest takes any class of that name for a test

    def __init__(self, rehearsal: Rehearsal, jobs: Jobs, beside: Beside) -> None:
        self._rehearsal = rehearsal
        self._jobs = jobs
        self._beside = beside

    def publish(self, channel: str, content_type: str, body: bytes) -> None:
        self._rehearsal.publish(channel, content_type, body)

    def enqueue(self, id: bytes, job: bytes, within: bool) -> None:
        exchange = port.exchange.get()
        if isinstance(exchange, Asking):
            exchange.enqueued.add(id, within)
            if within:
                exchange.within.append(job)
                return
        self._jobs.enqueue(job)

    def progress(self, stream: int, progress: bytes) -> None:
        told = msgspec.msgpack.decode(progress, type=p.Progress)
        job = self._jobs.on(stream)
        job.progress = (told.fraction, told.text)
        self._rehearsal.publish(job_route.channel_of(job.told.id), "application/json", job_route.message_of(job))

    def is_cancelled(self, stream: int) -> bool:
        return self._jobs.on(stream).state == "cancelled"

    def parked_seconds(self, stream: int) -> float:
        return 0.0

    async def beside(self, function: Callable[[], T]) -> T:
        return self._beside.call(function)
