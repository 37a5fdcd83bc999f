"""What comes of the first of several waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class First(Generic[T_co]):
    """The wait of several that was over first."""

    index: int
    """Which one it was, counted from 0."""
    value: T_co
    """What awaiting it alone would give."""
