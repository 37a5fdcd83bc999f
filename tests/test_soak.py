"""A short soak: clients that leave, restarts, `kill -9`; afterwards the database's own log shows which statements were
hit.
"""

from __future__ import annotations

import subprocess

import pytest

from .harness.postgres import programs
from .harness.server import PARKADE, PYTHON, ROOT, clean_environment

CANCELS = 3_000
SECONDS_MAX = 240.0


@pytest.mark.promise(3)
def test_no_cancel_hits_anybody_else() -> None:
    words = [PYTHON, ROOT / "soak" / "queries.py", "--cancels", str(CANCELS)]
    environment = clean_environment(PARKADE_BIN=str(PARKADE), POSTGRES_BIN=str(programs()))
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=SECONDS_MAX)
    assert ended.returncode == 0, ended.stdout + ended.stderr
