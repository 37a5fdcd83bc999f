"""Code that enqueues as fast as it can: in a plain job, in its threads, and in a handler."""

from __future__ import annotations

import threading

from parkade import App, Job

app = App()

LATER = 1_000_000  # seconds: they never run


@app.job
def child(number: int, load: str = "") -> None: ...


def pour(count: int, bytes: int = 0) -> None:
    load = "x" * bytes
    for number in range(count):
        child.options(delay=LATER).enqueue(number, load)


@app.job(retries=1)
def flood(count: int, bytes: int, job: Job) -> int:
    pour(count, bytes)
    return job.attempt


@app.job(retries=1)
def flood_from_threads(count: int, bytes: int) -> None:
    threads = [threading.Thread(target=pour, args=(count // 4, bytes)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@app.post("/flood/{count:int}")
def flood_here(count: int) -> str:
    pour(count)
    return "poured"


@app.post("/enqueue/{job}/{count:int}/{bytes:int}")
def enqueue(job: str, count: int, bytes: int) -> str:
    return app.jobs[job].enqueue(count, bytes).id


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"
