"""Frames that are written together: small ones joined, large payloads from where they are."""

from __future__ import annotations

import os

from .._wire.frames import Parts

IOV_MAX = 1_024
"""Buffers that one call of the kernel takes (POSIX has 16 at least, Linux and the BSDs have this)."""

PART_SIZE_MIN = 4_096
"""Below this size on average, copying them is cheaper than naming each to the kernel."""


def gathered(parts: Parts) -> Parts:
    """The same bytes as a list for `write`, which is joined if that is cheaper."""
    if len(parts) == 1 or sum(map(len, parts)) >= PART_SIZE_MIN * len(parts):
        return parts
    return [b"".join(parts)]


def write(descriptor: int, parts: Parts) -> int:
    """Writes what the descriptor takes, and returns how many bytes those were."""
    return os.write(descriptor, parts[0]) if len(parts) == 1 else os.writev(descriptor, parts[:IOV_MAX])


def rest_of(parts: Parts, sent: int) -> Parts:
    """What is left when so many bytes were sent."""
    for position, part in enumerate(parts):
        if sent < len(part):
            return [memoryview(part)[sent:], *parts[position + 1 :]]
        sent -= len(part)
    return []
