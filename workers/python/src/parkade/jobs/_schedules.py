"""When a job recurs: at intervals, or at times of the day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from .._wire.ready import Recurring
from ..errors import SignatureError
from ._options import checked_text

Missed: TypeAlias = Literal["once", "skip", "all"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Exactly one of `every` (seconds) and `cron` (five fields) is given."""

    every: float | None
    cron: str | None
    timezone: str
    missed: Missed

    def __post_init__(self) -> None:
        if self.missed not in ("once", "skip", "all"):
            raise SignatureError(f"missed is 'once', 'skip' or 'all', not {self.missed!r}")

    def ready(self, name: str, job: str, arguments: bytes, key: str | None) -> Recurring:
        """For READY."""
        return Recurring(
            name=name,
            job=job,
            arguments=arguments,
            every=self.every,
            cron=self.cron,
            timezone=self.timezone,
            missed=self.missed,
            key=key,
        )

    def __str__(self) -> str:
        return f"every {self.every:g} s" if self.every is not None else f"{self.cron} {self.timezone}"


def every(period: str | float | timedelta, missed: Missed) -> Schedule:
    """Raises `SignatureError` for an invalid period."""
    return Schedule(_seconds(period), None, "UTC", missed)


def cron(fields: str, timezone: str, missed: Missed) -> Schedule:
    """Only the number of fields is checked here: the core reads them. Raises `SignatureError`."""
    if not isinstance(fields, str) or len(fields.split()) != 5:
        raise SignatureError(
            f"cron has five fields (minute, hour, day, month, weekday), as in @app.cron('0 3 * * *'), not {fields!r}"
        )
    try:
        return Schedule(None, " ".join(fields.split()), checked_text("the name of a time zone", timezone), missed)
    except (TypeError, ValueError) as error:
        raise SignatureError(f"cron {fields!r}: {error}") from None


_UNITS = {
    "s": 1,
    "sec": 1,
    "second": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "h": 3_600,
    "hour": 3_600,
    "d": 86_400,
    "day": 86_400,
    "w": 604_800,
    "week": 604_800,
}
_PERIOD = re.compile(r"(?P<count>\d+(\.\d+)?)?\s*(?P<unit>[a-z]+)", re.IGNORECASE)


def _seconds(period: str | float | timedelta) -> float:
    if isinstance(period, str):
        seconds = _seconds_of_text(period)
    elif isinstance(period, timedelta):
        seconds = period.total_seconds()
    else:
        seconds = period
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 1e15:
        example = "write a number of seconds, or a text as in @app.every('5 minutes')"
        raise SignatureError(f"a job does not recur every {period!r}: {example}")
    return seconds


def _seconds_of_text(period: str) -> float | None:
    found = _PERIOD.fullmatch(period.strip())
    if found is None:
        return None
    word = found["unit"].lower()
    unit = _UNITS.get(word) or _UNITS.get(word.removesuffix("s"))
    return None if unit is None else float(found["count"] or 1) * unit
