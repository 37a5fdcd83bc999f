"""Clients that send requests without a pause during a test, and record how each request ended."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from .client import Address, Answer, Broken, Client, Closed
from .until import until


class Load:
    """This many connections, each requesting these targets in turn; a new one if a response closes it. As a context
    manager: it runs inside the block.
    """

    def __init__(self, address: Address, *targets: str, connections: int = 4, fields: Sequence[str] = ()) -> None:
        self.address = address
        self.targets = targets
        self.fields = fields
        self.statuses: Counter[int] = Counter()
        self.bodies: Counter[bytes] = Counter()
        self.failures: list[str] = []
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(connections)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    @property
    def count(self) -> int:
        """The number of requests that were answered."""
        return sum(self.statuses.values())

    def goes_on(self, more: int = 50) -> None:
        """Waits until this many further requests are answered."""
        wanted = self.count + more
        until(f"{more} more answers", lambda: self.count >= wanted or bool(self.failures))

    def _run(self) -> None:
        client = None
        try:
            while not self._over.is_set():
                for target in self.targets:
                    client = client or Client(self.address)
                    answer = client.get(target, *self.fields)
                    self._note(answer)
                    if answer.all("connection") == ["close"]:
                        client.close()
                        client = None
        except (Broken, Closed, OSError) as error:
            if not self._over.is_set():
                self.failures.append(repr(error))
        finally:
            if client is not None:
                client.close()

    def _note(self, answer: Answer) -> None:
        with self._lock:
            self.statuses[answer.status] += 1
            self.bodies[answer.body] += 1
