"""Answers at once and writes a line afterwards: as soon as possible, or after a delay that stands for slow work."""

import os
import time

from parkade import App, Wait, after

FILE = os.open(os.environ["LOG_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

app = App()


@app.job
def write_log(line: str) -> None:
    os.write(FILE, f"{line}\n".encode())


@app.job
def write_later(line: str) -> Wait:
    return after(1).then(write_behind, line=line)


def write_behind(_: object, line: str) -> None:
    os.write(FILE, f"{line}\n".encode())


@app.post("/log")
def log(body: str) -> str:
    write_log.enqueue(body)
    return "Doobie Doo"


@app.post("/later")
def later(body: str) -> str:
    write_later.enqueue(body)
    return "Doobie Doo"


@app.post("/started")
def started() -> Wait:
    """The time until a job has begun, in nanoseconds. All processes of a machine share this clock."""
    return tell_begin.enqueue(time.monotonic_ns()).result(timeout=10)


@app.job
def tell_begin(enqueued: int) -> int:
    return time.monotonic_ns() - enqueued
