"""The JSON that `docs/queries.md` specifies for the output of `psql`: written from the rules alone, as an oracle.

Numbers are kept digit by digit, because `0.10` must stay `0.10`.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any

from .postgres import Postgres

# The settings of psql: those that the core uses.
SHOWN = """
set datestyle = 'ISO'; set timezone = 'UTC'; set intervalstyle = 'postgres';
set bytea_output = 'hex'; set extra_float_digits = 1; set lc_monetary = 'C';
"""

NUMBERS = {"int2", "int4", "int8", "oid", "float4", "float8"}
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d\d)(?::(\d\d))?")
BOUNDS = re.compile(r"(\[[+-]?\d+:[+-]?\d+\])+=")


@dataclass(frozen=True)
class Number:
    """Its text."""

    text: str


def exactly(text: str | bytes) -> Any:
    """Parses JSON with its numbers as texts; `NaN` and `Infinity` are refused, because JSON has none."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=float)


@dataclass(frozen=True)
class Kind:
    """A type, from the catalogue."""

    name: str
    base: int
    element: int
    delimiter: str


class Oracle:
    """Knows the types of one database."""

    def __init__(self, postgres: Postgres, database: str) -> None:
        self.postgres = postgres
        self._database = database

    def rows(self, *values: str) -> list[Any]:
        """The expected JSON of a row of these SQL values, value by value."""
        types = ", ".join(f"pg_typeof({value})::oid::int8" for value in values)
        sql = f"{SHOWN} select {types}; select {', '.join(values)}"
        types_of, texts = self.postgres.psql(sql, self._database)
        self._kinds = self._catalogue()
        return [self._json(text, int(oid or 0)) for oid, text in zip(types_of, texts, strict=True)]

    def _catalogue(self) -> dict[int, Kind]:
        # Only the array type of another type is written as an array: `int2vector` is not.
        sql = """
            select t.oid, case when t.oid < 16384 then t.typname end, t.typbasetype, coalesce(e.oid, 0), t.typdelim
            from pg_type t left join pg_type e on e.typarray = t.oid
        """
        rows = self.postgres.psql(sql, self._database)
        return {int(oid or 0): Kind(n or "", int(b or 0), int(e or 0), d or "") for oid, n, b, e, d in rows}

    def _json(self, text: str | None, oid: int) -> Any:
        kind = self._kinds[oid]
        if text is None:
            return None
        if kind.base:
            return self._json(text, kind.base)
        if kind.element:
            return self._array(BOUNDS.sub("", text, count=1), kind)
        if kind.name in NUMBERS:
            return Number(text) if NUMBER.fullmatch(text) else text
        match kind.name:
            case "bool":
                return text == "t"
            case "json" | "jsonb":
                return exactly(text)
            case "bytea":
                return base64.b64encode(bytes.fromhex(text.removeprefix("\\x"))).decode()
            case "timestamptz":
                return moment(text)
            case _:
                return text

    def _array(self, text: str, kind: Kind) -> Any:
        delimiter = re.escape(kind.delimiter)
        token = re.compile(rf'"((?:[^"\\]|\\.)*)"|([{{}}])|{delimiter}|((?:(?!{delimiter})[^"{{}}])+)', re.DOTALL)
        top: list[Any] = []
        open_lists = [top]
        end = 0
        for found in token.finditer(text):
            assert found.start() == end, text
            end = found.end()
            quoted, brace, plain = found.groups()
            if brace == "{":
                open_lists[-1].append([])
                open_lists.append(open_lists[-1][-1])
            elif brace == "}":
                open_lists.pop()
            elif quoted is not None:
                open_lists[-1].append(self._json(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL), kind.element))
            elif plain is not None:
                open_lists[-1].append(None if plain == "NULL" else self._json(plain, kind.element))
        assert end == len(text), text
        return top[0]


def moment(text: str) -> str:
    """RFC 3339, if that can represent it."""
    found = MOMENT.fullmatch(text)
    if found is None:
        return text
    day, time, hours, minutes = found.groups()
    zone = "Z" if hours == "+00" and minutes in (None, "00") else f"{hours}:{minutes or '00'}"
    return f"{day}T{time}{zone}"
