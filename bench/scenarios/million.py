"""A million jobs wait: what does a start take, what does the core hold in memory, and do jobs go as quickly as ever?"""

import time

import catalogue_jobs as catalogue
import processes
import queued
from alternate import Sample, in_turn
from behind import folder, rate
from catalogue_jobs import gate, jobs_file
from report import Outcome, Row, met, number, times
from servers import started
from settings import Settings

COUNT = 1_000_000
FEW = 20_000
"""Beside them: of 1,000 jobs the last is done before a rate can be seen."""
SECONDS_MAX = 2.0
MB_MAX = 100
RATIO_MIN = 0.8


def run(settings: Settings) -> Outcome:
    name = catalogue.PARKADE
    # It takes a minute to enqueue them, and the figures hardly vary.
    found = in_turn(settings, {name: lambda: _sample(COUNT)}, runs=1)
    start, memory, ratio = (found.worst(name, key) for key in ("start_s", "resident_mb", "ratio"))
    rows = [
        Row(
            work=f"start with {COUNT:,} queued jobs, until ready",
            target=f"≤ {SECONDS_MAX:g} s",
            parkade=number(start, " s", 2),
            peer=f"with none {number(found.median(name, 'empty_start_s'), ' s', 2)}",
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
    ]
    return Outcome(rows, {"million": found})


def _sample(count: int) -> Sample:
    empty, _, _, alone = _run(FEW)
    start, resident, enqueued, rate_ = _run(count)
    return {
        "start_s": start,
        "empty_start_s": empty,
        "resident_mb": resident,
        "enqueued_per_second": enqueued,
        "per_second": rate_,
        "alone_per_second": alone,
        "ratio": rate_ / alone,
    }


def _run(count: int) -> tuple[float, float, float, float]:
    """Enqueued by one server, run by the next: its start, its memory (MB), enqueued a second, run a second."""
    with folder() as place:
        recipe = catalogue.parkade_jobs(place)
        with started(recipe) as server:
            enqueued = queued.fill(server, count)
        gate(place).touch()
        began = time.monotonic()
        with started(recipe) as server:
            start = time.monotonic() - began
            executed = rate(jobs_file(place), 0, FEW, queued.SECONDS_MAX)
            resident = processes.peak(server.core) / 1e6
    return start, resident, enqueued, executed
