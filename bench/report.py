"""The results as a table for people and as JSON for programs."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from alternate import Comparison
from settings import RESULTS, Settings

SERIES_RUNS_MIN = 3
"""With fewer runs, the median says too little."""


@dataclass(frozen=True, slots=True)
class Row:
    work: str
    target: str
    parkade: str
    peer: str
    ratio: str = "–"
    met: bool | None = None
    """None if there is nothing to compare, or no target."""


@dataclass(slots=True)
class Outcome:
    """The results of a scenario."""

    rows: list[Row] = field(default_factory=list)
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def number(value: float | None, unit: str = "", digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}{unit}"


def times(value: float | None) -> str:
    return number(value, " ×", 2)


def met(value: float | None, at_least: float | None = None, at_most: float | None = None) -> bool | None:
    if value is None:
        return None
    return (at_least is None or value >= at_least) and (at_most is None or value <= at_most)


def both(*verdicts: bool | None) -> bool | None:
    """A failure outweighs an unknown."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


def cpu_row(found: Comparison, name: str, peer: str, at_most: float | None = None, of: str = "request") -> Row:
    """The line below a row: what each request cost in CPU time, over the server's whole tree of processes."""
    ratio = found.ratio(name, peer, "cpu_us")
    return Row(
        work=f"– CPU for each {of}",
        target="–" if at_most is None else f"≤ {at_most} × {peer}",
        parkade=number(found.median(name, "cpu_us"), " µs", 1),
        peer=f"{peer} {number(found.median(peer, 'cpu_us'), ' µs', 1)}",
        ratio=times(ratio),
        met=None if at_most is None else met(ratio, at_most=at_most),
    )


def table(outcomes: dict[str, Outcome]) -> str:
    lines = ["| work | target | Parkade | peer | ratio | ok? |", "|---|---|---|---|---|---|"]
    verdict = {True: "yes", False: "**no**", None: "–"}
    for outcome in outcomes.values():
        for row in outcome.rows:
            cells = [row.work, row.target, row.parkade, row.peer, row.ratio, verdict[row.met]]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def remarks(outcomes: dict[str, Outcome]) -> list[str]:
    """The scenarios' notes, then what was not measured and why."""
    found = [note for outcome in outcomes.values() for note in outcome.notes]
    skipped = {
        f"{server}: {reason}"
        for outcome in outcomes.values()
        for comparison in outcome.comparisons.values()
        for server, reason in comparison.skipped.items()
    }
    return found + [f"Not measured: {text}." for text in sorted(skipped)]


def machine() -> dict[str, Any]:
    """No names of the machine, only what its speed depends on."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), ":")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu.partition(":")[2].strip(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "kernel": platform.release().partition("-")[0],
    }


def why_not_kept(settings: Settings) -> str | None:
    """Why a new series should not replace the kept one: results have one file for each scenario."""
    if settings.peers_only or settings.ours_only:
        return "only a part of the servers was measured"
    if settings.runs < SERIES_RUNS_MIN:
        return f"a series has at least {SERIES_RUNS_MIN} runs"
    if os.environ.get("PARKADE_BIN") or os.environ.get("PARKADE_FLAGS"):
        return "PARKADE_BIN or PARKADE_FLAGS is set"
    return None


def write(
    outcomes: dict[str, Outcome], settings: Settings, versions: dict[str, str], began: datetime
) -> Sequence[Path]:
    """Returns the files, one for each scenario."""
    RESULTS.mkdir(exist_ok=True)
    written = []
    for name, outcome in outcomes.items():
        content = {
            "began": began.isoformat(timespec="seconds"),
            "settings": asdict(settings),
            "machine": machine(),
            "versions": versions,
            **asdict(outcome),
        }
        path = RESULTS / f"{name}.json"
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        written.append(path)
    return written
