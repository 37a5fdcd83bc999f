"""Runs the Autobahn test suite against an echo application: `.venv/bin/python -m tests.autobahn [CASE ...]`.

It is a client of WebSockets with 517 cases, such as `1.*` or `9.7.1`. It needs Python 2.7 (`PYTHON2` says which) and
PyPI, and keeps what it installs, and a report for browsers, in `target/autobahn`. Fails if a case fails that is not
explained here.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from .harness.server import ROOT, Server

FOLDER = ROOT / "target" / "autobahn"
SUITE = FOLDER / "suite"
REPORT = FOLDER / "report"
RELEASE = "autobahntestsuite==25.10.1"

PASSED = ("OK", "NON-STRICT", "INFORMATIONAL")
Case = dict[str, Any]


def python2() -> str:
    """A Python 2.7 that runs: a shim of pyenv may not."""
    named = [os.environ.get("PYTHON2"), shutil.which("python2.7"), shutil.which("python2")]
    of_pyenv = sorted(glob.glob(str(Path.home() / ".pyenv/versions/2.7*/bin/python")))
    for found in filter(None, [*named, *of_pyenv]):
        told = subprocess.run([found, "-c", "import sys; sys.exit(sys.version_info[:2] != (2, 7))"], check=False)
        if told.returncode == 0:
            return found
    sys.exit("There is no Python 2.7, for which Autobahn is written; PYTHON2 can name one.")


def install(python: str) -> None:
    """Installs the suite, unless it is there."""
    if SUITE.exists():
        return
    begun = FOLDER / "begun"
    shutil.rmtree(begun, ignore_errors=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--target", begun, RELEASE], check=True)
    begun.rename(SUITE)


def results(python: str, cases: list[str]) -> dict[str, Case]:
    """The outcome of each case."""
    server = Server("sockets_asgi", workers=1).ready()
    try:
        host, port = server.address
        told = {
            "outdir": str(REPORT),
            "servers": [{"agent": "Parkade", "url": f"ws://{host}:{port}/echo"}],
            "cases": cases,
            "exclude-cases": [],
        }
        spec = FOLDER / "spec.json"
        spec.write_text(json.dumps(told))
        # One of its packages is found only through a .pth file.
        words = f"import site; site.addsitedir({str(SUITE)!r}); from autobahntestsuite.wstest import run; run()"
        environment = os.environ | {"PYTHONPATH": str(SUITE)}
        subprocess.run([python, "-c", words, "-m", "fuzzingclient", "-s", spec], env=environment, check=True)
        server.until_zero()
    finally:
        server.dispose()
    found: dict[str, Case] = json.loads((REPORT / "index.json").read_text())["Parkade"]
    return found


def has_passed(case: Case) -> bool:
    """Whether the server does what it should."""
    return case["behavior"] in PASSED and case["behaviorClose"] in PASSED


def main(cases: list[str]) -> None:
    """Runs them and says what came of it."""
    shutil.rmtree(REPORT, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    python = python2()
    install(python)
    found = results(python, cases or ["*"])
    print(Counter(case["behavior"] for case in found.values()))
    failed = [name for name, case in found.items() if not has_passed(case)]
    for name in failed:
        print(name, found[name])
    print(f"{len(found) - len(failed)} passed, {len(failed)} failed")
    sys.exit(bool(failed or not found))


if __name__ == "__main__":
    main(sys.argv[1:])
