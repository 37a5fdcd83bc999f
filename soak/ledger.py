"""What the clients of a soak have done and seen, which is all that the oracle goes by."""

import time
from collections import Counter
from dataclasses import dataclass, field

from kinds import Request

VIOLATIONS_SHOWN = 20

AFTERMATH_SECONDS = 3.0
"""So long after a server is back, failures are still put down to its absence: reconnects back off."""


@dataclass(slots=True)
class Disturbance:
    what: str
    began: float
    ended: float | None = None

    def excuses(self, began: float, ended: float) -> bool:
        """Whether a request of this time may have failed by it."""
        return ended >= self.began and (self.ended is None or began <= self.ended + AFTERMATH_SECONDS)


@dataclass(slots=True)
class Ledger:
    last_number: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    given_up: dict[int, float] = field(default_factory=dict)
    """Numbers that may be cancelled since a moment of the epoch: a client left, or its deadline passed."""
    written: set[int] = field(default_factory=set)
    """Acknowledged, so they must be there."""
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
        # Of several that share a statement the first: whether one of them stayed, its answer tells.
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
