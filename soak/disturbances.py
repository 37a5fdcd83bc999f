"""What happens to the servers while clients are at work, and when."""

import asyncio
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import oracle
from ledger import Disturbance, Ledger
from postgres import Cluster
from served import Served

FIRST, LAST = 0.1, 0.85
"""The part of the soak with disturbances: the beginning and the end must be undisturbed, to compare them."""

LAST_KILL = 0.4
"""After this part the core lives to the end, so that its memory can be observed."""

BACKENDS_GONE_SECONDS_MAX = 3.0
"""How long its backends may take to notice a kill -9 of the core; see client_connection_check_interval."""

Progress = Callable[[], float]
"""From 0 to 1."""

NAMES = {
    "kill": "kill -9 of the core",
    "fast": "fast restart of the database",
    "immediate": "immediate restart of the database",
}


@dataclass(frozen=True, slots=True)
class Planned:
    share: float
    what: str


def plan(count: int) -> list[Planned]:
    """Kills of the core and restarts of the database, with and without notice, in turn."""
    found = []
    for index in range(count):
        share = FIRST + (LAST - FIRST) * index / max(count - 1, 1)
        ways = ("kill", "fast", "immediate") if share <= LAST_KILL else ("fast", "immediate")
        found.append(Planned(share, ways[index % len(ways)]))
    return found


async def disturb(planned: list[Planned], progress: Progress, cluster: Cluster, served: Served, ledger: Ledger) -> None:
    loop = asyncio.get_running_loop()
    for one in planned:
        while progress() < one.share:
            await asyncio.sleep(0.05)
        disturbance = Disturbance(one.what, loop.time())
        ledger.disturbances.append(disturbance)
        took = await asyncio.to_thread(_kill if one.what == "kill" else _restart, one.what, cluster, served, ledger)
        disturbance.ended = loop.time()
        print(f"  {NAMES[one.what]}: {took}", flush=True)


def _restart(what: str, cluster: Cluster, served: Served, ledger: Ledger) -> str:
    began = time.monotonic()
    cluster.stop(signal.SIGQUIT if what == "immediate" else signal.SIGINT)
    cluster.start()
    return f"ready again after {time.monotonic() - began:.1f} s"


def _kill(what: str, cluster: Cluster, served: Served, ledger: Ledger) -> str:
    old = oracle.backends(cluster)
    began = time.monotonic()
    served.kill()
    served.start()
    back = time.monotonic() - began
    while left := old & oracle.backends(cluster):
        if time.monotonic() > began + BACKENDS_GONE_SECONDS_MAX:
            ledger.violated(f"{len(left)} of {len(old)} backends exist {BACKENDS_GONE_SECONDS_MAX} s after a kill -9")
            break
        time.sleep(0.02)
    return f"ready again after {back:.1f} s, its {len(old)} backends gone after {time.monotonic() - began:.1f} s"
