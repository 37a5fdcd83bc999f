"""A job that is a coroutine, in an application of ASGI."""

from __future__ import annotations

import json
from typing import Any

from gates import hold_async
from jobs_ran import note

from parkade import Job
from parkade.jobs import Jobs

jobs = Jobs(path="/jobs")


@jobs.job
async def wait_at(gate: str, job: Job) -> str:
    note(f"begin {gate} {job.attempt}")
    await hold_async(gate)
    return gate


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        raise ValueError("only HTTP")
    asked = json.loads((await receive())["body"])
    body = json.dumps([wait_at.enqueue(*asked["args"]).id]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})
