"""Jobs that were enqueued while their stream is parked: the core takes them once it is held again, or over."""

from __future__ import annotations

from .._wire import frames as f
from .._wire.frames import frame
from .events import Event, Reply


class KeptJobs:
    """Encoded jobs, by the stream that enqueued them."""

    def __init__(self) -> None:
        self._jobs: dict[int, list[bytes]] = {}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __contains__(self, stream: int) -> bool:
        return stream in self._jobs

    def keep(self, stream: int, job: bytes) -> None:
        """Keeps a job for when the stream is held again."""
        self._jobs.setdefault(stream, []).append(job)

    def release(self, stream: int, place: int, events: list[Event]) -> None:
        """Sends the stream's jobs on stream `place`."""
        if jobs := self._jobs.pop(stream, None):
            events.append(Reply(b"".join(frame(f.ENQUEUE, place, job) for job in jobs)))
