"""Many requests at once that each wait two seconds: when is the last one answered?"""

import catalogue
import load
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number
from servers import Server
from settings import Settings

LAST_MS_MAX = {200: 2_020, 10_000: 2_150}

HANDLER = catalogue.parkade("delayed", label="handler")
ROUTE = catalogue.parkade("delayed_route", label="route")
PEERS = [catalogue.twiggy(), catalogue.axum()]


def run(settings: Settings) -> Outcome:
    outcome = Outcome()
    for count, limit_ms in LAST_MS_MAX.items():

        def measure(server: Server, count: int = count) -> Sample:
            return fired(server, "/delayed", count)

        found = alternate(settings, [ROUTE, HANDLER, *PEERS], measure)
        outcome.comparisons[f"delayed {count}"] = found
        for recipe, kind in ((ROUTE, "a wait as route"), (HANDLER, "a `def` that returns the wait")):
            outcome.rows.append(
                _row(found, recipe.name, f"{count:,} requests wait 2 s ({kind}): last answer", limit_ms)
            )
        if count >= 10_000:  # 200 requests use less CPU time than /proc can measure
            outcome.rows.append(cpu_row(found, ROUTE.name, PEERS[-1].name))
    return outcome


def fired(server: Server, path: str, count: int) -> Sample:
    before = server.cpu_seconds()
    found = load.fire(server, path, count)
    return {
        "last_ms": found["last_ms"],
        "first_ms": found["first_ms"],
        "p99_ms": found["latency_ms"]["p99"],
        "failed": found["failed"],
        "cpu_us": (server.cpu_seconds() - before) / count * 1e6,
    }


def _row(found: Comparison, name: str, work: str, limit_ms: int) -> Row:
    last, failed = found.median(name, "last_ms"), found.worst(name, "failed")
    peers = [f"{peer.name} {_seconds(found.median(peer.name, 'last_ms'))}" for peer in PEERS]
    return Row(
        work=work,
        target=f"≤ {limit_ms / 1000} s, none fails",
        parkade=f"{_seconds(last)}, {number(failed)} failed",
        peer=", ".join(peers),
        met=both(met(last, at_most=limit_ms), met(failed, at_most=0)),
    )


def _seconds(milliseconds: float | None) -> str:
    return number(None if milliseconds is None else milliseconds / 1000, " s", 3)
