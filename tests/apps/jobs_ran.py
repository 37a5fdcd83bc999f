"""A record of what jobs did, for the test to read: lines appended to a file, which outlives workers and servers."""

from __future__ import annotations

import os
from pathlib import Path

RAN = Path(os.environ.get("RAN", "ran"))
"""Relative to the folder in which the server was started."""


def note(line: str) -> None:
    """One write, so that no other process can come between (O_APPEND)."""
    descriptor = os.open(RAN, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)
