"""A small answer from one Python worker, as `def` and as `async def`, against Granian's fastest interface."""

import catalogue
import wrk
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number, times
from servers import Server, Unavailable, fetch
from settings import Settings

DEF_RATIO_MIN = 1.5
DEF_CPU_RATIO_MAX = 0.6
ASYNC_RATIO_MIN = 1.2

PEER = catalogue.granian()
DEF = catalogue.parkade("hola", label="def")
ASYNC = catalogue.parkade("hola_async", label="async def")


def run(settings: Settings) -> Outcome:
    def measure(server: Server) -> Sample:
        if (text := fetch(server.url("/hola/wrk"))) != "Hola wrk":
            raise Unavailable(f"answers {text!r}")
        return wrk.flooded(server, "/hola/wrk", settings.seconds)

    found = alternate(settings, [DEF, PEER, ASYNC], measure)
    return Outcome(
        rows=[
            _rate_row(found, DEF.name, "`/hola/{name}`, `def`, 1 worker", DEF_RATIO_MIN),
            cpu_row(found, DEF.name, PEER.name, at_most=DEF_CPU_RATIO_MAX),
            _rate_row(found, ASYNC.name, "`/hola/{name}`, `async def`, 1 worker", ASYNC_RATIO_MIN),
            cpu_row(found, ASYNC.name, PEER.name),
        ],
        comparisons={"hola": found},
    )


def _rate_row(found: Comparison, name: str, work: str, target: float) -> Row:
    ratio = found.ratio(name, PEER.name, "per_second")
    return Row(
        work=work,
        target=f"≥ {target} × Granian RSGI",
        parkade=number(found.median(name, "per_second"), "/s"),
        peer=f"{PEER.name} {number(found.median(PEER.name, 'per_second'), '/s')}",
        ratio=times(ratio),
        met=both(met(ratio, at_least=target), met(found.worst(name, "failed"), at_most=0)),
    )
