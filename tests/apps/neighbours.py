"""Jobs that end their worker or occupy it, next to good ones, all enqueued by one request.

With `CONCURRENT` some of them are coroutines, so that workers have an event loop.
"""

from __future__ import annotations

import ctypes
import os
import time

import msgspec
from jobs_ran import note

from parkade import App, Job, after

app = App()


class Burst(msgspec.Struct):
    """Names of jobs, in the order in which they are enqueued; each gets its position and this line."""

    jobs: list[str]
    line: str


# Good ones


@app.job(retries=0)
def good(line: str, job: Job) -> None:
    note(f"{line} {job.attempt}")


@app.job(retries=0)
def good_behind_a_wait(line: str, job: Job) -> object:
    return after(0.05).then(come_back, line=f"{line} {job.attempt}")


def come_back(_: object, line: str) -> None:
    note(line)


if "CONCURRENT" in os.environ:

    @app.job(retries=0)
    async def good_coroutine_behind_a_wait(line: str, job: Job) -> object:
        return after(0.05).then(come_back_in_the_loop, line=f"{line} {job.attempt}")

    async def come_back_in_the_loop(_: object, line: str) -> None:
        note(line)

    @app.job(retries=0)
    async def good_coroutine(line: str, job: Job) -> None:
        note(f"{line} {job.attempt}")

    @app.job(retries=0)
    async def leave_coroutine(line: str) -> None:
        leave_at_once(line)

    @app.job(retries=0)
    async def loop_coroutine(line: str) -> None:
        loop_for_ever(line)

    @app.job(retries=0, deadline=0.5)
    async def loop_soon_coroutine(line: str) -> None:
        loop_for_ever(line)


# Jobs that end their worker, at once or because it is killed


def begin(line: str) -> None:
    note(f"bad {line} {os.getpid()} {time.monotonic()}")


def leave_at_once(line: str) -> None:
    begin(line)
    os._exit(1)


def loop_for_ever(line: str) -> None:
    begin(line)
    while True:
        pass


@app.job(retries=0)
def leave(line: str) -> None:
    leave_at_once(line)


@app.job(retries=0)
def crash(line: str) -> None:
    begin(line)
    ctypes.string_at(0)


@app.job(retries=0)
def loop(line: str) -> None:
    loop_for_ever(line)


@app.job(retries=0, deadline=0.5)
def loop_soon(line: str) -> None:
    loop_for_ever(line)


@app.job(retries=0, deadline=0.5)
def sleep_soon(line: str) -> None:
    begin(line)
    time.sleep(3_600)


# Requests


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.post("/burst")
def burst(body: Burst) -> list[str]:
    return [app.jobs[name].enqueue(f"{body.line} {place}").id for place, name in enumerate(body.jobs)]
