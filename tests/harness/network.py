"""A private network for a server, from which its clients can vanish without notice."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from .client import Client
from .server import Server

T = TypeVar("T")

APART = ["unshare", "--net", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
"""For `prefix` of a server: it runs in a network that has only a loopback interface."""

CLONE_NEWNET = 0x4000_0000  # setns(2)
PIDFD_GETFD = 438  # pidfd_getfd(2), the number of every architecture

_libc = ctypes.CDLL(None, use_errno=True)


def missing() -> str | None:
    """What this machine lacks for it; None if nothing."""
    try:
        subprocess.run([*APART, "true"], check=True, capture_output=True)
        with closing(_taken_over(os.getpid(), 0, lambda number: os.fdopen(number, "rb", buffering=0))):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return f"only root makes networks and takes over descriptors: {error}"


class Network:
    """The network of a server that was started with `prefix=APART`."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def inside(self, act: Callable[[], T]) -> T:
        """Runs the function there. A connection stays in the network where it was made."""

        def enter_and_act() -> T:
            with Path(f"/proc/{self._server.pid}/ns/net").open("rb") as network:
                _checked(_libc.setns(network.fileno(), CLONE_NEWNET))
            return act()

        # The thread enters, not the process, and ends afterwards.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(enter_and_act).result()

    def run(self, *words: str) -> None:
        """Runs a command there."""
        subprocess.run(["nsenter", "-t", str(self._server.pid), "-n", *words], check=True, capture_output=True)

    def vanish(self, clients: list[Client]) -> None:
        """Makes these clients vanish without notice: no packet gets through any more."""
        self.run("ip", "link", "set", "lo", "down")
        for client in clients:
            client.close()

    @contextmanager
    def far_ends(self, clients: list[Client]) -> Iterator[list[socket.socket]]:
        """The server's own sockets for these clients."""
        names = {client.socket.getsockname() for client in clients}
        found = [one for one in _sockets(self._server.pid) if _peer(one) in names]
        assert len(found) == len(clients)
        try:
            yield found
        finally:
            for one in found:
                one.close()


def _sockets(pid: int) -> Iterator[socket.socket]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            what = os.readlink(link)
        except FileNotFoundError:
            continue  # it was closed after it was listed
        if what.startswith("socket:"):
            yield _taken_over(pid, int(link.name), lambda number: socket.socket(fileno=number))


def _taken_over(pid: int, descriptor: int, make: Callable[[int], T]) -> T:
    """A descriptor of another process."""
    process = os.pidfd_open(pid)
    try:
        return make(_checked(_libc.syscall(PIDFD_GETFD, process, descriptor, 0)))
    finally:
        os.close(process)


def _peer(one: socket.socket) -> object:
    try:
        return one.getpeername()
    except OSError:
        return None


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
