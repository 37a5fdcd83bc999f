"""One client that asks for a constant all the time: how long others wait while something happens to a server.

As a separate process (`python probe.py HOST PORT PATH`) it asks until a line arrives, then prints its latencies.
"""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from servers import Server

INTERVAL = 0.002
"""Seconds between an answer and the next request."""


@dataclass(slots=True)
class Latency:
    """In milliseconds; known after the block of `probing`."""

    requests: int = 0
    p99: float = 0
    max: float = 0


@contextmanager
def probing(server: Server, path: str = "/constant") -> Iterator[Latency]:
    """Probes while the block runs."""
    found = Latency()
    command = [sys.executable, __file__, "127.0.0.1", str(server.ports.main), path]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None, "stdout is piped"
        try:
            process.stdout.readline()
            yield found
            told = json.loads(process.communicate("over\n")[0])
        finally:
            process.kill()
    found.requests, found.p99, found.max = told["requests"], told["p99"], told["max"]


def probe(host: str, port: int, path: str) -> list[float]:
    """Probes until a line arrives."""
    over = threading.Event()

    def listen() -> None:
        sys.stdin.readline()
        over.set()

    threading.Thread(target=listen, daemon=True).start()
    wanted = f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()
    latencies = []
    with socket.create_connection((host, port), 60) as connection:
        print("probing", flush=True)
        while not over.wait(INTERVAL):
            began = time.perf_counter()
            connection.sendall(wanted)
            if not connection.recv(65_536).startswith(b"HTTP/1.1 200 "):
                raise SystemExit("the probe got another answer")
            latencies.append(time.perf_counter() - began)
    return latencies


def main() -> None:
    host, port, path = sys.argv[1:]
    found = sorted(probe(host, int(port), path))
    milliseconds = {"p99": found[len(found) * 99 // 100] * 1e3, "max": found[-1] * 1e3}
    print(json.dumps({"requests": len(found)} | milliseconds), flush=True)


if __name__ == "__main__":
    main()
