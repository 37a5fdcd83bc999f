"""The options of one job when it is enqueued: time, priority, queue, key."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .._limits import PRIORITY_MAX
from .._wire import payloads as p
from .._wire.jobs import fault_of_length

NAMES = frozenset({"delay", "at", "priority", "key", "queue"})
"""The names of the options."""

_NONE = p.EnqueueOptions()


def options(
    delay: float | None,
    at: datetime | float | None,
    priority: int | None,
    key: str | None,
    queue: str | None,
    usual: p.EnqueueOptions = _NONE,
) -> p.EnqueueOptions:
    """Checked. Missing options are taken from `usual`, which is returned if all are missing.
    Raises `TypeError` and `ValueError`.
    """
    if delay is None and at is None and priority is None and key is None and queue is None:
        return usual
    if delay is not None and at is not None:
        raise ValueError("give either delay or at, not both")
    return p.EnqueueOptions(
        0 if delay is None else _seconds("delay", delay),
        None if at is None else _moment(at),
        usual.priority if priority is None else checked_priority(priority),
        usual.queue if queue is None else checked_text("the name of a queue", queue),
        None if key is None else checked_text("a key", key),
    )


def checked_priority(priority: int) -> int:
    """Raises `ValueError`, as do those below; `TypeError` for another type."""
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise TypeError(f"a priority is an integer, not {priority!r}")
    if not -PRIORITY_MAX <= priority <= PRIORITY_MAX:
        raise ValueError(f"a priority is between -{PRIORITY_MAX} and {PRIORITY_MAX}, not {priority}")
    return priority


def checked_text(what: str, text: Any) -> str:
    """A name or a key: 1 to 200 bytes."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a str, not {text!r}")
    if (reason := fault_of_length(what, text)) is not None:
        raise ValueError(reason)
    return text


def _moment(at: datetime | float) -> float:
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise ValueError(
                "at must be a datetime with a time zone, such as datetime.now(timezone.utc), or seconds since 1970"
            )
        return _seconds("at", at.timestamp())
    return _seconds("at", at)


def _seconds(what: str, seconds: Any) -> float:
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise TypeError(f"{what} is a number of seconds, not {seconds!r}")
    if not 0 <= seconds <= 1e15:  # neither infinity nor NaN is in there
        raise ValueError(f"{what} must be a finite number of seconds, 0 or more, not {seconds!r}")
    return seconds
