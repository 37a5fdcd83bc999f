"""Nothing else to do: how long from `enqueue` until the job's first line?"""

import catalogue_jobs as catalogue
from alternate import Sample, in_turn
from behind import Client, folder
from catalogue import PARKADE
from report import Outcome, Row, met, number
from servers import started
from settings import Settings

COUNT = 1_000
P99_MS_MAX = 5.0


def run(settings: Settings) -> Outcome:
    found = in_turn(settings, {PARKADE: _sample})
    p50, p99 = (found.median(PARKADE, key) for key in ("p50_ms", "p99_ms"))
    row = Row(
        work=f"enqueue → start, idle system, {COUNT:,} jobs one by one",
        target=f"p99 ≤ {P99_MS_MAX:g} ms",
        parkade=f"p50 {number(p50, ' ms', 2)}, p99 {number(p99, ' ms', 2)}",
        peer="–",
        met=met(p99, at_most=P99_MS_MAX),
    )
    return Outcome([row], {"job_latency": found})


def _sample() -> Sample:
    """Each answer is its job's result, so the next is enqueued when nothing is left to do."""
    with folder() as place, started(catalogue.parkade_log(place)) as server:
        client = Client(server)
        for _ in range(50):
            client.post("/started")
        taken = sorted(int(client.post("/started")) / 1e6 for _ in range(COUNT))
        client.close()
    return {"p50_ms": taken[COUNT // 2], "p99_ms": taken[int(COUNT * 0.99)], "max_ms": taken[-1]}
