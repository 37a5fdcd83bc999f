"""The memory of a parked request, or an idle connection: the difference between a warm server and one that holds N."""

import time

import catalogue
import load
import processes
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, met, number
from servers import Recipe, Server
from settings import Settings

PARKED_BYTES_MAX = 1024
IDLE_BYTES_MAX = 256

WARM_UP_CONNECTIONS = 500
REST_SECONDS = 1.0
"""Allocators return memory, and servers close connections, with a delay."""

PARKADE = catalogue.parkade("parked")
TIMER_PEERS = [catalogue.twiggy(), catalogue.axum(), catalogue.uvicorn()]
CHANNEL_PEERS = [catalogue.nchan(), catalogue.axum(), catalogue.uvicorn(), catalogue.tomcat("async")]
IDLE_PEERS = [catalogue.nchan(), catalogue.twiggy(), catalogue.axum(), catalogue.uvicorn()]

Case = tuple[str, str, str, int, list[Recipe], int]
CASES: list[Case] = [
    ("parked on a timer", "parked", "/later", 10_000, TIMER_PEERS, PARKED_BYTES_MAX),
    ("parked on a timer", "parked", "/later", 19_000, [], PARKED_BYTES_MAX),
    ("parked on a channel", "parked", "/next", 10_000, CHANNEL_PEERS, PARKED_BYTES_MAX),
    ("parked on a channel", "parked", "/next", 19_000, [], PARKED_BYTES_MAX),
    ("idle, nothing sent", "idle", "/constant", 19_000, IDLE_PEERS, IDLE_BYTES_MAX),
    ("idle after an answer", "answered", "/constant", 19_000, [], IDLE_BYTES_MAX),
]


def run(settings: Settings) -> Outcome:
    outcome = Outcome(notes=["Memory: PSS of the core for Parkade, of the whole tree of processes for its peers."])
    for work, what, path, count, peers, limit in CASES:

        def measure(server: Server, path: str = path, count: int = count, what: str = what) -> Sample:
            return slope(server, path, count, what)

        found = alternate(settings, [PARKADE], measure)
        # A peer's memory hardly varies, and no target compares with it: one run is enough.
        theirs = alternate(settings, peers, measure, runs=1)
        outcome.comparisons[f"{work} {count}"] = found
        outcome.comparisons[f"{work} {count}, peers"] = theirs
        outcome.rows.append(_row(found, theirs, peers, f"memory for each of {count:,}: {work}", limit))
    return outcome


def slope(server: Server, path: str, count: int, what: str) -> Sample:
    with load.held(server, path, WARM_UP_CONNECTIONS, what):
        pass
    time.sleep(REST_SECONDS)
    before = processes.memory(_counted(server))
    with load.held(server, path, count, what):
        time.sleep(REST_SECONDS)
        after = processes.memory(_counted(server))
    return {
        "pss_bytes": (after.pss - before.pss) / count,
        "rss_bytes": (after.rss - before.rss) / count,
        "before_mb": before.pss / 1e6,
        "after_mb": after.pss / 1e6,
        "peak_mb": processes.peak(_counted(server)) / 1e6,
    }


def _counted(server: Server) -> list[int]:
    return server.core if server.recipe.name.startswith(catalogue.PARKADE) else server.tree


def _row(found: Comparison, theirs: Comparison, peers: list[Recipe], work: str, limit: int) -> Row:
    bytes_each = found.median(PARKADE.name, "pss_bytes")
    named = [f"{peer.name} {number(theirs.median(peer.name, 'pss_bytes'))}" for peer in peers]
    return Row(
        work=work,
        target=f"≤ {limit:,} bytes",
        parkade=number(bytes_each),
        peer=", ".join(named) or "–",
        met=met(bytes_each, at_most=limit),
    )
