"""Jobs that are plain functions, good and bad, and a route that enqueues any of them."""

from __future__ import annotations

import ctypes
import functools
import os
import time
from collections.abc import Iterator
from typing import Any

import msgspec
from gates import PAUSE, hold
from jobs_ran import note
from owners import owner_only

from parkade import App, Discard, Job, Message, Response, Retry, after, channel, html

app = App(concurrent="CONCURRENT" in os.environ)
app.queue("single", concurrency=1)
app.queue("pair", concurrency=2)
app.queue("rated", rate=10)


class Asked(msgspec.Struct):
    job: str
    args: list[Any] = []
    count: int = 1
    options: dict[str, Any] = {}
    timeout: float | None = None


# Jobs


@app.job(public=False)
def hidden(gate: str) -> str:
    hold(gate)
    return gate


@app.job(access=owner_only)
def owned(owner: str, gate: str | None = None, load: str = "") -> str:
    if gate is not None:
        hold(gate)
    return f"{owner} has it"


@app.job
def write(line: str) -> str:
    note(line)
    return line


@app.job
def write_laden(line: str, load: str) -> None:
    """The load makes it expensive to store."""
    note(line)


@app.job(unique=True)
def write_once(line: str) -> None:
    note(line)


@app.job(unique=lambda line: line[:3])
def write_once_for_each_beginning(line: str) -> None:
    note(line)


@app.job
def parent(line: str, count: int) -> None:
    for number in range(count):
        write.enqueue(f"{line} {number}")


@app.job
def wait_at(gate: str, job: Job) -> str:
    note(f"begin {gate} {job.attempt}")
    hold(gate)
    note(f"end {gate} {job.attempt}")
    return gate


@app.job(retries=0)
def poll_at(gate: str, job: Job) -> str:
    """Checks whether it is cancelled, until the gate is opened."""
    note(f"begin {gate} {job.attempt}")
    while not job.cancelled:
        if os.path.exists(os.path.join(os.environ["GATES"], gate)):
            return gate
        time.sleep(PAUSE)
    note(f"cancelled {gate}")
    return "cancelled"


@app.job
def steps(gate: str, job: Job) -> dict[str, int]:
    job.progress(0.25, "a quarter")
    hold(gate)
    job.progress(None, "some more")
    hold(f"{gate}-2")
    return {"pages": 3}


@app.job
def note_time(line: str) -> None:
    note(f"{line} {time.monotonic()}")


@app.job
def work(line: str, seconds: float) -> None:
    note(f"begin {line}")
    time.sleep(seconds)
    note(f"end {line}")


@app.job
def page() -> Response:
    return html("<p>made by a job", 201)


@app.job
def give(value: Any) -> Any:
    return value


@app.job
def give_odd(kind: str) -> Any:
    """Values that JSON cannot represent directly."""
    if kind == "keys":
        return {None: 1, True: 2, 1.5: 3, 7: {False: b"raw"}}
    return functools.reduce(lambda inner, _: [inner], range(300), 1)


@app.job
def give_many(count: int) -> list[list[None]]:
    """A large result of many values."""
    return [[] for _ in range(count)]


@app.job(retries=0)
def give_untellable() -> object:
    return {(1, 2): 3}


@app.job
def page_to_keep() -> Response:
    return Response("for a minute", 200, {"cache-control": "max-age=60"})


@app.job
def wait_behind(line: str) -> object:
    return after(0.05).then(write_behind, line=line)


@app.job
def wait_long(line: str) -> object:
    return after(3_600).then(write_behind, line=line)


def write_behind(line: str) -> str:
    note(line)
    return f"behind {line}"


@app.job
def wait_for_word(line: str) -> object:
    """A wait in the core, so that very many can run at a time."""
    note(f"begin {line}")
    return channel("word").next(timeout=60).then(hear_word, line=line)


def hear_word(message: Message | None, line: str) -> None:
    note(f"end {line}")


# Jobs that fail


@app.job(retries=1)
def broken(line: str, job: Job) -> None:
    note(f"{line} {job.attempt}")
    raise ValueError("it is broken")


@app.job(retries=0)
def say_and_fail(text: str) -> None:
    raise ValueError(text)


@app.job(retries=3)
def again(line: str, failures: int, job: Job) -> int:
    """Fails this many times, and is retried at once."""
    note(f"{line} {job.attempt}")
    if job.attempt <= failures:
        raise Retry(0.01, "not yet")
    return job.attempt


@app.job(retries=1)
def again_in(line: str, seconds: float, job: Job) -> None:
    """Fails once."""
    note(f"{line} {job.attempt}")
    if job.attempt == 1:
        raise Retry(seconds, "not yet")


@app.job(retries=0, deadline=1.5)
def late(line: str, job: Job) -> None:
    """Records when it begins, and when its deadline has passed."""
    note(f"begin {line} {time.monotonic()}")
    while not job.cancelled:
        time.sleep(PAUSE)
    note(f"cancelled {line} {time.monotonic()}")


@app.job(retries=3)
def discarded(line: str, job: Job) -> None:
    note(f"{line} {job.attempt}")
    raise Discard("nobody wants it")


@app.job(retries=1)
def leave(line: str, job: Job) -> str:
    note(f"{line} {job.attempt}")
    if job.attempt == 1:
        os._exit(3)
    return line


@app.job(retries=1)
def crash(line: str, job: Job) -> str:
    note(f"{line} {job.attempt}")
    if job.attempt == 1:
        ctypes.string_at(0)
    return line


@app.job(retries=1)
def crash_always(line: str, job: Job) -> None:
    note(f"{line} {job.attempt}")
    os._exit(3)


@app.job(retries=1, deadline=0.3)
def loop(line: str, job: Job) -> str:
    note(f"{line} {job.attempt}")
    while job.attempt == 1:
        pass
    return line


@app.job(retries=1, deadline=0.3)
def oversleep(line: str, job: Job) -> str:
    note(f"{line} {job.attempt}")
    if job.attempt == 1:
        time.sleep(3_600)
    return line


@app.job
def for_ever(number: int) -> None:
    for_ever.enqueue(number + 1)


@app.job(retries=0)
def unkeepable() -> object:
    return object()


# Requests


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/hold/{gate}")
def hold_request(gate: str) -> str:
    hold(gate)
    return gate


@app.post("/enqueue")
def enqueue(body: Asked) -> list[str]:
    return [app.jobs[body.job].options(**body.options).enqueue(*body.args).id for _ in range(body.count)]


@app.post("/returned")
def returned(body: Asked) -> object:
    return app.jobs[body.job].options(**body.options).enqueue(*body.args).result(body.timeout)


@app.post("/then")
def then(body: Asked) -> object:
    return app.jobs[body.job].options(**body.options).enqueue(*body.args).result(body.timeout).then(tell, word="got")


def tell(result: Any, word: str) -> list[Any]:
    return [word, result]


@app.post("/streamed")
def streamed(body: str) -> Iterator[bytes]:
    write.enqueue(body)
    yield b"one"
    yield b"two"


@app.post("/streamed-before")
def streamed_before(body: str) -> Iterator[bytes]:
    """Enqueues after the response has begun."""
    yield b"one"
    write.enqueue(body)
    yield b"two"


@app.post("/before-a-wait")
def before_a_wait(body: str) -> object:
    write.enqueue(body)
    return after(0, "waited")


@app.post("/before-an-error")
def before_an_error(body: str) -> None:
    write.enqueue(body)
    raise ValueError("behind the job")


@app.post("/unserialisable")
def unserialisable() -> None:
    write.enqueue(object())


@app.post("/oversized")
def oversized() -> None:
    write.enqueue("x" * 600_000)


@app.post("/misfit")
def misfit() -> None:
    write.enqueue("one", "too many")


@app.post("/stored-and-oversized")
def stored_and_oversized(body: str) -> None:
    """The first is never acknowledged."""
    write.enqueue(body)
    write.enqueue("x" * 600_000)
