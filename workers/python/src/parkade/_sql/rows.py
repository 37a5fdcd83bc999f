"""Rows: the result of a query, as Python values by the types of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias, TypedDict, cast
from uuid import UUID

import msgspec
from msgspec import Raw, ValidationError

from .._wire import payloads as p
from ..errors import QueryError

Row: TypeAlias = dict[str, Any]
"""A row: its values by the names of the columns."""


class Rows(list[Row]):
    """The rows of a query.

    `command` is what the database did (`SELECT`, `UPDATE`), `count` how many rows came back or were changed, `columns`
    are pairs of a name and a type as the database calls it (`timestamptz`, `_int4`; empty where it is not known).

    numeric is a `Decimal`; timestamp and timestamptz a `datetime`, date a `date`, time and timetz a `time`; uuid a
    `UUID`; bytea and blob `bytes`; json and jsonb what they hold; arrays of these lists. Other types, interval among
    them, and what Python has no value for (the date `infinity`, years before Christ) are text.

    A `Decimal` is a JSON string, whether a handler returns rows or the query itself.
    """

    __slots__ = ("columns", "command", "count")

    command: str
    """What the database did: `SELECT`, `UPDATE`, …"""
    count: int  # type: ignore[assignment]
    """How many rows came back or were changed."""
    columns: tuple[tuple[str, str], ...]
    """Pairs of a name and a type as the database calls it (`timestamptz`, `_int4`; empty where it is not known)."""

    def __init__(
        self,
        rows: Iterable[Row] = (),
        command: str = "SELECT",
        count: int | None = None,
        columns: Iterable[tuple[str, str]] = (),
    ) -> None:
        super().__init__(rows)
        self.command = command
        self.count = len(self) if count is None else count
        self.columns = tuple(columns)


def value_of_rows(rows: p.Rows, shape: str) -> Any:
    """What a query gives, by its shape: `Rows`; a row or None; a value or None.

    A statement without rows gives an empty `Rows`, or None. Raises `QueryError` for JSON that is nested too deeply.
    """
    if not rows.columns:
        return _without_columns(rows, shape)
    columns = tuple(rows.columns)
    try:
        found = _decoder(columns, shape)(rows.body or b"")
    except RecursionError as error:
        raise QueryError(_TOO_DEEP, reason="unsupported", effect="completed") from error
    return Rows(found, rows.command, rows.count, columns) if shape == "rows" else found


def _without_columns(rows: p.Rows, shape: str) -> Any:
    """The value of a statement without rows, or of rows that have no columns (`select from t`)."""
    body = bytes(rows.body or b"")
    if shape != "rows":
        return {} if body == b"{}" else None
    found: list[Row] = [{} for _ in range(rows.count)] if body.startswith(b"[") else []
    return Rows(found, rows.command, rows.count)


_TOO_DEEP = "a json value in the result is nested too deeply for Python: select a part of it, or select it as text"

_Decode: TypeAlias = Callable[[bytes], Any]

_TYPES: dict[str, Any] = {
    "numeric": Decimal,
    "decimal": Decimal,
    "float4": float,
    "float8": float,
    "real": float,
    "float": float,
    "double": float,
    "double precision": float,
    "timestamptz": datetime,
    "timestamp": datetime,
    "datetime": datetime,
    "date": date,
    "time": time,
    "timetz": time,
    "uuid": UUID,
    "bytea": bytes,
    "blob": bytes,
}
"""By the names of PostgreSQL's types and of those that tables of SQLite declare. Others stay as JSON gives them."""


@lru_cache(maxsize=256)
def _decoder(columns: tuple[tuple[str, str], ...], shape: str) -> _Decode:
    """Decodes a body at once where all converts; else value by value, and what does not convert stays the text."""
    kinds = {name: _kind(declared) for name, declared in columns}
    if shape == "value":
        kind = _kind(columns[0][1])
        return _first_of(_typed(_annotation(kind)), lambda body: _value(kind, body))
    if not any(_is_typed(kind) for kind in kinds.values()):
        return _plain
    row: Any = cast(Any, TypedDict)("Row", {name: _annotation(kind) for name, kind in kinds.items()})
    if shape == "one":
        return _first_of(_typed(row | None), lambda body: _row(kinds, _raw_row(body)))
    return _first_of(_typed(list[row]), lambda body: [_row(kinds, raw) for raw in _raw_rows(body)])


def _first_of(quick: _Decode, slow: _Decode) -> _Decode:
    def decode(body: bytes) -> Any:
        try:
            return quick(body)
        except ValidationError:
            return slow(body)

    return decode


def _kind(declared: str) -> str:
    """`decimal(10, 2)` is a decimal."""
    return declared.partition("(")[0].strip()


def _is_typed(kind: str) -> bool:
    return kind.removeprefix("_") in _TYPES


def _annotation(kind: str) -> Any:
    if not _is_typed(kind):
        return Any
    if not kind.startswith("_"):
        return _TYPES[kind] | None
    element: Any = _TYPES[kind[1:]] | None
    return list[element] | None


def _typed(annotation: Any) -> _Decode:
    return msgspec.json.Decoder(annotation).decode


_plain = _typed(Any)
_raw_row = _typed(dict[str, Raw] | None)
_raw_rows = _typed(list[dict[str, Raw]])
_raw_list = _typed(list[Raw] | None)


def _row(kinds: dict[str, str], raw: dict[str, Raw] | None) -> Row | None:
    return None if raw is None else {name: _value(kinds[name], value) for name, value in raw.items()}


def _value(kind: str, raw: bytes | Raw) -> Any:
    """One value; as JSON gives it where its type does not fit."""
    try:
        if kind.startswith("_") and _is_typed(kind):
            return _array(kind, raw)
        # Not strict for floats only: NaN and Infinity are text in JSON.
        return msgspec.json.decode(raw, type=_annotation(kind), strict=_TYPES.get(kind) is not float)
    except ValidationError:
        value = _plain(bytes(raw))
        return _zoned(value) if kind == "timetz" else value


def _array(kind: str, raw: bytes | Raw) -> list[Any] | None:
    """An array of one dimension or several: its type does not say how many."""
    values = _raw_list(bytes(raw))
    if values is None:
        return None
    return [_value(kind if bytes(value)[:1] == b"[" else kind[1:], value) for value in values]


def _zoned(text: str) -> time | str:
    """PostgreSQL writes the zone of a timetz in whole hours where it is one: `+00`."""
    try:
        return msgspec.convert(f"{text}:00", time)
    except ValidationError:
        return text
