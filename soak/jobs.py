"""Soaks jobs: `python soak/jobs.py --seconds 600 --jobs 150000`. Cores and workers are killed at random in the
meantime.

At the end every acknowledged job must have run, according to the file to which the jobs themselves append, and none
may be left over in the store. How many jobs ran twice is printed: only "at least once" is promised.

One server keeps its jobs in a file. In the first half the disk of that file is slow and fails
(`PARKADE_INJECT_COMMIT`), because the disks of test machines are too reliable. Several servers (`--servers 2`) share
their jobs in a PostgreSQL, which is killed, too.
"""

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "bench"))

import jobs_fleet
from jobs_crowd import WORK_SHARE, Crowd, Ledger
from jobs_fleet import Fleet
from jobs_served import NotServing, Served
from served import LANGUAGES

FAULTS = "delay=5ms,fail=50"

PAUSE_SECONDS = (0.1, 1.0)
"""Between two kills."""

STUCK_SECONDS = 60.0
"""If nothing has run for this long, the rest will not run."""

DRAIN_SECONDS_MIN = 120.0
"""Draining may take this long, or as long as everything before: the machine may be slow."""

CALM_SECONDS = 2.5


def main() -> int:
    options = _options()
    print(
        f"soaking jobs: {options.jobs:,} in {options.seconds:g} s, from {options.clients} clients; servers: "
        f"{options.servers}, with {options.workers} workers in {options.language} each; seed {options.seed}",
        flush=True,
    )
    ledger = Ledger()
    with (
        _folder(options.logs) as folder,
        jobs_fleet.running(folder, options.servers, options.workers, options.language) as fleet,
    ):
        try:
            _soak(fleet, ledger, options)
            _judge(fleet, ledger, options)
        except NotServing as reason:
            ledger.violated(str(reason))
        finally:
            (folder / "acknowledged").write_text("\n".join(ledger.acknowledged))
    print(f"violations: {len(ledger.violations)}")
    return 1 if ledger.violations else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Soaks jobs; exits with 1 if an acknowledged one was lost.")
    parser.add_argument("--seconds", type=float, default=600, help="duration, usually including draining (600)")
    parser.add_argument("--jobs", type=int, default=150_000, help="number of jobs to be acknowledged (150000)")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--servers", type=int, default=1, help="number; several share a PostgreSQL (1)")
    parser.add_argument("--workers", type=int, default=2, help="workers of each server (2)")
    parser.add_argument("--language", choices=LANGUAGES, default="python", help="of the workers (python)")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000, help="seed of the jobs and the kills")
    parser.add_argument("--logs", type=Path, help="folder for logs, store, and lines of the jobs")
    return parser.parse_args()


@contextlib.contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="parkade-soak-") as name:
        folder = Path(name)
        try:
            yield folder
        finally:
            if kept is not None:
                shutil.copytree(folder, kept, dirs_exist_ok=True)


def _soak(fleet: Fleet, ledger: Ledger, options: argparse.Namespace) -> None:
    """Kills until all jobs are acknowledged or the time is over. Afterwards the disk works again."""
    rng = random.Random(options.seed)
    fleet.start(FAULTS)
    crowd = Crowd([served.port for served in fleet.servers], ledger, options)
    crowd.start()
    is_well = False
    try:
        while crowd.progress() < 1.0:
            time.sleep(rng.uniform(*PAUSE_SECONDS))
            if not is_well and crowd.progress() > 0.5:
                is_well = True
                fleet.heal(ledger)
            else:
                fleet.disturb(ledger, rng)
        while len(ledger.acknowledged) < options.jobs and crowd.progress() < 1 / WORK_SHARE:
            time.sleep(0.05)
    finally:
        crowd.end()
    # Jobs that were enqueued when the last client got its response: the last ones of the soak.
    fleet.heal(ledger)


def _judge(fleet: Fleet, ledger: Ledger, options: argparse.Namespace) -> None:
    began = moved = time.monotonic()
    missing = ledger.expected() - set(lines := fleet.lines())
    until = began + max(DRAIN_SECONDS_MIN, options.seconds)
    while missing and time.monotonic() < min(until, moved + STUCK_SECONDS):
        time.sleep(0.5)
        if len(now := fleet.lines()) > len(lines):
            moved = time.monotonic()
            missing -= set(now[len(lines) :])
            lines = now
    print(f"after the last request, the remaining jobs ran for {time.monotonic() - began:.1f} s")
    for served in fleet.servers:
        _check_rest(served, ledger)
    for served in fleet.servers:
        if (code := served.stop()) != 0:
            ledger.violated(f"a server did not stop by itself (exit status {code})")
    for line in sorted(missing)[:20]:
        ledger.violated(f"{line} was acknowledged and has not run")
    if len(missing) > 20:
        ledger.violated(f"and {len(missing) - 20} others")
    _print_figures(fleet, ledger)
    if len(ledger.acknowledged) < options.jobs / 10:
        ledger.violated(
            f"only {len(ledger.acknowledged):,} of {options.jobs:,} jobs could be enqueued: too few to prove anything"
        )
    if not ledger.counts["core killed"] or not ledger.counts["worker killed"]:
        ledger.violated("no core or no worker was killed: this proves nothing")


def _check_rest(served: Served, ledger: Ledger) -> None:
    """Nothing is stuck: no job is waiting, running or dead."""
    end = time.monotonic() + STUCK_SECONDS
    # The server counts once a second: the numbers may be old.
    calm_since = time.monotonic()
    while time.monotonic() - calm_since < CALM_SECONDS:
        told = served.status()
        jobs = told["jobs"]
        left = {name: jobs[name] for name in ("ready", "scheduled", "running", "dead", "unknown") if jobs[name]}
        left |= {name: count for name, count in told["lives"].items() if count}
        if left:
            calm_since = time.monotonic()
        if time.monotonic() > end:
            ledger.violated(f"jobs are left over at the end: {left}")
            return
        time.sleep(0.2)


def _print_figures(fleet: Fleet, ledger: Ledger) -> None:
    runs = Counter(fleet.lines())
    again = {line: count for line, count in runs.items() if count > 1}
    counts = ledger.counts
    others = ", ".join(f"{counts[what]:,} {what}" for what in ("refused", "failed with their worker", "unanswered"))
    print(f"requests to enqueue a job: {len(ledger.acknowledged):,} acknowledged, {others}")
    extra = sum(again.values()) - len(again)
    print(f"{len(runs):,} jobs ran, {len(again):,} of them more than once ({extra:,} additional runs)")
    print("disturbances: " + ", ".join(f"{way} {counts[way]:,}×" for way in fleet.ways))


if __name__ == "__main__":
    sys.exit(main())
