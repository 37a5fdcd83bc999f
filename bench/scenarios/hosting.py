"""Small answers from applications of WSGI and ASGI, unchanged, next to the servers they come from."""

from functools import partial
from typing import TypeAlias

import catalogue_hosting as hosted
import wrk
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number, times
from servers import Recipe, Server, Unavailable, fetch
from settings import Settings

RAW_ASGI_CPU_RATIO_MAX = 0.6

Peers: TypeAlias = list[tuple[Recipe, float | None]]


def run(settings: Settings) -> Outcome:
    outcome = Outcome()
    asgi = {"raw_asgi": (1.5, 2.8), "hello_starlette": (1.25, 2.4), "hello_fastapi": (1.1, 1.5)}
    for module, (granian_min, uvicorn_min) in asgi.items():
        granian = hosted.granian(module, "asgi")
        tuned = hosted.granian(module, "asgi", tuned=True)
        peers: Peers = [(granian, granian_min), (tuned, None), (hosted.uvicorn(module), uvicorn_min)]
        found = _measured(settings, module, peers, outcome)
        limit = RAW_ASGI_CPU_RATIO_MAX if module == "raw_asgi" else None
        outcome.rows.append(cpu_row(found, hosted.parkade(module).name, granian.name, at_most=limit))
    wsgi = {
        "raw_wsgi": (1.5, 1.0, 10.0, 5.0),
        "hello_flask": (1.05, None, 1.5, None),
        "hello_django": (1.05, None, 1.5, None),
    }
    for module, (granian_min, tuned_min, gunicorn_min, uwsgi_min) in wsgi.items():
        granian = hosted.granian(module, "wsgi")
        peers = [(granian, granian_min), (hosted.granian(module, "wsgi", tuned=True), tuned_min)]
        peers += [(hosted.gunicorn(module), gunicorn_min), (hosted.uwsgi(module), uwsgi_min)]
        found = _measured(settings, module, peers, outcome)
        outcome.rows.append(cpu_row(found, hosted.parkade(module).name, granian.name))
    return outcome


def _measured(settings: Settings, module: str, peers: Peers, outcome: Outcome) -> Comparison:
    """Adds a row for each peer: the rate, and its goal if there is one."""
    ours = hosted.parkade(module)
    found = alternate(settings, [ours, *(peer for peer, _ in peers)], partial(_measure, settings.seconds))
    outcome.comparisons[module] = found
    for peer, goal in peers:
        outcome.rows.append(_row(found, module, ours.name, peer.name, goal))
    return found


def _measure(seconds: float, server: Server) -> Sample:
    if (text := fetch(server.url("/"))) != "Hello world\n":
        raise Unavailable(f"answers {text!r}")
    return wrk.flooded(server, "/", seconds)


def _row(found: Comparison, module: str, ours: str, peer: str, goal: float | None) -> Row:
    ratio = found.ratio(ours, peer, "per_second")
    verdict = None if goal is None else both(met(ratio, at_least=goal), met(found.worst(ours, "failed"), at_most=0))
    return Row(
        work=f"{module.replace('_', ' ')}, 1 worker",
        target="" if goal is None else f"≥ {goal} × {peer}",
        parkade=number(found.median(ours, "per_second"), "/s"),
        peer=f"{peer} {number(found.median(peer, 'per_second'), '/s')}",
        ratio=times(ratio),
        met=verdict,
    )
