"""Code that enqueues as fast as it can in a worker with an event loop: a coroutine that waits now and then, and a plain
job.
"""

from __future__ import annotations

from parkade import App

app = App()

LATER = 1_000_000  # seconds: they never run


@app.job
def child(number: int) -> None: ...


@app.job(retries=1)
async def flood(count: int) -> None:
    for number in range(count):
        handle = child.options(delay=LATER).enqueue(number)
        if number % 1_000 == 999:
            await handle


@app.job(retries=1)
def flood_plainly(count: int) -> None:
    for number in range(count):
        child.options(delay=LATER).enqueue(number)


@app.post("/enqueue/{job}/{count:int}")
async def enqueue(job: str, count: int) -> str:
    return app.jobs[job].enqueue(count).id


@app.get("/hola/{name}")
async def hola(name: str) -> str:
    return f"Hola {name}"
