"""Jobs in workers, as processes under a scripted core."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest

from conftest import ID, StartCore
from parkade._wire import frames as f

PLAIN = """
import threading
from parkade import App, Discard, Job, Retry, after, html

app = App()

@app.on_start
def start(): write_log.enqueue("at the start")

@app.job(queue="slow", priority=7)
def warm(): pass

@app.get("/warm")
def warm_up():
    warm.enqueue()
    warm.options(delay=1, priority=0).enqueue()
    warm.options(queue="default").enqueue()
    return "warming"

@app.on_stop
def stop(): write_log.enqueue("at the end")

@app.job
def write_log(line: str): print(line)

@app.job
def double(n: int): return 2 * n

@app.job
def page(): return html("<p>")

@app.job
def fail(how: str, job: Job):
    if how == "retry": raise Retry(after=10)
    if how == "retry as usual": raise Retry(text="busy")
    if how == "discard": raise Discard("why")
    if how == "later": return after(1).then(later)
    if how == "unserialisable": return object()
    raise ValueError(how + " " + str(job.attempt))

def later(): raise Discard("later")

@app.job
def wait(job: Job): return after(1, [job.deadline is not None])

@app.job
def wait_then(job: Job): return after(1).then(done, n=7)

def done(n: int, job: Job): job.progress(1, "done"); return [n, job.name, job.id, job.attempt, job.deadline]

@app.job
def poll(job: Job):
    job.progress(None, "polling")
    while not job.cancelled: pass
    write_log.enqueue("cancelled")
    return "stopped"

@app.job
def tell(job: Job):
    write_log.enqueue("from a job")
    thread = threading.Thread(target=lambda: [job.progress(0.25, "in a thread"), write_log.enqueue("in a thread")])
    thread.start(); thread.join()
    job.progress(0.5)

@app.get("/log/{line}")
def log(line: str):
    write_log.options(delay=2, key="k").enqueue(line)
    thread = threading.Thread(target=write_log.enqueue, args=("thread",))
    thread.start(); thread.join()
    return "logged"

@app.get("/result")
def result(): return double.enqueue(4).result(timeout=20)

@app.get("/stream")
def stream():
    yield "a"
    write_log.enqueue("in the middle")
    yield "b"

@app.get("/hola")
def hola(): return "Hola"
"""
WARM, LOG, RESULT, STREAM, HOLA = range(5)

COROUTINES = """
import asyncio, threading
from parkade import App, Job, after, channel

app = App()

@app.job
def write_log(line: str): return line

@app.job
def plain(n: int): write_log.enqueue("plain"); return n

@app.job
def poll(job: Job):
    print("begun")
    while not job.cancelled: pass
    return "stopped"

@app.job
async def report(year: int, job: Job):
    job.progress(0.5, "half")
    await after(1)
    write_log.enqueue("behind")
    job.progress(1)
    return {"pages": year}

@app.job
async def forever(job: Job):
    try:
        await after(1000)
    except asyncio.CancelledError:
        print("cancelled", job.cancelled)
        raise

@app.job
def comes_back(): return after(1).then(go_on)

async def go_on(_): return "here"

@app.job
async def give_up():
    asyncio.current_task().cancel()
    await asyncio.sleep(0)

@app.get("/stored")
async def stored():
    first, second = write_log.options(key="k").enqueue("1"), write_log.enqueue("2")
    await second
    third = write_log.options(key="l").enqueue("3")
    await third
    return [first.id, (await first).id, second.id, third.id]

@app.get("/together")
async def together():
    handles = await asyncio.gather(*(write_log.options(key=line).enqueue(line) for line in "ab"))
    return [handle.id for handle in handles]

@app.get("/result")
async def result(): return {"value": await write_log.enqueue("x").result(timeout=9)}

@app.get("/plain")
def sync(): write_log.enqueue("sync"); return "plain"

@app.get("/thread")
async def thread():
    await asyncio.to_thread(write_log.enqueue, "to_thread")
    own = threading.Thread(target=write_log.enqueue, args=("own",))
    own.start(); own.join()
    return "threads"

@app.get("/meanwhile")
async def meanwhile():
    task = asyncio.ensure_future(_enqueue())
    await after(1)
    await task
    return "done"

async def _enqueue():
    for _ in range(3): await asyncio.sleep(0)
    write_log.enqueue("meanwhile")
    channel("c").publish("enqueued")

@app.get("/later")
async def later(): asyncio.ensure_future(_later()); return "answered"

async def _later():
    await gone.wait()
    write_log.enqueue("later")

gone = asyncio.Event()

@app.get("/gone")
async def set_gone(): gone.set(); return "set"

@app.get("/beside-stored")
async def beside_stored():
    async def stored(line): return (await write_log.enqueue(line)).id
    return await asyncio.gather(stored("first"), stored("second"))
"""
STORED, TOGETHER, AWAITED, SYNC, THREAD, MEANWHILE, LATER, GONE, BESIDE_STORED = range(9)


def line_of(payload: Any) -> Any:
    return msgspec.msgpack.decode(payload.arguments)[1][0]


def told(frame: tuple[str, int, Any]) -> Any:
    """A frame shortly: the line of a job, the body of an answer, what a result holds."""
    name, stream, payload = frame
    match name:
        case "ENQUEUE":
            return name, stream, line_of(payload)
        case "RESPONSE":
            return name, stream, payload.body
        case "RESULT":
            return name, stream, msgspec.msgpack.decode(payload.result)
        case "ERROR":
            return name, stream, payload.reason
        case "PROGRESS":
            return name, stream, payload.fraction, payload.text
        case _:
            return name, stream


def plain(core: StartCore) -> Any:
    worker = core(PLAIN)
    assert [worker.next()[0], told(worker.next())] == ["HELLO", ("ENQUEUE", 0, "at the start")]
    assert worker.next()[0] == "READY"
    return worker


def coroutines(core: StartCore) -> Any:
    worker = core(COROUTINES)
    ready = worker.ready()
    assert ready.application.concurrent
    return worker


def cancel(worker: Any, stream: int, reason: str = "operator") -> None:
    worker.send(f.CANCEL, stream, [reason])


def resume(worker: Any, *payload: Any) -> None:
    worker.send(f.RESUME, 0, list(payload))


def test_a_job_is_run_and_what_it_returns_is_told(core: StartCore) -> None:
    worker = plain(core)
    assert worker.result("double", 4) == 8
    assert worker.result("double", n=5) == 10
    assert worker.result("write_log", "line") is None
    response = worker.result("page")
    assert isinstance(response, msgspec.msgpack.Ext)
    assert response.code == 1
    assert msgspec.msgpack.decode(response.data) == [200, ["content-type", "text/html; charset=utf-8"], "<p>"]
    code, printed = worker.end()
    assert (code, printed) == (0, "line\n")


@pytest.mark.parametrize(
    ("name", "args", "reason", "text", "after"),
    [
        ("nobody", [], "unknown", "the application has no job 'nobody'", msgspec.UNSET),
        ("fail", ["raise"], "application", "ValueError: raise 2", msgspec.UNSET),
        ("fail", ["retry"], "retry", "", 10),
        ("fail", ["retry as usual"], "retry", "busy", None),
        ("fail", ["discard"], "discard", "why", msgspec.UNSET),
        ("fail", ["unserialisable"], "application", "InvalidResult: returned a value of type object", msgspec.UNSET),
        ("double", ["x"], "application", "argument n: Expected `int`, got `str`", msgspec.UNSET),
        ("double", [], "application", "missing a required argument", msgspec.UNSET),
        ("fail", ["x" * 10_000], "application", "ValueError: xxx", msgspec.UNSET),
    ],
)
def test_how_an_attempt_fails(core: StartCore, name: str, args: list[Any], reason: str, text: str, after: Any) -> None:
    worker = plain(core)
    error = worker.result(name, *args, attempt=2)
    assert (error.reason, error.after) == (reason, after)
    assert text in error.text
    assert len(error.text) <= 4_096
    assert worker.result("double", 1) == 2, "and the worker goes on"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([2, [], {}], "of version 2"),
        ({"a": 1}, "not in the form that enqueue writes"),
        ([1], "not in the form"),
        ([], "not in the form"),
    ],
)
def test_arguments_of_another_kind_are_discarded(core: StartCore, arguments: Any, text: str) -> None:
    worker = plain(core)
    worker.send(f.RUN, worker.number(), [ID, "write_log", 1, None, msgspec.msgpack.encode(arguments)])
    name, _, error = worker.next()
    assert (name, error.reason) == ("ERROR", "discard")
    assert text in error.text


def test_what_a_request_enqueues_stands_before_its_answer_and_what_a_thread_does_on_the_link(core: StartCore) -> None:
    worker = plain(core)
    stream = worker.request(LOG, "x")
    name, at, job = worker.next()
    assert (name, at, job.name, job.options.delay, job.options.key) == ("ENQUEUE", stream, "write_log", 2, "k")
    assert job.arguments == msgspec.msgpack.encode([1, ["x"], {}])
    assert [told(worker.next()), told(worker.next())] == [("ENQUEUE", 0, "thread"), ("RESPONSE", stream, "logged")]
    code, _ = worker.end()
    assert code == 0


def test_what_is_said_of_the_function_is_said_of_each_job(core: StartCore) -> None:
    worker = plain(core)
    worker.request(WARM)
    options = [worker.next()[2].options for _ in range(3)]
    assert [(one.queue, one.priority, one.delay) for one in options] == [
        ("slow", 7, 0),
        ("slow", 0, 1),
        ("default", 7, 0),
    ]


def test_what_hooks_enqueue_is_nobodys(core: StartCore) -> None:
    worker = plain(core)
    worker.answer(HOLA)
    worker.send(f.GOODBYE, 0, ["stopping", ""])
    assert told(worker.next()) == ("ENQUEUE", 0, "at the end")


def test_a_streamed_answer_may_enqueue(core: StartCore) -> None:
    worker = plain(core)
    stream = worker.request(STREAM)
    assert [told(worker.next()) for _ in range(5)] == [
        ("RESPONSE+", stream),
        ("DATA+", stream),
        ("ENQUEUE", stream, "in the middle"),
        ("DATA+", stream),
        ("DATA", stream),
    ]


def test_a_request_is_parked_for_the_result_of_what_it_enqueued(core: StartCore) -> None:
    worker = plain(core)
    worker.request(RESULT)
    _, _, job = worker.next()
    name, _, park = worker.next()
    assert (name, park.wait, park.then.response) == ("PARK", ["result", job.id, {"timeout": 20}], None)


def test_a_job_enqueues_and_tells_how_far_it_is_from_threads_too(core: StartCore) -> None:
    worker = plain(core)
    stream = worker.run("tell")
    assert [told(worker.next()) for _ in range(5)] == [
        ("ENQUEUE", stream, "from a job"),
        ("PROGRESS", stream, 0.25, "in a thread"),
        ("ENQUEUE", 0, "in a thread"),
        ("PROGRESS", stream, 0.5, ""),
        ("RESULT", stream, None),
    ]


def test_a_wait_that_a_job_returns_is_gone_on_with_by_any_worker(core: StartCore) -> None:
    first, second = plain(core), plain(core)
    first.run("wait", deadline=30)
    name, _, park = first.next()
    assert (name, park.wait) == ("PARK", ["timer", 1])
    resume(second, ["elapsed"], [second.number()], park.then.function, [park.then.state])
    assert told(second.next()) == ("RESULT", 1, [True])


def test_a_function_behind_a_wait_of_a_job_is_the_job_still(core: StartCore) -> None:
    worker = plain(core)
    worker.run("wait_then", attempt=3)
    _, _, park = worker.next()
    stream = worker.number()
    resume(worker, ["elapsed"], [stream], park.then.function, [park.then.state])
    assert told(worker.next()) == ("PROGRESS", stream, 1, "done")
    id = "0192f3a4-5b6c-7d8e-9f01-23456789abcd"
    assert told(worker.next()) == ("RESULT", stream, [7, "wait_then", id, 3, None])
    resume(worker, ["refused", "a limit", 503], [worker.number()], park.then.function, [park.then.state])
    assert told(worker.next()) == ("ERROR", stream + 1, "application")
    worker.run("fail", "later")
    _, _, park = worker.next()
    resume(worker, ["elapsed"], [worker.number()], park.then.function, [park.then.state])
    assert worker.next()[2].reason == "discard"


def test_a_plain_job_sees_that_it_is_cancelled_and_what_came_meanwhile_is_done_in_order(core: StartCore) -> None:
    worker = plain(core)
    stream = worker.run("poll")
    assert told(worker.next()) == ("PROGRESS", stream, None, "polling")
    before, skipped = worker.requests(HOLA, HOLA)
    worker.send(f.PING, 0, [7])
    cancel(worker, skipped, "client_left")
    body = worker.request(HOLA, body=None, flags=f.MORE)
    worker.send(f.DATA, body, b"", 0)
    cancel(worker, stream)
    behind = worker.request(HOLA)
    assert [told(worker.next()) for _ in range(7)] == [
        ("ENQUEUE", 0, "cancelled"),
        ("ERROR", stream, "cancelled"),
        ("RESPONSE", before, "Hola"),
        ("ERROR", skipped, "cancelled"),
        ("PONG", 0),
        ("RESPONSE", body, "Hola"),
        ("RESPONSE", behind, "Hola"),
    ]
    assert worker.end()[0] == 0


def test_a_job_that_was_cancelled_before_it_began_does_not_run(core: StartCore) -> None:
    worker = plain(core)
    run = f.frame(f.RUN, 1, msgspec.msgpack.encode([ID, "write_log", 1, None, msgspec.msgpack.encode([1, ["x"], {}])]))
    worker.link.sendall(run + f.frame(f.CANCEL, 1, msgspec.msgpack.encode(["deadline"])))
    assert told(worker.next()) == ("ERROR", 1, "cancelled")
    assert worker.end() == (0, "")


# Coroutines


def test_coroutines_and_plain_functions_are_jobs_of_one_worker(core: StartCore) -> None:
    worker = coroutines(core)
    stream = worker.run("report", 3)
    assert [told(worker.next()) for _ in range(2)] == [("PROGRESS", stream, 0.5, "half"), ("PARK", stream)]
    other = worker.run("plain", 7)
    assert [told(worker.next()) for _ in range(2)] == [("ENQUEUE", other, "plain"), ("RESULT", other, 7)]
    resume(worker, ["elapsed"], [stream])
    assert [told(worker.next()) for _ in range(3)] == [
        ("ENQUEUE", stream, "behind"),
        ("PROGRESS", stream, 1.0, ""),
        ("RESULT", stream, {"pages": 3}),
    ]
    assert worker.end()[0] == 0


def test_a_coroutine_that_is_cancelled_while_it_waits_ends_without_a_word(core: StartCore) -> None:
    worker = coroutines(core)
    stream = worker.run("forever")
    assert told(worker.next()) == ("PARK", stream)
    cancel(worker, stream)
    assert worker.answer(GONE).body == "set"
    code, printed = worker.end()
    assert (code, printed) == (0, "cancelled True\n")


def test_a_plain_job_among_coroutines_sees_that_it_is_cancelled_too(core: StartCore) -> None:
    worker = coroutines(core)
    stream = worker.run("poll")
    assert worker.process.stderr.readline() == "begun\n"
    before = worker.run("plain", 7)
    skipped = worker.run("plain", 8)
    cancel(worker, skipped)
    assert told(worker.next()) == ("ERROR", skipped, "cancelled"), "at once, while the other runs"
    cancel(worker, stream)
    assert [told(worker.next()) for _ in range(3)] == [
        ("ERROR", stream, "cancelled"),
        ("ENQUEUE", before, "plain"),
        ("RESULT", before, 7),
    ]
    assert f"BEGAN {skipped}" not in worker.said
    assert worker.answer(GONE).body == "set"
    assert worker.end()[0] == 0


def test_what_a_job_goes_on_with_says_that_it_begins_though_it_is_a_coroutine(core: StartCore) -> None:
    worker = coroutines(core)
    before = worker.run("comes_back")
    park = worker.next()[2]
    stream = worker.number()
    resume(worker, ["elapsed"], [stream], park.then.function, [park.then.state])
    assert worker.next()[0] == "RESULT"
    assert worker.said[-4:] == [f"BEGAN {before}", f"PARK {before}", f"BEGAN {stream}", f"RESULT {stream}"]


def test_a_coroutine_that_cancels_itself_has_failed(core: StartCore) -> None:
    worker = coroutines(core)
    error = worker.result("give_up")
    assert (error.reason, error.text) == ("application", "CancelledError")


@pytest.mark.parametrize("since_last", [True, False], ids=["since the last wait", "all"])
def test_a_coroutine_awaits_that_jobs_are_stored_and_learns_their_ids(core: StartCore, since_last: bool) -> None:
    worker = coroutines(core)
    stream = worker.request(STORED)
    first, second = [worker.next()[2].id for _ in range(2)]
    other, another = bytes([1]) * 16, bytes([2]) * 16

    def parked() -> None:
        name, at, park = worker.next()
        assert (name, at, park.wait) == ("PARK", stream, ["stored"])

    parked()
    resume(worker, ["stored", [other, second]], [stream])
    third = worker.next()[2].id
    parked()
    resume(worker, ["stored", [another] if since_last else [other, second, another]], [stream])
    assert third != another
    assert json.loads(told(worker.next())[2]) == [str(UUID(bytes=id)) for id in (first, other, second, another)]


def test_jobs_that_are_awaited_together_wait_for_the_store_once(core: StartCore) -> None:
    worker = coroutines(core)
    stream = worker.request(TOGETHER)
    ids = [worker.next()[2].id for _ in range(2)]
    assert told(worker.next()) == ("PARK", stream)
    other = bytes([1]) * 16
    resume(worker, ["stored", [other, ids[1]]], [stream])
    assert json.loads(told(worker.next())[2]) == [str(UUID(bytes=id)) for id in (other, ids[1])]


@pytest.mark.parametrize(
    ("outcome", "status", "body"),
    [
        (["result", ID, msgspec.msgpack.encode([1])], 200, b'{"value":[1]}'),
        (["pending", ID], 200, b'{"value":null}'),
        (["no result", ID, "dead", "ValueError: secret"], 500, ("the job failed; the log says why", "application")),
        (["no result", ID, "cancelled", ""], 410, ("the job was cancelled", "client")),
        (["no result", ID, "missing", ""], 404, ("no such job; it may have been deleted", "client")),
        (["refused", "a limit", 503], 503, ("a limit", "server")),
        (["refused", "there is no room", 507], 507, ("there is no room", "operator")),
    ],
)
def test_a_coroutine_awaits_a_result(core: StartCore, outcome: Any, status: int, body: Any) -> None:
    worker = coroutines(core)
    stream = worker.request(AWAITED)
    assert [worker.next()[0], worker.next()[0]] == ["ENQUEUE", "PARK"]
    resume(worker, outcome, [stream])
    _, _, response = worker.next()
    told = json.loads(response.body)
    told = (told["detail"], told["fault"]) if status >= 400 else response.body
    assert (response.status, told) == (status, body)


def test_where_what_is_enqueued_beside_coroutines_goes(core: StartCore) -> None:
    worker = coroutines(core)
    stream = worker.request(SYNC)
    assert [told(worker.next()) for _ in range(2)] == [("ENQUEUE", stream, "sync"), ("RESPONSE", stream, "plain")]
    stream = worker.request(THREAD)
    assert told(worker.next()) == ("ENQUEUE", stream, "to_thread")
    assert {told(worker.next()) for _ in range(2)} == {("ENQUEUE", 0, "own"), ("RESPONSE", stream, "threads")}


def test_what_is_enqueued_while_its_request_waits_is_written_at_once(core: StartCore) -> None:
    worker = coroutines(core)
    stream = worker.request(MEANWHILE)
    frames = [told(worker.next()) for _ in range(3)]
    assert frames == [("PARK", stream), ("ENQUEUE", stream, "meanwhile"), ("PUBLISH", stream)]
    resume(worker, ["elapsed"], [stream])
    assert told(worker.next()) == ("RESPONSE", stream, "done")


def test_what_is_enqueued_beside_a_wait_for_the_store_is_not_in_its_answer(core: StartCore) -> None:
    worker = coroutines(core)
    stream = worker.request(BESIDE_STORED)
    first = worker.next()[2].id
    assert told(worker.next()) == ("PARK", stream)
    resume(worker, ["stored", [first]], [stream])
    name, at, job = worker.next()
    assert (name, at, line_of(job)) == ("ENQUEUE", stream, "second")
    assert told(worker.next()) == ("PARK", stream)
    resume(worker, ["stored", [job.id]], [stream])
    assert json.loads(told(worker.next())[2]) == [str(UUID(bytes=id)) for id in (first, job.id)]


def test_what_is_enqueued_beside_it_is_not_lost_with_its_client(core: StartCore) -> None:
    worker = coroutines(core)
    stream = worker.request(BESIDE_STORED)
    assert [told(worker.next())[:2] for _ in range(2)] == [("ENQUEUE", stream), ("PARK", stream)]
    worker.send(f.CANCEL, stream, ["client_left"])
    assert told(worker.next()) == ("ENQUEUE", 0, "second")


def test_what_is_enqueued_behind_an_answer_goes_on_the_link(core: StartCore) -> None:
    worker = coroutines(core)
    worker.answer(LATER)
    stream = worker.request(GONE)
    frames = {told(worker.next()) for _ in range(2)}
    assert frames == {("RESPONSE", stream, "set"), ("ENQUEUE", 0, "later")}
