"""Jobs that do next to nothing: each writes one byte. `hold` keeps a worker until it may begin."""

import os
import time
from pathlib import Path

from parkade import App, Job, Status

FILE = os.open(os.environ["JOBS_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
GATE = Path(os.environ["JOBS_GATE"])
KEPT = os.open(os.environ["JOBS_KEPT"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

app = App()


@app.job
def trivial(number: int) -> None:
    os.write(FILE, b".")


@app.job(priority=1_000, deadline=0)
def hold(job: Job) -> None:
    os.write(KEPT, b".")
    while not GATE.exists() and not job.cancelled:
        time.sleep(0.005)


@app.post("/fill")
def fill(count: int, first: int = 0) -> Status:
    for number in range(first, first + count):
        trivial.enqueue(number)
    return Status(202)


@app.post("/hold")
def occupy() -> Status:
    hold.enqueue()
    return Status(202)
