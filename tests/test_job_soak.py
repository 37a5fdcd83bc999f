"""A short soak of jobs: cores and workers are killed at random, the disk fails; nothing acknowledged is lost."""

from __future__ import annotations

import subprocess

import pytest

from .harness.server import PARKADE, PYTHON, ROOT, clean_environment

JOBS = 10_000
SECONDS = 30
SECONDS_MAX = 240.0
"""On a machine that is busy with something else, until all is drained."""


@pytest.mark.promise(9)
def test_every_acknowledged_job_runs_whatever_dies() -> None:
    words = [PYTHON, ROOT / "soak" / "jobs.py", "--jobs", str(JOBS), "--seconds", str(SECONDS)]
    environment = clean_environment(PARKADE_BIN=str(PARKADE))
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=SECONDS_MAX)
    assert ended.returncode == 0, ended.stdout + ended.stderr
