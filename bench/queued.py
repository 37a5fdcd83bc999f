"""Many jobs that wait while the workers are blocked, and how fast they run when the workers continue."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from behind import Client, rate, size, until
from catalogue_jobs import WORKERS, gate, jobs_file, kept_file
from servers import Server, Unavailable

IN_ONE_REQUEST = 1_000
SECONDS_MAX = 180
KEPT_SECONDS_MAX = 30


def fill(server: Server, place: Path, count: int) -> float:
    """Enqueues this many jobs after those that block the workers; returns the rate.

    All workers are blocked before, because starting one would take CPU time.
    """
    client = Client(server)
    for _ in range(WORKERS):
        client.post("/hold")
    until("the workers of jobs are kept", lambda: size(kept_file(place)) == WORKERS, KEPT_SECONDS_MAX)
    began = time.monotonic()
    for first in range(0, count, IN_ONE_REQUEST):
        client.post(f"/fill?count={min(IN_ONE_REQUEST, count - first)}&first={first}")
    client.close()
    return count / (time.monotonic() - began)


def executed(place: Path, count: int) -> float:
    """Lets the workers continue; returns the jobs per second until this many are done."""
    gate(place).touch()
    return rate(jobs_file(place), 0, count, SECONDS_MAX)


@contextmanager
def workers(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    """This many processes of a peer."""
    with ExitStack() as stack:
        for _ in range(WORKERS):
            process = subprocess.Popen(
                command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def done(command: list[str], environment: dict[str, str]) -> None:
    """Runs a command to its end."""
    ended = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    if ended.returncode != 0:
        raise Unavailable(ended.stderr.strip()[-200:])
