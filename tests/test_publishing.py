"""A request does not succeed if its message is not published; an invalid cursor is not ignored."""

from __future__ import annotations

import itertools

import pytest

from .conftest import Serve
from .harness.client import Broken, Closed
from .harness.server import Server
from .harness.until import until

pytestmark = pytest.mark.also_in_perl

ROOM = 3
"""The maximum number of channels."""


IN_PYTHON = pytest.param("publishing_async", marks=pytest.mark.python_only("coroutines"))


@pytest.fixture(scope="module", params=["publishing", IN_PYTHON])
def shared(serve_for_all: Serve, request: pytest.FixtureRequest) -> Server:
    return serve_for_all(request.param, workers=1, channel_limit=ROOM)


@pytest.fixture
def full(server: Server) -> Server:
    """A client waits on each channel."""
    for nth in range(ROOM):
        server.waiting(f"/stream/full-{nth}", 1)
    server.until_parked(ROOM)
    return server


def ways(server: Server, *coroutines: str) -> tuple[str, ...]:
    return ("answers", "waits", "calls", *(coroutines if "async" in str(server.target) else ()))


def test_a_message_that_is_not_published_is_503_and_not_202(full: Server) -> None:
    for way in ways(full, "coroutine", "meanwhile", "to_thread"):
        answer = full.post(f"/{way}/new")
        assert (answer.status, answer["retry-after"]) == (503, "5"), way
        assert "was not published" in answer.text, way
        with full.connect2() as client:
            assert client.answer(client.ask("POST", f"/{way}/new")).status == 503, way
        assert full.post(f"/{way}/full-1").status in (200, 202), way


def test_an_answer_that_has_begun_is_broken_off(full: Server) -> None:
    with full.connect() as client, pytest.raises((Broken, Closed)):
        client.post("/streams/new")
    assert full.post("/streams/full-1").text == "begunended"


def test_what_nobody_answers_for_is_logged_once_a_second(full: Server) -> None:
    before = len(lines(full))
    for _ in range(50):
        assert full.post("/thread/new").status == 202
    until("it is told", lambda: len(lines(full)) > before)
    assert len(lines(full)) - before <= 5
    status, body = full.admin("POST", "/publish/new", b"x")
    assert (status, b"channel limit" in body) == (503, True)


def lines(server: Server) -> list[str]:
    return [line for line in server.log().splitlines() if "messages to new channels are not published" in line]


def test_made_up_names_lock_nobody_out(server: Server) -> None:
    for nth in range(5 * ROOM):
        assert server.post(f"/answers/made-up-{nth}").status == 202
    with server.connect() as client:
        client.ask("GET", "/next/honest")
        server.until_parked(1)
        for nth in range(5 * ROOM):
            assert server.post(f"/answers/made-up-{nth}").status == 202
        assert server.post("/answers/honest").status == 202
        assert client.answer().text == "x"


NONSENSE = ["Last-Event-ID: 1234", 'If-None-Match: "zzz"', 'If-None-Match: "a", "b"', "If-None-Match: zzz"]
counter = itertools.count()


@pytest.mark.parametrize("field", NONSENSE)
def test_a_cursor_that_makes_no_sense_is_a_gap_however_it_is_waited(server: Server, field: str) -> None:
    name = f"nonsense-{next(counter)}"
    for _ in range(3):
        server.post(f"/answers/{name}")
    answer = server.get(f"/next/{name}", field)
    assert (answer.status, answer.text, answer["parkade-gap"]) == (200, "x", "true")
    with server.events(f"/stream/{name}", field) as events:
        told = [events.next() for _ in range(4)]
    assert [event.event for event in told] == ["gap", None, None, None]
    for way in ("then", "await") if "async" in str(server.target) else ("then",):
        assert server.get(f"/{way}/{name}", field).json() == {"text": "x", "gap": True}, way


def test_the_newest_of_several_etags_counts(server: Server) -> None:
    name = f"several-{next(counter)}"
    server.post(f"/answers/{name}")
    first = server.get(f"/next/{name}", "Last-Event-ID: 0.0")["etag"]
    epoch = first.strip('"').partition(".")[0]
    for _ in range(3):
        server.post(f"/answers/{name}")
    given = f'If-None-Match: "{epoch}.1", W/"{epoch}.3", "{epoch}.2"'
    answer = server.get(f"/next/{name}", given)
    assert (answer.status, answer["etag"], "parkade-gap" in answer) == (200, f'"{epoch}.4"', False)
    with server.events(f"/stream/{name}", given) as events:
        assert (events.data(1), events.head.status) == (["x"], 200)
    assert server.get(f"/then/{name}", given).json() == {"text": "x", "gap": False}


def test_any_etag_names_no_position(server: Server) -> None:
    name = f"any-{next(counter)}"
    server.post(f"/answers/{name}")
    with server.connect() as client:
        client.ask("GET", f"/next/{name}", "If-None-Match: *")
        server.until_parked(1)
        server.post(f"/answers/{name}")
        answer = client.answer()
    assert (answer.status, "parkade-gap" in answer) == (200, False)
