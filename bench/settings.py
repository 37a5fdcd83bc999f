"""The settings of one benchmark run, and where things are."""

import os
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
PEERS = BENCH / "peers"
RESULTS = BENCH / "results"
TEMPORARY = RESULTS / "tmp"
LOAD = BENCH / "load" / "target" / "release" / "load"
VENV = BENCH / ".venv" / "bin"
ON_DISK = Path("/var/tmp")
"""For data that has to be written to a disk: /tmp may be memory."""


@dataclass(frozen=True, slots=True)
class Settings:
    runs: int
    """How often each server is measured, taking turns with the others."""
    seconds: float
    """How long one run of constant load lasts."""
    peers_only: bool = False
    ours_only: bool = False
    """Leaves the peers out: for comparing two builds of Parkade."""


def parkade_binary() -> Path:
    return Path(os.environ.get("PARKADE_BIN") or ROOT / ".venv" / "bin" / "parkade")
