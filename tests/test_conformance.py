"""The smallest worker, written from PROTOCOL.md alone, in a language that nothing else here has, passes what needs no
optional part. The author of another worker can do what this file does.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

from .harness.server import APPS, PARKADE, ROOT, clean_environment

SMALLEST = APPS / "smallest"
MARK = "pytest.mark" + ".needs"

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")


def test_the_smallest_worker_passes_the_vectors_that_need_nothing() -> None:
    words = ["node", SMALLEST / "vectors.js", ROOT / "protocol" / "vectors"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    counts = json.loads(ran.stdout)
    assert counts["frames"] > 90
    assert counts["sessions"] > 40


def conformance(*options: str) -> subprocess.CompletedProcess[str]:
    """The command of `tests/README.md`, for this worker; without the files that it would find to need all parts."""
    files = [file for file in sorted((ROOT / "tests").glob("test_*.py")) if MARK in file.read_text()]
    words = ["--worker", SMALLEST / "worker", "--applications", SMALLEST, "--has=", "-q", "-p", "no:cacheprovider"]
    environment = clean_environment(PARKADE_BIN=str(PARKADE))
    return subprocess.run(
        [sys.executable, "-m", "pytest", *files, *words, *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_smallest_worker_passes_the_black_box_tests_that_need_nothing() -> None:
    ran = conformance()
    passed = re.search(r"^(\d+) passed, \d+ deselected in", ran.stdout, re.MULTILINE)
    assert passed, ran.stdout[-5_000:] + ran.stderr[-2_000:]
    assert int(passed[1]) > 60


def test_a_part_that_the_protocol_does_not_have_is_no_part_of_a_worker() -> None:
    ran = conformance("--has=speed", "--collect-only")
    assert ran.returncode != 0
    assert "--has names no part of the protocol: ['speed']" in ran.stdout + ran.stderr
