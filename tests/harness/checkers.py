"""The type checkers, both strict, over the files of a folder."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .server import ROOT

CHECKERS = ("mypy", "pyright")


def complaints(checker: str, folder: Path) -> str:
    """What the checker finds in the Python files of the folder; empty if nothing. Skips without the checker."""
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    source = str(ROOT / "workers/python/src")
    settings = {"include": ["."], "typeCheckingMode": "strict", "extraPaths": [source]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\nexplicit_package_bases = True\n")
    commands = {
        "mypy": ["mypy", "--config-file", "mypy.ini", "."],
        "pyright": ["pyright", "--pythonpath", sys.executable, "-p", str(folder)],
    }
    environment = os.environ | {"MYPYPATH": source}
    command = [sys.executable, "-m", *commands[checker]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    return "" if done.returncode == 0 else done.stdout + done.stderr
