"""Soaks jobs: `python soak/jobs.py --seconds 600 --jobs 150000`. Cores and workers are killed at random meanwhile.

What must hold at the end, whatever happened: every job that was acknowledged has run, by the file to which the jobs
themselves append; nothing is left over in the store. How many ran twice is printed: at least once is what is promised.

One server keeps its jobs in its file: in the first half that file's disk is slow and fails (`PARKADE_INJECT_COMMIT`),
for the disks of test machines are too kind. Several (`--servers 2`) share them in a PostgreSQL, which is killed, too.
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

FAULTS = "delay=5ms,fail=50"

PAUSE_SECONDS = (0.1, 1.0)
"""Between two of these."""

STUCK_SECONDS = 60.0
"""Nothing has run for so long: what is left will not run."""

DRAIN_SECONDS_MIN = 120.0
"""Draining may take so long, or as long as all that went before: a machine may be slow."""

CALM_SECONDS = 2.5


def main() -> int:
    options = _options()
    print(
        f"{options.jobs:,} jobs in {options.seconds:g} s, {options.clients} clients, {options.servers} servers with "
        f"{options.workers} workers each, seed {options.seed}",
        flush=True,
    )
    ledger = Ledger()
    with _folder(options.logs) as folder, jobs_fleet.running(folder, options.servers, options.workers) as fleet:
        try:
            _soak(fleet, ledger, options)
            _judge(fleet, ledger, options)
        except NotServing as reason:
            ledger.violated(str(reason))
        finally:
            (folder / "acknowledged").write_text("\n".join(ledger.acknowledged))
    print(f"{len(ledger.violations)} violations" if ledger.violations else "all is well")
    return 1 if ledger.violations else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Soaks jobs; exits with 1 if an acknowledged one was lost.")
    parser.add_argument("--seconds", type=float, default=600, help="how long, draining included as a rule (600)")
    parser.add_argument("--jobs", type=int, default=150_000, help="how many are to be acknowledged (150000)")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--servers", type=int, default=1, help="several share the jobs in a PostgreSQL (1)")
    parser.add_argument("--workers", type=int, default=2, help="of each server (2)")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000, help="of what is enqueued and killed")
    parser.add_argument("--logs", type=Path, help="a folder for the log, the store and what ran")
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
    """Kills, until all jobs are there or their time is over. Behind that the disk is well again."""
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
    # What was on its way when the last client got its answer: the last word of the soak.
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
    print(f"drained in {time.monotonic() - began:.1f} s")
    for served in fleet.servers:
        _check_rest(served, ledger)
    for served in fleet.servers:
        if (code := served.stop()) != 0:
            ledger.violated(f"the server did not stop by itself: {code}")
    for line in sorted(missing)[:20]:
        ledger.violated(f"{line} was acknowledged and has not run")
    if len(missing) > 20:
        ledger.violated(f"and {len(missing) - 20} more")
    _print_figures(fleet, ledger)
    if len(ledger.acknowledged) < options.jobs / 10:
        ledger.violated(
            f"only {len(ledger.acknowledged):,} of {options.jobs:,} jobs could be enqueued: this proves nothing"
        )
    if not ledger.counts["core killed"] or not ledger.counts["worker killed"]:
        ledger.violated("nobody was killed: this proves nothing")


def _check_rest(served: Served, ledger: Ledger) -> None:
    """Nothing is stuck: no job that waits or runs is left over, and none is dead."""
    end = time.monotonic() + STUCK_SECONDS
    # The server counts once a second: what it says now may be what was before.
    calm_since = time.monotonic()
    while time.monotonic() - calm_since < CALM_SECONDS:
        told = served.status()
        jobs = told["jobs"]
        left = {name: jobs[name] for name in ("waiting", "scheduled", "running", "dead", "unknown") if jobs[name]}
        left |= {name: count for name, count in told["lives"].items() if count}
        if left:
            calm_since = time.monotonic()
        if time.monotonic() > end:
            ledger.violated(f"left over at the end: {left}")
            return
        time.sleep(0.2)


def _print_figures(fleet: Fleet, ledger: Ledger) -> None:
    runs = Counter(fleet.lines())
    again = {line: count for line, count in runs.items() if count > 1}
    counts = ledger.counts
    print(f"{len(ledger.acknowledged):,} acknowledged", end="")
    for what in ("refused", "lost with their worker", "unanswered"):
        print(f", {counts[what]:,} {what}", end="")
    print(f"\n{len(runs):,} ran, {len(again):,} of them twice or more ({sum(again.values()) - len(again):,} runs more)")
    print(", ".join(f"{counts[way]:,} times {way}" for way in fleet.ways))


if __name__ == "__main__":
    sys.exit(main())
