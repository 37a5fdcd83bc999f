"""Jobs on the link: enqueuing, runs and progress, and the waits and outcomes of PROTOCOL.md for them."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from .._limits import JOB_NAME_MAX, JOB_VALUE_MAX, PRIORITY_MAX, PROGRESS_TEXT_MAX, RETRIES_MAX
from .values import Array, Map, Seconds, byte_length, has_control_character

JobId: TypeAlias = Annotated[bytes, Meta(min_length=16, max_length=16)]
Value: TypeAlias = Annotated[bytes, Meta(max_length=JOB_VALUE_MAX)]
Priority: TypeAlias = Annotated[int, Meta(ge=-PRIORITY_MAX, le=PRIORITY_MAX)]
Retries: TypeAlias = Annotated[int, Meta(ge=0, le=RETRIES_MAX)]
Period: TypeAlias = Annotated[float, Meta(gt=0, le=1e15)]  # seconds, or a rate per second


class EnqueueOptions(Map, frozen=True):
    """`delay` in seconds or `at`, seconds since 1970; None for priority and queue means those of the job's function;
    `within`: in the request's transaction.
    """

    delay: Seconds = 0
    at: Seconds | None = None
    priority: Priority | None = None
    queue: str | None = None
    key: str | None = None
    within: bool = False

    def __post_init__(self) -> None:
        if self.at is not None and self.delay:
            raise ValueError("a job has either delay or at")
        if self.queue is not None:
            _check_length("the name of a queue", self.queue)
        if self.key is not None:
            _check_length("a key", self.key)


class Enqueue(Array, frozen=True):
    id: JobId
    name: str
    arguments: Value
    options: EnqueueOptions

    def __post_init__(self) -> None:
        _check_name(self.name)


class Run(Array, frozen=True):
    """`deadline` is the seconds left for this attempt; `request_id` and `traceparent` are those of the request that
    enqueued the job.
    """

    id: JobId
    name: str
    attempt: Annotated[int, Meta(ge=1, le=0xFFFF_FFFF)]
    deadline: Seconds | None
    arguments: Value
    request_id: str | None = None
    traceparent: str | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)


class Result(Array, frozen=True):
    result: Value


class Progress(Array, frozen=True):
    fraction: Annotated[float, Meta(ge=0, le=1)] | None
    text: str

    def __post_init__(self) -> None:
        if byte_length(self.text) > PROGRESS_TEXT_MAX:
            raise ValueError(f"the text of a progress has at most {PROGRESS_TEXT_MAX} bytes")


class UntilStored(Array, frozen=True, tag="stored"):
    """The wait."""


class ResultOptions(Map, frozen=True):
    timeout: Seconds | None = None


class UntilResult(Array, frozen=True, tag="result"):
    """The wait."""

    id: JobId
    options: ResultOptions


class Access(Array, frozen=True, tag="access"):
    """Not a wait: whether a client may access the job in question."""

    granted: bool


class Stored(Array, frozen=True, tag="stored"):
    """The ids that the jobs have, in the order they were enqueued."""

    ids: list[JobId]


class Completed(Array, frozen=True, tag="result"):
    """The outcome `result`."""

    id: JobId
    result: Value


class Pending(Array, frozen=True, tag="pending"):
    id: JobId


class NoResult(Array, frozen=True, tag="no result"):
    id: JobId
    reason: str
    text: str


# For READY. Not a `Map`: its names are required.


class Job(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`kind` as a route's; a deadline of 0 is none, None the server's. `access`: whether clients find the job by its
    id; with `sync` and `async` a function decides.
    """

    name: str
    kind: Literal["sync", "async"]
    queue: str = "default"
    retries: Retries = 3
    deadline: Seconds | None = None
    priority: Priority = 0
    access: Literal["public", "private", "sync", "async"] = "public"
    source: str | None = None  # for people

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_length("the name of a queue", self.queue)


class QueueOptions(Struct, frozen=True, omit_defaults=True):
    """How many of its jobs run at a time, and how many begin in a second. None is no limit."""

    concurrency: Annotated[int, Meta(ge=1, le=0xFFFF_FFFF)] | None = None
    rate: Period | None = None


class Queue(Struct, array_like=True, frozen=True):
    name: str
    options: QueueOptions

    def __post_init__(self) -> None:
        _check_length("the name of a queue", self.name)


class Recurring(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Exactly one of `every` (seconds) and `cron` (five fields) is given."""

    name: str
    job: str
    arguments: Value
    every: Period | None = None
    cron: str | None = None
    timezone: str = "UTC"
    missed: Literal["once", "skip", "all"] = "once"
    key: str | None = None

    def __post_init__(self) -> None:
        _check_length("the name of a recurring job", self.name)
        if self.key is not None:
            _check_length("a key", self.key)
        if (self.every is None) == (self.cron is None):
            raise ValueError("a recurring job has one of every and cron")


@lru_cache(maxsize=1_024)  # there are few, and each run of a job has one
def fault_of_job(name: str) -> str | None:
    """Why no job can have this name, or None."""
    if not 1 <= len(name.encode("utf-8", "replace")) <= JOB_NAME_MAX:
        return f"a job's name must have 1 to {JOB_NAME_MAX} bytes"
    if has_control_character(name):
        return "a job's name must not contain control characters"
    return None


def fault_of_length(what: str, text: str) -> str | None:
    """Why no queue, key or recurring job can have this name, or None."""
    if not 1 <= len(text.encode("utf-8", "replace")) <= JOB_NAME_MAX:
        return f"{what} must have 1 to {JOB_NAME_MAX} bytes"
    return None


def _check_name(name: str) -> None:
    if (reason := fault_of_job(name)) is not None:
        raise ValueError(reason)


def _check_length(what: str, text: str) -> None:
    if (reason := fault_of_length(what, text)) is not None:
        raise ValueError(reason)
