"""Coroutines that wait for several things at a time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from parkade import (
    App,
    First,
    Message,
    QueryError,
    Wait,
    WaitError,
    after,
    all_of,
    channel,
    first_of,
    query,
    transaction,
)

app = App()


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


LOCKED = "select 'got it' as lock from pg_advisory_xact_lock($1)"
FOREVER = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) as most from n"


def slow(locked: int) -> Any:
    """A statement that runs until the lock is released; in SQLite for ever."""
    return query(LOCKED, locked).value() if locked else query(FOREVER).value()


@app.get("/dashboard/{locked:int}")
async def dashboard(locked: int) -> object:
    shown = await asyncio.gather(query("select 1").value(), slow(locked), query("select 3").value())
    return list(shown)


@app.get("/all-of/{locked:int}")
async def both_of(locked: int) -> object:
    return await all_of(query("select 1").value(), slow(locked), query("select 3").value())


@app.get("/all-of-failing/{locked:int}")
async def all_of_failing(locked: int) -> object:
    try:
        await all_of(slow(locked), query("select nothing from nowhere"))
    except QueryError as error:
        return {"sqlstate": error.sqlstate, "then": await query("select 7").value()}
    return "both"


@app.get("/first-of/{locked:int}/{seconds:float}")
async def either_of(locked: int, seconds: float) -> object:
    return await first_of(slow(locked), after(seconds, "the timer"), channel("never").next())


@app.get("/numbers/{count:int}")
async def numbers(count: int) -> object:
    found = await asyncio.gather(*(query("select $1 + 0", number).value() for number in range(count)))
    return list(found)


@app.get("/large/{count:int}")
async def large(count: int) -> object:
    """Rows that follow, for each of them other ones."""
    found = await asyncio.gather(
        *(query("select $1 as text", str(number) * 100_000).value() for number in range(count)), after(0.05)
    )
    return [[text[0], len(text)] for text in found[:-1]]


@app.get("/impatient/{locked:int}")
async def impatient(locked: int) -> object:
    async def answered() -> object:
        return await slow(locked)

    waits = [asyncio.ensure_future(answered()), asyncio.ensure_future(asyncio.wait_for(never(), 0.05))]
    done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    assert all(isinstance(won.exception(), asyncio.TimeoutError) for won in done)
    for loser in pending:
        loser.cancel()
    return {"done": len(done), "cancelled": len(pending), "then": await query("select 7").value()}


async def never() -> Message | None:
    return await channel("never").next()


@app.get("/fails/{locked:int}")
async def fails(locked: int) -> object:
    """When one fails, its siblings are given up, as a task group does (which Python 3.10 does not have)."""
    tasks = [asyncio.ensure_future(one(wait)) for wait in (slow(locked), query("select nothing from nowhere"))]
    try:
        await asyncio.gather(*tasks)
    except QueryError as error:
        for task in tasks:
            task.cancel()
        return {"sqlstate": error.sqlstate, "effect": error.effect}
    return "both"


async def one(wait: Any) -> Any:
    return await wait


@app.get("/message-and-timer/{name}")
async def message_and_timer(name: str) -> object:
    message, _ = await asyncio.gather(channel(name).next(timeout=20), after(0.1))
    return message.text if message else None


@app.get("/timer-and-message/{name}")
async def timer_and_message(name: str) -> object:
    """The request's own wait is over first."""
    _, message = await asyncio.gather(after(0.2), channel(name).next(timeout=20))
    return message.text if message else None


app.get("/news", channel("news").next(timeout=20))


@app.get("/block/{seconds:float}")
async def block(seconds: float) -> str:
    """Nothing else of this worker goes on meanwhile."""
    time.sleep(seconds)
    return "blocked"


@app.get("/two-messages/{name}")
async def two_messages(name: str) -> object:
    messages = await asyncio.gather(channel(f"{name}/a").next(timeout=20), channel(f"{name}/b").next(timeout=20))
    return [message.text if message else None for message in messages]


@app.get("/twice/{name}")
async def twice(name: str) -> object:
    """Both end by the same message."""
    messages = await asyncio.gather(channel(name).next(timeout=20), channel(name).next(timeout=20))
    return [message.text if message else None for message in messages]


@app.get("/left-behind/{locked:int}")
async def left_behind(locked: int) -> object:
    """Answers while tasks of it still wait."""
    tasks = [asyncio.ensure_future(one(slow(locked))), asyncio.ensure_future(never())]
    await after(0.05)
    return {"left": len([task for task in tasks if not task.done()])}


@app.get("/parallel-statements")
async def parallel_statements() -> object:
    try:
        async with transaction() as t:
            await asyncio.gather(t.query("select 1"), t.query("select 2"))
    except WaitError as error:
        return {"error": str(error), "then": await query("select 7").value()}
    return "interleaved"


@app.get("/beside-a-transaction")
async def beside_a_transaction() -> object:
    async def within() -> object:
        async with transaction() as t:
            first = await t.query("select 1").value()
            await after(0.02)
            return [first, await t.query("select 2").value()]

    return await asyncio.gather(within(), query("select 3").value(), within_not())


async def within_not() -> object:
    await after(0.01)
    return await query("select 4").value()


@app.get("/too-many")
async def too_many() -> object:
    found = await asyncio.gather(*(after(0.2) for _ in range(102)), return_exceptions=True)
    refused = [error for error in found if error is not None]
    return {"refused": len(refused), "why": str(refused[0])}


@app.job
async def add(numbers: list[int]) -> int:
    found = await asyncio.gather(*(query("select $1 + 0", number).value() for number in numbers))
    return sum(found)


@app.get("/job")
async def job() -> object:
    """Jobs that are stored while other things are awaited."""

    async def stored(number: int) -> int | None:
        handle = await add.enqueue([number, number])
        return await handle.result(timeout=20)

    return await asyncio.gather(stored(1), query("select 5").value(), stored(2), after(0.02))


@app.post("/impatient")
async def impatient_after_enqueuing() -> str:
    """Gives its wait up before the job is stored."""
    add.enqueue([1])
    try:
        await asyncio.wait_for(channel("nothing").next(), 0.05)
    except asyncio.TimeoutError:
        return "nothing"
    return "something"


@app.post("/impatient-task")
async def impatient_task_after_enqueuing() -> str:
    """The same for one of two waits."""
    add.enqueue([1])
    impatient = asyncio.wait_for(channel("nothing").next(), 0.05)
    _, second = await asyncio.gather(after(0.01), impatient, return_exceptions=True)
    return "nothing" if isinstance(second, asyncio.TimeoutError) else "something"


# Waits of plain functions: no worker is busy meanwhile


def told(found: list[Any]) -> object:
    return {"found": found}


async def told_by_a_coroutine(found: First[Any]) -> object:
    return {"index": found.index, "value": found.value.text if isinstance(found.value, Message) else found.value}


@app.get("/plain/all-of/{locked:int}")
def plain_all_of(locked: int) -> Wait:
    return all_of(query("select 1").value(), slow(locked), query("select 3 as n").one()).then(told)


@app.get("/plain/first-of/{locked:int}/{seconds:float}")
def plain_first_of(locked: int, seconds: float) -> Wait:
    return first_of(slow(locked), after(seconds), channel("plain").next()).then(told_by_a_coroutine)


@app.get("/plain/returned/{locked:int}")
def plain_returned(locked: int) -> Wait:
    return all_of(slow(locked), channel("plain").next(timeout=0), query("select 1 as n"))


@app.get("/plain/failing/{locked:int}")
def plain_failing(locked: int) -> Wait:
    return all_of(slow(locked), query("select nothing from nowhere")).then(told)


@app.get("/plain/large/{count:int}")
def plain_large(count: int) -> Wait:
    return all_of(*(query("select $1 as text", str(n) * 100_000).value() for n in range(count))).then(lengths)


def lengths(found: list[str]) -> object:
    return [[text[0], len(text)] for text in found]


app.get("/plain/route", first_of(channel("plain").next(), after(20)))


@app.job
def adds(number: int) -> Wait:
    return all_of(query("select $1 + 1", number).value(), after(0.02)).then(total)


def total(found: tuple[int, None]) -> int:
    return found[0]


@app.get("/plain/jobs")
def plain_jobs() -> Wait:
    return all_of(*(adds.enqueue(n).result(timeout=20) for n in range(3))).then(told)
