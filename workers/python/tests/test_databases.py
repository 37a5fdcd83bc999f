"""The databases of the test client: SQLite in memory, and what a test answers itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from parkade import App, Json, Query, QueryError, Rows, after, query
from parkade.testing import Asked, Client

ID = UUID(int=7)
AT = datetime(2026, 11, 22, 3, 4, 5, 600_000, timezone.utc)


def client_for(*targets: Any) -> Client:
    """Each target at `/0`, `/1`…"""
    app = App()
    for number, target in enumerate(targets):
        app.get(f"/{number}", target)
    return Client(app)


def shown(rows: Rows) -> str:
    return repr((list(rows), rows.command, rows.count, rows.columns))


def seen(outcome: object) -> str:
    return repr(outcome)


LOTS = """
    create table lots (
        id integer primary key, name text not null unique, price decimal(10,2), sold boolean, at timestamptz,
        day date, extra json, photo blob
    );
    insert into lots values (1, 'chair', '1.10', 1, '2026-11-22T03:04:05.600Z', '2026-11-22', '{"a":[1]}', x'00ff');
    insert into lots (id, name) values (2, 'ü');
"""


def with_lots(*targets: Any) -> Client:
    client = client_for(*targets)
    client.database().executescript(LOTS)
    return client


def test_sqlite_is_there_without_a_word() -> None:
    client = client_for(query("select 1 + $1", 1).value())
    assert client.get("/0").text == "2"


def test_columns_of_sqlite_have_the_types_that_their_tables_declare() -> None:
    everything = query("select * from lots where id = $1 and '$2' = '$' || $2", 1, "2")
    client = with_lots(everything.one(), lambda: everything.one().then(seen))
    assert client.get("/0").json() == {
        "id": 1,
        "name": "chair",
        "price": "1.1",
        "sold": True,
        "at": "2026-11-22T03:04:05.600Z",
        "day": "2026-11-22",
        "extra": {"a": [1]},
        "photo": "AP8=",
    }
    row = {
        "id": 1,
        "name": "chair",
        "price": Decimal("1.1"),
        "sold": True,
        "at": AT,
        "day": date(2026, 11, 22),
        "extra": {"a": [1]},
        "photo": b"\x00\xff",
    }
    assert client.get("/1").text == repr(row)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (query("select name from lots order by id"), '[{"name":"chair"},{"name":"ü"}]'),
        (query("select name from lots where id = $2 and name = $1", "chair", 1).one(), '{"name":"chair"}'),
        (query("select photo from lots where id = ?", 2).value(), "null"),
        (query("select id, name from lots where id = $1", 2).value(), "2"),
        (query("select id from lots where id = $1", 2, int8="string").value(), '"2"'),
        (query("select $1 -- $9\n", "x").value(), '"x"'),
        (query("select json_extract($1, '$.a[1]')", {"a": [1, 2]}).value(), "2"),
        (query("select count(*) from json_each($1)", Json([1, 2])).value(), "2"),
        (query("update lots set sold = $1", True), '{"command":"UPDATE","rows":2}'),
        (query("insert into lots (name) values ($1) returning id", "n"), '[{"id":3}]'),
        (query("create table others (id)"), '{"command":"CREATE","rows":0}'),
        (query("select 9e999").value(), '"Infinity"'),
    ],
)
def test_sqlite_answers_as_the_core_would(statement: Query, text: str) -> None:
    response = with_lots(lambda: statement).get("/0")
    assert (response.status, response.text) == (200, text)


@pytest.mark.parametrize(
    ("statement", "reason", "state"),
    [
        (query("selec"), "refused", "42601"),
        (query("select * from nowhere"), "refused", "42P01"),
        (query("insert into lots (name) values ('chair')"), "refused", "23505"),
        (query("insert into lots (id) values (3)"), "refused", "23502"),
        (query("select $1"), "parameters", None),
        (query("select 1; select 2"), "unsupported", None),
        (query("select $1", [1]), "unsupported", None),
        (query("select 1 as a, 2 as a"), "columns", None),
        (query("select name from lots").one(), "not one", None),
        (query("select 1", database="other"), "unknown database", None),
    ],
)
def test_sqlite_fails_as_the_core_would(statement: Query, reason: str, state: str | None) -> None:
    async def handler() -> str:
        try:
            return str(await statement)
        except QueryError as error:
            return f"{error.reason} {error.sqlstate}"

    with with_lots(handler) as client:
        assert client.get("/0").text == f"{reason} {state}"


def test_there_may_be_several_databases() -> None:
    client = client_for(query("select 1", database="other").value(), query("select 2").value())
    client.database(name="other").execute("create table here (id)")
    client.database(lambda _: {"n": 3})
    assert (client.get("/0").text, client.get("/1").text) == ("1", "3")


ROW = {
    "n": 2**40,
    "price": Decimal("1.10"),
    "share": 0.5,
    "name": "n",
    "sold": False,
    "at": AT,
    "local": AT.replace(tzinfo=None),
    "day": date(2026, 11, 22),
    "time": time(3, 4),
    "id": ID,
    "photo": b"\x00",
    "extra": {"a": 1},
    "nothing": None,
    "odd": Decimal("NaN"),
}
KINDS = ("int8", "numeric", "float8", "text", "bool", "timestamptz", "timestamp", "date", "time", "uuid", "bytea")
KINDS += ("jsonb", "", "numeric")


def test_rows_of_a_test_become_json_and_back() -> None:
    client = client_for(query("a").one(), lambda: query("a").one().then(seen), lambda: query("a").then(shown))
    client.database(lambda _: ROW)
    assert (
        client.get("/0").text == '{"n":1099511627776,"price":"1.10","share":0.5,"name":"n","sold":false,'
        '"at":"2026-11-22T03:04:05.600000Z","local":"2026-11-22 03:04:05.600000","day":"2026-11-22","time":"03:04:00",'
        f'"id":"{ID}","photo":"AA==","extra":{{"a":1}},"nothing":null,"odd":"NaN"}}'
    )
    assert client.get("/1").text == repr(ROW)
    assert client.get("/2").text == repr(([ROW], "SELECT", 1, tuple(zip(ROW, KINDS, strict=True))))


def one_by_name(asked: Asked) -> Any:
    if asked.parameters == ("gone",):
        raise QueryError("no such name")
    return [{"text": asked.text, "name": asked.parameters[0], "database": asked.database}]


@pytest.mark.parametrize(
    ("answers", "status", "text"),
    [
        (one_by_name, 200, '[{"text":"select  $1","name":"n","database":"default"}]'),
        ({"select $1": [{"a": 1}]}, 200, '[{"a":1}]'),
        ({"select $1": {"a": 1}}, 200, '[{"a":1}]'),
        ({"select $1": ({"a": n} for n in range(2))}, 200, '[{"a":0},{"a":1}]'),
        ({"select $1": 2}, 200, '{"command":"SELECT","rows":2}'),
        ({"select $1": None}, 200, '{"command":"SELECT","rows":0}'),
        ({"select $1": QueryError("x", status=409)}, 409, None),
    ],
)
def test_a_test_may_answer_itself(answers: Any, status: int, text: str | None) -> None:
    client = client_for(query("select  $1", "n"))
    client.database(answers)
    response = client.get("/0")
    assert (response.status, response.text if text else None) == (status, text)
    assert client.queries == [Asked("select  $1", ("n",), "default")]


@pytest.mark.parametrize(
    ("answers", "error", "said"),
    [
        ({"select 2": 1}, AssertionError, "no answer to 'select 1'"),
        (lambda _: "text", AssertionError, "is not an answer to a query"),
        (lambda _: KeyError("mine"), KeyError, "mine"),
    ],
)
def test_a_wrong_answer_is_the_tests_own_fault(answers: Any, error: type[Exception], said: str) -> None:
    client = client_for(query("select 1"))
    client.database(answers)
    with pytest.raises(error, match=said):
        client.get("/0")


@pytest.mark.parametrize("then", [lambda wait: wait.value(), lambda wait: wait.value().then(seen)])
def test_a_query_may_take_its_time(then: Callable[[Query], Query]) -> None:
    client = client_for(then(query("slow")), then(query("slow", deadline=1)))
    client.database({"slow": after(2, {"n": 1})})
    slow, late, left = client.get("/0"), client.get("/1"), client.get("/0")
    assert (slow.parked, client.parked) == (True, 3)
    client.leave(left)
    client.advance(1)
    assert (slow.parked, late.status, late.json()["effect"]) == (True, 504, "cancelled")
    client.advance(1)
    assert (slow.text, client.parked, left.done) == ("1", 0, False)
