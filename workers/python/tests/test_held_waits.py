"""Plain code that waits in a transaction, over a link: branches of the stream that it holds, one by one or in threads.

Each test runs with the worker that runs one request at a time, and with one that has an event loop.
"""

from __future__ import annotations

from typing import Any

import pytest

from conftest import Core, StartCore
from parkade._limits import BRANCH_FIRST
from parkade._wire import frames as f

SOURCE = """
from parkade import App, transaction

app = App(concurrent=CONCURRENT)

def pay():
    with transaction(isolation="serializable") as t:
        return t.query("update lots set sold = $1", True).count

@app.get("/paid")
def paid():
    return pay()

@app.get("/fails")
def fails():
    with transaction() as t:
        raise LookupError

@app.get("/hello")
def hello():
    return "hello"

@app.get("/streamed")
def streamed():
    yield b"first"
    yield str(pay()).encode()

@app.get("/large")
def large():
    with transaction() as t:
        t.query("select $1", "x" * 2_000_000)
"""

PAID, FAILS, HELLO, STREAMED, LARGE = range(5)
DONE = ["rows", [], "UPDATE", 3, b"null"]


@pytest.fixture(params=[False, True], ids=["one by one", "in threads"])
def link(request: pytest.FixtureRequest, core: StartCore) -> Core:
    link = core(SOURCE.replace("CONCURRENT", str(request.param)))
    link.ready()
    return link


def held(link: Core, stream: int) -> tuple[int, list[Any]]:
    """The branch that it waits in, and for what."""
    name, branch, park = link.next()
    assert (name, branch >= BRANCH_FIRST, park.then.of) == ("PARK", True, stream)
    return branch, park.wait


def resume(link: Core, branch: int, outcome: list[Any]) -> None:
    link.send(f.RESUME, 0, [outcome, [branch]])


def begun(link: Core, route: int) -> int:
    """A stream whose transaction has begun."""
    stream = link.request(route)
    branch, wait = held(link, stream)
    assert wait[0] == "begin"
    resume(link, branch, DONE)
    return stream


def test_each_part_is_a_branch_of_the_stream(link: Core) -> None:
    for _ in range(3):
        stream = link.request(PAID)
        waits = []
        for _ in range(3):
            branch, wait = held(link, stream)
            waits.append(wait)
            resume(link, branch, DONE)
        assert waits == [
            ["begin", {"isolation": "serializable"}],
            ["query", "update lots set sold = $1", [True], {"within": True}],
            ["commit", {}],
        ]
        name, at, response = link.next()
        assert (name, at, response.body) == ("RESPONSE", stream, b"3")


def test_rows_may_follow(link: Core) -> None:
    stream = begun(link, PAID)
    branch, _ = held(link, stream)
    link.send(f.RESUME, 0, [["rows", [["n", "int4"]], "SELECT", 3, None], [branch]], f.MORE)
    link.send(f.DATA, branch, b'[{"n":1},', f.MORE)
    link.send(f.DATA, branch, b'{"n":2},{"n":3}]')
    branch, wait = held(link, stream)
    assert wait == ["commit", {}]
    resume(link, branch, DONE)
    assert link.names(1) == [f"RESPONSE {stream}"]


def test_requests_behind_it_are_answered_after_it_or_by_other_threads(link: Core) -> None:
    stream = link.request(PAID)
    branch, _ = held(link, stream)
    behind = link.request(HELLO)
    resume(link, branch, DONE)
    branch, _ = held(link, stream)
    resume(link, branch, DONE)
    branch, _ = held(link, stream)
    resume(link, branch, DONE)
    assert link.names(2) == [f"RESPONSE {stream}", f"RESPONSE {behind}"]


def test_an_exception_rolls_back(link: Core) -> None:
    stream = begun(link, FAILS)
    branch, wait = held(link, stream)
    assert wait == ["rollback", {}]
    resume(link, branch, DONE)
    name, at, response = link.next()
    assert (name, at, response.status) == ("RESPONSE", stream, 500)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_client_that_leaves_while_it_waits_costs_only_the_closing_frame(link: Core, parts: int) -> None:
    stream = link.request(PAID)
    for part in range(parts):
        branch, _ = held(link, stream)
        if part < parts - 1:
            resume(link, branch, DONE)
    link.send(f.CANCEL, stream, ["client_left"])
    name, at, error = link.next()
    assert (name, at, error.reason) == ("ERROR", stream, "cancelled")
    assert link.answer(HELLO).body == "hello"
    assert "Traceback" not in link.end()[1]


def test_a_stream_may_have_one_between_its_pieces(link: Core) -> None:
    stream = link.request(STREAMED)
    name, at, _ = link.next()
    assert (name, at) == ("RESPONSE+", stream)
    for _ in range(4):
        name, at, told = link.next()
        if name == "PARK":
            resume(link, at, DONE)
        else:
            assert (name, at, bytes(told)) == ("DATA+", stream, b"first")
    pieces = [link.next() for _ in range(2)]
    assert [(name, bytes(piece)) for name, _, piece in pieces] == [("DATA+", b"3"), ("DATA", b"")]


def test_a_statement_that_fits_no_frame_is_an_error_and_rolls_back(link: Core) -> None:
    stream = begun(link, LARGE)
    branch, wait = held(link, stream)
    assert wait == ["rollback", {}]
    resume(link, branch, DONE)
    name, at, response = link.next()
    assert (name, at, response.status) == ("RESPONSE", stream, 500)
    assert "a query has at most 1048576 bytes" in link.end()[1]
