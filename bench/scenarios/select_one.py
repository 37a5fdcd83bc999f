"""`select 1` over HTTP: the cost of reaching a database, compared with the usual ways in Python, Perl and Rust."""

import catalogue_postgres as catalogue
import postgres
import wrk
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number, times
from servers import Recipe, Server, Unavailable, fetch
from settings import Settings

UVICORN_RATIO_MIN = 4.0
STARMAN_RATIO_MIN = 1.5
AXUM_RATIO_MIN = 0.9


def run(settings: Settings) -> Outcome:
    with postgres.running() as cluster:
        route, function = (catalogue.parkade(cluster, label=label) for label in ("route", "def"))
        uvicorn, starman, axum = (make(cluster) for make in (catalogue.uvicorn, catalogue.starman, catalogue.axum))

        def measure(server: Server) -> Sample:
            path = "/def" if server.recipe is function else "/one"
            if (text := fetch(server.url(path))) != "1":
                raise Unavailable(f"answers {text!r}")
            return wrk.flooded(server, path, settings.seconds)

        found = alternate(settings, [route, uvicorn, function, starman, axum], measure)
    work = "`select 1`, 64 clients, pool 16"
    rows = []
    for ours, how in ((route, "a route"), (function, "`def`, 1 worker")):
        rows += [
            _row(found, ours, uvicorn, f"{work}, {how}", UVICORN_RATIO_MIN),
            _row(found, ours, starman, "– compared with Perl", STARMAN_RATIO_MIN),
            # Python takes part in one of them only.
            _row(found, ours, axum, "– compared with Rust", AXUM_RATIO_MIN if ours is route else None),
            cpu_row(found, ours.name, axum.name if ours is route else uvicorn.name),
        ]
    return Outcome(rows, {"select_one": found})


def _row(found: Comparison, ours: Recipe, peer: Recipe, work: str, at_least: float | None) -> Row:
    ratio = found.ratio(ours.name, peer.name, "per_second")
    is_met = both(met(ratio, at_least=at_least), met(found.worst(ours.name, "failed"), at_most=0))
    return Row(
        work=work,
        target="–" if at_least is None else f"≥ {at_least} × {peer.name}",
        parkade=number(found.median(ours.name, "per_second"), "/s"),
        peer=f"{peer.name} {number(found.median(peer.name, 'per_second'), '/s')}",
        ratio=times(ratio),
        met=None if at_least is None else is_met,
    )
