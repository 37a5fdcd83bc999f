"""Thousands of clients in one thread, which all send requests and collect the responses.

By hand, `python -m tests.harness.crowd 19000 10`: that many long polls return that many times, with a server of their
own.
"""

from __future__ import annotations

import contextlib
import resource
import selectors
import socket
import sys
import time
from collections import Counter

from .client import request


class Crowd:
    """This many connections of HTTP/1.1 to one address. As a context manager: they are closed after the block."""

    def __init__(self, address: tuple[str, int], count: int) -> None:
        self._waits = selectors.DefaultSelector()
        self._sockets: list[socket.socket] = []
        self.failures: list[str] = []
        for _ in range(count):
            self._sockets.append(socket.create_connection(address, 20))

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._sockets:
            client.close()
        self._waits.close()

    def ask(self, target: str) -> None:
        """Sends on all of them at once."""
        wanted = request("GET", target)
        for client in self._sockets:
            client.sendall(wanted)

    def statuses(self, seconds: float) -> Counter[int]:
        """Reads the next response on each; they are small, and complete."""
        statuses: Counter[int] = Counter()
        for client in self._sockets:
            self._waits.register(client, selectors.EVENT_READ)
        until = time.monotonic() + seconds
        left = len(self._sockets)
        while left and time.monotonic() < until:
            for key, _ in self._waits.select(0.1):
                client = self._sockets[0] if not isinstance(key.fileobj, socket.socket) else key.fileobj
                self._waits.unregister(client)
                left -= 1
                said = client.recv(65_536)
                statuses[int(said[9:12]) if said[:9] == b"HTTP/1.1 " else 0] += 1
        for key in list(self._waits.get_map().values()):
            with contextlib.suppress(KeyError):
                self._waits.unregister(key.fileobj)
        return statuses


def main(count: int, rounds: int) -> int:
    """Prints the figures of each round; the exit status tells whether a request was refused."""
    from .server import Server

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = Server("basic").ready()
    others: Counter[int] = Counter()
    try:
        with Crowd(server.address, count) as crowd:
            for nth in range(rounds):
                began = time.monotonic()
                crowd.ask("/next/stampede")
                server.until(lambda status: status["lives"]["parked"] + refused(status) >= count, 60)
                parked = time.monotonic() - began
                server.publish("stampede", b"go")
                statuses = crowd.statuses(60)
                print(f"round {nth + 1}: {dict(statuses)}, all parked after {parked:.2f} s", flush=True)
                others += Counter({status: times for status, times in statuses.items() if status != 200})
                others[0] += count - sum(statuses.values())
    finally:
        server.dispose()
    return 1 if others.total() else 0


def refused(status: object) -> int:
    """How many were refused in all rounds: an upper bound for this one."""
    refusals: dict[str, int] = status["counts"]["refused"]  # type: ignore[index]
    return sum(refusals.values())


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
