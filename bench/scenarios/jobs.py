"""Jobs that do next to nothing, 20,000 of them queued beforehand, two workers: how many a second?"""

import catalogue_jobs as catalogue
import postgres
import queued
from alternate import Contender, Sample, in_turn
from behind import folder, rate
from catalogue import PARKADE
from catalogue_jobs import jobs_file
from postgres import Cluster
from report import Outcome, Row, met, number, times
from servers import Unavailable, started
from settings import Settings

COUNT = 20_000
PER_SECOND_MIN = 10_000
RATIO_MIN = 5.0
PEERS = {
    "procrastinate": ("procrastinate", []),
    "PgQueuer": ("pgqueuer", ["10"]),
    # It takes 10 at a time unless it is told to take more: quicker, and more of them are in one worker when that dies.
    "PgQueuer, 500 at a time": ("pgqueuer", ["500"]),
}

# Its disk counts here, as Parkade's does.
DURABLE = dict(postgres.USUAL) | {"fsync": "on", "full_page_writes": "on"}


def run(settings: Settings) -> Outcome:
    with postgres.running(DURABLE) as cluster:
        contenders: dict[str, Contender] = {PARKADE: _ours}
        for peer, (library, words) in PEERS.items():
            contenders[peer] = lambda library=library, words=words: _theirs(cluster, library, words)  # type: ignore[misc]
        found = in_turn(settings, contenders)
    ours = found.median(PARKADE, "per_second")
    rows = [
        Row(
            work=f"{COUNT:,} trivial jobs, {catalogue.WORKERS} workers, SQLite",
            target=f"≥ {PER_SECOND_MIN:,}/s",
            parkade=number(ours, "/s"),
            peer="–",
            met=met(ours, at_least=PER_SECOND_MIN),
        )
    ]
    for peer in PEERS:
        ratio = found.ratio(PARKADE, peer, "per_second")
        rows.append(
            Row(
                work=f"– beside {peer} on PostgreSQL",
                target=f"≥ {RATIO_MIN:g} × {peer}",
                parkade=number(ours, "/s"),
                peer=f"{peer} {number(found.median(peer, 'per_second'), '/s')}",
                ratio=times(ratio),
                met=met(ratio, at_least=RATIO_MIN),
            )
        )
    return Outcome(rows, {"jobs": found}, ["Jobs: both stores write to the disk at each commit."])


def _ours() -> Sample:
    with folder() as place, started(catalogue.parkade_jobs(place)) as server:
        enqueued = queued.fill(server, COUNT)
        before = server.cpu_seconds()
        executed = queued.executed(place, COUNT)
        cpu = server.cpu_seconds() - before
    return {"per_second": executed, "enqueued_per_second": enqueued, "cpu_us": cpu / COUNT * 1e6}


def _theirs(cluster: Cluster, library: str, words: list[str]) -> Sample:
    python, package, script = catalogue.queue(library)
    if not package.exists():
        raise Unavailable(f"{library} is not installed")
    with folder() as place:
        cluster.ask("drop schema public cascade; create schema public")
        environment = {"DATABASE_URL": cluster.url, "JOBS_FILE": str(jobs_file(place))}
        queued.done([str(python), str(script), "fill", str(COUNT)], environment)
        cluster.ask("analyze")
        with queued.workers([str(python), str(script), "work", *words], environment):
            return {"per_second": rate(jobs_file(place), 0, COUNT, queued.SECONDS_MAX)}
