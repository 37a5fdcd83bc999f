"""512 clients of an application of ASGI that waits 100 ms for each request: what share of the possible rate is left?"""

import catalogue_hosting as hosted
import load
from alternate import Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number
from servers import Server
from settings import Settings

CLIENTS = 512
WAIT_SECONDS = 0.1
ROUNDS = 50
SHARE_MIN = 0.98

MODULE = "wait_asgi"
PARKADE = hosted.parkade(MODULE)
PEERS = [hosted.uvicorn(MODULE), hosted.granian(MODULE, "asgi", tuned=True)]


def run(settings: Settings) -> Outcome:
    found = alternate(settings, [PARKADE, *PEERS], _measure)
    share = found.median(PARKADE.name, "share")
    shares = [f"{peer.name} {number(found.median(peer.name, 'share'), digits=3)}" for peer in PEERS]
    possible = CLIENTS / WAIT_SECONDS
    row = Row(
        work=f"ASGI, each request waits 100 ms, {CLIENTS} clients: share of the possible {possible:,.0f}/s",
        target=f"≥ {SHARE_MIN}",
        parkade=number(share, digits=3),
        peer=", ".join(shares),
        met=both(met(share, at_least=SHARE_MIN), met(found.worst(PARKADE.name, "failed"), at_most=0)),
    )
    return Outcome([row, *(cpu_row(found, PARKADE.name, peer.name) for peer in PEERS)], {"asgi_wait": found})


def _measure(server: Server) -> Sample:
    load.again(server, "/", CLIENTS, 5)
    before = server.cpu_seconds()
    found = load.again(server, "/", CLIENTS, ROUNDS)
    cpu = server.cpu_seconds() - before
    return {
        "share": found["answers_per_second"] * WAIT_SECONDS / CLIENTS,
        "cpu_us": cpu / max(found["answered"], 1) * 1e6,
        "p99_ms": found["latency_ms"]["p99"],
        "failed": found["failed"],
    }
