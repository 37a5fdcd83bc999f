"""`Job`: a running job, as its own code sees it; and the ids of jobs."""

from __future__ import annotations

import os
import time
from typing import TypeAlias

import msgspec

from ._limits import PROGRESS_TEXT_MAX
from ._link import port
from ._unicode import encoded
from ._wire import payloads as p
from ._wire.codec import encode_payload
from ._wire.values import Array

Progress: TypeAlias = float | None


class JobState(Array, frozen=True):
    """What a wait of a job carries to the worker that continues it. `left`: the seconds left of its deadline; time
    in a wait does not count. The last two are missing in what an older worker has carried.
    """

    id: bytes
    name: str
    attempt: int
    left: float | None
    request_id: str | None = None
    traceparent: str | None = None


class Job:
    """One attempt of a job. A job's function gets it as a parameter that is annotated `Job`, or is named `job` without
    a type of its own.

    `id` is a UUID as text, `name` the job's, `attempt` 1 the first time; `request_id` and `traceparent` lead back to
    the request that enqueued it.
    """

    __slots__ = ("_state", "_stream", "_until")

    def __init__(self, state: JobState, stream: int) -> None:
        self._state = state
        self._stream = stream
        self._until = None if state.left is None else time.monotonic() + state.left  # unless it waits meanwhile

    @property
    def id(self) -> str:
        """A UUID as text, the same in each attempt."""
        return text_of_id(self._state.id)

    @property
    def name(self) -> str:
        """The name under which it is stored."""
        return self._state.name

    @property
    def attempt(self) -> int:
        """1 the first time."""
        return self._state.attempt

    @property
    def request_id(self) -> str | None:
        """The `id` of the request that enqueued the job, or that enqueued the job that did; an id of its own if none
        did. It is in the log records of the job. None: it was stored by an older server.
        """
        return self._state.request_id

    @property
    def traceparent(self) -> str | None:
        """The trace that the job belongs to, as in the header of that name (W3C Trace Context), for what it calls;
        None: it belongs to none.
        """
        return self._state.traceparent

    @property
    def deadline(self) -> float | None:
        """The seconds left for this attempt, 0 when they are over; None without a deadline. Time in a wait does not
        count.
        """
        if self._until is None:
            return None
        return max(0.0, self._until + port.port().parked_seconds(self._stream) - time.monotonic())

    @property
    def cancelled(self) -> bool:
        """Whether the job should end: it was cancelled, its deadline has passed, or the server is stopping.

        A plain function should check this from time to time, which takes a few microseconds, and return. An `async def`
        also gets an `asyncio.CancelledError`.
        """
        return port.port().is_cancelled(self._stream)

    def progress(self, fraction: Progress, text: str = "") -> None:
        """Reports progress: a fraction between 0 and 1 (None: unknown), and what the job is doing (the first 1,000
        bytes are kept). Does nothing while the job waits, and when it has ended.

        Raises `ValueError` for any other fraction.
        """
        if fraction is not None and not (isinstance(fraction, int | float) and 0 <= fraction <= 1):
            raise ValueError(f"a fraction is between 0 and 1, not {fraction!r}")
        told = (None if fraction is None else float(fraction), beginning_of(text, PROGRESS_TEXT_MAX))
        port.port().progress(self._stream, encode_payload(told))

    def _carried(self) -> JobState:
        """What a wait carries."""
        if self._until is None:
            return self._state
        return msgspec.structs.replace(self._state, left=self.deadline)

    def __repr__(self) -> str:
        return f"<Job {self.name} {self.id} attempt {self.attempt}>"


def job_of_run(run: p.Run, stream: int) -> Job:
    """The job of an attempt that begins."""
    return Job(JobState(run.id, run.name, run.attempt, run.deadline, run.request_id, run.traceparent), stream)


def new_id() -> bytes:
    """A UUID of version 7 (RFC 9562, section 5.7): its first 48 bits count milliseconds, 74 are random."""
    number = time.time_ns() // 1_000_000 << 80 | int.from_bytes(os.urandom(10), "big")
    return (number & _ID_FREE | _ID_KIND).to_bytes(16, "big")


def text_of_id(id: bytes) -> str:
    """An id as text, as in URLs."""
    text = id.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def beginning_of(text: str, size: int) -> str:
    """The text, cut after `size` bytes."""
    return encoded(text)[:size].decode("utf-8", "ignore")


_ID_KIND = 7 << 76 | 0b10 << 62  # version and variant
_ID_FREE = ~(0xF << 76 | 0b11 << 62)
