"""The jobs of a test, and what became of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec

from .._job import text_of_id
from .._link.answers import Attempted
from .._wire import frames as f
from .._wire import payloads as p
from .._wire.ready import Job as ReadyJob
from ..jobs._values import decode_result
from ._request import Correlation

RUNS_MAX = 10_000  # attempts in one `run_jobs`; then: AssertionError, since a test would never end


class Requester(Hashable, Protocol):
    """A request or job that enqueues."""

    @property
    def correlation(self) -> Correlation:
        """What is given to the jobs that it enqueues."""


@dataclass(slots=True)
class Enqueued:
    """A job that was enqueued: its arguments, the `options` that were given here or to `App.job`, and its state.

    `progress` is what it last reported, `result` what it returned, `error` why its last attempt failed.
    """

    id: str
    """A UUID as text."""
    name: str
    """The job's name."""
    args: tuple[Any, ...]
    """Its positional arguments."""
    kwargs: dict[str, Any]
    """Its arguments by name."""
    options: dict[str, Any]
    """Those that were given to `options`, or to `App.job`."""
    state: Literal["ready", "running", "completed", "dead", "cancelled", "unknown"] = "ready"
    """What has become of it."""
    attempt: int = 0
    """The number of attempts so far."""
    progress: tuple[float | None, str] | None = None
    """What it last reported: a fraction and a text."""
    result: Any = None
    """What it returned."""
    error: str | None = None
    """Why its last attempt failed."""
    told: p.Enqueue = field(repr=False, kw_only=True)
    outcome: p.Completed | p.NoResult | None = field(default=None, repr=False)
    correlation: Correlation = field(default=("", None), repr=False)
    """The id and the `traceparent` of the request that enqueued it."""


class Jobs:
    """All jobs, in the order in which they were enqueued."""

    def __init__(self, told: Iterable[ReadyJob]) -> None:
        self.all: list[Enqueued] = []
        told = list(told)
        self._retries = {job.name: job.retries for job in told}
        self._access = {job.name: job.access for job in told}
        self._within: dict[Requester, list[bytes]] = {}  # jobs that wait for a COMMIT
        self._same: dict[bytes, bytes] = {}  # ids of jobs that existed already, by their keys, and of the existing ones

    def enqueue(self, job: bytes, by: Correlation | None = None) -> None:
        """Takes the payload of an ENQUEUE. `by`: the request or job that enqueues it."""
        told = _read(job)
        if (same := self._with_key(told)) is not None:
            self._same[told.id] = same.told.id
            return
        _, args, kwargs = msgspec.msgpack.decode(told.arguments)
        options = msgspec.to_builtins(told.options)
        enqueued = Enqueued(text_of_id(told.id), told.name, tuple(args), kwargs, options, told=told)
        enqueued.correlation = by or (told.id.hex(), None)
        self.all.append(enqueued)

    def keep(self, requester: Requester, job: bytes) -> None:
        """Takes the payload of an ENQUEUE that belongs to the transaction of its request or job."""
        self._within.setdefault(requester, []).append(job)

    def end_transaction(self, requester: Requester, is_committed: bool) -> None:
        """The transaction of the request or job is over."""
        kept = self._within.pop(requester, [])
        for job in kept if is_committed else []:
            self.enqueue(job, requester.correlation)

    def effective(self, id: bytes) -> bytes:
        """The id that a job has: that of the existing one, when there was one with its key."""
        return self._same.get(id, id)

    def find(self, id: bytes) -> Enqueued | None:
        return next((job for job in self.all if job.told.id == self.effective(id)), None)

    def at(self, id: bytes) -> Enqueued | None:
        """The job with exactly this id, unless it has no address."""
        return next((job for job in self.all if job.told.id == id and self.has_address(job)), None)

    def has_address(self, job: Enqueued) -> bool:
        """Whether clients can find it by its id: not when it is private, or the application does not know its name."""
        return self._access.get(job.name, "private") != "private"

    def is_asked_about(self, job: Enqueued) -> bool:
        """Whether the application has an `access` function for it."""
        return self._access[job.name] in ("sync", "async")

    def cancel(self, job: Enqueued) -> None:
        """Cancels the job, unless it has ended."""
        if job.outcome is None:
            job.state = "cancelled"
            job.outcome = p.NoResult(job.told.id, "cancelled", "the job was cancelled")

    def begin(self) -> tuple[int, p.Run] | None:
        """The next attempt to run, even one that is scheduled for later, with a stream for it."""
        for number, job in enumerate(self.all, 1):
            if job.state == "ready":
                job.state, job.attempt = "running", job.attempt + 1
                return number, p.Run(job.told.id, job.name, job.attempt, None, job.told.arguments, *job.correlation)
        return None

    def number(self, job: Enqueued) -> int:
        """The stream on which it runs."""
        return 1 + next(number for number, one in enumerate(self.all) if one is job)

    def on(self, stream: int) -> Enqueued:
        """The job that runs on it."""
        return self.all[stream - 1]

    def end(self, job: Enqueued, attempted: Attempted) -> None:
        """An attempt has ended; so has the job, unless it is retried."""
        if attempted.kind == f.RESULT:
            result = msgspec.msgpack.decode(attempted.payload, type=p.Result).result
            job.state, job.error, job.result = "completed", None, decode_result(result)
            job.outcome = p.Completed(job.told.id, result)
            return
        error = msgspec.msgpack.decode(attempted.payload, type=p.Error)
        job.error = error.text
        if error.reason == "unknown":
            job.state = "unknown"
        elif error.reason == "discard" or job.attempt > self._retries[job.name]:
            job.state, job.outcome = "dead", p.NoResult(job.told.id, "dead", error.text)
        else:
            job.state = "ready"

    def _with_key(self, told: p.Enqueue) -> Enqueued | None:
        key = told.options.key
        if key is None:
            return None
        return next(
            (job for job in self.all if (job.name, job.told.options.key) == (told.name, key) and job.outcome is None),
            None,
        )


_read = msgspec.msgpack.Decoder(p.Enqueue).decode
