"""How much time an attempt of a job has left, by a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from parkade._job import Job, job_of_run
from parkade._link import port
from parkade._link.exchange import Exchange
from parkade._wire import payloads as p

RUN = p.Run(bytes(16), "job", 1, 30, b"")


class Clock:
    """Stands for the module `time`."""

    now = 1_000.0

    def monotonic(self) -> float:
        return self.now


class Link:
    """A link, and the port to it, with one exchange at most."""

    exchange: Exchange | None = None

    def begin(self) -> Exchange:
        self.loop = asyncio.get_running_loop()
        self.exchange = Exchange(cast(Any, self), 1, cast(Any, asyncio.current_task()))
        return self.exchange

    def park(self, stream: int, park: bytes) -> None: ...

    def awaiting(self, stream: int) -> bool:
        return False

    def is_responding(self, stream: int) -> bool:
        return False

    def is_reading(self, stream: int) -> bool:
        return False

    def parked_seconds(self, stream: int) -> float:
        return 0.0 if self.exchange is None else self.exchange.parked_seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("parkade._job.time", made)
    monkeypatch.setattr("parkade._link.exchange.time", made)
    return made


@pytest.fixture
def link() -> Iterator[Link]:
    made = Link()
    before = port.connect(cast(Any, made))
    yield made
    port.connect(before)


def test_a_function_behind_a_wait_has_the_time_that_was_left_before(clock: Clock, link: Link) -> None:
    before = job_of_run(RUN, 1)
    clock.now += 10
    carried = before._carried()
    clock.now += 100
    behind = Job(carried, 2)
    assert (before.deadline, behind.deadline) == (0, 20)
    clock.now += 5
    assert behind.deadline == behind._carried().left == 15


def test_without_a_deadline_nothing_is_carried(clock: Clock, link: Link) -> None:
    job = job_of_run(p.Run(bytes(16), "job", 1, None, b""), 1)
    assert (job.deadline, job._carried().left) == (None, None)


def test_the_time_of_a_coroutine_does_not_run_while_that_awaits(clock: Clock, link: Link) -> None:
    async def wait_twice() -> list[float | None]:
        exchange, job, seen = link.begin(), job_of_run(RUN, 1), []
        for _ in range(2):
            waiting = asyncio.ensure_future(exchange.wait(b""))
            await asyncio.sleep(0)
            clock.now += 100
            seen.append(job.deadline)
            exchange.resume(p.Elapsed())
            await waiting
            clock.now += 10
            seen.append(job.deadline)
        return seen

    assert asyncio.run(wait_twice()) == [30, 20, 20, 10]
