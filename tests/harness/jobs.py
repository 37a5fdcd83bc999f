"""Jobs over HTTP: enqueued by `apps/jobs.py`, found at `/jobs/<id>`, and their lines in a file."""

from __future__ import annotations

import json
from pathlib import Path

from .client import Answer, Client
from .server import Server
from .until import until

SECONDS = 90.0
"""The maximum time of a job: some end their worker, so that another has to start before they are retried."""

STATES = {
    **{200: "completed", 201: "completed", 204: "completed"},
    **{404: "missing", 410: "cancelled", 500: "dead", 503: "nobody can say"},
}
"""What the status of `/jobs/<id>` means; 202 has the state in words."""


def asking(job: str, *args: object, count: int = 1, timeout: float | None = None, **options: object) -> bytes:
    """The body that enqueues this many; `options` are those of `enqueue`."""
    return json.dumps({"job": job, "args": args, "count": count, "timeout": timeout, "options": options}).encode()


def enqueue(server: Server, job: str, *args: object, **options: object) -> str:
    """Enqueues a job and returns its id when it is acknowledged."""
    return enqueue_many(server, 1, job, *args, **options)[0]


def enqueue_many(server: Server, count: int, job: str, *args: object, **options: object) -> list[str]:
    """Enqueues jobs with one request; returns their ids."""
    answer = server.post("/enqueue", asking(job, *args, count=count, **options))
    assert answer.status == 200, answer.text
    ids: list[str] = answer.json()
    return ids


def waiting(server: Server, way: str, job: str, *args: object, **options: object) -> Client:
    """A client that has requested a job's result in this way and reads nothing yet."""
    client: Client = server.connect().ask("POST", f"/{way}", body=asking(job, *args, **options))
    return client


def state(server: Server, job: str) -> str:
    """The state of that job."""
    answer = server.get(f"/jobs/{job}")
    if answer.status == 202:
        told: str = answer.json()["state"]
        return told
    return STATES[answer.status]


def until_state(server: Server, job: str, wanted: str, seconds: float = SECONDS) -> None:
    """Waits until that job has this state."""
    until(f"the job is {wanted}", lambda: state(server, job) == wanted, seconds, told=server.log_tail)


def result(server: Server, job: str, seconds: float = SECONDS) -> Answer:
    """The response at its address, as soon as it has ended."""
    with Client(server.address) as client:
        answer = client.ask("GET", f"/jobs/{job}", f"Prefer: wait={seconds:g}").answer(seconds=seconds + SECONDS)
    assert answer.status != 202, f"it has not ended: {answer.text}\n{server.log_tail()}"
    return answer


class Ran:
    """The lines that jobs have written (`apps/jobs_ran.py`)."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "ran"

    def lines(self) -> list[str]:
        """All lines, in order."""
        return self.file.read_text().splitlines() if self.file.exists() else []

    def about(self, beginning: str) -> list[str]:
        """Those that begin with this."""
        return [line for line in self.lines() if line.startswith(beginning)]

    def until(self, *wanted: str, seconds: float = SECONDS) -> list[str]:
        """Waits until all of these exist; returns all lines."""
        until(f"{wanted} ran", lambda: set(wanted) <= set(self.lines()), seconds, told=self.lines)
        return self.lines()

    def until_count(self, beginning: str, count: int, seconds: float = SECONDS) -> list[str]:
        """Waits until this many lines begin with this; returns them."""
        until(f"{count} {beginning!r}", lambda: len(self.about(beginning)) >= count, seconds, told=self.lines)
        return self.about(beginning)


def at_a_time(lines: list[str]) -> int:
    """The maximum number of jobs that were running at the same time."""
    running = most = 0
    for line in lines:
        running += {"begin": 1, "end": -1}.get(line.partition(" ")[0], 0)
        most = max(most, running)
    return most
