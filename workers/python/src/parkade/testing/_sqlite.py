"""SQLite in memory, as a database of a test."""

from __future__ import annotations

import re
import sqlite3
from contextlib import suppress

from ..errors import QueryError
from ._rows import Asked, Found, command_of


class Memory:
    """A `Database` with one connection, which the test may use, too."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute("pragma foreign_keys = on")

    def run(self, asked: Asked) -> tuple[float, Found]:
        if any(isinstance(value, list) for value in asked.parameters):
            raise QueryError("SQLite has no arrays: give Json(value) and use json_each", reason="unsupported")
        try:
            cursor = self.connection.execute(_numbered(asked.text), asked.parameters)
            rows, count = cursor.fetchall(), max(cursor.rowcount, 0)
            columns = self._columns(asked.text, [name for name, *_ in cursor.description or ()])
        except (sqlite3.Error, sqlite3.Warning) as error:
            if asked.text == "commit":  # SQLite leaves it open
                self.connection.rollback()
            raise _failure(error) from error
        return 0, Found(columns, rows, command_of(asked.text), count)

    def _columns(self, text: str, names: list[str]) -> list[tuple[str, str]]:
        """Names with the types that tables declare, which only a view shows; RETURNING has none."""
        kinds = [""] * len(names)
        with suppress(sqlite3.Error, sqlite3.Warning):
            self.connection.execute(f"create temp view parkade_columns as {_PLACEHOLDER.sub(_nothing, text)}")
            try:
                described = self.connection.execute("pragma table_info(parkade_columns)")
                kinds = [kind.lower() for _, _, kind, *_ in described]
            finally:
                self.connection.execute("drop view temp.parkade_columns")
        return list(zip(names, kinds, strict=True))


# A placeholder, or what may look as if it held one: a text, a quoted name, a comment.
_PLACEHOLDER = re.compile(r"""'[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|\$(?P<number>\d+)|\?\d*""", re.DOTALL)


def _numbered(text: str) -> str:
    """SQLite counts `?1`; `$1` would be a name to it."""
    return _PLACEHOLDER.sub(lambda found: f"?{found['number']}" if found["number"] else found[0], text)


def _nothing(found: re.Match[str]) -> str:
    return "null" if found[0].startswith(("$", "?")) else found[0]


_STATES = {
    "UNIQUE constraint": "23505",
    "NOT NULL constraint": "23502",
    "FOREIGN KEY constraint": "23503",
    "CHECK constraint": "23514",
    "no such table": "42P01",
    "no such column": "42703",
}


_STATUSES = {"23502": 400, "23514": 400, "23505": 409, "23503": 409}


def _failure(error: Exception) -> QueryError:
    text = str(error)
    if "number of bindings" in text:
        return QueryError(text, reason="parameters")
    if "one statement" in text:
        return QueryError("one statement at a time", reason="unsupported")
    state = next((state for begin, state in _STATES.items() if text.startswith(begin)), "42601")
    return QueryError(text, sqlstate=state, status=_STATUSES.get(state, 500))
