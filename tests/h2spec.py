"""Runs h2spec against a server: `.venv/bin/python -m tests.h2spec [CASE ...]`.

It is a client of HTTP/2 with 145 cases, such as `http2/6.5` or `hpack`, about RFC 7540 and RFC 7541. It needs Go and
its module proxy, and keeps what it installs in `target/h2spec`. Fails if a case fails that is not listed here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

from .harness.server import ROOT, Server

FOLDER = ROOT / "target" / "h2spec"
PROGRAM = FOLDER / "h2spec"
RELEASE = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible"
TARGET = "/hola/you"

KNOWN = {
    "http2/3.5 Sends invalid connection preface": "HTTP/1.1 has the same port, and answers it with 400",
}
"""Cases that fail, and why."""


def install() -> None:
    """Builds h2spec, unless it is there."""
    if not PROGRAM.exists():
        environment = os.environ | {"GOBIN": str(FOLDER)}
        subprocess.run(["go", "install", RELEASE], env=environment, check=True)


def run(cases: list[str]) -> dict[str, bool]:
    """Which cases have passed."""
    report = FOLDER / "report.xml"
    report.unlink(missing_ok=True)
    server = Server("basic", workers=1).ready()
    try:
        host, port = server.address
        told = ["--host", host, "--port", str(port), "--path", TARGET, "--timeout", "5", "--junit-report", str(report)]
        subprocess.run([PROGRAM, *told, *cases], check=False)
        server.still_serves()
    finally:
        server.dispose()
    found = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('package')} {case.get('classname')}"
        found[name] = not [*case.iter("failure"), *case.iter("error")]
    return found


def main(cases: list[str]) -> None:
    """Runs them and says what came of it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    install()
    found = run(cases)
    failed = [name for name, has_passed in found.items() if not has_passed]
    for name in failed:
        print(f"failed: {name} ({KNOWN.get(name, 'unexpected')})")
    print(f"{len(found) - len(failed)} passed, {len(failed)} failed")
    sys.exit(bool(set(failed) - KNOWN.keys() or not found))


if __name__ == "__main__":
    main(sys.argv[1:])
