"""Coroutines that share a task until they wait: none of them may notice the others."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
import pytest

from conftest import Core, StartCore
from parkade._link.answers import Answer, Coming
from parkade._link.exchange import Exchange
from parkade._link.runners import Runners
from parkade._session.session import Session
from parkade._wire import frames as f
from parkade._wire.ready import Application

SOURCE = """
import asyncio, contextvars, sys
from parkade import App, WaitError, after, channel

app = App()
variable = contextvars.ContextVar("variable", default="unset")
told = []

def task(): return asyncio.current_task()

@app.get("/named")
async def named(): return task().get_name()

@app.get("/waits")
async def waits():
    before = task()
    await asyncio.sleep(0)
    return before.get_name() if before is task() else "another task"

@app.get("/sets")
async def sets():
    variable.set("set")
    return variable.get()

@app.get("/sees")
async def sees(): return variable.get()

@app.get("/sets_and_waits")
async def sets_and_waits():
    token = variable.set("kept")
    await asyncio.sleep(0)
    seen = variable.get()
    variable.reset(token)
    return seen + ", " + variable.get()

class Awkward:
    def __eq__(self, other): raise ValueError("compare the parts")

@app.get("/sets_awkward")
async def sets_awkward():
    variable.set(Awkward())
    variable.set(Awkward())
    return "set"

@app.get("/cancels_itself")
async def cancels_itself():
    task().cancel()
    return "cancelled itself"

@app.get("/takes_it_back")
async def takes_it_back():
    task().cancel()
    if sys.version_info >= (3, 11): task().uncancel()
    return "took it back"

@app.get("/cancels_itself_and_waits")
async def cancels_itself_and_waits():
    task().cancel()
    await asyncio.sleep(0)

@app.get("/raises_cancelled")
async def raises_cancelled(): raise asyncio.CancelledError

async def cancelled():
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    await task

@app.get("/awaits_a_cancelled_task")
async def awaits_a_cancelled_task(): await cancelled()

@app.get("/raises_generator_exit")
async def raises_generator_exit(): raise GeneratorExit

@app.get("/streams_and_is_cancelled")
async def streams_and_is_cancelled():
    yield "a"
    await cancelled()

@app.get("/forever")
async def forever(): await asyncio.Event().wait()

@app.get("/too_late")
async def too_late():
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 0.01)
    except asyncio.TimeoutError:
        return "too late"

@app.get("/timeout")
async def timeout():
    try:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()
    except TimeoutError:
        return f"too late, {task().cancelling()}"

@app.get("/group")
async def group():
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(60))
            group.create_task(fail())
    except Exception as errors:
        return f"{len(errors.exceptions)} failed"

async def fail(): raise ValueError

@app.get("/child_waits")
async def child_waits():
    outcome = await asyncio.gather(_wait(), asyncio.sleep(0, "slept"))
    return outcome[1]

async def _wait(): await after(1)

@app.get("/leaves_a_child")
async def leaves_a_child():
    asyncio.get_running_loop().child = asyncio.create_task(_stray())
    return "left"

async def _stray():
    try:
        await after(1)
    except WaitError:
        told.append("no request to wait in")

@app.get("/calls_back")
async def calls_back():
    task().add_done_callback(lambda task: told.append("called back"))
    return "done"

@app.get("/told")
async def tell():
    await asyncio.sleep(0.01)
    return ", ".join(told)

@app.get("/exits")
async def exits(): sys.exit(3)

class Quit(BaseException): pass

@app.get("/quits")
async def quits(): raise Quit

@app.get("/interrupts")
async def interrupts(): raise KeyboardInterrupt

@app.get("/streams")
async def streams():
    yield "a"
    yield variable.get()

@app.get("/parks_by_an_eager_child")
async def parks_by_an_eager_child():
    child = asyncio.Task(_wait(), loop=asyncio.get_running_loop(), eager_start=True)
    return "parked meanwhile"
"""
ROUTES = [line.split('"/')[1].split('"')[0] for line in SOURCE.splitlines() if line.startswith("@app.get")]


def at(*names: str) -> list[int]:
    return [ROUTES.index(name) for name in names]


@pytest.fixture
def worker(core: StartCore) -> Core:
    started = core(SOURCE)
    started.ready()
    return started


def test_coroutines_that_never_wait_share_a_task(worker: Core) -> None:
    assert len(set(worker.bodies(*at("named", "named", "named")))) == 1


def test_a_coroutine_that_waits_has_a_task_of_its_own_from_its_beginning(worker: Core) -> None:
    names = worker.bodies(*at("waits", "named", "waits", "waits"))
    assert "another task" not in names
    assert len({names[0], names[2], names[3]}) == 3
    assert names[1] != names[0]


@pytest.mark.parametrize(
    ("routes", "bodies"),
    [
        (["sets", "sees"], ["set", "unset"]),
        (["sets", "sets_and_waits", "sees"], ["set", "kept, unset", "unset"]),
        (["sets_and_waits", "sets", "sets_and_waits", "sees"], ["kept, unset", "set", "kept, unset", "unset"]),
        (["sets_awkward", "sees"], ["set", "unset"]),
        (["cancels_itself", "waits", "sees"], ["cancelled itself", None, "unset"]),
        (["takes_it_back", "waits", "sees"], ["took it back", None, "unset"]),
        (["too_late", "too_late", "sees"], ["too late", "too late", "unset"]),
        (["calls_back", "told"], ["done", "called back"]),
    ],
    ids=lambda names: " ".join(str(name) for name in names),
)
def test_nothing_that_a_request_does_to_its_task_reaches_another(
    worker: Core, routes: list[str], bodies: list[str | None]
) -> None:
    found = worker.bodies(*at(*routes))
    assert [body if wanted else None for body, wanted in zip(found, bodies, strict=True)] == bodies


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.timeout and TaskGroup came with 3.11")
def test_timeouts_and_groups_cancel_the_request_that_they_belong_to(worker: Core) -> None:
    bodies = worker.bodies(*at("group", "sees", "timeout", "group", "timeout"))
    assert bodies == ["1 failed", "unset", "too late, 0", "1 failed", "too late, 0"]


OWN_CANCELLING = ["raises_cancelled", "cancels_itself_and_waits", "awaits_a_cancelled_task", "raises_generator_exit"]


@pytest.mark.parametrize("name", OWN_CANCELLING)
def test_what_the_core_has_not_cancelled_fails_with_a_traceback_and_the_next_is_answered(
    worker: Core, name: str
) -> None:
    first, second = worker.requests(*at(name, "waits"))
    told = {stream: (name, payload) for name, stream, payload in (worker.next(), worker.next())}
    assert (told[first][0], told[first][1].reason) == ("ERROR", "application")
    assert f"in {name}" in told[first][1].text
    assert told[second][0] == "RESPONSE"
    assert worker.bodies(*at("sees")) == ["unset"]


def test_a_stream_that_is_cancelled_by_itself_is_broken_off(worker: Core) -> None:
    worker.requests(*at("streams_and_is_cancelled"))
    assert worker.names(2) == ["RESPONSE+ 1", "DATA+ 1"]
    name, _, error = worker.next()
    assert (name, error.reason) == ("ERROR", "application")
    assert "in streams_and_is_cancelled" in error.text


def test_the_core_cancels_the_request_that_it_names(worker: Core) -> None:
    first, _, third = worker.requests(*at("forever", "sees", "forever"))
    assert worker.names(1) == ["RESPONSE 2"]
    for stream in (third, first):
        worker.send(f.CANCEL, stream, ["client_left"])
        assert worker.names(1) == [f"ERROR {stream}"]
    assert worker.bodies(*at("sees")) == ["unset"]


def test_a_task_of_a_request_waits_for_that_request(worker: Core) -> None:
    _, second, third = worker.requests(*at("named", "child_waits", "child_waits"))
    assert sorted(worker.names(3)) == [f"PARK {second}", f"PARK {third}", "RESPONSE 1"]
    worker.send(f.RESUME, 0, [["elapsed"], [third]])
    assert worker.names(1) == [f"RESPONSE {third}"]
    worker.send(f.RESUME, 0, [["elapsed"], [second]])
    assert worker.names(1) == [f"RESPONSE {second}"]


def test_a_task_that_outlives_its_request_cannot_wait_in_another(worker: Core) -> None:
    worker.requests(*at("leaves_a_child", "forever"))
    assert worker.names(1) == ["RESPONSE 1"]
    assert worker.bodies(*at("told")) == ["no request to wait in"]


def test_a_coroutine_that_exits_or_quits_takes_no_other_with_it(worker: Core) -> None:
    worker.requests(*at("exits", "sees", "quits", "sees", "waits", "sees"))
    assert sorted(worker.names(6)) == ["ERROR 3", *(f"RESPONSE {stream}" for stream in (1, 2, 4, 5, 6))]
    assert worker.bodies(*at("sees")) == ["unset"]


def test_an_interrupt_ends_the_worker(worker: Core) -> None:
    worker.requests(*at("interrupts"))
    worker.ended()  # its code differs: an exception in a task's first step, or in the loop's own callback
    assert worker.process.returncode is not None


@pytest.mark.parametrize("name", ["waits", "named", "streams"])
def test_many_are_answered_whatever_the_last_ones_did(worker: Core, name: str) -> None:
    for names in (["waits"] * 50, [name] * 50, ["waits", name] * 25, ["sets", "waits", name] * 10):
        streams = worker.requests(*at(*names))
        closed = [stream for kind, stream, _ in iter_frames(worker, len(names))]
        assert sorted(closed) == streams


def iter_frames(worker: Core, count: int) -> list[tuple[str, int, Any]]:
    """So many closing frames."""
    closing: list[tuple[str, int, Any]] = []
    while len(closing) < count:
        frame = worker.next()
        closing += [] if frame[0].endswith("+") else [frame]
    return closing


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_an_answer_is_held_back_while_a_task_of_the_request_has_it_parked(worker: Core) -> None:
    (stream,) = worker.requests(*at("parks_by_an_eager_child"))
    assert worker.names(2) == [f"PARK {stream}", f"UNPARK {stream}"]  # nobody wants what it waits for
    assert worker.bodies(*at("sees")) == ["unset"]
    worker.send(f.RESUME, 0, [["unparked"], [stream]])
    assert worker.next()[2].body == "parked meanwhile"


# Runners without a process, where nothing that a core can do leads


class Link:
    """Keeps what is written."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.written: list[bytes] = []
        self.put = self.written.append

    def park(self, stream: int, park: bytes) -> None:
        raise AssertionError("nothing parks here")

    def unpark(self, stream: int) -> None:
        raise NotImplementedError

    def awaiting(self, stream: int) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def flush(self) -> None:
        pass


def test_what_is_cancelled_while_it_is_queued_does_not_begin() -> None:
    ran: list[int] = []

    async def answer(stream: int) -> Answer:
        ran.append(stream)
        return msgspec.msgpack.encode([200, None, None])

    async def finish(exchange: Exchange, answer: Answer) -> None:
        raise AssertionError("they are all answered at once")

    async def main() -> list[bytes]:
        session = Session()
        link = Link(asyncio.get_running_loop())
        runners = Runners(link, session, finish)
        session.receive(f.frame(f.HELLO, 0, msgspec.msgpack.encode([1, 1, 0, {}])))
        session.ready(8, Application(interface="native", concurrent=True))
        for stream in (1, 2, 3):
            payload = msgspec.msgpack.encode([0, [], None, b"", ["GET", "/", "", [], "", "http", "1.1"]])
            session.receive(f.frame(f.REQUEST, stream, payload))
            coming: Coming = answer(stream)
            runners.add((stream, coming, False))
        session.receive(f.frame(f.CANCEL, 2, msgspec.msgpack.encode(["client_left"])))
        runners.start()
        await asyncio.sleep(0)
        assert runners.exchanges == {}
        return link.written

    written = asyncio.run(main())
    assert ran == [1, 3]
    frames = [frame for data in written for frame in f.Decoder().feed(data)]
    assert [f"{f.NAMES[kind]} {stream}" for kind, _, stream, _ in frames] == ["RESPONSE 1", "ERROR 2", "RESPONSE 3"]


ASGI = """
import asyncio

async def app(scope, receive, send):
    if scope["type"] == "http":
        name = asyncio.current_task().get_name().encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": name})
    else:
        raise NotImplementedError  # no lifespan
"""


@pytest.mark.usefixtures("implementation")
def test_requests_of_asgi_that_never_wait_share_a_task(core: StartCore) -> None:
    """What the worker keeps for each of them leaves no trace in it: a task for each would cost 2 to 3 µs."""
    link = core(ASGI, "application:app")
    link.ready()
    names = link.bodies(*[None] * 20)
    assert len(set(names)) == 1, names
