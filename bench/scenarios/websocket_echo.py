"""64 clients that each send a message over a WebSocket, and the next one when it has come back."""

from functools import partial

import catalogue
import catalogue_hosting as hosted
import load
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number, times
from servers import Recipe, Server
from settings import Settings

CLIENTS = 64
UVICORN_RATIO_MIN = 1.2
GRANIAN_RATIO_MIN = 1.0

MODULE = "echo_asgi"
PARKADE = hosted.parkade(MODULE)
NATIVE = catalogue.parkade("streams", label="streams")
UVICORN = hosted.uvicorn(MODULE)
GRANIAN = hosted.granian(MODULE, "asgi")


def run(settings: Settings) -> Outcome:
    found = alternate(settings, [PARKADE, NATIVE, UVICORN, GRANIAN], partial(_measure, settings.seconds))
    rows = [
        _row(found, PARKADE, UVICORN, UVICORN_RATIO_MIN),
        _row(found, PARKADE, GRANIAN, GRANIAN_RATIO_MIN),
        cpu_row(found, PARKADE.name, GRANIAN.name, of="message"),
        _row(found, NATIVE, GRANIAN, None),
    ]
    return Outcome(rows, {"websocket_echo": found})


def _measure(seconds: float, server: Server) -> Sample:
    load.echo(server, "/echo", CLIENTS, 1)
    before = server.cpu_seconds()
    found = load.echo(server, "/echo", CLIENTS, seconds)
    cpu = server.cpu_seconds() - before
    return {
        "per_second": found["answers_per_second"],
        "cpu_us": cpu / max(found["answered"], 1) * 1e6,
        "p99_ms": found["latency_ms"]["p99"],
        "failed": found["failed"],
    }


def _row(found: Comparison, ours: Recipe, peer: Recipe, goal: float | None) -> Row:
    ratio = found.ratio(ours.name, peer.name, "per_second")
    verdict = both(met(ratio, at_least=goal), met(found.worst(ours.name, "failed"), at_most=0))
    return Row(
        work=f"WebSocket echo, {CLIENTS} clients, {'ASGI' if ours is PARKADE else 'a coroutine of Parkade'}",
        target="–" if goal is None else f"≥ {goal} × {peer.name}",
        parkade=number(found.median(ours.name, "per_second"), "/s"),
        peer=f"{peer.name} {number(found.median(peer.name, 'per_second'), '/s')}",
        ratio=times(ratio),
        met=None if goal is None else verdict,
    )
