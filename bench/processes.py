"""The resources of a tree of processes, from /proc: CPU time and memory."""

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes, from smaps_rollup: `pss` counts a shared page once over all its processes."""

    rss: int
    pss: int

    def __add__(self, other: "Memory") -> "Memory":
        return Memory(self.rss + other.rss, self.pss + other.pss)


def tree(root: int) -> list[int]:
    """The process with all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (parent := _parent(int(entry.name))) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found, pending = [], [root]
    while pending:
        pid = pending.pop()
        found.append(pid)
        pending.extend(children.get(pid, []))
    return found


def cpu_seconds(pids: list[int]) -> float:
    """User and system time of these processes, and of children they have waited for."""
    return sum(sum(map(int, _stat(pid)[11:15])) for pid in pids if _stat(pid)) / TICKS_PER_SECOND


def memory(pids: list[int]) -> Memory:
    return sum((_memory(pid) for pid in pids), Memory(0, 0))


def _parent(pid: int) -> int | None:
    stat = _stat(pid)
    return int(stat[1]) if stat else None


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may itself contain spaces; see proc(5)."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _memory(pid: int) -> Memory:
    kilobytes = {}
    for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]:
        name, value, *_ = line.split()
        kilobytes[name] = int(value)
    return Memory(rss=kilobytes["Rss:"] * 1024, pss=kilobytes["Pss:"] * 1024)


def forget_peak(pids: list[int]) -> None:
    """Resets `peak`; see clear_refs in proc(5)."""
    for pid in pids:
        (PROC / str(pid) / "clear_refs").write_text("5")


def peak(pids: list[int]) -> int:
    """The sum of each process's peak of resident memory (since `forget_peak`), in bytes."""
    return sum(_peak(pid) for pid in pids)


def _peak(pid: int) -> int:
    status = (PROC / str(pid) / "status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))
