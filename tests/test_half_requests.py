"""Incomplete requests, and requests that are no longer needed, cost nothing and hold nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Serve
from .harness.client import request
from .harness.server import Server
from .harness.until import Stopwatch

pytestmark = pytest.mark.also_in_perl

HALVES = {
    "a head": b"GET / HT",
    "the size of a chunk": b"POST /hola HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5",
    "an empty line": request("GET", "/hola/x") + b"\r",
    "a byte behind a refusal": b"GET / HTTP/9\r\nHost: a\r\n\r\nx",
}


def cpu_ticks(server: Server) -> int:
    """CPU time of the core, in hundredths of a second."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.promise(8)
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.needs
def test_a_half_request_makes_the_core_spin_on_nothing(serve: Serve, half: str) -> None:
    server = serve("basic", workers=1)
    client = server.connect()
    client.send(HALVES[half])
    server.until(lambda status: status["connections"]["http1"] >= 1)
    before, watch = cpu_ticks(server), Stopwatch()
    while watch.seconds < 0.5:
        client.is_readable(0.1)  # passes the time: there may be a response or not
    assert cpu_ticks(server) - before < 25


def test_head_of_a_stream_is_answered_at_once_and_parks_nothing(serve: Serve) -> None:
    server = serve("basic", workers=1)
    client = server.connect()
    client.ask("HEAD", "/standing-stream")
    assert client.answer(head=True)["content-type"] == "text/event-stream"
    assert client.get("/hola/x").text == "Hola x"
    server.until_zero()
