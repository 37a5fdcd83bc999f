"""Responses that wait in their middle: coroutines of ASGI frameworks, and of handlers, that have begun to answer."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .conftest import Serve
from .harness.client import Client, request
from .harness.postgres import Postgres
from .harness.server import APPS, Server
from .harness.until import until
from .harness.websocket import Opener

FRAMEWORKS = ["native", "raw", "starlette", "fastapi", "litestar", "quart", "django"]


@pytest.fixture(scope="module", params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def start(serve: Serve, framework: str, postgres: Postgres, **settings: object) -> Server:
    told = {"workers": 1, "job_workers": 1, **settings}
    return serve(f"{APPS}/streaming_waits.py:{framework}", database=postgres.url, **told)


@pytest.fixture(scope="module")
def shared(framework: str, serve_for_all: Serve, postgres: Postgres) -> Server:
    return start(serve_for_all, framework, postgres)


@pytest.fixture
def server(shared: Server, postgres: Postgres) -> Iterator[Server]:
    postgres.psql("drop table if exists paid")
    yield shared
    shared.leave()
    shared.until_zero()


CLOSED = "the stream was closed"


def waits(channel: str) -> Callable[[Any], bool]:
    return lambda status: any(one["name"] == channel and one["next"] for one in status["channels"]["busiest"])


def is_broken_off(client: Client, framework: str) -> bool:
    """Starlette's `BaseHTTPMiddleware` sends the end of the response before it raises the exception again."""
    return client.ends() or framework == "starlette"


def tell(server: Server, text: str, channel: str = "news") -> None:
    """A message for what waits there."""
    server.until(waits(channel))
    server.publish(channel, text.encode())


def begin(server: Server, name: str) -> Client:
    client: Client = server.connect()
    return client.ask("GET", f"/stream/{name}")


def begun(server: Server, name: str) -> tuple[Client, Iterator[bytes]]:
    """A client whose response has begun, and the pieces of that."""
    client = begin(server, name)
    pieces = client.pieces(client.opening())
    assert next(pieces) == b"begun\n"
    return client, pieces


def rest(pieces: Iterator[bytes]) -> list[str]:
    return b"".join(pieces).decode().split("\n")[:-1]


def test_one_message_after_the_other(server: Server) -> None:
    client = begin(server, "follow")
    for text in ("a", "b", "c", "end"):
        tell(server, text)
    assert client.answer().text == "a\nb\nc\n"


@pytest.mark.parametrize("first", ["one", "two"])
def test_what_waits_when_the_response_begins_goes_on(server: Server, first: str) -> None:
    order = (first, "two" if first == "one" else "one")
    client = begin(server, "merge")
    server.until(waits("one"))
    server.until(waits("two"))
    tell(server, "a", order[0])
    pieces = client.pieces(client.opening())
    assert next(pieces) == b"a\n"
    tell(server, "b", order[1])
    assert rest(pieces) == ["b"]


def test_another_task_may_begin_the_response(server: Server, framework: str) -> None:
    if framework != "raw":
        return  # frameworks have a task for it
    client = begin(server, "ping")
    server.until(waits("news"))
    tell(server, "ping", "ping")
    pieces = client.pieces(client.opening())
    assert next(pieces) == b"ping\n"
    tell(server, "hello")
    assert b"".join(pieces) == b"hello"


SENT = {
    "pumped": "begun\nended\n",
    "pumped_whole": "whole\n",
    "impatient": "begun\nended\n",
    "two": "one\ntwo\n",
    "main_waits": "of another\nown\n",
}


@pytest.mark.parametrize("name", SENT)
def test_tasks_that_wait_and_send_at_the_same_time(server: Server, framework: str, name: str) -> None:
    if framework != "raw":
        return
    client = begin(server, name)
    if name == "main_waits":
        tell(server, "go on")
    assert client.answer().text == SENT[name]
    assert client.ask("GET", "/stream/rows").answer().status == 200, "the connection is used again"


def test_what_still_waits_ends_with_the_response(server: Server) -> None:
    client = begin(server, "abandon")
    assert client.answer().text == "begun\nended\n"
    server.until(lambda status: not waits("never")(status))
    client.ask("GET", "/stream/rows")
    assert client.answer().text.startswith("begun\n5000\n"), "the connection is used again"


def test_a_response_that_fails_after_a_wait_is_broken_off(server: Server, framework: str) -> None:
    client, _ = begun(server, "fail")
    tell(server, "go on")
    assert is_broken_off(client, framework)
    server.until_logged("ValueError: after a wait")
    server.until(lambda status: not waits("never")(status))


def test_rows_arrive_between_the_pieces(server: Server) -> None:
    _, pieces = begun(server, "rows")
    assert rest(pieces) == ["5000", "10000", "15000", "20000"]


def test_a_statement_ends_with_its_client(server: Server, postgres: Postgres) -> None:
    client, _ = begun(server, "slow")
    until("the statement", lambda: sleeping(postgres))
    client.close()
    until("no statement", lambda: not sleeping(postgres))


def test_a_stream_ends_with_its_client(server: Server) -> None:
    client = begin(server, "follow")
    tell(server, "a")
    assert next(client.pieces(client.opening())) == b"a\n"
    server.until(waits("news"))
    closed = server.log().count(CLOSED)
    client.close()
    server.until_logged(CLOSED, times=closed + 1)


def sleeping(postgres: Postgres) -> list[dict[str, Any]]:
    return [row for row in postgres.activity() if "pg_sleep" in row["query"] and row["state"] == "active"]


def paid(postgres: Postgres) -> int:
    (((there,)),) = postgres.psql("select to_regclass('paid') is not null")
    if there != "t":
        return 0
    (((count,)),) = postgres.psql("select count(*) from paid")
    return int(count or "")


def test_a_transaction_in_the_middle_of_a_response(server: Server, postgres: Postgres) -> None:
    _, pieces = begun(server, "pay")
    assert next(pieces) == b"inserted\n"
    assert paid(postgres) == 0
    tell(server, "commit")
    assert rest(pieces) == ["committed"]
    assert paid(postgres) == 1
    server.until_logged("job paid")


def test_a_transaction_is_rolled_back_with_its_response(server: Server, framework: str, postgres: Postgres) -> None:
    client, pieces = begun(server, "pay")
    assert next(pieces) == b"inserted\n"
    tell(server, "undo")
    assert is_broken_off(client, framework)
    assert paid(postgres) == 0


def test_a_transaction_is_rolled_back_with_its_client(server: Server, postgres: Postgres) -> None:
    client, pieces = begun(server, "pay")
    assert next(pieces) == b"inserted\n"
    server.until(waits("news"))
    client.close()
    server.until_zero()
    assert paid(postgres) == 0


def test_a_job_is_stored_and_its_handle_says_why_it_cannot_be_awaited(server: Server) -> None:
    _, pieces = begun(server, "store")
    (told,) = rest(pieces)
    assert "after the response has begun" in told
    server.until_logged("job stored")


def test_a_query_between_the_pieces_of_a_body(server: Server, framework: str) -> None:
    if framework not in ("native", "raw", "starlette"):
        return
    client = server.connect()
    client.send(request("POST", "/read", "Content-Length: 1000000"), bytes(200_000))
    server.until_logged("the row has come")
    client.send(bytes(800_000))
    assert client.answer().text == "7 1000000"


def test_a_response_that_has_begun_has_no_deadline(framework: str, serve: Serve, postgres: Postgres) -> None:
    server = start(serve, framework, postgres, deadline=1)
    _, pieces = begun(server, "doze")
    assert rest(pieces) == ["after more than the deadline"]


def test_a_server_that_stops_ends_what_waits(framework: str, serve: Serve, postgres: Postgres) -> None:
    server = start(serve, framework, postgres, grace="3s")
    client = begin(server, "follow")
    tell(server, "a")
    pieces = client.pieces(client.opening())
    assert next(pieces) == b"a\n"
    sleeps, _ = begun(server, "sleep")
    asks, _ = begun(server, "slow")
    server.until(waits("news"))
    server.until(waits("never"))
    server.signal(signal.SIGTERM)
    assert rest(pieces) == [], "it is told that no message comes"
    assert is_broken_off(sleeps, framework)
    assert is_broken_off(asks, framework)
    assert server.ended() == 0
    assert server.log().count(CLOSED) == 2
    assert "violation" not in server.log()


def test_a_websocket_that_waits_ends_with_the_server(framework: str, serve: Serve, postgres: Postgres) -> None:
    if framework != "raw":
        return
    server = start(serve, framework, postgres, grace="3s")
    socket = Opener("1.1")(server, "/")
    assert socket.receive() == "open"
    server.until(waits("never"))
    server.signal(signal.SIGTERM)
    assert socket.closed()[0] == 1001
    assert server.ended() == 0
    assert "violation" not in server.log()
