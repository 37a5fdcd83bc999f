"""Leaves servers in the middle of a statement, and watches pg_stat_activity until the database is rid of it.

Runs in bench/.venv, whose psycopg asks often enough: `leave.py URL PORT HOW PATH COUNT [PID …]` prints JSON.
"""

import json
import os
import signal
import socket
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

import psycopg

PAUSE_SECONDS = 0.0005
PATIENCE_SECONDS = 30
DEADLINE_SECONDS = 0.05
"""The deadline of the route `/late`."""

# `state` excludes idle backends, which still show their last statement.
RUNNING = """
    select count(*) from pg_stat_activity
    where query like '%/* bench */' and state <> 'idle' and pid <> pg_backend_pid()
"""


class Watch:
    """One connection that asks for the number of running statements."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._cursor = self._connection.cursor()
        self.steps: list[float] = []

    def running(self) -> int:
        row = self._cursor.execute(RUNNING, prepare=True).fetchone()
        assert row is not None, "count gives a row"
        return int(row[0])

    def until_none_of(self, count: int) -> list[float]:
        """The times at which the number of running statements fell by one; each is late by one step at most."""
        moments: list[float] = []
        before, asked = count, time.monotonic()
        end = asked + PATIENCE_SECONDS
        while before > 0:
            now = self.running()
            moment = time.monotonic()
            self.steps.append(moment - asked)
            asked = moment
            moments += [moment] * (before - now)
            before = min(before, now)
            if moment > end:
                raise SystemExit(f"{before} statements still run after {PATIENCE_SECONDS} s")
            time.sleep(PAUSE_SECONDS)
        return moments

    def until_started(self, count: int) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while (running := self.running()) < count:
            if time.monotonic() > end:
                raise SystemExit(f"{running} of {count} statements run after {PATIENCE_SECONDS} s")
            time.sleep(PAUSE_SECONDS)


def main() -> None:
    url, port, how, path, count, *pids = sys.argv[1:]
    watch = Watch(url)
    ways: dict[str, Callable[[], list[float]]] = {
        "gone": lambda: [seconds for _ in range(int(count)) for seconds in gone(watch, int(port), path)],
        "deadline": lambda: [seconds for _ in range(int(count)) for seconds in deadline(watch, int(port), path)],
        "SIGTERM": lambda: signalled(watch, int(port), path, int(count), [int(pid) for pid in pids], signal.SIGTERM),
        "SIGKILL": lambda: signalled(watch, int(port), path, int(count), [int(pid) for pid in pids], signal.SIGKILL),
    }
    seconds = ways[how]()
    step = statistics.median(watch.steps) if watch.steps else 0
    print(json.dumps({"latencies_ms": [one * 1e3 for one in seconds], "step_ms": step * 1e3}))


def gone(watch: Watch, port: int, path: str) -> list[float]:
    """The client closes its connection."""
    connection = _asked(port, path)
    watch.until_started(1)
    began = time.monotonic()
    connection.close()
    return [moment - began for moment in watch.until_none_of(1)]


def deadline(watch: Watch, port: int, path: str) -> list[float]:
    """The request's own deadline passes; the client waits on."""
    with _asked(port, path) as connection:
        began = time.monotonic() + DEADLINE_SECONDS
        watch.until_started(1)
        found = [moment - began for moment in watch.until_none_of(1)]
        if not (answer := connection.recv(4096)).startswith(b"HTTP/1.1 504"):
            raise SystemExit(f"no 504 but {answer[:80]!r}")
    return found


def signalled(watch: Watch, port: int, path: str, count: int, pids: list[int], which: signal.Signals) -> list[float]:
    """The server gets a signal while this many statements run."""
    with ExitStack() as clients:
        for _ in range(count):
            clients.enter_context(_asked(port, path))
        watch.until_started(count)
        began = time.monotonic()
        for pid in pids:
            os.kill(pid, which)
        return [moment - began for moment in watch.until_none_of(count)]


def _asked(port: int, path: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
    return connection


if __name__ == "__main__":
    main()
