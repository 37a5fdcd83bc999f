"""What is measured: one module for each kind of work, each with its targets."""

from collections.abc import Callable

from report import Outcome
from scenarios import (
    bodies,
    cancel,
    constant,
    delayed,
    delays,
    hola,
    hosting,
    job_latency,
    jobs,
    log,
    lost,
    million,
    mixed_sync,
    parked_memory,
    psgi,
    queued_memory,
    release,
    rounds,
    rows,
    select_one,
    serial,
    shared,
)
from settings import Settings

ALL: dict[str, Callable[[Settings], Outcome]] = {
    "hola": hola.run,
    "hosting": hosting.run,
    "bodies": bodies.run,
    "psgi": psgi.run,
    "constant": constant.run,
    "delayed": delayed.run,
    "parked_memory": parked_memory.run,
    "release": release.run,
    "rounds": rounds.run,
    "mixed_sync": mixed_sync.run,
    "select_one": select_one.run,
    "serial": serial.run,
    "rows": rows.run,
    "shared": shared.run,
    "queued_memory": queued_memory.run,
    "cancel": cancel.run,
    "log": log.run,
    "lost": lost.run,
    "jobs": jobs.run,
    "job_latency": job_latency.run,
    "million": million.run,
    "delays": delays.run,
}
