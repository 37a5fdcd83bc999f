"""Queries over HTTP: those of `apps/shop_queries.py`, and the status of the server's databases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .client import Answer, Client
from .postgres import Postgres
from .server import Server
from .until import SECONDS

WAYS = ("returned", "then", "awaited")
"""The way in which a handler uses a query."""

LOCK = "select 'got it' as lock from pg_advisory_xact_lock($1)"
"""Runs until `Postgres.locked` is over, so that it can be observed."""

SLOW = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) as most from n"
"""Runs for ever, in SQLite."""

Database = Mapping[str, Any]


def asking(sql: str, *parameters: object, **options: object) -> bytes:
    """The body of a request for it; `options` are those of `query`, and `shape`, `shared`, `ttl`."""
    return json.dumps({"sql": sql, "parameters": parameters, **options}).encode()


def ask(server: Server, way: str, sql: str, *parameters: object, **options: object) -> Answer:
    """Sends a request on a new connection."""
    answer: Answer = server.post(f"/{way}", asking(sql, *parameters, **options))
    return answer


def value(server: Server, sql: str, *parameters: object, **options: object) -> Any:
    """Its only value."""
    answer = ask(server, "returned", sql, *parameters, shape="value", **options)
    assert answer.status == 200, answer.text
    return answer.json()


def waiting(server: Server, way: str, count: int, sql: str, *parameters: object, **options: object) -> list[Client]:
    """This many clients that have sent a request and read nothing yet."""
    return server.waiting(f"/{way}", count, method="POST", body=asking(sql, *parameters, **options))


def database(server: Server, name: str = "default") -> Database:
    """The status of the database."""
    found: Database = server.status()["databases"][name]
    return found


def is_settled(told: Database) -> bool:
    """Whether nothing runs or waits in it, and every connection is usable."""
    return not told["running"] and told["queued"] == 0 and set(told["slots"]) <= {"idle"}


def until_settled(server: Server, seconds: float = SECONDS) -> None:
    """Waits until nothing runs or waits in any database, and checks that no cancel has hit another query."""
    status = server.until(lambda status: all(map(is_settled, status["databases"].values())), seconds)
    assert [told["counts"]["strays"] for told in status["databases"].values()] == [0] * len(status["databases"])


def left_at_rest(server: Server, postgres: Postgres) -> Iterator[Server]:
    """A fixture for a server with a database that the tests of a file share: after each, both are at rest."""
    yield server
    server.cleared()
    until_settled(server)
    postgres.until_idle()


def until_queued(server: Server, count: int, name: str = "default") -> None:
    """Waits until this many queries wait for a connection."""
    server.until(lambda status: status["databases"][name]["queued"] == count)


def until_running(server: Server, count: int, name: str = "default") -> list[Mapping[str, Any]]:
    """Waits until this many queries have a connection; returns their status."""

    def running(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        return [query for query in status["databases"][name]["running"] if query["state"] == "running"]

    return running(server.until(lambda status: len(running(status)) == count))
