"""What plain code does in a transaction: a request lists the steps. `paying_*` are applications with it."""

from __future__ import annotations

from typing import Any

import msgspec
from gates import hold
from jobs_ran import note

from parkade import QueryError, WaitError, query, transaction
from parkade.jobs import Jobs

jobs = Jobs()


class Step(msgspec.Struct):
    """One of these steps."""

    sql: str | None = None
    parameters: list[Any] = []
    enqueue: str | None = None
    gate: str | None = None
    rollback: bool = False
    fail: bool = False
    begin: bool = False
    catch: bool = False


@jobs.job
def write(line: str) -> None:
    note(line)


@jobs.job
def write_within(line: str) -> None:
    """Enqueues another job within its own transaction."""
    with transaction() as t:
        t.query("insert into orders (line) values ($1)", line)
        write.enqueue(line)


class Fails(Exception):
    """A step failed, as the request says."""


def pay(body: bytes) -> list[object]:
    """What each statement returned, or how it failed."""
    found: list[object] = []
    try:
        with transaction() as t:
            for step in msgspec.json.decode(body, type=list[Step]):
                _take(t, step, found)
    except (QueryError, WaitError, Fails) as error:
        found.append(described(error))
    return found


def _take(t: Any, step: Step, found: list[object]) -> None:
    if step.gate is not None:
        hold(step.gate)
    if step.enqueue is not None:
        write.enqueue(step.enqueue)
    if step.rollback:
        t.rollback()
    if step.fail:
        raise Fails
    if step.begin:
        with transaction():
            pass
    if step.sql is not None:
        try:
            rows = t.query(step.sql, *step.parameters)
            found.append({"command": rows.command, "count": rows.count, "rows": list(rows)})
        except QueryError as error:
            if not step.catch:
                raise
            found.append(described(error))


async def pay_in_loop(body: bytes) -> list[object]:
    """The same for a coroutine."""
    found: list[object] = []
    try:
        async with transaction() as t:
            for step in msgspec.json.decode(body, type=list[Step]):
                if step.gate is not None:
                    hold(step.gate)
                if step.enqueue is not None:
                    write.enqueue(step.enqueue)
                if step.fail:
                    raise Fails
                if step.sql is not None:
                    rows = await t.query(step.sql, *step.parameters)
                    found.append({"command": rows.command, "count": rows.count, "rows": list(rows)})
    except (QueryError, WaitError, Fails) as error:
        found.append(described(error))
    return found


def described(error: Exception) -> object:
    told = {"error": type(error).__name__, "text": str(error)}
    return told | ({"reason": error.reason, "effect": error.effect} if isinstance(error, QueryError) else {})


def totals() -> Any:
    """A wait, whose function has a transaction of its own."""
    return query("select 1 as one").then(after_it)


def after_it(rows: Any) -> str:
    with transaction() as t:
        (row,) = t.query("select sum(amount)::int as sum from accounts")
    return str(row["sum"])
