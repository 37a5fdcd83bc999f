"""Messages to 10,000 clients that listen, over event streams and over WebSockets."""

from dataclasses import replace
from functools import partial
from statistics import median

import catalogue
import catalogue_hosting as hosted
import load
from alternate import Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number, times
from scenarios import parked_memory
from servers import Server, told_waiting, waits
from settings import PEERS, Settings

COUNT = 10_000
MESSAGES = 100
CROWDS = 5
"""Of one message, which is a burst of less than 0.1 s: one crowd after the other, of which the median counts."""
SOCKET_RATIO_MAX = 1.1
STARLETTE_RATIO_MIN = 5.0
IDLE_BYTES_MAX = 256

EVENTS, SOCKETS, COROUTINES = (
    replace(catalogue.parkade("streams", label=label), waiting=waits)
    for label in ("event streams", "WebSockets", "WebSockets with coroutines")
)
STARLETTE_EVENTS, STARLETTE_SOCKETS = (
    replace(
        hosted.uvicorn("streams_starlette", PEERS),
        name=f"Starlette {label}",
        status="http://127.0.0.1:{main}/",
        waiting=told_waiting,
    )
    for label in ("event streams", "WebSockets")
)
PATHS = {SOCKETS.name: "/held", COROUTINES.name: "/socket", STARLETTE_SOCKETS.name: "/socket"}
"""Of those that are WebSockets."""


def run(settings: Settings) -> Outcome:
    told = [EVENTS, SOCKETS, COROUTINES, STARLETTE_EVENTS, STARLETTE_SOCKETS]
    one = alternate(settings, told, _told_once)
    many = alternate(settings, [EVENTS, STARLETTE_EVENTS], partial(_told, MESSAGES))
    idle = alternate(settings, [SOCKETS, COROUTINES, STARLETTE_SOCKETS], _idle)
    ratio, rate = (
        one.ratio(SOCKETS.name, EVENTS.name, "last_ms"),
        many.ratio(EVENTS.name, STARLETTE_EVENTS.name, "per_second"),
    )
    bytes_each = idle.median(SOCKETS.name, "pss_bytes")
    rows = [
        Row(
            work=f"one message to {COUNT:,} WebSockets: the last has it",
            target=f"≤ {SOCKET_RATIO_MAX} × event streams",
            parkade=number(one.median(SOCKETS.name, "last_ms"), " ms", 1),
            peer=", ".join(
                f"{peer.name} {number(one.median(peer.name, 'last_ms'), ' ms', 1)}"
                for peer in (EVENTS, COROUTINES, STARLETTE_SOCKETS, STARLETTE_EVENTS)
            ),
            ratio=times(ratio),
            met=both(met(ratio, at_most=SOCKET_RATIO_MAX), met(one.worst(SOCKETS.name, "failed"), at_most=0)),
        ),
        Row(
            work=f"memory for each of {COUNT:,}: a WebSocket that waits for messages",
            target=f"≤ {IDLE_BYTES_MAX} bytes",
            parkade=number(bytes_each),
            peer=", ".join(
                f"{peer.name} {number(idle.median(peer.name, 'pss_bytes'))}" for peer in (COROUTINES, STARLETTE_SOCKETS)
            ),
            met=met(bytes_each, at_most=IDLE_BYTES_MAX),
        ),
        Row(
            work=f"{MESSAGES} messages to {COUNT:,} event streams",
            target=f"≥ {STARLETTE_RATIO_MIN:g} × {STARLETTE_EVENTS.name}",
            parkade=number(many.median(EVENTS.name, "per_second"), "/s"),
            peer=f"{STARLETTE_EVENTS.name} {number(many.median(STARLETTE_EVENTS.name, 'per_second'), '/s')}",
            ratio=times(rate),
            met=both(met(rate, at_least=STARLETTE_RATIO_MIN), met(many.worst(EVENTS.name, "failed"), at_most=0)),
        ),
        cpu_row(many, EVENTS.name, STARLETTE_EVENTS.name, of="message"),
    ]
    return Outcome(rows, {"one message": one, f"{MESSAGES} messages": many, "idle": idle})


def _told_once(server: Server) -> Sample:
    crowds = [_told(1, server) for _ in range(CROWDS)]
    sample = {name: median(crowd[name] for crowd in crowds) for name in crowds[0]}
    return sample | {"failed": max(crowd["failed"] for crowd in crowds)}


def _told(messages: int, server: Server) -> Sample:
    """A small crowd warms up. CPU is that of sending, without the opening of the connections."""
    websocket = server.recipe.name in PATHS
    path = PATHS.get(server.recipe.name, "/events")
    load.listen(server, path, 500, 1, websocket)
    with load.waiting(server, path, COUNT, *load.listening(messages, websocket)) as publish:
        before = server.cpu_seconds()
        found = publish()
        cpu = server.cpu_seconds() - before
    return {
        "last_ms": found["last_ms"],
        "failed": found["failed"],
        "per_second": COUNT * messages / max(found["last_ms"], 0.001) * 1000,
        "cpu_us": cpu / COUNT / messages * 1e6,
    }


def _idle(server: Server) -> Sample:
    return parked_memory.slope(server, PATHS[server.recipe.name], COUNT, "websocket")
