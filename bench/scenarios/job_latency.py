"""An idle system: how long from `enqueue` to the job's first line?"""

import catalogue_jobs as catalogue
import postgres
from alternate import Sample, in_turn
from behind import Client, folder
from catalogue import PARKADE
from catalogue_jobs import ON_POSTGRES
from postgres import Cluster
from report import Outcome, Row, met, number
from servers import started
from settings import Settings

COUNT = 1_000
P99_MS_MAX = {PARKADE: 5.0, ON_POSTGRES: 15.0}
STORES = {PARKADE: "SQLite", ON_POSTGRES: "PostgreSQL"}


def run(settings: Settings) -> Outcome:
    with postgres.durable() as cluster:
        found = in_turn(settings, {PARKADE: _sample, ON_POSTGRES: lambda: _sample(cluster)})
    rows = []
    for name, store in STORES.items():
        p50, p99 = (found.median(name, key) for key in ("p50_ms", "p99_ms"))
        rows.append(
            Row(
                work=f"enqueue → start, idle system, {COUNT:,} jobs one by one, {store}",
                target=f"p99 ≤ {P99_MS_MAX[name]:g} ms",
                parkade=f"p50 {number(p50, ' ms', 2)}, p99 {number(p99, ' ms', 2)}",
                peer="–",
                met=met(p99, at_most=P99_MS_MAX[name]),
            )
        )
    return Outcome(rows, {"job_latency": found})


def _sample(cluster: Cluster | None = None) -> Sample:
    """Each response is its job's result, so the next job is enqueued when nothing is left to do."""
    if cluster:
        catalogue.cleared(cluster)
    with folder() as place, started(catalogue.parkade_log(place, cluster)) as server:
        client = Client(server)
        for _ in range(50):
            client.post("/started")
        taken = sorted(int(client.post("/started")) / 1e6 for _ in range(COUNT))
        client.close()
    return {"p50_ms": taken[COUNT // 2], "p99_ms": taken[int(COUNT * 0.99)], "max_ms": taken[-1]}
