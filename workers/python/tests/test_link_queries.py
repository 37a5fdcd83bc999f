"""Queries and transactions over a link: which frames they cost, and which are not written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conftest import Core
from parkade._wire import frames as f

SOURCE = """
import asyncio
from parkade import App, Status, query, transaction

app = App()

@app.get("/awaited")
async def awaited():
    return {"price": str(await query("select $1", 1).value())}

@app.get("/transaction")
async def block():
    async with transaction(isolation="serializable") as t:
        await t.query("update lots set sold = $1", True)
    return Status(204)

@app.get("/pause")
async def pause():
    async with transaction() as t:
        app.paused = asyncio.Event()
        await app.paused.wait()

@app.get("/statement-in-time")
async def statement_in_time():
    try:
        async with transaction() as t:
            await asyncio.wait_for(t.query("slow"), 0.01)
    except asyncio.TimeoutError:
        return "late"

@app.get("/begin-in-time")
async def begin_in_time():
    async def slow():
        async with transaction():
            pass
    try:
        await asyncio.wait_for(slow(), 0.01)
    except asyncio.TimeoutError:
        return "late"

@app.get("/called")
async def called():
    return query("select 1").one().then(show, title="t")

def show(row, title):
    return {title: row}
"""

PLAIN = """
from parkade import App, query

app = App()

@app.get("/called")
def called():
    return query("select 1").value().then(show, title="t")

def show(value, title):
    return {title: repr(value)}
"""

AWAITED, TRANSACTION, PAUSE, STATEMENT_IN_TIME, BEGIN_IN_TIME, CALLED = range(6)
DONE = ["rows", [], "BEGIN", 0, b"null"]
UNPARKED = ["unparked"]
FAILED = ["failed", "no transaction", None, "there is none", "none", 500, "application", "there is no transaction"]


def started(core: Callable[..., Core], source: str = SOURCE) -> Core:
    link = core(source)
    link.ready()
    return link


def parked(link: Core, stream: int) -> list[Any]:
    name, at, park = link.next()
    assert (name, at) == ("PARK", stream)
    wait: list[Any] = park.wait
    return wait


def resume(link: Core, stream: int, outcome: list[Any]) -> None:
    link.send(f.RESUME, 0, [outcome, [stream]])


def test_an_awaited_query_is_one_park_and_one_resume(core: Callable[..., Core]) -> None:
    link = started(core)
    stream = link.request(AWAITED)
    assert parked(link, stream) == ["query", "select $1", [1], {"shape": "value"}]
    resume(link, stream, ["rows", [["price", "numeric"]], "SELECT", 1, b"1.10"])
    name, _, response = link.next()
    assert (name, response.body) == ("RESPONSE", b'{"price":"1.10"}')


def test_a_query_that_failed_is_an_error_with_its_status(core: Callable[..., Core]) -> None:
    link = started(core)
    stream = link.request(AWAITED)
    parked(link, stream)
    resume(link, stream, ["failed", "lost", None, "reset while: select $1", "unknown", 502, "server", "it broke"])
    _, _, response = link.next()
    assert (response.status, response.body) == (
        502,
        b'{"title":"Bad Gateway","status":502,"detail":"it broke","fault":"server","effect":"unknown"}',
    )


def test_a_transaction_is_a_park_for_each_of_its_parts(core: Callable[..., Core]) -> None:
    link = started(core)
    stream = link.request(TRANSACTION)
    waits = []
    for _ in range(3):
        waits.append(parked(link, stream))
        resume(link, stream, DONE)
    assert waits == [
        ["begin", {"isolation": "serializable"}],
        ["query", "update lots set sold = $1", [True], {"within": True}],
        ["commit", {}],
    ]
    assert link.names(1) == [f"RESPONSE {stream}"]


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_client_that_leaves_while_it_waits_costs_no_further_frame(core: Callable[..., Core], parts: int) -> None:
    link = started(core)
    stream = link.request(TRANSACTION)
    for part in range(parts):
        parked(link, stream)
        if part < parts - 1:
            resume(link, stream, DONE)
    link.send(f.CANCEL, stream, ["client_left"])
    another = link.request(AWAITED)
    assert link.names(1) == [f"PARK {another}"]


def test_a_client_that_leaves_while_the_handler_works_costs_only_the_closing_frame(core: Callable[..., Core]) -> None:
    link = started(core)
    stream = link.request(PAUSE)
    parked(link, stream)
    resume(link, stream, DONE)
    link.send(f.CANCEL, stream, ["client_left"])
    assert link.names(1) == [f"ERROR {stream}"]
    another = link.request(AWAITED)
    assert link.names(1) == [f"PARK {another}"]


def test_a_statement_that_is_given_up_is_unparked_and_its_transaction_rolled_back(core: Callable[..., Core]) -> None:
    link = started(core)
    stream = link.request(STATEMENT_IN_TIME)
    parked(link, stream)
    resume(link, stream, DONE)
    assert link.names(2) == [f"PARK {stream}", f"UNPARK {stream}"]
    resume(link, stream, UNPARKED)
    assert parked(link, stream) == ["rollback", {}]
    resume(link, stream, DONE)
    name, _, response = link.next()
    assert (name, response.body) == ("RESPONSE", "late")


@pytest.mark.parametrize("begun", [UNPARKED, DONE])
def test_a_begin_that_is_given_up_may_have_begun(core: Callable[..., Core], begun: list[Any]) -> None:
    link = started(core)
    stream = link.request(BEGIN_IN_TIME)
    assert link.names(2) == [f"PARK {stream}", f"UNPARK {stream}"]
    resume(link, stream, begun)
    assert parked(link, stream) == ["rollback", {}]
    resume(link, stream, DONE if begun is DONE else FAILED)
    name, _, response = link.next()
    assert (name, response.body) == ("RESPONSE", "late")


@pytest.mark.parametrize(
    ("source", "route", "body", "answer"),
    [(SOURCE, CALLED, b'{"a":1}', b'{"t":{"a":1}}'), (PLAIN, 0, b"1.10", b'{"t":"Decimal(\'1.10\')"}')],
)
def test_a_function_gets_the_shape_that_was_asked_for(
    core: Callable[..., Core], source: str, route: int, body: bytes, answer: bytes
) -> None:
    link = started(core, source)
    stream = link.request(route)
    _, _, park = link.next()
    kind = "int4" if route else "numeric"
    outcome = ["rows", [["a", kind]], "SELECT", 1, body]
    called = link.number()
    link.send(f.RESUME, 0, [outcome, [called], park.then.function, [park.then.state]])
    name, at, response = link.next()
    assert (stream < called, name, at, response.body) == (True, "RESPONSE", called, answer)
