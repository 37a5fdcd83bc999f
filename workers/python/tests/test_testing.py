"""The test client itself, where the other tests do not use it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from parkade import App, Request, after, channel, html
from parkade.testing import Client, Parked


def test_a_parked_request_can_be_looked_at() -> None:
    app = App()
    app.get("/", lambda: after(2, "x"))
    client = Client(app)
    parked = client.get("/")
    assert isinstance(parked, Parked)
    assert (parked.parked, parked.done, str(parked.wait)) == (True, False, "<Wait Timer(seconds=2.0)>")
    with pytest.raises(AssertionError, match="still parked"):
        parked.response()
    client.advance(2)
    assert (parked.parked, parked.done, parked.wait, parked.response().text) == (False, True, None, "x")


def test_routes_without_a_worker_are_answered() -> None:
    app = App()
    app.get("/constant", html("<p>"))
    app.get("/timer", after(1, "later"))
    app.get("/next", channel("a").next(timeout=1))
    client = Client(app)
    assert client.get("/constant").text == "<p>"
    timer, message = client.get("/timer"), client.get("/next")
    client.publish("a", "m")
    client.advance(1)
    assert (timer.text, message.text) == ("later", "m")


def test_a_message_published_by_the_same_request_that_waits_is_not_missed() -> None:
    app = App()

    def handler() -> object:
        channel("a").publish("mine")
        return channel("a").next(since="7e57.0")

    app.get("/", handler)
    assert Client(app).get("/").text == "mine"


def test_requests_carry_what_they_are_given() -> None:
    app = App()

    @app.route("/ü", methods=["POST"])
    def echo(request: Request) -> list[object]:
        return [request.query.items_all(), request.text, request.content_type, request.headers["host"], request.client]

    client = Client(app, headers={"Host": "example.org"})
    response = client.post("/ü?a=1", params={"b": [2, 3]}, data={"x": "y z"}, client="::1")
    assert response.json() == [
        [["a", "1"], ["b", "2"], ["b", "3"]],
        "x=y+z",
        "application/x-www-form-urlencoded",
        "example.org",
        "::1",
    ]


def test_an_endless_answer_does_not_hang_the_test() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 1_000_000

    app = App()
    app.get("/", lambda: endless())
    with pytest.raises(AssertionError, match="endless"):
        Client(app).get("/")


def test_two_clients_do_not_hear_each_other() -> None:
    app = App()
    app.get("/", lambda: channel("a").next())
    with Client(app) as one, Client(app) as other:
        waiting, still = one.get("/"), other.get("/")
        one.publish("a", "x")
        assert (waiting.text, still.parked) == ("x", True)


def test_only_a_parked_request_can_be_left() -> None:
    app = App()
    app.get("/", "x")
    client = Client(app)
    with pytest.raises(AssertionError):
        client.leave(client.get("/"))


def test_a_coroutine_may_give_its_wait_up() -> None:
    app = App()

    @app.get("/race")
    async def race() -> str:
        slow = asyncio.ensure_future(_never())
        for _ in range(3):
            await asyncio.sleep(0)  # until it has parked
        slow.cancel()
        await asyncio.wait([slow])
        return "gave up"

    async def _never() -> None:
        await channel("never").next()

    with Client(app) as client:
        assert client.get("/race").text == "gave up"
