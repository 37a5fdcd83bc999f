"""Calls wrk: as many requests as 64 clients in one thread can make."""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

from servers import Server, Unavailable


@dataclass(frozen=True, slots=True)
class Flood:
    requests: int
    seconds: float
    failed: int
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


def flood(url: str, seconds: float, clients: int = 64, body: str | None = None) -> Flood:
    """With a body: POST."""
    if not shutil.which("wrk"):
        raise Unavailable("wrk is not installed")
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds:g}s", "--latency"]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        if body is not None:
            script.write(f'wrk.method = "POST"\nwrk.body = "{body}"\nwrk.headers["Content-Type"] = "text/plain"\n')
            script.flush()
            command += ["--script", script.name]
        return _parsed(subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout)


def flooded(server: Server, path: str, seconds: float) -> dict[str, float]:
    """A warm-up, then the rate and the CPU time of the whole tree of processes for each request."""
    flood(server.url(path), 1)
    before = server.cpu_seconds()
    found = flood(server.url(path), seconds)
    cpu = server.cpu_seconds() - before
    return {
        "per_second": found.per_second,
        "cpu_us": cpu / max(found.requests, 1) * 1e6,
        "p99_ms": found.p99_ms,
        "failed": found.failed,
    }


def _parsed(text: str) -> Flood:
    total = re.search(r"(\d+) requests in ([\d.]+)(m?s|m)", text)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
    if not total or not p99:
        raise Unavailable(f"wrk said something unknown: {text[-200:]}")
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    return Flood(
        requests=int(total[1]),
        seconds=float(total[2]) * {"ms": 0.001, "s": 1, "m": 60}[total[3]],
        failed=int(bad[1] if bad else 0) + (sum(map(int, errors.groups())) if errors else 0),
        p99_ms=float(p99[1]) * {"us": 0.001, "ms": 1, "s": 1000}[p99[2]],
    )
