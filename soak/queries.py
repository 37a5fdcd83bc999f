"""Soaks queries: `python soak/queries.py --cancels 100000`. A real PostgreSQL, clients that leave, servers that die.

At the end, according to the database's own log, no statement was cancelled that a client still waited for; clients that
stayed got the rows they asked for; nothing acknowledged is lost; no backend, slot or memory is left over.
"""

import argparse
import asyncio
import contextlib
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "bench"))

import disturbances  # noqa: E402
import oracle  # noqa: E402
import postgres  # noqa: E402
from clients import Crowd  # noqa: E402
from hold_up import HoldUp  # noqa: E402
from kinds import KINDS, SHARED, Request  # noqa: E402
from ledger import Ledger  # noqa: E402
from postgres import Cluster, quiet_port  # noqa: E402
from served import LANGUAGES, Served  # noqa: E402
from watch import Watch  # noqa: E402

FILL_MS = 500
"""Long enough that as many statements as there are slots run at the same time."""

COUNTS = ("cancels_sent", "cancels_repeated", "cancels_late", "strays", "terminated", "connects", "connects_failed")


def main() -> int:
    options = _options()
    ledger = Ledger()
    print(
        f"soaking queries until {options.cancels:,} cancels are sent: "
        f"{options.clients} clients, {options.slots} slots, workers in {options.language}, seed {options.seed}",
        flush=True,
    )
    with postgres.running(oracle.SETTINGS) as cluster:
        log = cluster.folder / "parkade.log"
        cluster.ask(oracle.TABLES)
        served = Served(cluster.url, quiet_port(), quiet_port(), options.slots, options.workers, log, options.language)
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
    parser = argparse.ArgumentParser(description="Soaks queries; exits with 1 after a violation.")
    parser.add_argument("--cancels", type=int, default=100_000, help="number of cancels to be sent (100000)")
    parser.add_argument("--seconds", type=float, default=600, help="time limit (600)")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--slots", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--language", choices=LANGUAGES, default="python", help="of the workers (python)")
    parser.add_argument("--disturbances", type=int, help="restarts and kills (one for each 5,000 cancels, at least 3)")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000, help="seed of the clients' actions")
    parser.add_argument("--logs", type=Path, help="folder for the logs of both servers")
    parser.add_argument(
        "--expect-strays", action="store_true", help="fail if there are no strays: the core has no fence"
    )
    return parser.parse_args()


async def _soak(options: argparse.Namespace, cluster: Cluster, served: Served, watch: Watch, ledger: Ledger) -> None:
    kinds = [kind for kind in KINDS if kind.name != "transaction" or options.language == "python"]
    crowd = Crowd(served.port, ledger, options.seed, kinds)
    watching = asyncio.create_task(watch.run())
    with HoldUp(cluster, options.seed) as hold_up:
        await _work(options, cluster, crowd, watch, ledger, watching)
    print(f"the core's connection for cancels was delayed {hold_up.count:,} times")
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    if (sent := watch.total("cancels_sent")) < options.cancels:
        ledger.violated(f"only {sent:,} of {options.cancels:,} cancels were sent within {options.seconds:g} s")
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
    """Until there were enough cancels or the time is up; then each client finishes its request."""
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
    """As many at the same time as there are slots: each of them must be usable."""
    numbers = [ledger.number() for _ in range(slots)]
    asked = (crowd.ask(Request(SHARED, number, FILL_MS), None) for number in numbers)
    for connection in await asyncio.gather(*asked):
        if connection:
            connection.close()


def _judge(cluster: Cluster, served: Served, watch: Watch, ledger: Ledger) -> oracle.Verdicts:
    memory = watch.check_memory()
    oracle.check_kept(cluster, ledger)
    if (code := served.stop()) != 0:
        ledger.violated(f"the server did not stop by itself (exit status {code})")
    verdicts = oracle.cancelled(cluster.log, ledger)
    told = ledger.counts
    print(
        f"{told['requests']:,} requests: {told['answered']:,} answered, {told['left']:,} left by their clients, "
        f"{told['disturbed']:,} failed in a disturbance"
    )
    disturbed = Counter(one.what for one in ledger.disturbances)
    print("disturbances: " + ", ".join(f"{disturbances.NAMES[what]} {count}×" for what, count in disturbed.items()))
    print(
        "counted by the server: "
        + ", ".join(f"{name.replace('_', ' ')} {watch.total(name):,}" for name in COUNTS)
        + f"; at most {watch.queued_max} queries were queued"
    )
    print(
        f"in the log of the database: {verdicts.right:,} statements were cancelled because their client had left or "
        f"their deadline had passed, {verdicts.unknown} without a number, {len(verdicts.strays)} strays; errors:"
    )
    for text, count in oracle.errors(cluster.log).most_common(8):
        print(f"    {count:,}× {text}")
    print(f"memory of the core: {memory}")
    if strays := watch.total("strays"):
        ledger.violated(f"the server itself has counted {strays} strays")
    for stray in verdicts.strays:
        ledger.violated(f"a cancel hit a statement that it was not meant for: {stray}")
    return verdicts


def _exit_code(options: argparse.Namespace, ledger: Ledger, verdicts: oracle.Verdicts) -> int:
    if options.expect_strays:
        print("strays were found, as expected" if verdicts.strays else "no stray was found without the fence")
        return 0 if verdicts.strays else 1
    print(f"violations: {len(ledger.violations)}")
    return 1 if ledger.violations else 0


if __name__ == "__main__":
    sys.exit(main())
