"""Jobs that do next to nothing, 20,000 of them queued beforehand, two workers: how many a second?"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import catalogue_jobs as catalogue
import postgres
import queued
import redis_server
from alternate import Comparison, Contender, Sample, in_turn
from behind import folder, rate
from catalogue import PARKADE
from catalogue_jobs import ON_POSTGRES, jobs_file
from postgres import Cluster
from report import Outcome, Row, met, number, times
from servers import Unavailable, started
from settings import Settings

COUNT = 20_000
PER_SECOND_MIN = {PARKADE: 10_000, ON_POSTGRES: 5_000}
RATIO_MIN = 5.0
ARQ_COUNTED = 4_000

POSTGRES, REDIS = "PostgreSQL", "Redis"


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    library: str
    store: str
    words: tuple[str, ...] = ()
    """For the peer's worker."""
    counted: int = COUNT
    """The number of jobs that the rate is measured with: fewer if all would take minutes."""


PEERS = [
    Peer("procrastinate", "procrastinate", POSTGRES),
    Peer("PgQueuer", "pgqueuer", POSTGRES, ("10",)),
    # By default it fetches 10 at a time. More are faster, but more jobs are in a worker when it dies.
    Peer("PgQueuer, 500 at a time", "pgqueuer", POSTGRES, ("500",)),
    Peer("arq", "arq", REDIS, ("10",), counted=ARQ_COUNTED),
    # The same applies to `max_jobs`: 100 was up to three times as fast, 1,000 no faster than that.
    Peer("arq, 100 at a time", "arq", REDIS, ("100",), counted=ARQ_COUNTED),
]

NOTES = [
    "Jobs: every store has written to the disk before it answers: Parkade's SQLite by `--durability power`, PostgreSQL "
    "by `fsync`, Redis by `appendfsync always` (by default it writes once a second).",
    "Jobs: each writes one byte, but not in the same way. Parkade's is a plain `def`; the core hands it to one of two "
    "worker processes, each of which runs one at a time, and notes its end. The peers' are coroutines in the two "
    "processes that fetch them, many at once, with nothing between store and function; PgQueuer collects ends for up "
    "to a tenth of a second and notes them by one statement.",
    f"Jobs, arq: the rate is that of the first {ARQ_COUNTED:,} of {COUNT:,}.",
]


def run(settings: Settings) -> Outcome:
    with postgres.durable() as cluster:
        contenders: dict[str, Contender] = {PARKADE: _ours, ON_POSTGRES: lambda: _ours(cluster)}
        for peer in PEERS:
            contenders[peer.name] = lambda peer=peer: _theirs(cluster, peer)  # type: ignore[misc]
        found = in_turn(settings, contenders)
    rows = [_row(found, PARKADE, "SQLite"), _row(found, ON_POSTGRES, POSTGRES)]
    return Outcome(rows + [_compared(found, peer) for peer in PEERS], {"jobs": found}, NOTES)


def _row(found: Comparison, name: str, store: str) -> Row:
    ours, at_least = found.median(name, "per_second"), PER_SECOND_MIN[name]
    return Row(
        work=f"{COUNT:,} trivial jobs, {catalogue.WORKERS} workers, {store}",
        target=f"≥ {at_least:,}/s",
        parkade=number(ours, "/s"),
        peer="–",
        met=met(ours, at_least=at_least),
    )


def _compared(found: Comparison, peer: Peer) -> Row:
    ratio = found.ratio(PARKADE, peer.name, "per_second")
    return Row(
        work=f"– compared with {peer.name} ({peer.store}); Parkade on SQLite, PostgreSQL",
        target=f"≥ {RATIO_MIN:g} × with SQLite",
        parkade=", ".join(number(found.median(name, "per_second"), "/s") for name in (PARKADE, ON_POSTGRES)),
        peer=f"{peer.name} {number(found.median(peer.name, 'per_second'), '/s')}",
        ratio=f"{times(ratio)}, {times(found.ratio(ON_POSTGRES, peer.name, 'per_second'))}",
        met=met(ratio, at_least=RATIO_MIN),
    )


def _ours(cluster: Cluster | None = None) -> Sample:
    if cluster:
        catalogue.cleared(cluster)
    with folder() as place, started(catalogue.parkade_jobs(place, cluster)) as server:
        enqueued = queued.fill(server, place, COUNT)
        if cluster:
            cluster.ask("analyze")
        before = server.cpu_seconds()
        executed = queued.executed(place, COUNT)
        cpu = server.cpu_seconds() - before
    return {"per_second": executed, "enqueued_per_second": enqueued, "cpu_us": cpu / COUNT * 1e6}


def _theirs(cluster: Cluster, peer: Peer) -> Sample:
    python, package, script = catalogue.queue(peer.library)
    if not package.exists():
        raise Unavailable(f"{peer.library} is not installed")
    command = [str(python), str(script)]
    with folder() as place, _store(cluster, peer, place) as store:
        environment = store | {"JOBS_FILE": str(jobs_file(place))}
        queued.done([*command, "fill", str(COUNT)], environment)
        if peer.store == POSTGRES:
            cluster.ask("analyze")
        with queued.workers([*command, "work", *peer.words], environment):
            return {"per_second": rate(jobs_file(place), 0, peer.counted, queued.SECONDS_MAX)}


@contextmanager
def _store(cluster: Cluster, peer: Peer, place: Path) -> Iterator[dict[str, str]]:
    """An empty database; yields the address for the peer."""
    if peer.store == POSTGRES:
        catalogue.cleared(cluster)
        yield {"DATABASE_URL": cluster.url}
    else:
        with redis_server.running(place) as url:
            yield {"REDIS_URL": url}
