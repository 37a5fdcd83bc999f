"""Queries: returned, with a function, awaited, as a route; what they say when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from parkade import App, Query, QueryError, Request, Rows, WaitError, after, query
from parkade._app import App as Application
from parkade._handling.handling import Handling
from parkade._routing.routes import park
from parkade._waits.wait import Wait
from parkade._wire import payloads as p
from parkade._wire.ready import Park
from parkade.testing import Client

PRICES = [{"id": 1, "price": Decimal("1.10")}, {"id": 2, "price": None}]


# Functions that are called after a wait stand at the top of a module.


def got(outcome: object) -> str:
    return repr(outcome)


def titled(rows: Rows, title: str) -> dict[str, Any]:
    return {title: [row["price"] for row in rows], "command": rows.command, "count": rows.count}


def counted(count: int, request: Request) -> str:
    return f"{request.path}: {count + 1}"


def prices(shape: str = "rows") -> Query:
    wait = query("select id, price from lots where id < $1", 10)
    return {"rows": wait.rows(), "one": wait.one(), "value": wait.value()}[shape]


def client_with(target: Any, answers: Any) -> Client:
    app = App()
    app.get("/", target)
    client = Client(app)
    client.database(answers)
    return client


@pytest.mark.parametrize(
    ("shape", "found", "text"),
    [
        ("rows", PRICES, '[{"id":1,"price":"1.10"},{"id":2,"price":null}]'),
        ("rows", [], "[]"),
        ("one", PRICES[:1], '{"id":1,"price":"1.10"}'),
        ("value", PRICES[:1], "1"),
        ("value", [{"id": None}], "null"),
        ("one", 3, '{"command":"SELECT","rows":3}'),
        ("rows", 3, '{"command":"SELECT","rows":3}'),
    ],
)
@pytest.mark.parametrize("target", [lambda wait: wait, lambda wait: lambda: wait], ids=["route", "handler"])
def test_a_query_that_is_returned_is_answered_with_json(
    target: Callable[[Query], Any], shape: str, found: object, text: str
) -> None:
    response = client_with(target(prices(shape)), lambda _: found).get("/")
    assert (response.status, response.headers["content-type"], response.text) == (200, "application/json", text)


@pytest.mark.parametrize("shape", ["one", "value"])
def test_a_row_that_is_not_there_is_404(shape: str) -> None:
    response = client_with(prices(shape), lambda _: []).get("/")
    assert (response.status, response.json()["detail"]) == (404, "no such row")


@pytest.mark.parametrize(
    ("shape", "found", "outcome"),
    [
        ("rows", PRICES, PRICES),
        ("rows", 0, []),
        ("one", PRICES[:1], PRICES[0]),
        ("one", [], None),
        ("one", 1, None),
        ("value", PRICES[:1], 1),
        ("value", 1, None),
    ],
)
@pytest.mark.parametrize("target", [lambda wait: wait, lambda wait: lambda: wait], ids=["route", "handler"])
def test_a_function_is_called_with_what_was_found(
    target: Callable[[Wait], Any], shape: str, found: object, outcome: object
) -> None:
    assert client_with(target(prices(shape).then(got)), lambda _: found).get("/").text == repr(outcome)


def test_the_shape_may_be_said_behind_the_function() -> None:
    assert client_with(lambda: query("select 1").then(got).value(), lambda _: {"n": 1}).get("/").text == "1"


def test_a_function_gets_rows_state_and_the_request() -> None:
    client = client_with(lambda: prices().then(titled, title="t"), lambda _: PRICES)
    assert client.get("/").json() == {"t": ["1.10", None], "command": "SELECT", "count": 2}
    assert client_with(lambda: prices("value").then(counted), lambda _: {"n": 1}).get("/").text == "/: 2"


@pytest.mark.parametrize(
    ("shape", "found", "value"), [("rows", PRICES, PRICES), ("one", [], None), ("value", {"n": 7}, 7)]
)
def test_an_awaited_query_gives_what_was_found(shape: str, found: object, value: object) -> None:
    async def handler() -> str:
        return repr(await prices(shape))

    with client_with(handler, lambda _: found) as client:
        assert client.get("/").text == repr(value)


def told(wait: Query) -> Park:
    return msgspec.msgpack.decode(park(wait, None), type=Park)


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (query("select 1"), ["query", "select 1", [], {}]),
        (query("select $1", b"\0").one(), ["query", "select $1", [b"\0"], {"shape": "one"}]),
        (query("a", database="b", deadline=0.5), ["query", "a", [], {"database": "b", "deadline": 0.5}]),
        (query("a", int8="string").value(), ["query", "a", [], {"int8": "string", "shape": "value"}]),
        (query("a").value().rows(), ["query", "a", [], {}]),
        (query("a").shared("k"), ["query", "a", [], {"shared": "k"}]),
        (query("a").one().shared("k", ttl=2), ["query", "a", [], {"shape": "one", "shared": "k", "ttl": 2.0}]),
    ],
)
def test_park_says_what_differs_from_the_usual(wait: Query, said: list[Any]) -> None:
    assert (told(wait).wait, told(wait).then) == (said, p.Answer(None))


def test_a_route_says_the_same_with_bytes_as_bytes() -> None:
    app = App()
    app.get("/", query("select $1", b"\xff").value())
    (route,) = app._ready().routes
    assert (route.kind, route.wait) == ("wait", ["query", "select $1", [b"\xff"], {"shape": "value"}])


def test_a_query_does_not_change() -> None:
    wait = query("select 1")
    wait.one().shared("k")
    assert wait._wait == query("select 1")._wait
    assert (repr(wait.one()), repr(wait.then(got))) == (
        "<Query 'select 1' one>",
        "<Query 'select 1' rows.then(test_queries:got)>",
    )


def test_what_is_parameter_is_not_shown() -> None:
    assert "secret" not in repr(query("select $1", "secret"))


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: query(""), ValueError, "1 to 262144 bytes"),
        (lambda: query("ü" * 131_073), ValueError, "1 to 262144 bytes"),
        (lambda: query("select '\0'"), ValueError, "NUL"),
        (lambda: query(b"select 1"), TypeError, "a statement is text, not a bytes"),
        (lambda: query("a", deadline=-1), ValueError, "0 or more"),
        (lambda: query("a", int8="text"), ValueError, "'number' or 'string'"),
        (lambda: query("a", database=None), TypeError, "must be a str"),
        (lambda: query("a").shared(""), ValueError, "1 to 200 bytes"),
        (lambda: query("a").shared(7), TypeError, "a shared key is text"),
        (lambda: query("a").shared("k", ttl=-1), ValueError, "0 or more"),
    ],
)
def test_a_query_that_cannot_be_is_refused_at_once(make: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()


def test_a_query_that_no_frame_has_room_for_is_500_with_the_reason_in_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert client_with(lambda: query("select $1", "x" * 1_048_576), {}).get("/").status == 500
    assert "at most 1048576 bytes with its parameters" in capsys.readouterr().err


def test_a_query_cannot_be_awaited_outside_a_request() -> None:
    async def outside() -> None:
        await query("select 1")

    with pytest.raises(WaitError, match="answers a request"):
        asyncio.run(outside())


# Failures

CONFLICT = QueryError("duplicate key: insert into lots", sqlstate="23505", status=409)
TOLD = {
    "status": 409,
    "title": "Conflict",
    "detail": "this conflicts with data in the database",
    "effect": "none",
}


@pytest.mark.parametrize("target", [lambda: query("select 1"), lambda: query("select 1").then(got)])
def test_a_query_that_fails_is_answered_by_the_core(
    target: Callable[[], Query], capsys: pytest.CaptureFixture[str]
) -> None:
    response = client_with(target, lambda _: CONFLICT).get("/")
    assert (response.status, response.json()) == (409, TOLD | {"fault": "client"})
    assert "duplicate key" in capsys.readouterr().err


async def uncaught() -> Any:
    return await query("select 1")


async def caught() -> str:
    try:
        return str(await query("select 1").value())
    except QueryError as error:
        return f"{error} {error.reason} {error.sqlstate} {error.effect} {error.status}"


def test_an_awaited_query_that_fails_raises() -> None:
    with client_with(caught, lambda _: CONFLICT) as client:
        assert client.get("/").text == "duplicate key: insert into lots refused 23505 none 409"


@pytest.mark.parametrize(
    ("failure", "detail", "retry", "logged"),
    [
        (CONFLICT, "this conflicts with data in the database", None, False),
        (QueryError("syntax error at lots"), "the database rejected the query; the log says why", None, True),
        (QueryError("x", reason="from a later core"), "the database rejected the query; the log says why", None, True),
        (
            QueryError("full", reason="queue full", status=503),
            "too many queries are waiting for the database",
            "1",
            False,
        ),
    ],
)
def test_what_nobody_catches_is_the_answer_and_names_no_sql(
    failure: QueryError, detail: str, retry: str | None, logged: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with client_with(uncaught, lambda _: failure) as client:
        response = client.get("/")
    assert (response.status, response.headers.get("retry-after")) == (failure.status, retry)
    assert (response.json()["detail"], response.json()["status"]) == (detail, failure.status)
    assert ("QueryError" in capsys.readouterr().err) is logged


def test_an_error_handler_may_answer_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    app = App()
    app.get("/", uncaught)

    @app.error(QueryError)
    def failed(error: QueryError) -> str:
        return f"sorry: {error.reason}"

    with Client(app) as client:
        client.database(lambda _: QueryError("syntax"))
        response = client.get("/")
    assert (response.status, response.text, capsys.readouterr().err) == (500, "sorry: refused", "")


@pytest.mark.parametrize(
    ("accept", "type_"), [("text/html", "text/html; charset=utf-8"), ("*/*", "application/problem+json")]
)
def test_in_dev_the_text_is_shown(accept: str, type_: str) -> None:
    response = answered_in_dev(accept)
    assert (response.status, dict(zip(response.headers[::2], response.headers[1::2], strict=True))["content-type"]) == (
        409,
        type_,
    )
    assert "duplicate key: insert into lots" in str(response.body)


def answered_in_dev(accept: str) -> Any:
    app = Application()

    @app.get("/")
    def fails() -> None:
        raise CONFLICT

    headers = ["accept", accept.encode()]
    head = msgspec.Raw(msgspec.msgpack.encode(["GET", "/", "", headers, "127.0.0.1", "http", "1.1"]))
    answer = Handling(app, dev=True).runs[0](p.Request(0, [], None, b"", head))
    return msgspec.msgpack.decode(answer, type=p.Response)


@pytest.mark.parametrize(
    ("deadline", "taken", "told_"),
    [(5, 2, "7"), (1, 2, "deadline 504 cancelled"), (0, 2, "7")],
)
def test_a_deadline_ends_a_query_that_takes_longer(deadline: float, taken: float, told_: str) -> None:
    async def handler() -> str:
        try:
            return str(await query("select 1", deadline=deadline).value())
        except QueryError as error:
            return f"{error.reason} {error.status} {error.effect}"

    with client_with(handler, lambda _: after(taken, {"n": 7})) as client:
        parked = client.get("/")
        client.advance(taken)
        assert parked.text == told_


def test_a_query_may_be_given_up_for_another() -> None:
    async def slow() -> None:
        await query("slow")

    async def handler() -> list[Any]:
        task = asyncio.ensure_future(slow())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return [task.cancelled(), await query("quick").value()]

    with client_with(handler, {"slow": after(60, []), "quick": {"n": 1}}) as client:
        assert (client.get("/").json(), client.parked) == ([True, 1], 0)
