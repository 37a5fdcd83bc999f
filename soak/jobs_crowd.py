"""Clients that enqueue, and record which jobs were acknowledged."""

import argparse
import http.client
import random
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

KINDS = {"quick": 70, "slow": 8, "bounded": 8, "parent": 6, "waits": 5, "fails_once": 2.9, "leaves_once": 0.1}
"""The kinds of jobs, by weight."""

WORK_SHARE = 0.7
"""The part of the time for enqueueing; the rest is for draining."""

ANSWER_SECONDS = 30.0
STORE_REFUSES = (503, 507)


@dataclass
class Ledger:
    """What clients and the soak itself have seen."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    """The kind of each number."""
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1

    def acknowledge(self, number: str, kind: str) -> None:
        with self.lock:
            self.acknowledged[number] = kind

    def violated(self, what: str) -> None:
        print(f"VIOLATION: {what}", flush=True)
        with self.lock:
            self.violations.append(what)

    def expected(self) -> set[str]:
        """The lines that must be in the file."""
        with self.lock:
            parents = (number for number, kind in self.acknowledged.items() if kind == "parent")
            return {f"{number} child" for number in parents} | set(self.acknowledged)


class Crowd:
    """Clients that enqueue one job after another, each with its own number, and record which were acknowledged."""

    def __init__(self, ports: list[int], ledger: Ledger, options: argparse.Namespace) -> None:
        self._ports = ports
        self._ledger = ledger
        self._options = options
        self._is_over = threading.Event()
        self._began = time.monotonic()
        self._threads = [threading.Thread(target=self._work, args=(name,)) for name in range(options.clients)]

    def start(self) -> None:
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def progress(self) -> float:
        """The part of the time for enqueueing that is over."""
        return (time.monotonic() - self._began) / (float(self._options.seconds) * WORK_SHARE)

    def _work(self, name: int) -> None:
        rng = random.Random(f"{self._options.seed} {name}")
        kinds, weights = list(KINDS), list(KINDS.values())
        port = self._ports[name % len(self._ports)]
        connection: http.client.HTTPConnection | None = None
        for at in range(sys.maxsize):
            if not self._wait_for_turn():
                break
            number, kind = f"{name}-{at}", rng.choices(kinds, weights)[0]
            connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
            try:
                connection.request("POST", f"/enqueue/{kind}/{number}")
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):
                # It is unknown whether the job was stored.
                self._ledger.count("unanswered")
                connection.close()
                connection = None
                time.sleep(0.02)
                continue
            self._judge(number, kind, answer.status)
        if connection is not None:
            connection.close()

    def _judge(self, number: str, kind: str, status: int) -> None:
        if status == 200:
            self._ledger.acknowledge(number, kind)
        elif status in STORE_REFUSES or status == 502:
            self._ledger.count("refused" if status in STORE_REFUSES else "failed with their worker")
        else:
            self._ledger.violated(f"enqueueing {kind} {number} was answered with {status}")

    def _wait_for_turn(self) -> bool:
        """Spreads jobs evenly over the time, so that there is always something to be killed."""
        while not self._is_over.is_set():
            acknowledged = len(self._ledger.acknowledged)
            if acknowledged >= self._options.jobs:
                return False
            if acknowledged < self._options.jobs * min(self.progress(), 1.0) + 1:
                return True
            time.sleep(0.002)
        return False
