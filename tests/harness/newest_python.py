"""An environment with the newest Python of this machine, from 3.12 on."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(place: Path) -> Iterator[None]:
    """Tests that run at the same time make one environment after another, so the second one finds it made."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make(place: Path, *packages: str) -> list[str | Path] | None:
    """Makes it, with these packages. Returns its pip; None without such a Python."""
    newest = _of_choice()
    if newest is None:
        return None
    subprocess.run([newest, "-m", "venv", place], check=True)
    pip: list[str | Path] = [place / "bin" / "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "install", *packages], check=True)
    return pip


def _of_choice() -> str | None:
    on_path = [found for name in ("python3.14", "python3.13", "python3.12") if (found := shutil.which(name))]
    installed = sorted(map(str, Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python3")), reverse=True)
    for found in on_path + installed:  # some are shims, which have no interpreter behind them
        if subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return found
    return None
