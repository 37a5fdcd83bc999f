"""What jobs did, for a test to read: lines of a file, appended whole, so that they outlive workers and servers."""

from __future__ import annotations

import os
from pathlib import Path

RAN = Path(os.environ.get("RAN", "ran"))
"""Relative to the folder that the server was started in."""


def note(line: str) -> None:
    """One write, which no other process can come between (O_APPEND)."""
    descriptor = os.open(RAN, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)
