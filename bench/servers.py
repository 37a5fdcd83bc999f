"""Starts a server, waits until it answers, and ends it by its process id."""

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import processes
from settings import ROOT, TEMPORARY

START_SECONDS = 20
STOP_SECONDS = 10


class Unavailable(Exception):
    """This server cannot be measured here; the text says why."""


@dataclass(frozen=True, slots=True)
class Ports:
    main: int
    admin: int
    """The address for publishing and status, if it is a separate one."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one server is started. All serve the same paths: /constant /hola/NAME /delayed /later /next."""

    name: str
    command: Callable[[Ports], list[str]]
    needs: list[Path]
    """Files without which it cannot be started."""
    ready: str = "http://127.0.0.1:{main}/constant"
    publish: str = "http://127.0.0.1:{main}/publish"
    status: str | None = None
    """Where it reports how many requests wait."""
    waiting: Callable[[str], int] = lambda text: 0
    """Reads that number from the status page."""

    def reason_missing(self) -> str | None:
        absent = [path.name for path in self.needs if not path.exists()]
        return f"{', '.join(absent)} is not installed" if absent else None


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    recipe: Recipe
    process: subprocess.Popen[bytes]
    ports: Ports

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.ports.main}{path}"

    @property
    def publish_url(self) -> str:
        return _filled(self.recipe.publish, self.ports)

    @property
    def core(self) -> list[int]:
        return [self.process.pid]

    @property
    def tree(self) -> list[int]:
        return processes.tree(self.process.pid)

    def cpu_seconds(self) -> float:
        return processes.cpu_seconds(self.tree)

    def until_waiting(self, count: int, seconds: float = 40) -> None:
        """Waits until the server reports that many waiting requests; for one second if it cannot report."""
        if self.recipe.status is None:
            time.sleep(1)
            return
        end = time.monotonic() + seconds
        waiting = -1
        while time.monotonic() < end:
            with suppress(TimeoutError):  # one thread that serves all may be busy with them
                waiting = self.recipe.waiting(fetch(_filled(self.recipe.status, self.ports)))
            if waiting >= count:
                return
            time.sleep(0.1)
        raise Unavailable(f"says that {waiting} of {count} requests wait")


@contextmanager
def started(recipe: Recipe) -> Iterator[Server]:
    if reason := recipe.reason_missing():
        raise Unavailable(reason)
    ports = Ports(*_free_ports(2))
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    log = TEMPORARY / f"{re.sub(r'[^a-z0-9]+', '-', recipe.name.lower())}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            recipe.command(ports), cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=_environment()
        )
    server = Server(recipe, process, ports)
    try:
        _until_ready(server, log)
        yield server
    finally:
        _stop(server)


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        text: str = answer.read().decode()
        return text


def parked_lives(status: str) -> int:
    """Parkade's status page: `{"lives": {"parked": 10000, …}, …}`."""
    return int(json.loads(status)["lives"].get("parked", 0))


def waits(status: str) -> int:
    """All waits on the same page, also those of coroutines that await: `{"waits": {"next": {"count": 1}, …}, …}`."""
    return sum(wait["count"] for wait in json.loads(status)["waits"].values())


def told_waiting(status: str) -> int:
    """What our own peers tell: `waiting: 10000`."""
    return int(status.removeprefix("waiting: "))


def nchan_subscribers(status: str) -> int:
    found = re.search(r"^subscribers: (\d+)", status, re.MULTILINE)
    return int(found[1]) if found else 0


def _environment() -> dict[str, str]:
    """Without variables that name the binary and its flags: the server refuses variables that it does not know."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PARKADE_")}


def _until_ready(server: Server, log: Path) -> None:
    url = _filled(server.recipe.ready, server.ports)
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if server.process.poll() is not None:
            raise Unavailable(f"ended with {server.process.returncode} at its start: {_last_line(log)}")
        try:
            fetch(url)
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise Unavailable(f"was not ready within {START_SECONDS} s: {_last_line(log)}")


def _stop(server: Server) -> None:
    """Asks it to stop; then the rest of its tree is killed, each process by its id."""
    family = server.tree
    server.process.terminate()
    try:
        server.process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait()
    for pid in family[1:]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _filled(template: str, ports: Ports) -> str:
    return template.format(main=ports.main, admin=ports.admin)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
