"""A client that sends tiny requests again and again, and records its longest wait: that of all other clients.

By hand, `python -m tests.harness.prober`: how long it waits while something concerns 19,500 others.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .client import Address, Client
from .crowd import Crowd


class Prober:
    """Sends a request every millisecond, in a separate process, so that the tests' own work delays nothing. As a
    context manager: it runs inside the block.
    """

    def __init__(self, address: Address, target: str = "/constant") -> None:
        self.address = address
        self.target = target
        self.slowest = 0.0

    def __enter__(self) -> Prober:
        host, port = self.address[0], self.address[1]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.harness.prober", str(host), str(port), self.target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        return self

    def __exit__(self, *_: object) -> None:
        told, _errors = self._process.communicate("over\n")
        self.slowest = float(told)


def probe(host: str, port: int, target: str) -> None:
    """Until a line arrives; then prints the longest time, in seconds."""
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), over.set()), daemon=True).start()
    slowest = 0.0
    with Client((host, port), 30) as client:
        client.get(target)
        print("probing", flush=True)
        while not over.is_set():
            began = time.perf_counter()
            assert client.get(target).status == 200
            slowest = max(slowest, time.perf_counter() - began)
            over.wait(0.001)
    print(slowest, flush=True)


def main(count: int) -> None:
    """Prints how long others waited during each of these."""
    from .server import Server

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = Server("basic").ready()

    def told(what: str, act: Callable[[], Any]) -> None:
        with Prober(server.address) as prober:
            act()
        turns = server.status().get("turns", {}) if server.process.poll() is None else {}
        print(f"{what:>32}: {prober.slowest * 1e3:6.1f} ms   {turns}", flush=True)

    try:
        told("nothing, for two seconds", lambda: threading.Event().wait(2))
        with Crowd(server.address, count) as crowd:
            for _ in range(2):
                told(f"{count} begin to wait", lambda: (crowd.ask("/next/all"), server.until_parked(count, 60)))
                told("one publish to them", lambda: (server.publish("all", b"go"), crowd.statuses(60)))
            told("they begin to wait for a time", lambda: (crowd.ask("/after/2"), server.until_parked(count, 60)))
            told("it is over for all at once", lambda: crowd.statuses(60))
            told("a worker is killed and started", lambda: kill_workers(server))
            told("a reload", server.reload)
            told("they begin to wait", lambda: (crowd.ask("/next/all"), server.until_parked(count, 60)))
            told("they all leave", lambda: (crowd.__exit__(), server.until_parked(0, 60)))
            told("nothing, for two seconds", lambda: threading.Event().wait(2))
        print("\n".join(line for line in server.log().splitlines() if "a turn of the core took" in line))
    finally:
        server.dispose()


def kill_workers(server: Any) -> None:
    """And waits for others."""
    (pid,) = server.worker_pids()
    os.kill(pid, signal.SIGKILL)
    server.until(lambda status: [w["pid"] for w in status["workers"] if w["state"] == "ready"] not in ([], [pid]))


if __name__ == "__main__":
    if len(sys.argv) == 4:
        probe(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 19_000)
