"""The jobs of the soak. Each records its number after it has run: one line, one write, at the end of a file."""

import os
import time
from collections.abc import Callable
from typing import Any

from parkade import App, Job, Retry, after
from parkade.jobs import JobFunction

app = App()
app.queue("bounded", concurrency=3)

RETRIES = 1_000_000
"""Jobs that were killed are always retried: a soak has no dead jobs."""

KINDS: dict[str, JobFunction[..., Any]] = {}


def kind(**options: Any) -> Callable[[Callable[..., Any]], JobFunction[..., Any]]:
    def register(function: Callable[..., Any]) -> JobFunction[..., Any]:
        job: JobFunction[..., Any] = app.job(retries=RETRIES, **options)(function)
        KINDS[job.name] = job
        return job

    return register


def note(line: str) -> None:
    """No other process can come between (O_APPEND)."""
    descriptor = os.open(os.environ["RAN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


@kind()
def quick(number: str) -> None:
    note(number)


@kind()
def slow(number: str) -> None:
    time.sleep(0.005)
    note(number)


@kind(queue="bounded", priority=10)
def bounded(number: str) -> None:
    time.sleep(0.002)
    note(number)


@kind()
def parent(number: str) -> None:
    """Its child is stored when it ends."""
    note(number)
    quick.enqueue(f"{number} child")


@kind()
def waits(number: str) -> object:
    return after(0.01).then(note_behind, number=number)


def note_behind(number: str) -> None:
    note(number)


@kind()
def fails_once(number: str, job: Job) -> None:
    if job.attempt == 1:
        raise Retry(0.05)
    note(number)


@kind()
def leaves_once(number: str, job: Job) -> None:
    """Kills its worker."""
    if job.attempt == 1:
        os._exit(1)
    note(number)


@app.post("/enqueue/{name}/{number}")
def enqueue(name: str, number: str) -> str:
    return KINDS[name].options(delay=0.2 if number.endswith("7") else 0).enqueue(number).id
