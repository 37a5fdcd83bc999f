"""The databases of a test: functions and mappings that answer queries, and SQLite in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

from .._sql.outcomes import failed_of
from .._waits.wait import Wait
from .._wire import payloads as p
from ..errors import QueryError
from ._rows import Asked, Found, command_of, found_by, outcome_of
from ._sqlite import Memory

Answers: TypeAlias = Callable[[Asked], Any] | Mapping[str, Any]
"""What a test gives for a database; see `Client.database`."""


class Database(Protocol):
    """What answers the statements of one database."""

    def run(self, asked: Asked) -> tuple[float, Found]:
        """Carries out a statement, `begin`, `commit` and `rollback` among them; gives how many seconds it takes, too.

        Raises `QueryError`.
        """


class Databases:
    """The databases by name, what they were asked, and which requests have a transaction open."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._named: dict[str, Database] = {}
        self._open: dict[object, str] = {}

    def answer(self, name: str, answers: Answers) -> None:
        """From here on `answers` is the database of that name."""
        self._named[name] = _Answering(answers)

    def memory(self, name: str) -> sqlite3.Connection:
        """From here on, unless it is already, SQLite is the database of that name."""
        database = self._named.get(name)
        if not isinstance(database, Memory):
            database = self._named[name] = Memory()
        return database.connection

    def ask(self, wait: p.Query | p.Begin | p.Commit | p.Rollback, who: object) -> tuple[float, p.Outcome]:
        """The outcome for a request, after how many seconds it comes first."""
        try:
            match wait:
                case p.Query():
                    return self._query(wait, who)
                case p.Begin():
                    return self._begin(wait.options.database, who)
                case _:
                    return self._end("commit" if isinstance(wait, p.Commit) else "rollback", who)
        except QueryError as error:
            return 0, failed_of(error)

    def over(self, who: object) -> None:
        """A request has ended: a transaction that is still open is rolled back."""
        if who in self._open:
            with suppress(QueryError):
                self._end("rollback", who)

    def _query(self, wait: p.Query, who: object) -> tuple[float, p.Outcome]:
        options = wait.options
        parameters = tuple(value["json"] if isinstance(value, dict) else value for value in wait.parameters)
        name = self._transaction(who) if options.within else options.database
        seconds, found = self._run(Asked(wait.text, parameters, name))
        if options.deadline and seconds > options.deadline:
            text = f"it was cancelled after {options.deadline} seconds, its deadline"
            told = "the deadline of the query passed; nothing has changed"
            late = QueryError(text, reason="deadline", effect="cancelled", status=504, detail=told)
            return options.deadline, failed_of(late)
        return seconds, outcome_of(found, options)

    def _begin(self, name: str, who: object) -> tuple[float, p.Outcome]:
        if who in self._open:
            raise QueryError("this request already has an open transaction", reason="no transaction")
        self._run(Asked("begin", database=name))
        self._open[who] = name
        return 0, p.Rows([], "BEGIN", 0, b"null")

    def _end(self, how: str, who: object) -> tuple[float, p.Outcome]:
        name = self._transaction(who)
        del self._open[who]
        self._run(Asked(how, database=name))
        return 0, p.Rows([], how.upper(), 0, b"null")

    def _transaction(self, who: object) -> str:
        if who not in self._open:
            raise QueryError("this request has no transaction", reason="no transaction")
        return self._open[who]

    def _run(self, asked: Asked) -> tuple[float, Found]:
        self.asked.append(asked)
        if asked.database == "default" and "default" not in self._named:
            self.memory("default")
        if asked.database not in self._named:
            text = f"no database is named {asked.database!r}: add one with client.database(…, name={asked.database!r})"
            raise QueryError(text, reason="unknown database")
        return self._named[asked.database].run(asked)


class _Answering:
    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def run(self, asked: Asked) -> tuple[float, Found]:
        answer = self._answers(asked) if callable(self._answers) else self._look_up(self._answers, asked.text)
        if isinstance(answer, Wait) and isinstance(answer._wait, p.Timer):
            return answer._wait.seconds, self._found(answer._response, asked)
        return 0, self._found(answer, asked)

    def _look_up(self, answers: Mapping[str, Any], text: str) -> Any:
        by_text = {_words(known): answer for known, answer in answers.items()}
        if _words(text) not in by_text and text not in _TRANSACTION:
            raise AssertionError(f"the test has no answer to {text!r}, only to {list(answers)}")
        return by_text.get(_words(text))

    def _found(self, answer: object, asked: Asked) -> Found:
        match answer:
            case Exception():
                raise answer
            case None | int():
                return Found(command=command_of(asked.text), count=answer or 0)
            case Mapping():
                return found_by([answer])
            case Iterable() if not isinstance(answer, str | bytes):
                return found_by(answer)
            case _:
                raise AssertionError(
                    f"{answer!r} is not an answer to a query: give rows, a number of changed rows, or a QueryError"
                )


_TRANSACTION = ("begin", "commit", "rollback")


def _words(text: str) -> str:
    return " ".join(text.split())
