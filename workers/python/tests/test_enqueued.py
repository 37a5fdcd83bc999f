"""What a coroutine learns of the jobs that it has enqueued, from an exchange that does what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from parkade import Refused, WaitError
from parkade._link.enqueued import STORED, Enqueued
from parkade._wire import payloads as p


class Exchange:
    """Parks for the store, as often as it is asked, until it is resumed."""

    def __init__(self, enqueued: Enqueued) -> None:
        self.enqueued = enqueued
        self.parked: list[list[bytes]] = []  # of what each wait will be told
        self._resumed: asyncio.Future[None]

    async def wait(self, park: bytes) -> p.Outcome:
        self._resumed = asyncio.get_running_loop().create_future()
        self.parked.append(self.enqueued.parked(park))
        await self._resumed
        return p.Elapsed()

    async def resume(self, outcome: p.Outcome) -> None:
        self.enqueued.hear(outcome)
        if not self._resumed.done():
            self._resumed.set_result(None)
        await turn()


async def turn() -> None:
    """Until every task that can go on has done so."""
    for _ in range(10):
        await asyncio.sleep(0)


def played(play: Callable[[Enqueued, Exchange], Awaitable[Any]], *ids: bytes) -> Any:
    """What a coroutine that has enqueued these gives."""

    async def run() -> Any:
        enqueued = Enqueued()
        for id in ids:
            enqueued.add(id, within=False)
        return await play(enqueued, Exchange(enqueued))

    return asyncio.run(run())


def test_who_awaits_while_another_waits_for_the_store_shares_that_wait() -> None:
    async def play(enqueued: Enqueued, exchange: Exchange) -> Any:
        both = [asyncio.ensure_future(enqueued.id_of(id, exchange)) for id in (b"a", b"b")]
        await turn()
        enqueued.add(b"c", within=False)
        later = asyncio.ensure_future(enqueued.id_of(b"c", exchange))
        await turn()
        await exchange.resume(p.Stored([b"A", b"b"]))
        assert [one.result() for one in both] == [b"A", b"b"]
        assert not later.done(), "it was enqueued behind the wait"
        await exchange.resume(p.Stored([b"A", b"b", b"C"]))
        assert await later == b"C"
        return exchange.parked

    assert played(play, b"a", b"b") == [[b"a", b"b"], [b"c"]]


def test_what_was_told_is_known_without_another_wait() -> None:
    async def play(enqueued: Enqueued, exchange: Exchange) -> Any:
        first = asyncio.ensure_future(enqueued.id_of(b"b", exchange))
        await turn()
        await exchange.resume(p.Stored([b"A", b"B"]))
        return [await first, await enqueued.id_of(b"a", exchange), len(exchange.parked)]

    assert played(play, b"a", b"b") == [b"B", b"A", 1]


def test_a_wait_that_is_given_up_is_taken_over_by_who_shared_it() -> None:
    async def play(enqueued: Enqueued, exchange: Exchange) -> Any:
        first, second = (asyncio.ensure_future(enqueued.id_of(id, exchange)) for id in (b"a", b"b"))
        await turn()
        first.cancel()
        await turn()
        assert not second.done()
        await exchange.resume(p.Stored([b"A", b"B"]))
        return [first.cancelled(), await second, len(exchange.parked)]

    assert played(play, b"a", b"b") == [True, b"B", 2]


def test_who_shares_a_wait_and_gives_up_ends_it_for_nobody_else() -> None:
    async def play(enqueued: Enqueued, exchange: Exchange) -> Any:
        first, second = (asyncio.ensure_future(enqueued.id_of(id, exchange)) for id in (b"a", b"b"))
        await turn()
        second.cancel()
        await turn()
        await exchange.resume(p.Stored([b"A", b"B"]))
        return [await first, second.cancelled(), len(exchange.parked)]

    assert played(play, b"a", b"b") == [b"A", True, 1]


def test_a_refusal_is_for_all_that_were_asked_for_and_for_nothing_later() -> None:
    async def play(enqueued: Enqueued, exchange: Exchange) -> Any:
        both = [asyncio.ensure_future(enqueued.id_of(id, exchange)) for id in (b"a", b"b")]
        await turn()
        await exchange.resume(p.Refused("no room", 507))
        statuses = [one.exception().status for one in both]  # type: ignore[union-attr]
        with pytest.raises(Refused, match="no room"):
            await enqueued.id_of(b"a", exchange)
        enqueued.add(b"c", within=False)
        later = asyncio.ensure_future(enqueued.id_of(b"c", exchange))
        await turn()
        await exchange.resume(p.Stored([b"a", b"C"]))
        return [*statuses, await later]

    assert played(play, b"a", b"b") == [507, 507, b"C"]


def test_jobs_of_a_transaction_are_told_of_behind_it() -> None:
    async def play(enqueued: Enqueued, exchange: Exchange) -> Any:
        enqueued.add(b"b", within=True)
        before = asyncio.ensure_future(enqueued.id_of(b"a", exchange))
        await turn()
        await exchange.resume(p.Stored([b"A"]))
        with pytest.raises(WaitError, match="when the transaction commits"):
            await enqueued.id_of(b"b", exchange)
        enqueued.committed()
        behind = asyncio.ensure_future(enqueued.id_of(b"b", exchange))
        await turn()
        await exchange.resume(p.Stored([b"A", b"B"]))
        enqueued.add(b"c", within=True)
        enqueued.rolled_back()
        return [await before, await behind, b"c" in enqueued]

    assert played(play, b"a") == [b"A", b"B", False]


def test_each_wait_looks_only_at_what_is_new() -> None:
    async def play(enqueued: Enqueued, exchange: Exchange) -> Any:
        for number in range(100):
            enqueued.add(bytes([number]), within=False)
            each = asyncio.ensure_future(enqueued.id_of(bytes([number]), exchange))
            await asyncio.sleep(0)
            await exchange.resume(p.Stored([]))
            await each
        return [len(asked) for asked in exchange.parked]

    assert played(play) == [1] * 100


def test_other_waits_tell_nothing_of_jobs() -> None:
    enqueued = Enqueued()
    enqueued.add(b"a", within=False)
    assert enqueued.parked(b"another") == []
    assert enqueued.parked(STORED) == [b"a"]
    enqueued.hear(p.Elapsed())
    assert enqueued.parked(STORED) == [b"a"], "it is still to be told of"


def test_jobs_of_a_transaction_that_ends_meanwhile_are_not_taken_for_others() -> None:
    enqueued = Enqueued()
    first, within, stored = b"1" * 16, b"2" * 16, b"3" * 16
    enqueued.add(first, within=False)
    enqueued.parked(STORED)
    enqueued.add(within, within=True)
    enqueued.committed()
    enqueued.hear(p.Stored(ids=[stored, within]))
    assert asyncio.run(enqueued.id_of(first, Exchange(enqueued))) == stored
