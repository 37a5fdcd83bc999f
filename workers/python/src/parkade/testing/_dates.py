"""Dates of HTTP in their three forms (RFC 9110, section 5.6.7)."""

from __future__ import annotations

import re
from datetime import datetime, timezone


def parse_date(text: str) -> int | None:
    """In seconds since 1970; None for a text that is no date of HTTP."""
    found = next((found for shape in _DATES if (found := shape.fullmatch(text.strip())) is not None), None)
    if found is None:
        return None
    year = int(found["year"])
    if len(found["year"]) == 2:
        year += 2000 if year < 70 else 1900
    try:
        month = _MONTHS.index(found["month"]) + 1
        hour, minute, second = map(int, found["time"].split(":"))
        date = datetime(year, month, int(found["day"]), hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return None
    is_one = year >= 1970 and date.strftime("%w") == str(_DAYS.index(found["weekday"][:3]))
    return int(date.timestamp()) if is_one else None


_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY, _TIME = f"(?P<weekday>{'|'.join(_DAYS)})", r"(?P<time>\d\d:\d\d:\d\d)"
_DATES = (
    re.compile(rf"{_DAY}, (?P<day>\d\d) (?P<month>\w{{3}}) (?P<year>\d{{4}}) {_TIME} GMT", re.ASCII),
    re.compile(
        r"(?P<weekday>(Sun|Mon|Tues|Wednes|Thurs|Fri|Satur)day), "
        rf"(?P<day>\d\d)-(?P<month>\w{{3}})-(?P<year>\d\d) {_TIME} GMT",
        re.ASCII,
    ),
    re.compile(rf"{_DAY} (?P<month>\w{{3}}) (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})", re.ASCII),
)
