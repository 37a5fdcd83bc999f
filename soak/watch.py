"""What the server reports about itself during the soak: cancels, memory, and whether it comes to rest."""

import asyncio
import time
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ledger import Ledger
from served import Served

EVERY_SECONDS = 0.25
PRINT_SECONDS = 10.0

GROWTH_BYTES_MAX = 8 << 20
"""The allowed growth between the first tenth of the core's life and the last: the slack of an allocator."""

REST_SECONDS_MAX = 2.0


@dataclass(slots=True)
class Life:
    """One process of the core."""

    pid: int
    counts: dict[str, int] = field(default_factory=dict)
    memory: list[int] = field(default_factory=list)
    """Resident bytes, at even intervals."""

    def ends(self) -> tuple[int, int]:
        """The first tenth, without the very beginning, and the last."""
        tenth = max(len(self.memory) // 10, 1)
        return int(median(self.memory[tenth : 2 * tenth] or self.memory)), int(median(self.memory[-tenth:]))


@dataclass(slots=True)
class Watch:
    served: Served
    ledger: Ledger
    lives: list[Life] = field(default_factory=list)
    queued_max: int = 0

    async def run(self) -> None:
        began = printed = time.monotonic()
        while True:
            await asyncio.to_thread(self._look)
            if time.monotonic() - printed >= PRINT_SECONDS:
                printed = time.monotonic()
                told = self.ledger.counts
                print(
                    f"  {printed - began:4.0f} s: {told['requests']:,} requests ({told['left']:,} left by clients), "
                    f"{self.total('cancels_sent'):,} cancels sent, core {self.lives[-1].memory[-1] / 1e6:.1f} MB",
                    flush=True,
                )
            await asyncio.sleep(EVERY_SECONDS)

    def total(self, name: str) -> int:
        """Over all lives; what happened between the last look and a kill is not counted."""
        return sum(life.counts.get(name, 0) for life in self.lives)

    def check_memory(self) -> str:
        before, after = self.lives[-1].ends()
        if after - before > GROWTH_BYTES_MAX:
            self.ledger.violated(f"the core's memory grew from {before / 1e6:.1f} to {after / 1e6:.1f} MB")
        return f"{before / 1e6:.1f} MB in the first tenth of its life, {after / 1e6:.1f} MB in the last"

    def check_rest(self, slots: int) -> None:
        """Nothing is left of the clients' requests, and every slot is available."""
        end = time.monotonic() + REST_SECONDS_MAX
        while complaint := _restlessness(self.served.status(), slots):
            if time.monotonic() > end:
                self.ledger.violated(f"{REST_SECONDS_MAX} s after the last client has left: {complaint}")
                return
            time.sleep(0.05)

    def _look(self) -> None:
        try:
            pid, status, memory = self.served.pid, self.served.status(), self.served.memory()
        except (OSError, StopIteration):
            # It was killed, and is not back yet; a zombie has no VmRSS.
            return
        if not self.lives or self.lives[-1].pid != pid:
            self.lives.append(Life(pid))
        database = status["databases"]["default"]
        self.lives[-1].counts = database["counts"]
        self.lives[-1].memory.append(memory)
        self.queued_max = max(self.queued_max, database["queued"])


def _restlessness(status: Any, slots: int) -> str:
    """What is not at rest; empty if everything is."""
    database, lives = status["databases"]["default"], sum(status["lives"].values())
    found = {name: count for name, count in database["slots"].items() if count}
    if found == {"idle": slots} and not database["queued"] and not database["running"] and not lives:
        return ""
    queries = f"{database['queued']} queued, running: {database['running'][:3]}"
    return f"slots {found} instead of {slots} idle ones; queries: {queries}; {lives} requests have not ended"
