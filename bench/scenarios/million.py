"""A million queued jobs: how long does a start take, how much memory does the core need, and are jobs as fast as
before?
"""

import time

import catalogue_jobs as catalogue
import processes
import queued
from alternate import Sample, in_turn
from behind import folder, rate
from catalogue import PARKADE
from catalogue_jobs import gate, jobs_file
from report import Outcome, Row, met, number, times
from servers import started
from settings import Settings

COUNT = 1_000_000
FEW = 20_000
"""For comparison: of 1,000 jobs the last is done before a rate can be measured."""
SECONDS_MAX = 2.0
MB_MAX = 100
RATIO_MIN = 0.8


def run(settings: Settings) -> Outcome:
    name = PARKADE
    # Enqueueing takes a minute, and the figures hardly vary.
    found = in_turn(settings, {name: lambda: _sample(COUNT)}, runs=1)
    start, memory, ratio = (found.worst(name, key) for key in ("start_s", "resident_mb", "ratio"))
    rows = [
        Row(
            work=f"start with {COUNT:,} queued jobs, until ready",
            target=f"≤ {SECONDS_MAX:g} s",
            parkade=number(start, " s", 2),
            peer=f"with {FEW:,} {number(found.median(name, 'alone_start_s'), ' s', 2)}",
            met=met(start, at_most=SECONDS_MAX),
        ),
        Row(
            work="– memory of the core, while they are run",
            target=f"≤ {MB_MAX} MB",
            parkade=number(memory, " MB", 1),
            peer="–",
            met=met(memory, at_most=MB_MAX),
        ),
        Row(
            work=f"– {FEW:,} of them run",
            target=f"≥ {RATIO_MIN:g} × the rate of {FEW:,} alone",
            parkade=number(found.median(name, "per_second"), "/s"),
            peer=f"alone {number(found.median(name, 'alone_per_second'), '/s')}",
            ratio=times(ratio),
            met=met(ratio, at_least=RATIO_MIN),
        ),
        Row(
            work="– CPU of the core for each",
            target="–",
            parkade=number(found.median(name, "cpu_us"), " µs", 1),
            peer=f"alone {number(found.median(name, 'alone_cpu_us'), ' µs', 1)}",
        ),
    ]
    return Outcome(rows, {"million": found})


def _sample(count: int) -> Sample:
    """The small number before and after the large one, so that changes of the machine affect both."""
    before, many, behind = _run(FEW), _run(count), _run(FEW)
    alone = (before["per_second"] + behind["per_second"]) / 2
    return many | {
        "alone_start_s": min(before["start_s"], behind["start_s"]),
        "alone_per_second": alone,
        "alone_cpu_us": (before["cpu_us"] + behind["cpu_us"]) / 2,
        "ratio": many["per_second"] / alone,
    }


def _run(count: int) -> Sample:
    """Enqueued by one server, run by the next."""
    with folder() as place:
        recipe = catalogue.parkade_jobs(place)
        with started(recipe) as server:
            enqueued = queued.fill(server, place, count)
        gate(place).touch()
        began = time.monotonic()
        with started(recipe) as server:
            start = time.monotonic() - began
            cpu = processes.cpu_seconds(server.core)
            executed = rate(jobs_file(place), 0, FEW, queued.SECONDS_MAX)
            cpu = processes.cpu_seconds(server.core) - cpu
            resident = processes.peak(server.core)
    return {
        "start_s": start,
        "resident_mb": resident / 1e6,
        "enqueued_per_second": enqueued,
        "per_second": executed,
        "cpu_us": cpu / FEW * 1e6,
    }
