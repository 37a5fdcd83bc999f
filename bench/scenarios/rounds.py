"""The shape of the servlet article: 2,000 clients poll ten times each, while an event happens every two seconds."""

import catalogue
import load
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number, times
from servers import Recipe, Server
from settings import Settings

CLIENTS = 2_000
ROUNDS = 10
EVERY_SECONDS = 2.0
RATIO_MIN = 0.99
SLOWEST_MS_MAX = 2_050

PARKADE = catalogue.parkade("parked")
PEER = catalogue.axum()
SERVLETS = catalogue.tomcat("async")
THREADS = catalogue.tomcat("blocking")


def run(settings: Settings) -> Outcome:
    found = alternate(settings, [PARKADE, PEER], lambda server: polled(server, ROUNDS))
    servlets = alternate(settings, [SERVLETS], lambda server: polled(server, ROUNDS), runs=1)
    # 200 threads answer 200 clients at each event: one round takes 20 s, ten would take 200.
    threads = alternate(settings, [THREADS], lambda server: polled(server, 1), runs=1)
    ratio = found.ratio(PARKADE.name, PEER.name, "per_second")
    failed, slowest = found.worst(PARKADE.name, "failed"), found.worst(PARKADE.name, "slowest_ms")
    peers = [_rate(found, PEER), _rate(servlets, SERVLETS), _rate(threads, THREADS)]
    row = Row(
        work=f"{CLIENTS:,} clients, {ROUNDS} rounds, an event every {EVERY_SECONDS:g} s",
        target=f"≥ {RATIO_MIN} × axum, 0 failed, slowest ≤ {SLOWEST_MS_MAX / 1000} s",
        parkade=f"{number(found.median(PARKADE.name, 'per_second'), '/s', 1)}, {number(failed)} failed, "
        f"slowest {number(None if slowest is None else slowest / 1000, ' s', 3)}",
        peer=", ".join(peers),
        ratio=times(ratio),
        met=both(met(ratio, at_least=RATIO_MIN), met(failed, at_most=0), met(slowest, at_most=SLOWEST_MS_MAX)),
    )
    bound = CLIENTS / EVERY_SECONDS
    note = (
        f"Rounds: the first event comes {EVERY_SECONDS:g} s after the first request, so at most {bound:,.0f}/s can be."
    )
    rows = [row, cpu_row(found, PARKADE.name, PEER.name)]
    return Outcome(rows, {"rounds": found, "rounds, servlets": servlets, "rounds, threads": threads}, [note])


def polled(server: Server, count: int) -> Sample:
    before = server.cpu_seconds()
    found = load.rounds(server, "/next", CLIENTS, count, EVERY_SECONDS)
    return {
        "per_second": found["answers_per_second"],
        "slowest_ms": found["latency_ms"]["max"],
        "failed": found["failed"],
        "cpu_us": (server.cpu_seconds() - before) / (CLIENTS * count) * 1e6,
    }


def _rate(found: Comparison, recipe: Recipe) -> str:
    return f"{recipe.name} {number(found.median(recipe.name, 'per_second'), '/s', 1)}"
