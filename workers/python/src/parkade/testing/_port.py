"""The application's way to the core in a test: publishing, enqueuing, and what a job says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from .._link import port
from .._wire import payloads as p
from ..errors import BodyError
from . import _job_address as job_address
from ._arriving import Arriving
from ._databases import Databases
from ._exchange import Exchange, answering
from ._held import HeldRequest
from ._jobs import Jobs
from ._response import Parked
from ._thread import Thread
from ._waits import Waits

T = TypeVar("T")


class TestPort:
    """See `_link.port.Port`."""

    __test__ = False  # pytest takes any class of that name for a test

    def __init__(self, waits: Waits, databases: Databases, jobs: Jobs, thread: Thread) -> None:
        self._waits = waits
        self._databases = databases
        self._jobs = jobs
        self._thread = thread

    def stream(self) -> int:
        """There is no log of a core."""
        return 0

    def body(self) -> Arriving:
        response = self._answered()
        if response is None or response.arriving is None:
            raise BodyError("there is no request here whose body could be read")
        return response.arriving

    def _answered(self) -> Parked | None:
        """The request or job for which the calling code works."""
        exchange = port.exchange.get()
        return exchange.response if isinstance(exchange, Exchange) else answering.get()

    def publish(self, channel: str, content_type: str, body: bytes, event: str | None) -> int:
        return self._waits.publish(channel, content_type, body, event)

    def enqueue(self, id: bytes, job: bytes, within: bool) -> None:
        exchange, response = port.exchange.get(), self._answered()
        if isinstance(exchange, Exchange):
            exchange.enqueued.add(id, within)
        if within and response is not None:
            self._jobs.keep(response, job)
            return
        self._jobs.enqueue(job, response.correlation if response is not None else None)

    def progress(self, stream: int, progress: bytes) -> None:
        told = msgspec.msgpack.decode(progress, type=p.Progress)
        job = self._jobs.on(stream)
        job.progress = (told.fraction, told.text)
        self._waits.publish(job_address.channel_of(job.told.id), "application/json", job_address.message_of(job))

    def is_cancelled(self, stream: int) -> bool:
        return self._jobs.on(stream).state == "cancelled"

    def parked_seconds(self, stream: int) -> float:
        return 0.0

    def holder(self) -> HeldRequest | None:
        response = self._answered()
        if response is None or (isinstance(port.exchange.get(), Exchange) and asyncio._get_running_loop() is not None):
            return None
        return HeldRequest(self._databases, self._jobs, response)

    async def in_thread(self, function: Callable[[], T]) -> T:
        return self._thread.call(function)
