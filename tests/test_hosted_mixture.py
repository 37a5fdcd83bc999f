"""Hosted applications under a mixture of everything at once: each client gets its own response."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from .conftest import Serve
from .harness.client import Broken, Client, Closed, request
from .harness.server import Server
from .harness.websocket import Opener

APPS: dict[str, dict[str, Any]] = {
    "asgi": {"target": "raw_asgi", "workers": 2},
    "wsgi": {"target": "raw_wsgi", "workers": 2},
    "threads": {"target": "raw_wsgi", "workers": 1, "threads": 4},
}
CLIENTS = 12


@pytest.fixture(scope="module", params=APPS)
def shared(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all(**APPS[request.param])


def at_once(act: Callable[[int], None], count: int = CLIENTS) -> None:
    """Runs it for each number, all of them at the same time; the first failure is raised."""
    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(act, number) for number in range(count)]:
            done.result()


def test_each_client_gets_its_own_response(server: Server) -> None:
    def over_1(number: int) -> None:
        chance = random.Random(number)
        with Client(server.address) as client:
            for turn in range(30):
                body = f"{number} {turn} ".encode() * chance.choice([1, 10, 10_000])
                assert client.post("/echo", body).body == body

    def over_2(number: int) -> None:
        client = server.connect2()
        for turn in range(10):
            bodies = [f"{number} {turn} {at}".encode() for at in range(5)]
            streams = [client.ask("POST", "/echo", body=body) for body in bodies]
            assert [client.answer(stream).body for stream in streams] == bodies

    at_once(lambda number: over_1(number) if number % 2 else over_2(number))


def test_who_fails_and_who_breaks_off_are_told_apart_from_who_does_not(server: Server) -> None:
    targets = {"/hola/you": 200, "/raises": 500, "/nowhere": 404, "/pieces": 200, "/fields": 201, "/broken": None}

    def ask(number: int) -> None:
        chance = random.Random(number)
        for _ in range(25):
            target = chance.choice(list(targets))
            with Client(server.address) as client:
                try:
                    assert client.get(target).status == targets[target]
                except (Closed, ConnectionError):
                    assert targets[target] is None

    at_once(ask)


def test_clients_that_come_and_go_leave_nothing(server: Server) -> None:
    whole = request("POST", "/echo", body=b"x" * 3_000)

    def come_and_go(number: int) -> None:
        chance = random.Random(number)
        for _ in range(40):
            client = Client(server.address)
            with suppress(ConnectionError):
                client.send(whole[: chance.choice([0, 1, 20, len(whole) - 1, len(whole)])])
            chance.choice([client.close, client.reset])()

    at_once(come_and_go)
    server.until(lambda status: status["connections"]["http1"] == 0)


def test_streams_that_are_reset_disturb_no_others(server: Server) -> None:
    def ask(number: int) -> None:
        client = server.connect2()
        chance = random.Random(number)
        for turn in range(15):
            streams = [client.ask("POST", "/echo", body=f"{number} {turn} {at}".encode()) for at in range(4)]
            gone = chance.choice(streams)
            with suppress(Broken):
                client.reset(gone)
            for at, stream in enumerate(streams):
                if stream != gone:
                    assert client.answer(stream).text == f"{number} {turn} {at}"

    at_once(ask, 6)


def test_websockets_and_requests_of_one_worker_keep_apart(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1)

    def talk(number: int) -> None:
        for turn in range(5):
            client = opened(server, "/echo")
            for at in range(10):
                said = f"{number} {turn} {at}"
                assert client.send(said).receive() == said
            if turn % 2:
                assert client.close()[0] == 1000

    def ask(number: int) -> None:
        with Client(server.address) as client:
            for turn in range(60):
                assert client.get(f"/hola/{number}-{turn}").text == f"Hola {number}-{turn}"

    at_once(lambda number: talk(number) if number % 2 else ask(number))
    server.cleared()
