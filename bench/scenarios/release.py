"""Long polls on one channel, one publish: how long until the last client has the message?"""

import os

import catalogue
import load
from alternate import Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number, times
from servers import Server
from settings import Settings

COUNTS = [10_000, 19_000]
RATIO_MAX = 0.9

PARKADE = catalogue.parkade("parked")
PEER = catalogue.nchan(workers=os.cpu_count() or 1)


def run(settings: Settings) -> Outcome:
    outcome = Outcome()
    for count in COUNTS:

        def measure(server: Server, count: int = count) -> Sample:
            return released(server, count)

        found = alternate(settings, [PARKADE, PEER], measure)
        outcome.comparisons[f"release {count}"] = found
        ratio = found.ratio(PARKADE.name, PEER.name, "last_ms")
        failed = found.worst(PARKADE.name, "failed")
        row = Row(
            work=f"one publish to {count:,} long polls: last answer",
            target=f"≤ {RATIO_MAX} × nginx + nchan",
            parkade=f"{number(found.median(PARKADE.name, 'last_ms'), ' ms', 1)}, {number(failed)} failed",
            peer=f"{PEER.name} {number(found.median(PEER.name, 'last_ms'), ' ms', 1)}",
            ratio=times(ratio),
            met=both(met(ratio, at_most=RATIO_MAX), met(failed, at_most=0)),
        )
        outcome.rows += [row, cpu_row(found, PARKADE.name, PEER.name)]
    return outcome


def released(server: Server, count: int) -> Sample:
    """A small release warms up. CPU covers the whole life of each request: accepted, parked, answered."""
    load.release(server, "/next", 500)
    before = server.cpu_seconds()
    found = load.release(server, "/next", count)
    return {
        "last_ms": found["last_ms"],
        "first_ms": found["first_ms"],
        "failed": found["failed"],
        "cpu_us": (server.cpu_seconds() - before) / count * 1e6,
    }
