"""What the clients of a soak have done and seen: all that the oracle relies on."""

import time
from collections import Counter
from dataclasses import dataclass, field

from kinds import Request

VIOLATIONS_SHOWN = 20

AFTERMATH_SECONDS = 3.0
"""Failures within this time after a server is back are still attributed to its absence, because reconnects back off."""


@dataclass(slots=True)
class Disturbance:
    what: str
    began: float
    ended: float | None = None

    def excuses(self, began: float, ended: float) -> bool:
        """Whether the disturbance may have caused the failure of a request at this time."""
        return ended >= self.began and (self.ended is None or began <= self.ended + AFTERMATH_SECONDS)


@dataclass(slots=True)
class Ledger:
    last_number: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    given_up: dict[int, float] = field(default_factory=dict)
    """Numbers that may be cancelled, and since when: their client left, or their deadline passed."""
    written: set[int] = field(default_factory=set)
    """Numbers that were acknowledged, so they must be stored."""
    paired: set[int] = field(default_factory=set)
    disturbances: list[Disturbance] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def number(self) -> int:
        self.last_number += 1
        return self.last_number

    def asked(self, request: Request) -> None:
        self.counts["requests"] += 1
        if request.kind.name == "late":
            self.given_up[request.number] = time.time() + request.amount / 1000

    def left(self, request: Request, moment: float) -> None:
        self.counts["left"] += 1
        # Of several that share a statement only the first: if one of them stayed, its response decides.
        self.given_up[request.number] = min(moment, self.given_up.get(request.number, moment))

    def answered(self, request: Request) -> None:
        self.counts["answered"] += 1
        match request.kind.name:
            case "write":
                self.written.add(request.number)
            case "transaction":
                self.paired.add(request.number)

    def is_excused(self, began: float, ended: float) -> bool:
        return any(one.excuses(began, ended) for one in self.disturbances)

    def violated(self, text: str) -> None:
        self.violations.append(text)
        if len(self.violations) <= VIOLATIONS_SHOWN:
            print(f"VIOLATION: {text}", flush=True)
