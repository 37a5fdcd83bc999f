"""Rows: the JSON of a database as Python values, by the types of its columns."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest

from parkade import QueryError, Rows
from parkade._sql.rows import value_of_rows
from parkade._wire import payloads as p

UTC = timezone.utc
HALF_PAST = timezone(timedelta(hours=5, minutes=30))


def outcome(columns: dict[str, str], body: str, command: str = "SELECT", count: int = 1) -> p.Rows:
    return p.Rows(list(columns.items()), command, count, body.encode())


@pytest.mark.parametrize(
    ("kind", "json", "value"),
    [
        ("int4", "7", 7),
        ("int8", "9223372036854775807", 2**63 - 1),
        ("int8", '"9223372036854775807"', "9223372036854775807"),
        ("bool", "true", True),
        ("text", '"2026-11-22"', "2026-11-22"),
        ("", "1.5", 1.5),
        ("float8", "1", 1.0),
        ("float8", '"-Infinity"', -math.inf),
        ("numeric", "1.10", Decimal("1.10")),
        ("numeric", "0.1000000000000000000000000000000000001", Decimal("0.1000000000000000000000000000000000001")),
        ("numeric", "1" * 5_000, Decimal("1" * 5_000)),
        ("numeric", '"Infinity"', Decimal("Infinity")),
        ("timestamptz", '"2026-11-22T03:04:05.678Z"', datetime(2026, 11, 22, 3, 4, 5, 678_000, UTC)),
        ("timestamptz", '"2026-11-22T03:04:05+05:30"', datetime(2026, 11, 22, 3, 4, 5, 0, HALF_PAST)),
        ("timestamptz", '"infinity"', "infinity"),
        ("timestamp", '"2026-11-22 03:04:05.5"', datetime(2026, 11, 22, 3, 4, 5, 500_000)),
        ("timestamp", '"0044-03-15 00:00:00 BC"', "0044-03-15 00:00:00 BC"),
        ("timestamp", '"12026-11-22 03:04:05"', "12026-11-22 03:04:05"),
        ("timestamp", "1700000000", 1_700_000_000),
        ("date", '"2026-11-22"', date(2026, 11, 22)),
        ("date", '"-infinity"', "-infinity"),
        ("time", '"03:04:05.678"', time(3, 4, 5, 678_000)),
        ("time", '"24:00:00"', "24:00:00"),
        ("timetz", '"03:04:05+00"', time(3, 4, 5, tzinfo=UTC)),
        ("timetz", '"03:04:05.5+05:30"', time(3, 4, 5, 500_000, HALF_PAST)),
        ("timetz", '"24:00:00+00"', "24:00:00+00"),
        ("interval", '"1 day 02:03:04"', "1 day 02:03:04"),
        ("uuid", '"00000000-0000-0000-0000-000000000001"', UUID(int=1)),
        ("bytea", '"AP8="', b"\x00\xff"),
        ("jsonb", '{"a":[1,1.5,"x"]}', {"a": [1, 1.5, "x"]}),
        ("_numeric", '[1.10,null,"Infinity"]', [Decimal("1.10"), None, Decimal("Infinity")]),
        ("_numeric", "[[1.1],[null]]", [[Decimal("1.1")], [None]]),
        ("_timestamptz", '["infinity","2026-11-22T03:04:05Z"]', ["infinity", datetime(2026, 11, 22, 3, 4, 5, 0, UTC)]),
        ("_date", '"{odd"', "{odd"),
        ("_float8", '["Infinity",1]', [math.inf, 1.0]),
        ("_timetz", '["03:04:05+00"]', [time(3, 4, 5, tzinfo=UTC)]),
        ("_bytea", '["AP8="]', [b"\x00\xff"]),
        ("_json", '[[1.5],{"a":null}]', [[1.5], {"a": None}]),
        ("_int4", "[[1],[2]]", [[1], [2]]),
        ("decimal(10,2)", "1.10", Decimal("1.10")),
        ("double precision", "1", 1.0),
        ("blob", '"AP8="', b"\x00\xff"),
    ],
)
def test_a_column_has_the_type_that_its_database_names(kind: str, json: str, value: object) -> None:
    columns = {"a": kind, "other": "text"}
    row = {"a": value, "other": "x"}
    rows = value_of_rows(outcome(columns, f'[{{"a":{json},"other":"x"}},{{"a":null,"other":null}}]'), "rows")
    one = value_of_rows(outcome(columns, f'{{"a":{json},"other":"x"}}'), "one")
    alone = value_of_rows(outcome(columns, json), "value")
    assert (rows, one, alone) == ([row, {"a": None, "other": None}], row, value)
    assert {type(found) for found in (rows[0]["a"], one["a"], alone)} == {type(value)}


def test_what_is_no_number_is_a_float_all_the_same() -> None:
    assert math.isnan(value_of_rows(outcome({"a": "float4"}, '"NaN"'), "value"))


@pytest.mark.parametrize("kind", ["int4", "numeric"])
def test_no_row_is_none(kind: str) -> None:
    columns = {"a": kind}
    found = [
        value_of_rows(outcome(columns, body, count=0), shape) for body, shape in [("null", "one"), ("null", "value")]
    ]
    assert (found, value_of_rows(outcome(columns, "[]", count=0), "rows")) == ([None, None], [])


def test_rows_know_what_was_done() -> None:
    rows = value_of_rows(outcome({"a": "int4", "b": "date"}, '[{"a":1,"b":null}]', "INSERT"), "rows")
    assert isinstance(rows, Rows)
    assert (rows.command, rows.count, rows.columns) == ("INSERT", 1, (("a", "int4"), ("b", "date")))


def test_a_statement_without_rows_gives_none() -> None:
    done = outcome({}, '{"command":"UPDATE","rows":3}', "UPDATE", 3)
    rows = value_of_rows(done, "rows")
    assert (list(rows), rows.command, rows.count, rows.columns) == ([], "UPDATE", 3, ())
    assert (value_of_rows(done, "one"), value_of_rows(done, "value")) == (None, None)


@pytest.mark.parametrize("name", ["", "a b", "ü", "class", "?column?", "_"])
def test_a_column_may_have_any_name(name: str) -> None:
    body = f"[{{{msgspec.json.encode(name).decode()}:1.10}}]"
    assert value_of_rows(outcome({name: "numeric"}, body), "rows") == [{name: Decimal("1.10")}]


def test_rows_are_json_able() -> None:
    rows: Any = Rows([{"a": 1}], "SELECT", 1, [("a", "int4")])
    assert (msgspec.json.encode(rows), rows.count) == (b'[{"a":1}]', 1)


@pytest.mark.parametrize("shape", ["rows", "one", "value"])
def test_json_that_is_nested_too_deeply_says_what_to_do(shape: str) -> None:
    deep = "[" * 20_000 + "]" * 20_000
    body = {"rows": f'[{{"a":{deep},"b":1.1}}]', "one": f'{{"a":{deep},"b":1.1}}', "value": deep}[shape]
    for columns in ({"a": "jsonb", "b": "numeric"}, {"a": "jsonb", "b": "float4"}, {"a": "jsonb", "b": "text"}):
        with pytest.raises(QueryError, match="select a part of it, or select it as text") as raised:
            value_of_rows(outcome(columns, body), shape)
        told = raised.value
        assert (told.status, told.reason, told.effect) == (500, "unsupported", "completed")
