"""Answers "Doobie Doo" at once and writes the line behind. What was answered is written, whatever dies meanwhile."""

import os
import time
from pathlib import Path

from parkade import App, HTTPError, Job

FILE = Path(os.environ.get("DEFERRED_LOG", "deferred.log"))
LINE_LENGTH_MAX = 1_000  # then: 422
SECONDS_MAX = 60.0  # then: 422

app = App()


@app.job(retries=5)
def write_log(job: Job, line: str, seconds: float = 0.0) -> None:
    """`seconds` stands for slow work. The id goes in front: a line that was written twice can be told by it."""
    time.sleep(seconds)
    with FILE.open("a", encoding="utf-8") as file:  # one write, which the kernel appends whole
        file.write(f"{job.id} {line}\n")


@app.post("/log")
def log(body: str, seconds: float = 0.0) -> str:
    """The core holds the answer until the store has the job; this worker is free at once."""
    if len(body) > LINE_LENGTH_MAX:
        raise HTTPError(422, f"a line has at most {LINE_LENGTH_MAX} characters")
    if not 0 <= seconds <= SECONDS_MAX:
        raise HTTPError(422, f"seconds: 0 to {SECONDS_MAX:.0f}")
    write_log.enqueue(" ".join(body.splitlines()), seconds=seconds)
    return "Doobie Doo"


@app.get("/log")
def written() -> dict[str, int]:
    """How many lines there are by now, and how many of them were written more than once."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    once = {line.partition(" ")[0] for line in lines}
    return {"lines": len(once), "again": len(lines) - len(once)}
