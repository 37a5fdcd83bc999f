"""The link of a worker with an event loop under the newest Python: tasks may begin eagerly from 3.12 on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .harness import newest_python
from .harness.server import ROOT, clean_environment

PLACE = ROOT / "target" / "newest_python"
TESTS = ROOT / "workers" / "python" / "tests"
FILES = ("test_runners.py", "test_concurrent.py", "test_compiled.py")


@pytest.fixture(scope="module")
def python() -> Path:
    done = PLACE / "done"
    with newest_python.alone(PLACE):
        if not done.exists():
            if newest_python.make(PLACE, "msgspec", "uvloop", "pytest", "hypothesis") is None:
                pytest.skip("there is no Python 3.12 or newer")
            done.touch()
    return PLACE / "bin" / "python"


@pytest.mark.parametrize("file", FILES)
def test_the_link_runs_under_the_newest_python(python: Path, file: str) -> None:
    environment = clean_environment(PYTHONPATH=str(ROOT / "workers" / "python" / "src"))
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS / file]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=PLACE, timeout=300)
    assert ran.returncode == 0, ran.stdout[-8000:]
    assert " passed" in ran.stdout
