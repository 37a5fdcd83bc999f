"""Runs the SQL of a test in every way. A real application never takes SQL from a client."""

from __future__ import annotations

import asyncio
import os
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
from gates import hold_async

from parkade import App, HTTPError, Json, Message, QueryError, Request, Response, Rows, channel, query, transaction

app = App()

app.get("/standing", query("select 1 as n, 'hola' as word"))
app.get("/standing-value", query("select 1").value())
app.get("/standing-nobody", query("select 1 where false").one())


class Ask(msgspec.Struct):
    sql: str
    parameters: list[Any] = []
    shape: str = "rows"
    database: str = "default"
    deadline: float | None = None
    int8: str = "number"
    shared: str | None = None
    ttl: float = 0


def asked(request: Request) -> Any:
    ask = request.json(Ask)
    wait: Any = query(ask.sql, *ask.parameters, database=ask.database, deadline=ask.deadline, int8=ask.int8)  # type: ignore[arg-type]
    wait = getattr(wait, ask.shape)()
    return wait if ask.shared is None else wait.shared(ask.shared, ask.ttl)


def told(found: Any) -> Any:
    """The response of the core."""
    if isinstance(found, Rows) and not found.columns and not found:
        return {"command": found.command, "rows": found.count}
    return found


def answered(found: Any) -> Response:
    """Any outcome as a response."""
    return Response(msgspec.json.encode(told(found)), headers={"content-type": "application/json"})


# The three ways


@app.post("/returned")
def returned(request: Request) -> object:
    return asked(request)


@app.post("/then")
def then(request: Request) -> object:
    return asked(request).then(answered)


@app.post("/awaited")
async def awaited(request: Request) -> object:
    return answered(await asked(request))


@app.post("/impatient/{seconds:float}")
async def impatient(request: Request, seconds: float) -> object:
    """`asyncio.timeout` is newer than the oldest supported Python."""
    try:
        return answered(await asyncio.wait_for(asked(request), seconds))
    except asyncio.TimeoutError:
        return {"given up": True}


@app.post("/caught")
async def caught(request: Request) -> object:
    try:
        return answered(await asked(request))
    except QueryError as error:
        known = {"reason": error.reason, "sqlstate": error.sqlstate, "effect": error.effect, "status": error.status}
        return known | {"text": str(error)}


@app.post("/awaited-noisily")
async def awaited_noisily(request: Request) -> object:
    try:
        return answered(await asked(request))
    except asyncio.CancelledError:
        print("cancelled while awaiting a query", flush=True)
        raise


@app.post("/deadline", deadline=0.3)
def with_deadline(request: Request) -> object:
    return asked(request)


@app.get("/number/{number:int}")
def number(number: int) -> object:
    return query("select $1::int as n", number)


@app.get("/many/{count:int}/{size:int}")
def many(count: int, size: int) -> object:
    return query("select n, repeat('x', $2) as text from generate_series(1, $1) n", count, size)


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/pid")
async def pid() -> str:
    return str(os.getpid())


# Values


class Size(Enum):
    LARGE = "large"


VALUES: dict[str, tuple[str, Any]] = {
    "none": ("text", None),
    "bool": ("bool", True),
    "int": ("int8", -(2**63)),
    "huge": ("numeric", 2**70),
    "float": ("float8", 0.1),
    "infinite": ("float8", float("inf")),
    "str": ("text", "grüße 'quoted' \\ \"double\" \n $1"),
    "bytes": ("bytea", b"\0\xff\\"),
    "bytearray": ("bytea", bytearray(b"ab")),
    "datetime": ("timestamptz", datetime(2026, 11, 22, 3, 4, 5, tzinfo=timezone(timedelta(hours=1)))),
    "naive": ("timestamp", datetime(2026, 11, 22, 3, 4, 5)),
    "date": ("date", date(2026, 11, 22)),
    "time": ("time", time(3, 4, 5)),
    "timedelta": ("interval", timedelta(days=1, seconds=2)),
    "decimal": ("numeric", Decimal("1.50")),
    "uuid": ("uuid", UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    "enum": ("text", Size.LARGE),
    "array": ("int4[]", [1, None, 3]),
    "texts": ("text[]", ["a,b", 'c"d', "NULL", None, "{}", "\\"]),
    "matrix": ("int4[]", [[1, 2], [3, 4]]),
    "dict": ("jsonb", {"a": [1, None]}),
    "json": ("jsonb", Json([1, "two"])),
}


@app.get("/values")
def values() -> object:
    columns = ", ".join(f"${at}::{kind} as {name}" for at, (name, (kind, _)) in enumerate(VALUES.items(), 1))
    return query(f"select {columns}", *(value for _, value in VALUES.values())).one()


@app.get("/kinds")
async def kinds() -> object:
    """The type and value of each result."""
    columns = ", ".join(f"${at}::{kind} as {name}" for at, (name, (kind, _)) in enumerate(VALUES.items(), 1))
    row = await query(f"select {columns}", *(value for _, value in VALUES.values())).one()
    return {name: type(value).__name__ for name, value in (row or {}).items()}


@app.get("/large-value/{kibibytes:int}")
def large_value(kibibytes: int) -> object:
    return query("select length($1) as length", "x" * (kibibytes << 10)).one()


@app.get("/nul")
def nul() -> object:
    return query("select $1::text", "a\0b")


# Transactions


class Step(msgspec.Struct):
    """One step: a statement, a gate to wait at, an exception to raise, a rollback, a query outside."""

    sql: str | None = None
    parameters: list[Any] = []
    deadline: float | None = None
    gate: str | None = None
    status: int | None = None
    rollback: bool = False
    outside: str | None = None
    begin: bool = False


class Steps(msgspec.Struct):
    steps: list[Step]
    database: str = "default"
    isolation: str | None = None
    read_only: bool = False


@app.post("/transaction")
async def in_transaction(body: Steps) -> object:
    """The result of each statement, or how it failed."""
    found: list[object] = []
    async with transaction(body.database, body.isolation, body.read_only) as t:  # type: ignore[arg-type]
        for step in body.steps:
            found.append(await taken(t, step))
    return found


@app.post("/caught-transaction")
async def caught_transaction(body: Steps) -> object:
    """The same, but exceptions of statements stay in the block, and what ends the block is returned."""
    found: list[object] = []
    try:
        async with transaction(body.database, body.isolation, body.read_only) as t:  # type: ignore[arg-type]
            for step in body.steps:
                try:
                    found.append(await taken(t, step))
                except Exception as error:
                    found.append(described(error))
    except Exception as error:
        found.append({"ended by": described(error)})
    return found


async def taken(t: Any, step: Step) -> object:
    if step.gate is not None:
        print(f"holds at {step.gate}", flush=True)
        await hold_async(step.gate)
    if step.status is not None:
        raise HTTPError(step.status, "as the test says")
    if step.rollback:
        await t.rollback()
    if step.outside is not None:
        return told(await query(step.outside, *step.parameters))
    if step.begin:
        async with transaction():
            return "begun"
    if step.sql is not None:
        return told(await t.query(step.sql, *step.parameters, deadline=step.deadline))
    return None


def described(error: Exception) -> object:
    if isinstance(error, QueryError):
        return {"reason": error.reason, "sqlstate": error.sqlstate, "effect": error.effect, "status": error.status}
    return {"error": type(error).__name__, "text": str(error)}


# Channels that the database feeds


@app.get("/next/{name}")
def next_message(name: str, since: str | None = None) -> object:
    return channel(name).next(timeout=30, since=since)


@app.get("/next-then/{name}")
def next_then(name: str) -> object:
    return channel(name).next(timeout=30).then(told_message)


def told_message(message: Message | None) -> object:
    return None if message is None else {"value": message.value, "gap": message.gap}


@app.get("/events/{name}")
def events(name: str) -> object:
    return channel(name).stream()
