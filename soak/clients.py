"""Hundreds of clients that send requests, stay or leave, and record what they saw."""

import asyncio
import random

from connection import Answer, Broken, Connection, Late, Left
from kinds import Chance, Kind, Request, drawn, drawn_together, is_right
from ledger import Ledger

REST_SECONDS = 0.05
"""The pause after a broken connection, as a person would make."""

TOGETHER_SHARE = 0.02
TOGETHER_COUNT_MAX = 6
RECONNECT_SHARE = 0.2


class Crowd:
    def __init__(self, port: int, ledger: Ledger, seed: int, kinds: list[Kind]) -> None:
        self._port = port
        self._ledger = ledger
        self._seed = seed
        self._kinds = kinds
        self._is_over = False

    def end(self) -> None:
        """Each client finishes its request and stops."""
        self._is_over = True

    async def run(self, count: int) -> None:
        await asyncio.gather(*(self._client(random.Random(self._seed * 10_000 + index)) for index in range(count)))

    async def _client(self, chance: Chance) -> None:
        connection: Connection | None = None
        while not self._is_over:
            number = self._ledger.number()
            if chance.random() < TOGETHER_SHARE:
                await self._together(drawn_together(number, chance.randint(2, TOGETHER_COUNT_MAX), chance))
                continue
            connection = await self.ask(drawn(self._kinds, number, chance), connection)
            if connection and chance.random() < RECONNECT_SHARE:
                connection.close()
                connection = None
        if connection:
            connection.close()

    async def _together(self, requests: list[Request]) -> None:
        """A client that stays gets its response, whether or not the others leave."""
        for connection in await asyncio.gather(*(self.ask(request, None) for request in requests)):
            if connection:
                connection.close()

    async def ask(self, request: Request, connection: Connection | None) -> Connection | None:
        """Returns the connection if it can be used again."""
        began = asyncio.get_running_loop().time()
        self._ledger.asked(request)
        try:
            connection = connection or await Connection.open(self._port)
            answer = await connection.exchange(request)
        except Left as left:
            self._ledger.left(request, left.moment)
            return None
        except (Broken, Late) as reason:
            self._failed(request, began, f"{type(reason).__name__} {reason}")
            await asyncio.sleep(REST_SECONDS)
            return None
        self._answered(request, answer, began)
        return connection

    def _answered(self, request: Request, answer: Answer, began: float) -> None:
        if is_right(request, answer.status, answer.body):
            self._ledger.answered(request)
        elif answer.status == 200:
            # Rows of another client are never excused.
            self._ledger.violated(f"wrong response to {request.path}: {answer.body[:200]!r}")
        else:
            self._failed(request, began, f"{answer.status} {answer.body[:200]!r}")

    def _failed(self, request: Request, began: float, text: str) -> None:
        if self._ledger.is_excused(began, asyncio.get_running_loop().time()):
            self._ledger.counts["disturbed"] += 1
        else:
            self._ledger.violated(f"{request.path}: {text}")
