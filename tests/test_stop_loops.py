"""Shutdown while requests wait again whenever their time is up: only their first wait ends early."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.until import Stopwatch

FUNCTIONS = """
from parkade import App, Message, Wait, channel

app = App()


@app.get("/loop")
def loop() -> Wait:
    return channel("news").next(timeout=25).then(again)


def again(message: Message | None) -> Wait | str:
    print("asked again", flush=True)
    return loop() if message is None else message.text
"""

HEARTBEATS = """
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from parkade import channel


async def beats() -> AsyncIterator[str]:
    yield "begun"
    while True:
        message = await channel("news").next(timeout=0.5)
        yield "beat" if message is None else message.text


async def stream(request: Request) -> StreamingResponse:
    return StreamingResponse(beats())


app = Starlette(routes=[Route("/", stream)])
"""


@pytest.mark.promise(3)
def test_a_function_that_waits_again_is_called_once_more(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(FUNCTIONS)
    server = serve(file, workers=1, grace="20s")
    client, other = server.waiting("/loop", 2)
    server.until_parked(2)
    server.signal(signal.SIGTERM)
    server.until_logged("asked again", times=2)
    server.until_parked(2)
    server.publish("news", b"at last")
    assert (client.answer().text, other.answer().text) == ("at last", "at last")
    assert server.ended() == 0
    assert server.log().count("asked again") == 4


def test_one_whose_client_leaves_does_not_hold_the_stop_up(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(FUNCTIONS)
    server = serve(file, workers=1, grace="60s")
    [client] = server.waiting("/loop", 1)
    server.until_parked(1)
    server.signal(signal.SIGTERM)
    server.until_logged("asked again")
    server.until_parked(1)
    client.close()
    assert server.ended() == 0


def test_a_heartbeat_keeps_its_pace(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(HEARTBEATS)
    server = serve(file, workers=1, grace="60s")
    client = server.connect().ask("GET", "/")
    pieces = client.pieces(client.opening())
    assert next(pieces) == b"begun"
    server.signal(signal.SIGTERM)
    server.until_logged("shutting down")
    watch = Stopwatch()
    assert [next(pieces) for _ in range(4)] == [b"beat"] * 4
    assert watch.seconds >= 1, "two of them at least had all their time"
    client.close()
    assert server.ended() == 0
