"""A worker with coroutines, as a process under a scripted core."""

from __future__ import annotations

import signal

import msgspec
import pytest

from conftest import Core, StartCore
from parkade._limits import CREDIT_CONCURRENT, WINDOW
from parkade._wire import frames as f
from parkade._wire import payloads as p

SOURCE = """
import asyncio
from parkade import App, after, channel, query

app = App()

@app.on_start
async def start(): print("started")

@app.on_stop
async def stop(): print("stopped")

@app.get("/hola/{name}")
async def hola(name: str): return f"Hola {name}"

@app.get("/plain/{name}")
def plain(name: str): return f"Hola {name}"

@app.get("/compare")
async def compare():
    await after(0.5)
    return {"bid": await channel("auction/7").next(timeout=5)}

@app.get("/cancelled")
async def cancelled():
    try:
        await channel("never").next()
    except asyncio.CancelledError:
        print("cancelled")
        raise

@app.get("/own")
async def own():
    waiting = asyncio.ensure_future(_wait())
    for _ in range(3):
        await asyncio.sleep(0)  # until it has parked
    waiting.cancel()
    return "gave up"

@app.get("/twice")
async def twice():
    await asyncio.gather(_wait(), _wait())
    return "both"

async def _wait(): await after(1)

@app.get("/stream")
async def stream():
    try:
        while True:
            yield b"x" * 65_536
    finally:
        print("closed")

@app.get("/late")
async def late():
    try:
        yield "a"
        await after(1)
        yield "b"
    finally:
        print("late")

@app.get("/forever")
async def forever():
    await asyncio.Event().wait()

@app.get("/then")
def then(): return after(1).then(done, n=7)

async def done(n: int):
    await after(n)
    return str(n)

@app.get("/impatient")
async def impatient():
    try:
        await asyncio.wait_for(_never(), 0.01)
    except asyncio.TimeoutError:
        await after(1)
    return "patient at last"

async def _never(): await channel("never").next()

@app.get("/large")
async def large(): return b"x" * 400_000

@app.get("/large-plain")
def large_plain(): return b"x" * 400_000

@app.get("/race")
async def race():
    wait, sleep = asyncio.ensure_future(_never()), asyncio.ensure_future(asyncio.sleep(0.01))
    done, pending = await asyncio.wait({wait, sleep}, return_when=asyncio.FIRST_COMPLETED)
    for loser in pending:
        loser.cancel()
    await after(1)
    return "another won"

@app.get("/stray")
async def stray():
    async def strays():
        try:
            await channel("never").next()
        finally:
            print("the stray ends")
    asyncio.ensure_future(strays())
    await asyncio.Event().wait()

class Foreign(BaseException):
    pass

@app.get("/foreign")
async def foreign():
    raise Foreign("a class of its own")

@app.get("/query")
async def rows():
    try:
        return {"sum": sum(row["n"] for row in await query("select n from bids"))}
    finally:
        print("the query ends")

enough = asyncio.Event()

@app.get("/given-up")
async def given_up():
    waiting = asyncio.ensure_future(_rows())
    await enough.wait()
    waiting.cancel()
    return "gave up"

async def _rows(): await query("select n from bids")

@app.get("/enough")
async def say_enough(): enough.set()

@app.get("/deaf")
async def deaf():
    while True:
        try:
            await asyncio.gather(listens_to_nobody(), asyncio.sleep(60))
        except asyncio.CancelledError:
            print("goes on")

async def listens_to_nobody():
    async for piece in pieces(): pass

async def pieces():
    await asyncio.create_task(deepest())
    yield

async def deepest():
    await asyncio.Event().wait()

@app.get("/impatient-task")
async def impatient_task():
    first = asyncio.ensure_future(_wait())
    await asyncio.sleep(0)
    try:
        await asyncio.wait_for(_never(), 0.01)
    except asyncio.TimeoutError:
        pass
    await first
    return "impatient"

@app.get("/left")
async def left():
    waiting = asyncio.ensure_future(_wait())
    await asyncio.sleep(0)
    asyncio.ensure_future(_never())
    await waiting
    return "left"

@app.get("/rows-of-two")
async def rows_of_two():
    _, *rows = await asyncio.gather(after(1), query("select n from bids"), query("select n from bids"))
    return f"{[row['n'] for each in rows for row in each]}"

@app.get("/leaves")
async def leaves():
    yield "a"
    asyncio.ensure_future(_never())
    await asyncio.sleep(0)

@app.get("/breaks")
async def breaks():
    yield "a"
    asyncio.ensure_future(_never())
    await asyncio.sleep(0)
    raise ValueError("breaks")

@app.job
def tidy(): pass

@app.get("/stores")
async def stores():
    yield "a"
    await tidy.enqueue()
"""
HOLA, PLAIN, COMPARE, CANCELLED, OWN, TWICE, STREAM, LATE, FOREVER, THEN, IMPATIENT, LARGE, LARGE_PLAIN = range(13)
RACE, STRAY, FOREIGN, QUERY, GIVEN_UP, ENOUGH, DEAF, IMPATIENT_TASK, LEFT, ROWS_OF_TWO = range(13, 23)
LEAVES, BREAKS, STORES = range(23, 26)
B = 1 << 31
"""The number of the first branch."""
ROWS = [["rows", [["n", "int4"]], "SELECT", 2, None]]


def test_coroutines_and_plain_functions_are_answered(core: StartCore) -> None:
    worker = core(SOURCE)
    ready = worker.ready()
    kinds = {route.name: route.kind for route in ready.application.routes}
    assert (ready.credit, ready.application.concurrent) == (CREDIT_CONCURRENT, True)
    assert (kinds["hola"], kinds["plain"], kinds["stream"]) == ("async", "sync", "async")
    assert worker.answer(HOLA, "Anna").body == "Hola Anna"
    assert worker.answer(PLAIN, "Anna").body == "Hola Anna"
    assert worker.end() == (0, "started\nstopped\n")


def test_a_wait_that_is_awaited_parks_and_goes_on(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(COMPARE)
    name, _, park = worker.next()
    assert (name, park.wait) == ("PARK", ["timer", 0.5])
    assert worker.answer(HOLA, "meanwhile").body == "Hola meanwhile"
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    name, _, park = worker.next()
    assert (name, park.wait) == ("PARK", ["next", "auction/7", {"timeout": 5}])
    worker.send(f.RESUME, 0, [["message", "a.1", "application/json", b'{"amount": 5}', False], [stream]])
    assert worker.next()[2].body == b'{"bid":{"amount":5}}'


def test_one_resume_wakes_many_coroutines(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    streams = [worker.request(COMPARE) for _ in range(3)]
    assert worker.names(3) == [f"PARK {stream}" for stream in streams]
    worker.send(f.RESUME, 0, [["elapsed"], streams])
    assert worker.names(3) == [f"PARK {stream}" for stream in streams]
    worker.send(f.RESUME, 0, [["timeout", "a.0"], streams])
    assert [worker.next()[2].body for _ in streams] == [b'{"bid":null}'] * 3


def test_a_query_that_is_awaited_goes_on_when_its_rows_are_complete(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(QUERY)
    name, _, park = worker.next()
    assert (name, park.wait) == ("PARK", ["query", "select n from bids", [], {}])
    worker.send(f.RESUME, 0, [*ROWS, [stream]], f.MORE)
    worker.send(f.DATA, stream, b'[{"n":7},', f.MORE)
    assert worker.answer(HOLA, "meanwhile").body == "Hola meanwhile"
    worker.send(f.DATA, stream, b'{"n":8}]')
    assert worker.next()[2].body == b'{"sum":15}'


def test_a_client_that_leaves_while_its_rows_come_cancels_its_coroutine(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(QUERY)
    assert worker.names(1) == [f"PARK {stream}"]
    worker.send(f.RESUME, 0, [*ROWS, [stream]], f.MORE)
    worker.send(f.DATA, stream, b'[{"n":7},', f.MORE)
    worker.send(f.CANCEL, stream, ["client_left"])
    assert worker.names(1) == [f"ERROR {stream}"]
    assert worker.answer(HOLA, "x").body == "Hola x"
    assert worker.end()[1] == "started\nthe query ends\nstopped\n"


def test_a_query_that_is_given_up_while_its_rows_come_lets_them_come(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(GIVEN_UP)
    assert worker.names(1) == [f"PARK {stream}"]
    worker.send(f.RESUME, 0, [*ROWS, [stream]], f.MORE)
    worker.send(f.DATA, stream, b'[{"n":7}', f.MORE)
    worker.answer(ENOUGH)
    worker.send(f.DATA, stream, b"]")
    name, at, response = worker.next()
    assert (name, at, response.body) == ("RESPONSE", stream, "gave up")


def test_a_client_that_leaves_cancels_its_coroutine(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    parked, running = worker.request(CANCELLED), worker.request(FOREVER)
    assert worker.names(1) == [f"PARK {parked}"]
    worker.send(f.CANCEL, parked, ["client_left"])
    worker.send(f.CANCEL, running, ["client_left"])
    name, stream, error = worker.next()  # only the one that is held owes a closing frame
    assert (name, stream, error.reason) == ("ERROR", running, "cancelled")
    assert worker.answer(HOLA, "x").body == "Hola x"
    assert worker.end()[1] == "started\ncancelled\nstopped\n"


@pytest.mark.parametrize("outcome", [["unparked"], ["elapsed"]])
def test_a_wait_that_its_coroutine_gives_up_is_taken_back(core: StartCore, outcome: list[str]) -> None:
    """RESUME comes: because of that, or it was on its way."""
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(OWN)
    assert worker.names(2) == [f"PARK {stream}", f"UNPARK {stream}"]
    assert worker.answer(HOLA, "x").body == "Hola x"
    worker.send(f.RESUME, 0, [outcome, [stream]])
    assert worker.next()[2].body == "gave up"


def test_a_coroutine_whose_wait_took_too_long_waits_for_something_else(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(IMPATIENT)
    assert worker.names(2) == [f"PARK {stream}", f"UNPARK {stream}"]
    worker.send(f.RESUME, 0, [["unparked"], [stream]])
    assert worker.names(1) == [f"PARK {stream}"]
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.next()[2].body == "patient at last"


def test_tasks_of_a_request_wait_at_the_same_time(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(TWICE)
    assert worker.names(2) == [f"PARK {stream}", f"PARK {B}"]
    worker.send(f.RESUME, 0, [["elapsed"], [B]])
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.next()[2].body == "both"


def test_a_request_stays_parked_until_its_last_wait_is_over(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(TWICE)
    assert worker.names(2) == [f"PARK {stream}", f"PARK {B}"]
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    kind, at, park = worker.next()
    assert (kind, at, park.wait) == ("PARK", stream, ["branches"])
    worker.send(f.RESUME, 0, [["elapsed"], [B]])
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.next()[2].body == "both"


def test_a_core_that_refuses_to_wait_for_the_last_ones_is_not_asked_again(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(TWICE)
    assert worker.names(2) == [f"PARK {stream}", f"PARK {B}"]
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.names(1) == [f"PARK {stream}"]
    worker.send(f.RESUME, 0, [["refused", "no room", 503], [stream]])
    assert worker.answer(HOLA, "x").body == "Hola x"
    worker.send(f.RESUME, 0, [["elapsed"], [B]])
    assert worker.next()[2].body == "both"


def test_a_request_is_not_parked_for_branches_whose_rows_are_arriving(core: StartCore) -> None:
    """They are over for the core, which would end such a wait at once, again and again."""
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(ROWS_OF_TWO)
    assert worker.names(3) == [f"PARK {stream}", f"PARK {B}", f"PARK {B + 1}"]
    follow = ["rows", [["n", "int4"]], "SELECT", 1, None]
    worker.send(f.RESUME, 0, [follow, [B]], f.MORE)
    worker.send(f.DATA, B, b"[", f.MORE)
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.names(1) == [f"PARK {stream}"], "for the other one"
    worker.send(f.RESUME, 0, [follow, [B + 1]], f.MORE)
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    worker.send(f.DATA, B, b'{"n":1}]')
    worker.send(f.DATA, B + 1, b'[{"n":2}]')
    name, _, answer = worker.next()
    assert (name, answer.body) == ("RESPONSE", "[1, 2]")
    assert worker.said.count(f"PARK {stream}") == 2


def test_a_task_that_is_cancelled_withdraws_its_own_wait(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(IMPATIENT_TASK)
    assert worker.names(3) == [f"PARK {stream}", f"PARK {B}", f"UNPARK {B}"]
    worker.send(f.RESUME, 0, [["unparked"], [B]])
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.next()[2].body == "impatient"


def test_the_waits_that_are_left_end_with_the_answer(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(LEFT)
    assert worker.names(2) == [f"PARK {stream}", f"PARK {B}"]
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.names(2) == [f"PARK {stream}", f"UNPARK {B}"]
    worker.send(f.RESUME, 0, [["unparked"], [B]])
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.next()[2].body == "left"


def test_a_request_that_is_cancelled_while_it_waits_for_several_things_is_closed_at_once(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(TWICE)
    assert worker.names(2) == [f"PARK {stream}", f"PARK {B}"]
    worker.send(f.CANCEL, stream, ["client_left"])
    again = worker.request(TWICE)
    assert worker.names(2) == [f"PARK {again}", f"PARK {B + 1}"], "nothing is said of the branch"


def test_what_lost_a_race_does_not_keep_its_request_from_waiting_for_something_else(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(RACE)
    assert worker.names(2) == [f"PARK {stream}", f"UNPARK {stream}"]
    worker.send(f.RESUME, 0, [["unparked"], [stream]])
    assert worker.names(1) == [f"PARK {stream}"]
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.next()[2].body == "another won"


def test_a_task_that_a_request_has_started_ends_with_it(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(STRAY)
    assert worker.names(1) == [f"PARK {stream}"]
    worker.send(f.CANCEL, stream, ["client_left"])
    assert worker.answer(HOLA, "x").body == "Hola x"
    assert worker.end()[1] == "started\nthe stray ends\nstopped\n"


def test_what_is_no_exception_fails_its_request_only(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(FOREIGN)
    name, at, error = worker.next()
    assert (name, at, error.reason) == ("ERROR", stream, "application")
    assert "class of its own" in error.text
    assert worker.answer(HOLA, "x").body == "Hola x"


def test_all_that_a_hook_publishes_at_the_end_is_told(core: StartCore) -> None:
    worker = core(SOURCE.replace('print("stopped")', '[channel("end").publish("x" * 100_000) for _ in range(50)]'))
    worker.ready()
    worker.send(f.GOODBYE, 0, ["stopping", ""])
    told = [name for name, _, _ in iter(worker.next, ("END", 0, None))]
    assert told == ["PUBLISH"] * 50


@pytest.mark.parametrize(("route", "told"), [(LARGE, []), (LARGE_PLAIN, [1])])
def test_only_a_plain_function_is_put_aside_while_its_client_reads(
    core: StartCore, route: int, told: list[int]
) -> None:
    """A coroutine never occupied its worker: a credit for it would free the place of another request."""
    worker = core(SOURCE)
    worker.ready()
    worker.request(route)
    assert [worker.next()[0] for _ in range(5)] == ["RESPONSE+", *["DATA+"] * 4]
    worker.send(f.PING, 0, [7])
    frames = iter(worker.next, ("PONG", 0, p.Token(7)))
    assert [payload.delta for _, _, payload in frames] == told


def test_a_slow_reader_suspends_its_coroutine_only(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(STREAM)
    received = 0
    while received < WINDOW:
        _, _, payload = worker.next()
        received += len(payload) if isinstance(payload, bytes) else 0
    assert worker.answer(HOLA, "x").body == "Hola x"
    worker.send(f.WINDOW, stream, [1_000])
    assert len(worker.next()[2]) == 1_000
    worker.send(f.CANCEL, stream, ["client_left"])
    assert worker.names(1) == [f"ERROR {stream}"]
    assert worker.end()[1] == "started\nclosed\nstopped\n"


def begun(worker: Core, route: int) -> int:
    """The stream of an answer that has begun, and waits in a branch."""
    stream = worker.request(route)
    assert worker.names(3) == [f"RESPONSE+ {stream}", f"DATA+ {stream}", f"PARK {B}"]
    return stream


def test_an_answer_that_has_begun_waits_in_branches(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = begun(worker, LATE)
    worker.send(f.RESUME, 0, [["elapsed"], [B]])
    assert worker.names(2) == [f"DATA+ {stream}", f"DATA {stream}"]
    assert worker.end()[1] == "started\nlate\nstopped\n"


def test_a_client_that_leaves_while_its_answer_waits_ends_the_branch(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = begun(worker, LATE)
    worker.send(f.CANCEL, stream, ["client_left"])
    assert worker.names(1) == [f"ERROR {stream}"]
    assert worker.answer(HOLA, "x").body == "Hola x"
    assert worker.end()[1] == "started\nlate\nstopped\n"


@pytest.mark.parametrize(("route", "end"), [(LEAVES, "DATA"), (BREAKS, "ERROR")])
def test_an_answer_ends_when_what_its_tasks_wait_for_has_ended(core: StartCore, route: int, end: str) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = begun(worker, route)
    assert worker.names(1) == [f"UNPARK {B}"]
    assert worker.answer(HOLA, "x").body == "Hola x"
    worker.send(f.RESUME, 0, [["unparked"], [B]])
    assert worker.names(1) == [f"{end} {stream}"]


def test_the_handle_of_a_job_is_not_awaited_when_the_answer_has_begun(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(STORES)
    assert worker.names(4) == [f"RESPONSE+ {stream}", f"DATA+ {stream}", f"ENQUEUE {stream}", f"ERROR {stream}"]
    assert "the job is stored before the response ends" in worker.end()[1]


def test_a_function_behind_a_wait_may_be_a_coroutine(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.request(THEN)
    park = worker.next()[2]
    stream = worker.number()
    worker.send(f.RESUME, 0, [["elapsed"], [stream], park.then.function, [park.then.state]])
    assert worker.next()[2].wait == ["timer", 7]
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.next()[2].body == "7"


def test_a_request_cancelled_before_it_began_does_not_run(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    payload = msgspec.msgpack.encode([HOLA, ["x"], None, b"", ["GET", "/", "", [], "", "http", "1.1"]])
    cancel = f.frame(f.CANCEL, 1, msgspec.msgpack.encode(["client_left"]))
    worker.link.sendall(f.frame(f.REQUEST, 1, payload) + cancel)
    name, stream, error = worker.next()
    assert (name, stream, error.reason) == ("ERROR", 1, "cancelled")


def test_a_ping_is_answered_while_coroutines_wait(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.request(FOREVER)
    worker.send(f.PING, 0, [8])
    name, _, payload = worker.next()
    assert (name, payload.token) == ("PONG", 8)


def test_the_end_of_the_link_ends_the_worker_at_once(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.request(FOREVER)
    worker.link.close()
    assert worker.process.wait(20) == 0


def test_the_stack_of_a_coroutine_that_ignores_its_cancelling_names_its_lines(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.request(FOREVER)
    stream = worker.request(DEAF)
    worker.answer(HOLA, "x")
    worker.send(f.CANCEL, stream, ["deadline"])
    assert worker.process.stderr is not None
    lines = iter(worker.process.stderr.readline, "")
    assert any(line == "goes on\n" for line in lines)
    worker.process.send_signal(signal.SIGUSR1)
    assert any("thread 0x" in line for line in lines), "first those of the threads"
    assert any(line.startswith("A coroutine that was cancelled but is still running") for line in lines)
    worker.send(f.GOODBYE, 0, ["stopping", ""])
    names = [line.rpartition(" in ")[2].strip() for line in lines if "application.py" in line]
    assert names == ["deepest", "pieces", "listens_to_nobody", "deaf"]
