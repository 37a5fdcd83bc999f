"""A wall clock that the test sets: for the processes of one server alone, while their monotonic clock goes on."""

from __future__ import annotations

import atexit
import secrets
import shutil
import struct
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")

TOLD = struct.Struct("=qqq")
"""As in `wall_clock.c`: how far ahead it is, how much faster it goes, and since when. Nanoseconds."""

SECOND = 1_000_000_000


def missing() -> str | None:
    """What this machine lacks for it."""
    return None if shutil.which("cc") else "there is no C compiler"


@cache
def library() -> Path:
    """What is preloaded: built once for each process of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="pk-clock-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)  # whoever PostgreSQL runs as reads it
    built = folder / "wall_clock.so"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", built, SOURCE], check=True)
    return built


class WallClock:
    """`environment` is for whoever is to go by it. At first it is the true one."""

    def __init__(self) -> None:
        self._told = library().with_name(secrets.token_hex(4))
        self._ahead, self._haste, self._since = 0, 0, 0
        self._told.write_bytes(TOLD.pack(0, 0, 0))
        self.environment = {"LD_PRELOAD": str(library()), "WALL_CLOCK": str(self._told)}

    def jump(self, seconds: float) -> None:
        """It is so many seconds ahead of the true time from now on, or behind it."""
        self._ahead = round(seconds * SECOND)
        self._tell()

    def hasten(self, times: int) -> None:
        """It goes so many times as fast from now on. Before anybody goes by it: it is not set at one blow."""
        self._haste, self._since = times - 1, time.monotonic_ns()
        self._tell()

    def now(self) -> float:
        """What it shows."""
        hurried = (time.monotonic_ns() - self._since) * self._haste if self._haste else 0
        return (time.time_ns() + self._ahead + hurried) / SECOND

    def _tell(self) -> None:
        # Into the page that everybody has mapped: a jump changes eight bytes of it.
        with self._told.open("r+b", buffering=0) as file:
            file.write(TOLD.pack(self._ahead, self._haste, self._since))
