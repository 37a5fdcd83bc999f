"""A constant answer, for which no worker is needed, against a minimal axum server."""

import catalogue
import wrk
from alternate import Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number, times
from servers import Server
from settings import Settings

RATIO_MIN = 0.9

PARKADE = catalogue.parkade("constant")
PEER = catalogue.axum()


def run(settings: Settings) -> Outcome:
    def measure(server: Server) -> Sample:
        return wrk.flooded(server, "/constant", settings.seconds)

    found = alternate(settings, [PARKADE, PEER], measure)
    ratio = found.ratio(PARKADE.name, PEER.name, "per_second")
    return Outcome(
        rows=[
            Row(
                work="a constant route",
                target=f"≥ {RATIO_MIN} × axum",
                parkade=number(found.median(PARKADE.name, "per_second"), "/s"),
                peer=f"{PEER.name} {number(found.median(PEER.name, 'per_second'), '/s')}",
                ratio=times(ratio),
                met=both(met(ratio, at_least=RATIO_MIN), met(found.worst(PARKADE.name, "failed"), at_most=0)),
            ),
            cpu_row(found, PARKADE.name, PEER.name),
        ],
        comparisons={"constant": found},
    )
