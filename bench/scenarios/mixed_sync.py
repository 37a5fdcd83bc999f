"""Four sync workers under a constant rate of fast requests, 1 % of which take a second: do the fast ones wait?

The arithmetic: 400/s × 1 % × 1 s keeps four workers busy on average, if sleeping keeps a worker busy. So with
`time.sleep` the stated load is just what four workers can do, on any server, and nothing is left for the fast requests.
With `after(1, …)` no worker is busy. Hence four variants.
"""

from dataclasses import dataclass

import catalogue
import load
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, both, met, number
from servers import Server
from settings import Settings

WORKERS = 4
P99_MS_MAX = 10
SECONDS_MIN = 10.0
"""A queue takes a while to build up."""

PARKADE = catalogue.parkade("mixed", workers=WORKERS)
PEER = catalogue.starman(WORKERS)


@dataclass(frozen=True, slots=True)
class Variant:
    work: str
    slow: str
    """The path of the slow requests."""
    per_second: int
    spread: str
    with_peer: bool
    has_target: bool


VARIANTS = [
    Variant("400/s, 1 % wait by `after(1, …)`", "/after", 400, "random", False, True),
    Variant("400/s, 1 % block in `time.sleep(1)` (4.0 of 4 workers asleep)", "/slow", 400, "even", True, True),
    Variant("200/s, 1 % block, evenly spaced (2.0 of 4 asleep)", "/slow", 200, "even", True, True),
    Variant("200/s, 1 % block, at random moments", "/slow", 200, "random", True, False),
]


def run(settings: Settings) -> Outcome:
    outcome = Outcome(
        notes=[
            "Mixed: with blocking sleeps at 400/s, four workers sleep all the time, so the queue grows for every "
            "server; at 200/s and random moments all four sleep about a tenth of the time (Erlang B: 9.5 %), and "
            "the fast requests of those moments must wait. Only waiting without a worker meets the target at the "
            "stated load.",
        ]
    )
    for variant in VARIANTS:

        def measure(server: Server, variant: Variant = variant) -> Sample:
            return mixed(server, variant, max(settings.seconds, SECONDS_MIN))

        found = alternate(settings, [PARKADE, PEER] if variant.with_peer else [PARKADE], measure)
        outcome.comparisons[variant.work] = found
        outcome.rows.append(_row(found, variant))
    return outcome


def mixed(server: Server, variant: Variant, seconds: float) -> Sample:
    # Preforked workers load the application at their first requests.
    load.rate(server, variant.per_second, 1, {"/fast": 1}, variant.spread)
    before = server.cpu_seconds()
    found = load.rate(server, variant.per_second, seconds, {"/fast": 99, variant.slow: 1}, variant.spread)
    fast = found["paths"]["/fast"]["latency_ms"]
    return {
        "fast_p50_ms": fast["p50"],
        "fast_p99_ms": fast["p99"],
        "fast_max_ms": fast["max"],
        "slow_p99_ms": found["paths"][variant.slow]["latency_ms"]["p99"],
        "failed": found["failed"],
        "generator_late_p99_ms": found["lateness_ms"]["p99"],
        "cpu_us": (server.cpu_seconds() - before) / found["requests"] * 1e6,
    }


def _row(found: Comparison, variant: Variant) -> Row:
    p99, failed = found.median(PARKADE.name, "fast_p99_ms"), found.worst(PARKADE.name, "failed")
    peer = f"{PEER.name} {number(found.median(PEER.name, 'fast_p99_ms'), ' ms', 1)}" if variant.with_peer else "–"
    return Row(
        work=f"{WORKERS} workers, {variant.work}: p99 of the fast",
        target=f"< {P99_MS_MAX} ms" if variant.has_target else "–",
        parkade=f"{number(p99, ' ms', 1)}, {number(failed)} failed",
        peer=peer,
        met=both(met(p99, at_most=P99_MS_MAX), met(failed, at_most=0)) if variant.has_target else None,
    )
