"""Plain functions of an application with coroutines: they run in threads."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from conftest import Core, StartCore
from parkade._limits import WINDOW
from parkade._wire import frames as f

SOURCE = """
import asyncio, contextvars, os, pathlib, sys, threading, time
from parkade import App, Request, Job, WaitError, after, channel, transaction

app = App()
variable = contextvars.ContextVar("variable", default="unset")
GATES = pathlib.Path(__file__).parent

def gate(name):
    while not (GATES / name).exists(): time.sleep(0.005)

@app.on_start
async def start():
    variable.set("by start")

@app.get("/hola")
async def hola(): return "Hola"

@app.get("/plain")
def plain(name: str = ""): return threading.current_thread().name

@app.get("/waits/{name}")
def waits(name: str):
    gate(name)
    return name

@app.get("/dies")
def dies(): os._exit(7)

@app.get("/quits")
def quits(): raise GeneratorExit("a class of its own")

@app.get("/then")
def then(): return after(1).then(behind, n=7)

def behind(n: int):
    return f"{n} in {threading.current_thread().name}"

async def behind_too(n: int): return str(n)

@app.get("/then-async")
def then_async(): return after(1).then(behind_too, n=7)

@app.get("/publishes")
def publishes():
    channel("a").publish("1")
    thread = threading.Thread(target=lambda: channel("a").publish("2"))
    thread.start()
    thread.join()
    record.enqueue("x")
    asyncio.run(in_a_thread())
    return "published"

async def in_a_thread():
    await asyncio.to_thread(lambda: (channel("a").publish("3"), record.enqueue("y")))

@app.job
def record(what: str, job: Job):
    job.progress(0.5, what)
    return what

@app.job
async def co(): return "co"

@app.job
def die(): os._exit(7)

@app.job
async def die_too(): os._exit(7)

@app.get("/awaits")
def awaits():
    async def wait():
        try:
            await after(1)
        except WaitError as error:
            return str(error)
    return asyncio.run(wait())

@app.get("/begins-in-a-thread")
async def begins_in_a_thread():
    def begin():
        with transaction(): pass
    await asyncio.to_thread(begin)  # with the context of its request, as in endpoints of FastAPI

@app.get("/begins-in-a-loop-of-its-own")
def begins_in_a_loop_of_its_own():
    async def begin():
        async with transaction(): pass
    asyncio.run(begin())

@app.get("/begins-as-plain-code")
async def begins_as_plain_code():
    try:
        with transaction(): pass
    except WaitError as error:
        return str(error)

@app.get("/sets")
def sets():
    seen = variable.get()
    variable.set("by a request")
    return seen

@app.get("/sees")
async def sees(): return variable.get()

@app.job
def polls(job: Job):
    print("begun", file=sys.stderr, flush=True)
    while not job.cancelled: time.sleep(0.005)
    print("saw it", file=sys.stderr, flush=True)

@app.get("/waits_for/{name}")
def waits_for(name: str):
    print("begun", file=sys.stderr, flush=True)
    gate(name)
    print("ended", file=sys.stderr, flush=True)

@app.get("/stream")
def stream():
    try:
        for n in range(100):
            yield b"x" * 65_536
    finally:
        print("closed in", threading.current_thread().name, file=sys.stderr, flush=True)

@app.get("/fills")
def fills():
    for n in range(40): channel("a").publish("x" * 100_000)
    return "published"

@app.get("/fails")
def fails(): raise KeyError("no such thing")

@app.error(KeyError)
def failed(error): return f"{error.args[0]} in {threading.current_thread().name}"
"""


def routes_in(source: str) -> list[str]:
    return [line.split('"/')[1].split('"')[0].split("/")[0] for line in source.splitlines() if line[:8] == "@app.get"]


ROUTES = routes_in(SOURCE)
BESIDE = "parkade 1"  # the name of the thread


def at(name: str) -> int:
    return ROUTES.index(name)


@pytest.fixture
def worker(core: StartCore) -> Core:
    return started(core)


def started(core: StartCore, threads: int = 1) -> Core:
    worker = core(SOURCE, threads=str(threads))
    assert worker.ready().application.threads == threads
    worker.said.clear()
    return worker


def test_coroutines_go_on_while_a_plain_function_runs(worker: Core, tmp_path: Path) -> None:
    stream = worker.request(at("waits"), "one")
    assert [worker.answer(at("hola")).body for _ in range(3)] == ["Hola"] * 3
    worker.send(f.PING, 0, [7])
    assert worker.names(1) == ["PONG 0"]
    (tmp_path / "one").touch()
    name, at_, response = worker.next()
    assert (name, at_, response.body) == ("RESPONSE", stream, "one")


def test_plain_functions_begin_in_the_order_in_which_they_were_given(worker: Core, tmp_path: Path) -> None:
    streams = [worker.request(at("waits"), name) for name in ("one", "two", "three")]
    (tmp_path / "three").touch()
    (tmp_path / "two").touch()
    assert worker.answer(at("hola")).body == "Hola"
    assert worker.said == [f"BEGAN {streams[0]}", "RESPONSE 4"]
    (tmp_path / "one").touch()
    assert worker.names(3) == [f"RESPONSE {stream}" for stream in streams]
    assert worker.said[2:] == ["RESPONSE 1", "BEGAN 2", "RESPONSE 2", "BEGAN 3", "RESPONSE 3"]


def test_as_many_run_at_a_time_as_there_are_threads(core: StartCore, tmp_path: Path) -> None:
    worker = started(core, threads=2)
    for name in ("one", "two", "three"):
        worker.request(at("waits"), name)
    while len(worker.said) < 2:
        worker.answer(at("hola"))
    (tmp_path / "three").touch()
    (tmp_path / "two").touch()
    assert worker.names(2) == ["RESPONSE 2", "RESPONSE 3"]
    begun = [said for said in worker.said if said.startswith("BEGAN")]
    assert begun == ["BEGAN 1", "BEGAN 2", "BEGAN 3"]
    (tmp_path / "one").touch()
    assert worker.names(1) == ["RESPONSE 1"]


@pytest.mark.parametrize("dies", ["request", "die", "die_too"])
def test_what_begins_is_told_before_it_can_do_anything(worker: Core, dies: str) -> None:
    if dies == "request":
        worker.requests(at("dies"), at("plain"))
    else:
        worker.run(dies)
    assert worker.names(1) == ["END 0"]
    assert worker.said == ["BEGAN 1"]
    assert worker.ended()[0] == 7


def test_what_is_cancelled_before_it_begins_is_answered_at_once(worker: Core, tmp_path: Path) -> None:
    worker.request(at("waits"), "one")
    skipped = worker.request(at("dies"))
    worker.send(f.CANCEL, skipped, ["client_left"])
    assert worker.names(1) == [f"ERROR {skipped}"]
    (tmp_path / "one").touch()
    assert worker.names(1) == ["RESPONSE 1"]
    assert worker.answer(at("plain")).body == BESIDE
    assert f"BEGAN {skipped}" not in worker.said


def test_a_plain_function_sees_that_it_is_cancelled(worker: Core) -> None:
    stream = worker.run("polls")
    assert worker.process.stderr is not None
    assert worker.process.stderr.readline() == "begun\n"
    worker.send(f.CANCEL, stream, ["client_left"])
    assert worker.names(1) == [f"ERROR {stream}"]
    assert worker.end() == (0, "saw it\n")


def test_functions_behind_a_wait_say_of_which_kind_they_are_and_run_there(worker: Core) -> None:
    worker.request(at("then"))
    park = worker.next()[2]
    assert park.then.kind == "sync"
    stream = worker.number()
    worker.send(f.RESUME, 0, [["elapsed"], [stream], park.then.function, [park.then.state]])
    assert worker.next()[2].body == f"7 in {BESIDE}"
    assert worker.said[-2:] == [f"BEGAN {stream}", f"RESPONSE {stream}"]
    worker.request(at("then-async"))
    park = worker.next()[2]
    assert park.then.kind == "async"
    stream = worker.number()
    worker.send(f.RESUME, 0, [["elapsed"], [stream], park.then.function, [park.then.state]])
    assert worker.next()[2].body == "7"
    assert worker.said[-2:] == [f"BEGAN {stream}", f"RESPONSE {stream}"], "its PARK may have said that it is plain"


def test_what_a_plain_function_says_comes_before_its_answer_and_in_order(worker: Core) -> None:
    stream = worker.request(at("publishes"))
    frames = [worker.next() for _ in range(6)]
    assert [name for name, _, _ in frames] == ["PUBLISH", "PUBLISH", "ENQUEUE", "PUBLISH", "ENQUEUE", "RESPONSE"]
    assert [bytes(payload.body) for name, _, payload in frames if name == "PUBLISH"] == [b"1", b"2", b"3"]
    assert [place for name, place, _ in frames if name == "ENQUEUE"] == [stream, stream]


def test_jobs_run_there_and_tell_how_far_they_are(worker: Core) -> None:
    stream = worker.run("record", "x")
    assert worker.names(2) == [f"PROGRESS {stream}", f"RESULT {stream}"]
    other = worker.run("co")
    assert worker.names(1) == [f"RESULT {other}"]
    told = ["BEGAN 1", "PROGRESS 1", "RESULT 1", "BEGAN 2", "RESULT 2"]
    assert worker.said == told, "a coroutine's beginning is told too"


def test_what_needs_the_loop_is_a_clear_error_there(worker: Core) -> None:
    wait = worker.answer(at("awaits")).body
    assert wait.startswith("a wait can only be awaited in the async def that answers a request or is a job: a plain ")


def test_a_coroutine_is_told_how_to_begin_a_transaction(worker: Core) -> None:
    said = worker.answer(at("begins-as-plain-code")).body
    assert said == "in an async def, write: async with transaction() as t, and await t.query(…)"


@pytest.mark.parametrize("way", ["begins-in-a-thread", "begins-in-a-loop-of-its-own"])
def test_a_thread_with_the_context_of_a_request_may_begin_a_transaction(worker: Core, way: str) -> None:
    stream = worker.request(at(way))
    for wait in ("begin", "commit"):
        name, place, park = worker.next()
        assert (name, park.wait[0]) == ("PARK", wait)
        worker.send(f.RESUME, 0, [["rows", [], wait.upper(), 0, b"null"], [place]])
    assert worker.names(1) == [f"RESPONSE {stream}"]


def test_each_has_a_context_of_its_own_that_the_start_hooks_made(worker: Core) -> None:
    assert worker.bodies(at("sets"), at("sets"), at("sets")) == ["by start"] * 3
    assert worker.bodies(at("sees")) == ["by start"], "coroutines, too"


def test_what_is_no_exception_ends_its_request_only(worker: Core) -> None:
    name, _, error = (worker.request(at("quits")), worker.next())[1]
    assert (name, error.reason) == ("ERROR", "application")
    assert "class of its own" in error.text
    assert worker.answer(at("plain")).body == BESIDE


def test_plain_error_handlers_run_there(worker: Core) -> None:
    assert worker.answer(at("fails")).body == f"no such thing in {BESIDE}"


@pytest.mark.parametrize("leaves", [False, True])
def test_a_slow_reader_holds_no_thread(worker: Core, leaves: bool) -> None:
    stream = worker.request(at("stream"))
    assert [worker.next()[0] for _ in range(6)] == ["RESPONSE+", *["DATA+"] * 4, "CREDIT"]
    assert worker.answer(at("plain")).body == BESIDE
    if leaves:
        worker.send(f.CANCEL, stream, ["client_left"])
        told = []
        while not told or not told[-1].startswith("ERROR"):
            told += worker.names(1)
        assert told == ["CREDIT 0", f"ERROR {stream}"]
    else:
        read(worker, stream)
    assert worker.answer(at("plain")).body == BESIDE
    assert worker.end() == (0, f"closed in {BESIDE}\n")


def read(worker: Core, stream: int) -> None:
    """Reads a streamed answer to its end; the credits that were lent are given back."""
    count, credit = 4 * 65_536, 1
    worker.send(f.WINDOW, stream, [WINDOW])
    while (frame := worker.next())[0] != "DATA":
        if frame[0] == "CREDIT":
            credit += frame[2].delta
        else:
            count += len(frame[2])
            if count % WINDOW == 0:
                worker.send(f.WINDOW, stream, [WINDOW])
    assert (count, credit) == (100 * 65_536, 0)


def test_a_full_pipe_holds_up_the_function_and_not_the_loop(worker: Core) -> None:
    """The core does not read for a while: what is published meanwhile is not kept in memory, and arrives complete."""
    stream = worker.request(at("fills"))
    used = cpu_seconds(worker)
    threading.Event().wait(0.3)
    assert cpu_seconds(worker) - used < 0.2, "it does not spin"
    worker.request(at("hola"))
    frames = []
    while not frames or "RESPONSE" not in str(frames[-1]) or len(frames) < 42:
        name, place, payload = worker.next()
        frames.append((name, place))
        assert name == "RESPONSE" or len(payload.body) == 100_000
    assert frames.count(("PUBLISH", stream)) == 40
    assert frames.index(("RESPONSE", stream)) > max(i for i, frame in enumerate(frames) if frame[0] == "PUBLISH")


def cpu_seconds(worker: Core) -> float:
    fields = Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


HOOKED = (
    SOURCE
    + """
@app.before
async def before(request: Request):
    variable.set("by a hook")
    record.enqueue("hook")
    if "wait" in request.query_string: await after(1)

@app.after
async def behind_all(request, response):
    response.headers["x-thread"] = threading.current_thread().name
    response.headers["x-variable"] = variable.get()
"""
)


def hooked(core: StartCore) -> Core:
    worker = core(HOOKED)
    worker.ready()
    worker.said.clear()
    return worker


def headers(response: Any) -> dict[str, str]:
    return dict(zip(response.headers[::2], (str(value) for value in response.headers[1::2]), strict=True))


def test_hooks_that_are_coroutines_run_in_the_loop_and_the_function_beside_it(core: StartCore) -> None:
    worker = hooked(core)
    stream = worker.request(at("sets"))
    name, _, job = worker.next()
    assert (name, job.name) == ("ENQUEUE", "record")
    response = worker.next()[2]
    assert response.body == "by a hook"
    assert headers(response)["x-thread"] == "MainThread"
    assert headers(response)["x-variable"] == "by a request", "as if all were one coroutine"
    assert worker.said == [f"BEGAN {stream}", f"ENQUEUE {stream}", f"RESPONSE {stream}"]


def test_a_hook_that_waits_parks_the_request_of_a_plain_function(core: StartCore) -> None:
    worker = hooked(core)
    stream = worker.request(at("plain"), query="wait=1")
    assert worker.names(2) == [f"ENQUEUE {stream}", f"PARK {stream}"]
    worker.send(f.RESUME, 0, [["elapsed"], [stream]])
    assert worker.next()[2].body == BESIDE
    assert worker.said == [f"{name} {stream}" for name in ("BEGAN", "ENQUEUE", "PARK", "RESPONSE")]


def test_a_function_among_coroutines_is_waited_for_when_it_is_cancelled(core: StartCore, tmp_path: Path) -> None:
    worker = hooked(core)
    stream = worker.request(at("waits_for"), "one")
    assert worker.process.stderr is not None
    assert worker.process.stderr.readline() == "begun\n"
    skipped = worker.request(at("dies"))
    assert worker.names(2) == [f"ENQUEUE {stream}", f"ENQUEUE {skipped}"]
    worker.send(f.CANCEL, skipped, ["client_left"])
    assert worker.names(1) == [f"ERROR {skipped}"]
    worker.send(f.CANCEL, stream, ["client_left"])
    worker.send(f.PING, 0, [7])
    assert worker.names(1) == ["PONG 0"], "its thread is not free yet"
    (tmp_path / "one").touch()
    assert worker.names(1) == [f"ERROR {stream}"]
    assert worker.end() == (0, "ended\n")


def test_a_plain_generator_among_coroutines_runs_beside_the_loop(core: StartCore) -> None:
    worker = hooked(core)
    stream = worker.request(at("stream"))
    while worker.next()[0] != "CREDIT":
        pass
    worker.send(f.CANCEL, stream, ["client_left"])
    while not worker.names(1)[0].startswith("ERROR"):
        pass
    assert worker.end() == (0, f"closed in {BESIDE}\n")


FIRST_PIECES = """
@app.get("/yields")
def yields():
    yield threading.current_thread().name + " "
    yield threading.current_thread().name

@app.get("/iterates")
def iterates(): return Response(yields())

@app.get("/yields_later")
def yields_later(): return after(1).then(yields_behind)

def yields_behind(): return yields()

@app.get("/breaks")
def breaks():
    raise KeyError("no first piece")
    yield ""

@app.get("/begins/{name}")
def begins(name: str):
    try:
        print("begun", file=sys.stderr, flush=True)
        gate(name)
        yield "a piece"
    finally:
        print("closed in", threading.current_thread().name, file=sys.stderr, flush=True)

@app.get("/yields_in_the_loop")
async def yields_in_the_loop(): return yields()
"""


def streaming(core: StartCore) -> Core:
    worker = core(HOOKED.replace("import App", "import App, Response") + FIRST_PIECES)
    worker.ready()
    worker.said.clear()
    return worker


def at_streaming(name: str) -> int:
    routes = [
        line.split('"/')[1].split('"')[0].split("/")[0] for line in FIRST_PIECES.splitlines() if "@app.get" in line
    ]
    return len(ROUTES) + routes.index(name)


def body(worker: Core) -> str:
    """Of an answer that is streamed, until its end."""
    assert [worker.next()[0] for _ in range(2)][1] == "RESPONSE+"
    data = b""
    while (frame := worker.next())[0] != "DATA":
        data += frame[2]
    return (data + frame[2]).decode()


@pytest.mark.parametrize("name", ["yields", "iterates"])
def test_the_first_piece_of_a_plain_generator_is_made_beside_too(core: StartCore, name: str) -> None:
    worker = streaming(core)
    worker.request(at_streaming(name))
    assert body(worker) == f"{BESIDE} {BESIDE}"


def test_the_first_piece_of_a_generator_behind_a_wait_is_made_beside_too(core: StartCore) -> None:
    worker = streaming(core)
    worker.request(at_streaming("yields_later"))
    assert worker.next()[0] == "ENQUEUE"
    park = worker.next()[2]
    worker.send(f.RESUME, 0, [["elapsed"], [worker.number()], park.then.function, [park.then.state]])
    assert worker.next()[0] == "RESPONSE+"
    assert worker.next()[2].decode() == f"{BESIDE} "


def test_a_coroutine_s_plain_iterator_runs_in_the_loop(core: StartCore) -> None:
    worker = streaming(core)
    worker.request(at_streaming("yields_in_the_loop"))
    assert body(worker) == "MainThread MainThread"


def test_what_the_first_piece_raises_has_an_error_handler(core: StartCore) -> None:
    worker = streaming(core)
    worker.request(at_streaming("breaks"))
    assert worker.next()[0] == "ENQUEUE"
    assert worker.next()[2].body == "no first piece in MainThread"


def test_a_generator_that_is_cancelled_in_its_first_piece_is_closed_beside(core: StartCore, tmp_path: Path) -> None:
    worker = streaming(core)
    stream = worker.request(at_streaming("begins"), "one")
    assert worker.next()[0] == "ENQUEUE"
    assert worker.process.stderr is not None
    assert worker.process.stderr.readline() == "begun\n"
    worker.send(f.CANCEL, stream, ["client_left"])
    (tmp_path / "one").touch()
    assert worker.names(1) == [f"ERROR {stream}"]
    assert worker.end() == (0, f"closed in {BESIDE}\n")


def test_a_plain_function_behind_a_wait_has_coroutines_for_hooks(core: StartCore) -> None:
    worker = hooked(core)
    worker.request(at("then"))
    assert worker.next()[0] == "ENQUEUE"
    park = worker.next()[2]
    stream = worker.number()
    worker.send(f.RESUME, 0, [["elapsed"], [stream], park.then.function, [park.then.state]])
    response = worker.next()[2]
    assert response.body == f"7 in {BESIDE}"
    assert headers(response)["x-thread"] == "MainThread"
    assert f"BEGAN {stream}" in worker.said


def test_a_thread_that_hangs_does_not_keep_the_worker(worker: Core) -> None:
    worker.request(at("waits"), "never")
    assert worker.answer(at("hola")).body == "Hola"
    assert worker.end()[0] == 0
