"""Calls the load generator (bench/load), which opens its connections first."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from servers import Server, Unavailable
from settings import LOAD

PLAIN = os.environ | {"RUST_BACKTRACE": "0"}

Found = dict[str, Any]
"""The generator's output; see load/src/report.rs."""


def fire(server: Server, path: str, connections: int, timeout: float = 30) -> Found:
    """One request on each connection, all at once."""
    return _finished("fire", "--url", server.url(path), "--connections", connections, "--timeout", timeout)


def release(server: Server, path: str, connections: int, *more: object, timeout: float = 60) -> Found:
    """One long poll on each connection; when the server reports that all wait, one publish."""
    with waiting(server, path, connections, *more, timeout=timeout) as publish:
        return publish()


def listen(server: Server, path: str, connections: int, messages: int, websocket: bool = False) -> Found:
    """The same with streams: this many messages for each connection, an event stream or a WebSocket."""
    return release(server, path, connections, *listening(messages, websocket))


def listening(messages: int, websocket: bool) -> Sequence[object]:
    """What `waiting` is given for them."""
    return ["--messages", messages, *(["--websocket"] if websocket else [])]


def echo(server: Server, path: str, connections: int, seconds: float) -> Found:
    """A message on each WebSocket, and the next one as soon as it is echoed."""
    crowd = ("--url", server.url(path), "--connections", connections, "--processes", 1)
    return _finished("echo", *crowd, "--seconds", seconds)


@contextmanager
def waiting(
    server: Server, path: str, connections: int, *more: object, timeout: float = 60
) -> Iterator[Callable[[], Found]]:
    """The same in two steps: the returned function publishes, and waits until the last client is answered."""
    crowd = ("--url", server.url(path), "--connections", connections, "--timeout", timeout, *more)
    with _running("release", *crowd, "--publish", server.publish_url, "--wait-for-line") as process:
        _expect(process, "held")
        server.until_waiting(connections)
        yield lambda: _ended(process, "publish\n")


def rounds(server: Server, path: str, clients: int, count: int, every: float) -> Found:
    """Each client polls again as soon as it is answered; there is a message every few seconds."""
    crowd = ("--url", server.url(path), "--connections", clients, "--rounds", count)
    return _finished("rounds", *crowd, "--publish", server.publish_url, "--every", every)


def serial(server: Server, path: str, count: int) -> Found:
    """One client that sends each request as soon as the last one is answered."""
    return again(server, path, 1, count)


def again(server: Server, path: str, clients: int, count: int) -> Found:
    """The same with more clients; each sends this many."""
    never = server.url("/publish")
    crowd = ("--url", server.url(path), "--connections", clients, "--rounds", count)
    return _finished("rounds", *crowd, "--publish", never, "--every", 86_400)


def rate(server: Server, per_second: int, seconds: float, mix: dict[str, int], spread: str) -> Found:
    """Requests at a constant rate, whatever the responses; `mix` is a weight for each path."""
    shares = [part for path, weight in mix.items() for part in ("--mix", f"{weight}={path}")]
    plan = ("--url", server.url("/"), "--rate", per_second, "--seconds", seconds, "--spread", spread)
    # No connection is opened beforehand: a preforked worker that accepts a silent connection is blocked by it.
    return _finished("rate", *plan, *shares, "--connections", 0, "--timeout", 30)


@contextmanager
def held(server: Server, path: str, connections: int, what: str) -> Iterator[None]:
    """Connections that are `idle`, `answered` or `parked`, or each a `websocket`, while the block runs."""
    crowd = ("--url", server.url(path), "--connections", connections, "--timeout", 60)
    state = ["answered", "--websocket"] if what == "websocket" else [what]
    with _running("hold", *crowd, "--what", *state) as process:
        _expect(process, "held")
        if what in ("parked", "websocket"):
            server.until_waiting(connections)
        yield
        found = _ended(process, "")
    if lost := found["disturbed"] + sum(found["failures"].values()):
        raise Unavailable(f"{lost} of {connections} connections did not stay {what}")


def _finished(mode: str, *options: object) -> Found:
    with _running(mode, *options) as process:
        return _ended(process, "")


@contextmanager
def _running(mode: str, *options: object) -> Iterator["subprocess.Popen[str]"]:
    command = [str(LOAD), mode, *map(str, options)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=PLAIN) as process:
        try:
            yield process
        finally:
            process.kill()


def _expect(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdout is not None, "stdout is piped"
    if process.stdout.readline().strip() != line:
        _, complaint = process.communicate()
        raise Unavailable(f"the load generator failed before {line!r}: {complaint.strip()}")


def _ended(process: "subprocess.Popen[str]", last_words: str) -> Found:
    output, complaint = process.communicate(last_words)
    if process.returncode != 0:
        raise Unavailable(f"the load generator failed: {complaint.strip()}")
    found: Found = json.loads(output.strip().splitlines()[-1])
    return found
