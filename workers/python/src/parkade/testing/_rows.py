"""A query of a test and its rows, as the core would send them: JSON in the shape that was asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Raw

from .._wire import payloads as p
from ..errors import QueryError


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as a database gets it: a date, a Decimal or a UUID as text, a dict as the text of its JSON."""

    text: str
    """The statement."""
    parameters: tuple[Any, ...] = ()
    """The values for `$1`, `$2`…"""
    database: str = "default"
    """The name of the database."""


@dataclass(frozen=True, slots=True)
class Found:
    """`columns` are names and types; without them it is a statement that gives no rows and changed `count` of them."""

    columns: Sequence[tuple[str, str]] = ()
    rows: Sequence[Sequence[Any]] = ()
    command: str = "SELECT"
    count: int = 0


def found_by(rows: Iterable[Mapping[str, Any]]) -> Found:
    """Rows that a test gave; a column has the type of its first value that is not None."""
    rows = list(rows)
    names = list(rows[0]) if rows else ["?column?"]
    columns = [(name, _kind(next((row[name] for row in rows if row[name] is not None), None))) for name in names]
    return Found(columns, [[row[name] for name in names] for row in rows])


def outcome_of(found: Found, options: p.QueryOptions) -> p.Rows:
    """The outcome of a query. Raises `QueryError` where the core does: two rows for one, two columns of one name."""
    if not found.columns:
        body = _encode({"command": found.command, "rows": found.count})
        return p.Rows([], found.command, found.count, body)
    _check(found, options.shape)
    rows = [
        {name: _cell(value, kind, options.int8) for (name, kind), value in zip(found.columns, row, strict=True)}
        for row in found.rows
    ]
    return p.Rows(list(found.columns), found.command, len(rows), _encode(_shaped(rows, found, options.shape)))


def command_of(text: str) -> str:
    """The first word of a statement, as PostgreSQL calls its command."""
    return text.split(None, 1)[0].upper() if text.split() else ""


def _check(found: Found, shape: str) -> None:
    names = [name for name, _ in found.columns]
    if shape != "value" and (double := [name for name in names if names.count(name) > 1]):
        text = f"two columns are called {double[0]!r}: give one of them another name with AS"
        raise QueryError(text, reason="columns")
    if shape != "rows" and len(found.rows) > 1:
        text = "the query returned more than one row where one was expected: add a LIMIT, or take rows"
        raise QueryError(text, reason="not one")


def _shaped(rows: list[dict[str, Any]], found: Found, shape: str) -> Any:
    if shape == "rows":
        return rows
    if not rows:
        return None
    return rows[0] if shape == "one" else rows[0][found.columns[0][0]]


_encode = msgspec.json.Encoder().encode

_KINDS = {
    bool: "bool",
    int: "int8",
    float: "float8",
    str: "text",
    bytes: "bytea",
    Decimal: "numeric",
    datetime: "timestamp",
    date: "date",
    time: "time",
    UUID: "uuid",
    dict: "jsonb",
    list: "jsonb",
}


def _kind(value: object) -> str:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return "timestamptz"
    return _KINDS.get(type(value), "")


def _cell(value: object, kind: str, int8: str) -> Any:
    """A value as JSON has it."""
    match value:
        case int() if kind in ("bool", "boolean") and value in (0, 1):
            return bool(value)
        case bool():
            return value
        case int() | Decimal() if _is_decimal(kind):
            return str(value)
        case int() if int8 == "string":
            return str(value)
        case float() if not math.isfinite(value):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case float() if _is_decimal(kind):
            return str(value)
        case datetime() if value.tzinfo is None:
            return value.isoformat(" ")
        case str() if kind in ("json", "jsonb"):
            return _document(value)
        case _:
            return value


def _is_decimal(kind: str) -> bool:
    """`decimal(10, 2)` is one."""
    return kind.partition("(")[0].strip() in ("numeric", "decimal")


def _document(text: str) -> Raw | str:
    try:
        msgspec.json.decode(text)
    except ValueError:
        return text
    return Raw(text)
