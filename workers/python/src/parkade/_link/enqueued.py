"""The jobs that a request or a job has enqueued, and the ids that its coroutine got for them."""

from __future__ import annotations

import asyncio
from typing import Protocol

from .._wire import payloads as p
from .._wire.codec import encode_payload
from ..errors import Refused, WaitError

STORED = encode_payload((p.UntilStored(), p.Await()))
"""The PARK that waits for the store."""


class Exchange(Protocol):
    """Parks the exchange."""

    async def wait(self, park: bytes) -> p.Outcome:
        """See `port.Exchange`."""


class Enqueued:
    """The ids under which jobs were enqueued, in order.

    One answer covers everything that was enqueued before the wait. Tasks that await one of these jobs meanwhile share
    that wait, and a thousand jobs awaited one after the other cost one look each.
    """

    __slots__ = ("_asked", "_asking", "_kept", "_told", "_untold", "_within")

    def __init__(self) -> None:
        self._untold: dict[bytes, None] = {}
        self._within: set[bytes] = set()  # those of them that a transaction will enqueue when it commits
        self._told: dict[bytes, bytes | p.Refused] = {}
        self._asked: list[bytes] = []
        self._asking: asyncio.Future[None] | None = None  # while a task waits for the store
        self._kept: list[bytes] | None = None  # encoded, enqueued while the stream is parked for the store

    def __contains__(self, id: bytes) -> bool:
        return id in self._told or id in self._untold

    def add(self, id: bytes, within: bool) -> None:
        """A job is handed to the core; `within` the open transaction."""
        self._untold[id] = None
        if within:
            self._within.add(id)

    def keep(self, job: bytes, within: bool) -> bool:
        """Keeps the job until the next `hear` if the stream is parked for the store, whose answer would name it, too.
        Returns whether it does.
        """
        if within or self._kept is None:
            return False
        self._kept.append(job)
        return True

    def take_kept(self) -> list[bytes]:
        """The jobs that were kept: the stream is not parked for the store any more."""
        kept, self._kept = self._kept or [], None
        return kept

    def committed(self) -> None:
        """The transaction is over, and has enqueued its jobs."""
        self._within.clear()

    def rolled_back(self) -> None:
        """The transaction is over, and its jobs were never enqueued."""
        for id in self._within:
            del self._untold[id]
        self._within.clear()

    async def id_of(self, id: bytes, exchange: Exchange) -> bytes:
        """The id of the job in the store, once it is stored: that of another job if one had its key.

        Raises `Refused` if it, or another job of the same answer, cannot be stored.
        """
        while (told := self._told.get(id)) is None:
            if id in self._within:
                raise WaitError(
                    "a job enqueued in a transaction is stored when the transaction commits: await it after the block"
                )
            if self._asking is None:
                await self._ask(exchange)
            else:
                await asyncio.shield(self._asking)
        if isinstance(told, p.Refused):
            raise Refused(told.text, told.status)
        return told

    async def _ask(self, exchange: Exchange) -> None:
        asking = self._asking = asyncio.get_running_loop().create_future()
        try:
            await exchange.wait(STORED)
        finally:
            self._asking = None
            asking.set_result(None)  # tasks that share the wait check for themselves, also if this one was cancelled

    def parked(self, park: bytes) -> list[bytes]:
        """The exchange was parked. Returns the jobs that its outcome will cover: none that are enqueued later."""
        if park is STORED:
            self._asked = [id for id in self._untold if id not in self._within]
            self._kept = []
        return self._asked

    def hear(self, outcome: p.Outcome) -> None:
        """The exchange continues, whether or not a task still waits."""
        asked, self._asked = self._asked, []
        match outcome:
            case p.Stored(ids=ids):
                # The last is that of the last job before the wait; ids of an earlier answer may be left out. Jobs of a
                # transaction that has ended meanwhile may be among them.
                others = self._untold.keys() - asked
                ids = [id for id in ids if id not in others]
                self._told.update(zip(asked, asked, strict=True))
                self._told.update(zip(reversed(asked), reversed(ids), strict=False))
            case p.Refused():
                self._told.update(dict.fromkeys(asked, outcome))
            case _:
                return
        for id in asked:
            self._untold.pop(id, None)
