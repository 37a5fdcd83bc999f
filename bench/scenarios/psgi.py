"""A small answer from a bare application of PSGI, from one worker, next to the servers that it may come from."""

import catalogue_perl as perl
import processes
import wrk
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number, times
from servers import Server, Unavailable, fetch
from settings import Settings

COMPILED = perl.parkade("PSGI")
PURE = perl.parkade("PSGI, all in Perl", is_compiled=False)
STARMAN = perl.starman(workers=10)
STARMAN_ALONE = perl.starman(workers=1)
FEERSUM = perl.feersum()
UWSGI = perl.uwsgi(processes=2)

STARMAN_RATIO_MIN = 5
STARMAN_CPU_RATIO_MAX = 0.15
PURE_RATIO_MIN = 2
FEERSUM_RATIO_MIN = 3
UWSGI_RATIO_MIN = 5


def run(settings: Settings) -> Outcome:
    def measure(server: Server) -> Sample:
        return measured(server, settings.seconds)

    found = alternate(settings, [COMPILED, STARMAN, PURE, FEERSUM, UWSGI, STARMAN_ALONE], measure)
    return Outcome(
        rows=[
            _rate_row(found, COMPILED.name, "`/hola/{name}` in PSGI, 1 worker", STARMAN.name, STARMAN_RATIO_MIN),
            cpu_row(found, COMPILED.name, STARMAN.name, at_most=STARMAN_CPU_RATIO_MAX),
            memory_row(found, COMPILED.name, STARMAN.name),
            _rate_row(found, COMPILED.name, "– and an event loop in C", FEERSUM.name, FEERSUM_RATIO_MIN),
            _rate_row(found, COMPILED.name, "– and processes in C", UWSGI.name, UWSGI_RATIO_MIN),
            _rate_row(found, PURE.name, "– all in Perl", STARMAN.name, PURE_RATIO_MIN),
            cpu_row(found, PURE.name, STARMAN.name),
            _rate_row(found, COMPILED.name, "– and one worker each", STARMAN_ALONE.name, None),
        ],
        comparisons={"psgi": found},
    )


def measured(server: Server, seconds: float) -> Sample:
    if (text := fetch(server.url("/hola/wrk"))) != "Hola wrk":
        raise Unavailable(f"answers {text!r}")
    found = wrk.flooded(server, "/hola/wrk", seconds)
    return found | {"worker_mb": worker_megabytes(server)}


def worker_megabytes(server: Server) -> float:
    """The first process of each server is its core, or what forks the workers."""
    workers = [pid for pid in server.tree if pid not in server.core]
    return processes.memory(workers).rss / max(len(workers), 1) / 1e6


def _rate_row(found: Comparison, name: str, work: str, peer: str, target: float | None) -> Row:
    ratio = found.ratio(name, peer, "per_second")
    verdict = None if target is None else both(met(ratio, at_least=target), met(found.worst(name, "failed"), at_most=0))
    return Row(
        work=work,
        target="–" if target is None else f"≥ {target} × {peer}",
        parkade=number(found.median(name, "per_second"), "/s"),
        peer=f"{peer} {number(found.median(peer, 'per_second'), '/s')}",
        ratio=times(ratio),
        met=verdict,
    )


def memory_row(found: Comparison, name: str, peer: str) -> Row:
    ratio = found.ratio(name, peer, "worker_mb")
    return Row(
        work="– memory of a worker (RSS)",
        target=f"≤ {peer}",
        parkade=number(found.median(name, "worker_mb"), " MB", 1),
        peer=f"{peer} {number(found.median(peer, 'worker_mb'), ' MB', 1)}",
        ratio=times(ratio),
        met=met(ratio, at_most=1),
    )
