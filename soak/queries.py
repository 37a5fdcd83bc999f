"""Soaks queries: `python soak/queries.py --cancels 100000`. Real PostgreSQL, clients that leave, servers that die.

What must hold at the end, whatever happened: no statement was cancelled for which somebody waited, by the database's
own log; who stayed got the rows asked for; nothing acknowledged is lost; no backend, no slot, no memory is left over.
"""

import argparse
import asyncio
import contextlib
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "bench"))

import disturbances  # noqa: E402
import oracle  # noqa: E402
import postgres  # noqa: E402
from clients import Crowd  # noqa: E402
from hold_up import HoldUp  # noqa: E402
from kinds import SHARED, Request  # noqa: E402
from ledger import Ledger  # noqa: E402
from postgres import Cluster, quiet_port  # noqa: E402
from served import Served  # noqa: E402
from watch import Watch  # noqa: E402

FILL_MS = 500
"""Long enough that as many statements as there are slots run at once."""

COUNTS = ("cancels_sent", "cancels_repeated", "cancels_late", "strays", "terminated", "connects", "connects_failed")


def main() -> int:
    options = _options()
    ledger = Ledger()
    print(
        f"{options.cancels:,} cancels, {options.clients} clients, {options.slots} slots, seed {options.seed}",
        flush=True,
    )
    with postgres.running(oracle.SETTINGS) as cluster:
        log = cluster.folder / "parkade.log"
        cluster.ask(oracle.TABLES)
        served = Served(cluster.url, quiet_port(), quiet_port(), options.slots, options.workers, log)
        watch = Watch(served, ledger)
        try:
            served.start()
            asyncio.run(_soak(options, cluster, served, watch, ledger))
            verdicts = _judge(cluster, served, watch, ledger)
        finally:
            served.stop()
            if options.logs:
                options.logs.mkdir(parents=True, exist_ok=True)
                for kept in (cluster.log, log):
                    shutil.copy(kept, options.logs)
    return _exit_code(options, ledger, verdicts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Soaks queries; exits with 1 if anything was not as it must be.")
    parser.add_argument("--cancels", type=int, default=100_000, help="how many must have been sent (100000)")
    parser.add_argument("--seconds", type=float, default=600, help="within this time (600)")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--slots", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--disturbances", type=int, help="restarts and kills (one for each 5,000 cancels, 3 at least)")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000, help="of what clients do")
    parser.add_argument("--logs", type=Path, help="a folder for the logs of both servers")
    parser.add_argument("--expect-strays", action="store_true", help="strays must be found: the core has no fence")
    return parser.parse_args()


async def _soak(options: argparse.Namespace, cluster: Cluster, served: Served, watch: Watch, ledger: Ledger) -> None:
    crowd = Crowd(served.port, ledger, options.seed)
    watching = asyncio.create_task(watch.run())
    with HoldUp(cluster, options.seed) as hold_up:
        await _work(options, cluster, crowd, watch, ledger, watching)
    print(f"the canceller was held up {hold_up.count:,} times")
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    if (sent := watch.total("cancels_sent")) < options.cancels:
        ledger.violated(f"only {sent:,} of {options.cancels:,} cancels within {options.seconds:g} s")
    await asyncio.to_thread(oracle.check_rest, cluster, ledger)
    await _fill(crowd, ledger, options.slots)
    await asyncio.to_thread(watch.check_rest, options.slots)


async def _work(
    options: argparse.Namespace,
    cluster: Cluster,
    crowd: Crowd,
    watch: Watch,
    ledger: Ledger,
    watching: "asyncio.Task[None]",
) -> None:
    """Until there were enough cancels or the time is up; then each client finishes what it does."""
    began = time.monotonic()

    def progress() -> float:
        sent, seconds = watch.total("cancels_sent"), time.monotonic() - began
        return max(sent / float(options.cancels), seconds / float(options.seconds))

    count = options.disturbances if options.disturbances is not None else max(options.cancels // 5_000, 3)
    planned = disturbances.plan(count)
    disturbing = asyncio.create_task(disturbances.disturb(planned, progress, cluster, watch.served, ledger))
    clients = asyncio.create_task(crowd.run(options.clients))
    while progress() < 1 or not disturbing.done():
        await asyncio.sleep(0.05)
        for task in (disturbing, watching, clients):
            if task.done() and (failure := task.exception()):
                raise failure
    crowd.end()
    await clients


async def _fill(crowd: Crowd, ledger: Ledger, slots: int) -> None:
    """As many at once as there are slots: each of them must be usable."""
    numbers = [ledger.number() for _ in range(slots)]
    asked = (crowd.ask(Request(SHARED, number, FILL_MS), None) for number in numbers)
    for connection in await asyncio.gather(*asked):
        if connection:
            connection.close()


def _judge(cluster: Cluster, served: Served, watch: Watch, ledger: Ledger) -> oracle.Verdicts:
    memory = watch.check_memory()
    oracle.check_kept(cluster, ledger)
    if (code := served.stop()) != 0:
        ledger.violated(f"the server did not stop by itself: {code}")
    verdicts = oracle.cancelled(cluster.log, ledger)
    told = ledger.counts
    print(", ".join(f"{told[name]:,} {name}" for name in ("requests", "answered", "left", "disturbed")))
    print(f"disturbances {len(ledger.disturbances)}: {', '.join(one.what for one in ledger.disturbances)}")
    print(
        "by the server: "
        + ", ".join(f"{name} {watch.total(name):,}" for name in COUNTS)
        + f", queued ≤ {watch.queued_max}"
    )
    found = f"{verdicts.right:,} cancelled rightly, {verdicts.unknown} unknown, {len(verdicts.strays)} strays"
    print(f"by the database: {found}")
    for text, count in oracle.errors(cluster.log).most_common(8):
        print(f"    {count:,} × {text}")
    print(f"memory of the core: {memory}")
    if strays := watch.total("strays"):
        ledger.violated(f"the server itself counts {strays} strays")
    for stray in verdicts.strays:
        ledger.violated(f"a stray cancel: {stray}")
    return verdicts


def _exit_code(options: argparse.Namespace, ledger: Ledger, verdicts: oracle.Verdicts) -> int:
    if options.expect_strays:
        print("strays were found, as expected" if verdicts.strays else "NO STRAY WAS FOUND: the soak is blind")
        return 0 if verdicts.strays else 1
    print(f"{len(ledger.violations)} violations" if ledger.violations else "all is well")
    return 1 if ledger.violations else 0


if __name__ == "__main__":
    sys.exit(main())
