"""How much of a channel is held, by its name."""

from __future__ import annotations

from .._wire.payloads import fault_of_channel
from .._wire.ready import ChannelOptions, ChannelPattern


def limit_history(
    pattern: str, *, count: int | None = None, bytes: int | None = None, age: float | None = None
) -> None:
    """As `App.channel`, for applications of Flask, Django, FastAPI and others: limits the history of a channel, or of
    all channels whose name begins with what precedes a final `*`. Call it where the application is imported.

    Raises `ValueError` for a name that no channel can have.
    """
    _limited.append(pattern_of_channel(pattern, count, bytes, age))


def limited_histories() -> list[ChannelPattern]:
    """What `limit_history` was told so far, for READY."""
    return list(_limited)


def pattern_of_channel(pattern: str, count: int | None, bytes: int | None, age: float | None) -> ChannelPattern:
    """Raises `ValueError`."""
    if (reason := fault_of_channel(pattern)) is not None:
        raise ValueError(f"{pattern!r}: {reason}")
    if any(value is not None and value < 0 for value in (count, bytes, age)):
        raise ValueError(f"{pattern!r}: count, bytes and age must be 0 or more")
    return ChannelPattern(pattern, ChannelOptions(count, bytes, age))


_limited: list[ChannelPattern] = []
