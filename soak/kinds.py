"""The kinds of requests: what a client asks for, how it leaves, and which response is right."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Chance = random.Random

LONG_MS = 10_000
"""No client stays for this."""

STALL_SECONDS_MAX = 0.5


@dataclass(frozen=True, slots=True)
class Leaving:
    """After this many seconds, or this many bytes of the response, whichever comes first."""

    seconds: float
    bytes: int
    resets: bool
    """By RST, otherwise by FIN."""


@dataclass(frozen=True, slots=True)
class Request:
    kind: "Kind"
    number: int
    amount: int
    """Of milliseconds or rows."""
    leaving: Leaving | None = None
    stall: float = 0
    """Seconds for which the client stops reading in the middle."""

    @property
    def path(self) -> str:
        return f"/{self.kind.name}/{self.number}/{self.amount}"


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    weight: int
    leavers: float
    """The share of clients that do not stay."""
    amount: Callable[[Chance], int]
    """Of milliseconds or rows, for a client that stays."""
    amount_left: Callable[[Leaving, Chance], int]
    """The same for one that leaves."""
    check: Callable[[int, Any], bool]
    statuses: tuple[int, ...] = (200,)

    def request(self, number: int, chance: Chance) -> Request:
        if chance.random() < self.leavers:
            leaving = _leaving(chance)
            return Request(self, number, self.amount_left(leaving, chance), leaving)
        stall = chance.uniform(0, STALL_SECONDS_MAX) if chance.random() < 0.05 else 0
        return Request(self, number, self.amount(chance), stall=stall)


def _leaving(chance: Chance) -> Leaving:
    """At once, or after a random time of a random magnitude."""
    seconds = chance.uniform(0, chance.choice((0, 0.005, 0.01, 0.02, 0.05, 0.1)))
    return Leaving(seconds, int(10 ** chance.uniform(0, 6)), chance.random() < 0.3)


def _short(chance: Chance) -> int:
    return chance.randint(0, 20)


def _about(leaving: Leaving, chance: Chance) -> int:
    """Half of the statements end at about the moment when their clients leave: that is where races happen."""
    return int(chance.uniform(0, 2) * leaving.seconds * 1000) if chance.random() < 0.5 else LONG_MS


def _rows(up_to: int) -> Callable[[Chance], int]:
    return lambda chance: chance.randint(1, up_to)


def _rows_left(up_to: int) -> Callable[[Leaving, Chance], int]:
    return lambda leaving, chance: chance.randint(1, up_to)


def _is_number(number: int, body: Any) -> bool:
    return bool(body == {"n": number})


def _are_rows(number: int, body: Any) -> bool:
    return all(row["n"] == number and row["i"] == index for index, row in enumerate(body, 1))


KINDS = [
    Kind("sleep", 30, 0.8, _short, _about, lambda number, body: bool(body == [{"n": number}])),
    Kind("prepared", 30, 0.8, _short, _about, _is_number),
    Kind("write", 10, 0.6, _short, _about, _is_number),
    Kind("transaction", 8, 0.6, _short, _about, _is_number),
    Kind("then", 5, 0.5, _short, _about, lambda number, body: bool(body == {"n": number, "rows": [number]})),
    Kind("series", 3, 0.5, _rows(10_000), _rows_left(100_000), lambda number, body: bool(body["n"] == number)),
    # More than all buffers on the way hold, for clients that leave in the middle.
    Kind("rows", 2, 0.7, _rows(10_000), _rows_left(60_000), _are_rows),
    Kind("late", 3, 0, lambda chance: chance.randint(1, 60), _about, lambda number, body: False, (503, 504)),
    Kind("wrong", 2, 0, lambda chance: 0, _about, lambda number, body: False, (400, 500)),
]

SHARED = Kind("shared", 0, 0.5, _short, _about, _is_number)


def drawn(kinds: list[Kind], number: int, chance: Chance) -> Request:
    return chance.choices(kinds, [kind.weight for kind in kinds])[0].request(number, chance)


def drawn_together(number: int, count: int, chance: Chance) -> list[Request]:
    """For clients that share one statement: all ask for the same, and if it is long, all of them leave."""
    requests = [SHARED.request(number, chance) for _ in range(count)]
    amount, leaving = requests[0].amount, requests[0].leaving
    kept = leaving if amount == LONG_MS else None
    return [Request(SHARED, number, amount, one.leaving or kept) for one in requests]


def is_right(request: Request, status: int, body: bytes) -> bool:
    """Whether this is the response to the request, and not to another."""
    if status != 200 or status not in request.kind.statuses:
        return status in request.kind.statuses
    try:
        return request.kind.check(request.number, json.loads(body))
    except (ValueError, KeyError, TypeError):
        return False
