"""The memory of a request that is parked on a query, while the query waits for one of two busy connections."""

import catalogue_postgres as catalogue
import postgres
from alternate import Sample, alternate
from report import Outcome, Row, met, number
from scenarios.parked_memory import slope
from servers import Server
from settings import Settings

COUNT = 10_000
BYTES_MAX = 1536
SLOTS = 2


def run(settings: Settings) -> Outcome:
    with postgres.running() as cluster:
        ours = catalogue.parkade(cluster, slots=SLOTS)
        peers = [catalogue.uvicorn(cluster), catalogue.axum(cluster)]

        def measure(server: Server) -> Sample:
            return slope(server, "/queued", COUNT, "parked")

        found = alternate(settings, [ours], measure)
        # A peer's memory hardly varies, and no target compares with it: one run is enough.
        theirs = alternate(settings, peers, measure, runs=1)
    each = found.median(ours.name, "pss_bytes")
    row = Row(
        work=f"memory for each of {COUNT:,}: parked on a query that is queued",
        target=f"≤ {BYTES_MAX:,} bytes",
        parkade=number(each),
        peer=", ".join(f"{peer.name} {number(theirs.median(peer.name, 'pss_bytes'))}" for peer in peers),
        met=met(each, at_most=BYTES_MAX),
    )
    return Outcome([row], {f"queued {COUNT}": found, f"queued {COUNT}, peers": theirs})
