"""A wall clock that the test sets, for the processes of one server, while their monotonic clock is not affected."""

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
"""As in `wall_clock.c`: how far ahead it is, how much faster it runs, and since when. Nanoseconds."""

SECOND = 1_000_000_000


def missing() -> str | None:
    """What this machine lacks for it; None if nothing."""
    return None if shutil.which("cc") else "there is no C compiler"


@cache
def library() -> Path:
    """The library to be preloaded: built once for each process of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="pk-clock-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)  # the user that runs PostgreSQL has to read it
    built = folder / "wall_clock.so"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", built, SOURCE], check=True)
    return built


class WallClock:
    """`environment` is for the programs that use it. At first it shows the true time."""

    def __init__(self) -> None:
        self._told = library().with_name(secrets.token_hex(4))
        self._ahead, self._haste, self._since = 0, 0, 0
        self._told.write_bytes(TOLD.pack(0, 0, 0))
        self.environment = {"LD_PRELOAD": str(library()), "WALL_CLOCK": str(self._told)}

    def jump(self, seconds: float) -> None:
        """Sets it this many seconds ahead of the true time; a negative number sets it back."""
        self._ahead = round(seconds * SECOND)
        self._tell()

    def hasten(self, times: int) -> None:
        """Makes it run this many times as fast. To be called before any program uses it, because setting it is not
        atomic.
        """
        self._haste, self._since = times - 1, time.monotonic_ns()
        self._tell()

    def now(self) -> float:
        """The time that it shows."""
        hurried = (time.monotonic_ns() - self._since) * self._haste if self._haste else 0
        return (time.time_ns() + self._ahead + hurried) / SECOND

    def _tell(self) -> None:
        # Into the page that all programs have mapped: a jump changes eight bytes of it.
        with self._told.open("r+b", buffering=0) as file:
            file.write(TOLD.pack(self._ahead, self._haste, self._since))
