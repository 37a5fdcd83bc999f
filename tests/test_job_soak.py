"""Short soaks of jobs: cores, workers, databases are killed at random, the disk fails; nothing acknowledged is lost."""

from __future__ import annotations

import subprocess

import pytest

from .harness import perl
from .harness.server import PARKADE, PYTHON, ROOT, clean_environment

in_perl = pytest.mark.skipif(not perl.has("JSON::PP"), reason="there is no Perl")

SECONDS_MAX = 240.0
"""The maximum time until all jobs have run, on a busy machine."""


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    "words",
    [
        pytest.param("--jobs 10000 --seconds 30", id="one server and its file"),
        pytest.param("--jobs 2000 --seconds 12 --language perl", id="workers in Perl", marks=in_perl),
        pytest.param("--servers 2 --jobs 5000 --seconds 25", id="two servers and a PostgreSQL"),
    ],
)
def test_every_acknowledged_job_runs_whatever_dies(words: str) -> None:
    command = [PYTHON, ROOT / "soak" / "jobs.py", *words.split()]
    environment = clean_environment(PARKADE_BIN=str(PARKADE))
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=SECONDS_MAX)
    assert ended.returncode == 0, ended.stdout + ended.stderr
