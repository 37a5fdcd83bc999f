"""Processes as the kernel sees them: whether they live, what they use, their relations."""

from __future__ import annotations

import os
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def is_alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def resident_bytes(pid: int) -> int:
    """Its resident memory."""
    return _told_bytes(pid, "VmRSS")


def peak_bytes(pid: int) -> int:
    """The peak of its resident memory."""
    return _told_bytes(pid, "VmHWM")


def _told_bytes(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"the kernel tells no memory of process {pid}")


def cpu_seconds(pid: int) -> float:
    """User and system time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def descriptors(pid: int) -> int:
    """The number of open descriptors."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def with_variable(name: str, value: str) -> list[int]:
    """Living processes that were started with this environment variable: a server and everything it has started."""
    wanted = f"{name}={value}".encode()
    return [pid for pid, folder in _processes() if wanted in _environment(folder) and is_alive(pid)]


def titled(title: str, working_in: Path) -> list[int]:
    """Living processes with this title and working directory: those of Perl, whose titles overwrite the environment."""
    wanted = title.encode()

    def is_found(folder: Path) -> bool:
        try:
            return (folder / "cmdline").read_bytes().startswith(wanted) and (folder / "cwd").samefile(working_in)
        except OSError:
            return False

    return [pid for pid, folder in _processes() if is_found(folder) and is_alive(pid)]


def ancestors(pid: int) -> list[int]:
    """Its parent, the parent of that, and so on."""
    found: list[int] = []
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        found.append(pid)
    return found


def _processes() -> list[tuple[int, Path]]:
    return [(int(folder.name), folder) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def _environment(folder: Path) -> list[bytes]:
    try:
        return (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
