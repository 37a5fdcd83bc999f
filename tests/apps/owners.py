"""Access control for jobs: the owner may access them, according to the request's user. It also makes errors."""

from __future__ import annotations

import os
from contextlib import suppress

from gates import hold, hold_async
from jobs_ran import note

from parkade import HTTPError, JobError, Request, StoredJob, after
from parkade.jobs import Handle


def owner_only(request: Request, job: StoredJob) -> bool:
    """A plain function; `X-Gate` is where it waits."""
    note(f"asked {request.method} {job.id}")
    if (gate := request.headers.get("x-gate")) is not None:
        hold(gate)
    return _is_owner(request, job)


async def owner_only_async(request: Request, job: StoredJob) -> bool:
    """The same as a coroutine, which also waits in the core: after its gate, because a wait there gives its credit
    back. `X-First` is a job for which it waits as well.
    """
    note(f"asked {request.method} {job.id}")
    if (gate := request.headers.get("x-gate")) is not None:
        await hold_async(gate)
    await after(0.001, None)
    if (first := request.headers.get("x-first")) is not None:
        with suppress(JobError):
            await Handle.of(first).result(0)
    return _is_owner(request, job)


def _is_owner(request: Request, job: StoredJob) -> bool:
    match request.headers.get("x-user"):
        case None:
            raise HTTPError(401, headers={"www-authenticate": "Basic"})
        case "fails":
            raise ValueError("it does not know")
        case "dies":
            os._exit(1)
        case "waits":
            return after(1, True)  # type: ignore[return-value]
        case user:
            return bool(job.arguments["owner"] == user)
