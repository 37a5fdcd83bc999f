"""Long polls in Flask with two synchronous workers, and one publish: who is answered, when, and what it costs."""

import catalogue_hosting as hosted
import load
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number
from scenarios import parked_memory
from servers import Server
from settings import PEERS, Settings

COUNT = 10_000
QUEUED_COUNT = 1_000
"""For servers whose workers are held: the rest waits in the backlog of the kernel, which has room for 4,096."""
QUEUED_SECONDS = 5
PARKED_BYTES_MAX = 400
WORKERS = 2

MODULE = "poll_flask"
PARKADE = hosted.parkade(MODULE, WORKERS)
GEVENT = hosted.on_bus(hosted.gunicorn(MODULE, "gevent", WORKERS, PEERS))
HOLDING = [
    hosted.on_bus(hosted.gunicorn(MODULE, "sync", WORKERS, PEERS), tells=False),
    # Its workers load the application after they have been forked, as those of Gunicorn do: it has a thread.
    hosted.on_bus(
        hosted.uwsgi(MODULE, WORKERS, ["--lazy-apps", "--enable-threads", "--listen", "4096"], PEERS), tells=False
    ),
]


def run(settings: Settings) -> Outcome:
    outcome = Outcome()
    found = alternate(settings, [PARKADE, GEVENT], _released)
    held = alternate(settings, HOLDING, _queued, runs=1)
    memory = alternate(settings, [PARKADE], _parked)
    theirs = alternate(settings, [GEVENT], _parked, runs=1)
    outcome.comparisons = {"flask_poll": found, "held": held, "memory": memory, "memory, peers": theirs}
    peers = [f"{GEVENT.name} {_told(found, GEVENT.name)}"]
    peers += [f"{peer.name} {number(held.median(peer.name, 'answered'))} of {QUEUED_COUNT:,}" for peer in HOLDING]
    failed = found.worst(PARKADE.name, "failed")
    bytes_each = memory.median(PARKADE.name, "pss_bytes")
    outcome.rows = [
        Row(
            work=f"Flask, {WORKERS} workers, one publish to {COUNT:,} long polls: last answer",
            target="0 failed",
            parkade=_told(found, PARKADE.name),
            peer=", ".join(peers),
            met=met(failed, at_most=0),
        ),
        cpu_row(found, PARKADE.name, GEVENT.name),
        Row(
            work="– memory of the core for each that waits",
            target=f"≤ {PARKED_BYTES_MAX} bytes",
            parkade=number(bytes_each),
            peer=f"{GEVENT.name} {number(theirs.median(GEVENT.name, 'pss_bytes'))}",
            met=both(met(bytes_each, at_most=PARKED_BYTES_MAX)),
        ),
    ]
    return outcome


def _released(server: Server) -> Sample:
    """CPU covers the whole life of each request: accepted, parked, answered."""
    load.release(server, "/next", 500)
    before = server.cpu_seconds()
    found = load.release(server, "/next", COUNT)
    cpu = server.cpu_seconds() - before
    return {"last_ms": found["last_ms"], "failed": found["failed"], "cpu_us": cpu / COUNT * 1e6}


def _queued(server: Server) -> Sample:
    return {"answered": load.release(server, "/next", QUEUED_COUNT, timeout=QUEUED_SECONDS)["answered"]}


def _parked(server: Server) -> Sample:
    return parked_memory.slope(server, "/next", COUNT, "parked")


def _told(found: Comparison, name: str) -> str:
    return f"{number(found.median(name, 'last_ms'), ' ms')}, {number(found.worst(name, 'failed'))} failed"
