"""Clients that read slowly get everything, in order, and do not slow down others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from .conftest import Application, Kind, Serve
from .harness.client import Client
from .harness.server import Server
from .harness.sse import Event, parse
from .harness.until import Stopwatch, until

pytestmark = pytest.mark.also_in_perl

MESSAGE = 50_000
BACKLOG = 40
"""Messages that wait for a client that reconnects: 2 MB, while 256 KiB may wait for one that does not read."""

PATIENCE = 1.0
"""Seconds for which a client with that much waiting may read nothing."""


def over_http_1(server: Server, target: str, cursor: str) -> Callable[[], Iterator[Event]]:
    """Sends a request, and reads nothing until the returned function is called."""
    client = server.connect(receive_buffer=4096, segment=1460)
    client.ask("GET", target, f"Last-Event-ID: {cursor}")
    return lambda: parse(client.pieces(client.opening()))


def over_http_2(server: Server, target: str, cursor: str) -> Callable[[], Iterator[Event]]:
    client = server.connect2()
    stream = client.ask("GET", target, ("last-event-id", cursor))
    return lambda: parse(iter(lambda: client.piece(stream), b""))


def message(number: int) -> bytes:
    return b"%d " % number + b"x" * MESSAGE


def numbers(events: Iterator[Event]) -> Iterator[int]:
    """The data of the messages; a gap is an error, and each message is complete."""
    for event in events:
        assert event.event is None, event
        if event.data is not None:
            number, _, rest = event.data.partition(" ")
            assert len(rest) == MESSAGE
            yield int(number)


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("basic", history_bytes="8MiB")


@pytest.mark.promise(5)
@pytest.mark.parametrize("protocol", [over_http_1, over_http_2])
def test_who_comes_back_catches_up_with_more_than_may_wait_for_one_that_does_not_read(
    server: Server, protocol: Callable[[Server, str, str], Callable[[], Iterator[Event]]]
) -> None:
    name = protocol.__name__
    cursor = server.publish(name, message(0))
    for number in range(1, 1 + BACKLOG):
        server.publish(name, message(number))
    read = protocol(server, f"/events/{name}", cursor)
    server.until_parked(1)
    found = numbers(read())
    assert [next(found) for _ in range(BACKLOG)] == list(range(1, 1 + BACKLOG))
    server.publish(name, message(0))
    assert next(found) == 0, "and is there for what comes then"


@pytest.mark.promise(5)
@pytest.mark.parametrize("protocol", [over_http_1, over_http_2])
def test_who_reads_slowly_is_not_cut_off_while_messages_go_on_coming(
    server: Server, protocol: Callable[[Server, str, str], Callable[[], Iterator[Event]]]
) -> None:
    name = f"on-{protocol.__name__}"
    cursor = server.publish(name, message(0))
    for number in range(1, 1 + BACKLOG):
        server.publish(name, message(number))
    read = protocol(server, f"/events/{name}", cursor)
    server.until_parked(1)
    found, told = numbers(read()), 0
    watch = Stopwatch()
    while watch.seconds < PATIENCE * 1.5:
        told += 1
        assert next(found) == told
        server.publish(name, message(told + BACKLOG))
        until("a moment", lambda due=told * 0.05: watch.seconds > due)
    assert [next(found) for _ in range(BACKLOG)] == list(range(told + 1, told + 1 + BACKLOG))


# Complete responses


@pytest.mark.promise(4)
@pytest.mark.parametrize(
    ("app", "target"),
    [
        ("basic", "/bytes"),
        pytest.param("coroutines", "/bytes", marks=pytest.mark.python_only("coroutines")),
        pytest.param("coroutines", "/plain-bytes", marks=pytest.mark.python_only("coroutines")),
    ],
    ids=["plain worker", "coroutine", "plain function beside coroutines"],
)
def test_who_does_not_read_a_large_answer_holds_no_worker_and_gets_it_all_in_the_end(
    serve: Serve, app: str, target: str
) -> None:
    server, size = serve(app, workers=1), 6_000_000
    clients: list[Client] = []
    for count in range(1, 6):
        clients.append(server.connect(receive_buffer=4096).ask("GET", f"{target}/{size}"))
        server.until_running(count)
        assert server.connect(seconds=3).get("/hola/x").text == "Hola x", f"with {count} that do not read"
    assert {len(client.answer().body) for client in clients} == {size}
    server.still_serves()


SLOW = """
import os
from parkade import App

app = App()

@app.get("/stream")
def stream():
    while True:
        yield b"x" * 50_000

if os.environ.get("CONCURRENT"):
    @app.get("/beside")
    async def beside():
        return ""
"""

SLOW_IN_PERL = "use Parkade; get '/stream' => sub { sub { 'x' x 50_000 } }; 1;"


@pytest.mark.promise(6)
def test_who_reads_slowly_makes_the_log_accuse_no_worker_that_is_idle(
    serve: Serve, kind: Kind, application: Application
) -> None:
    """The deadline of the stream passes, and its worker releases it at once: there is no code left that a stack would
    show.
    """
    app = application(kind.get("LANGUAGE", "python"), python=SLOW, perl=SLOW_IN_PERL)
    server = serve(app, environment=kind, workers=1, deadline="500ms", kill_grace="10s")
    server.connect(receive_buffer=4096).ask("GET", "/stream")
    server.until_running(1)
    server.until_zero()
    assert server.status()["counts"]["cancelled"]["deadline"] == 1
    assert "stack follows" not in server.log()
