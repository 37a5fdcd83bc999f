"""What the core answers for a job in a test: at its address, and where a request waits for its result."""

from __future__ import annotations

from typing import Any

import msgspec

from .._job import text_of_id
from .._requests.request import Request
from .._responses.encoding import inline
from .._responses.problems import problem_response
from .._responses.response import Response
from .._wire import payloads as p
from ..errors import HTTPError, JobError
from ._jobs import Enqueued

PATIENCE_MAX = 300.0  # seconds for which a client is held at most, however long it prefers to wait


def patience(request: Request) -> float | None:
    """How long the client wants to wait for a result: `Prefer: wait=20` (RFC 7240, section 4.3), in seconds."""
    for preference in request.headers.get("prefer", "").replace(";", ",").split(","):
        name, told, value = preference.strip().partition("=")
        if told and name.lower() == "wait":
            try:
                seconds = float(value.strip().strip('"'))
            except ValueError:
                return None
            return seconds if 0 <= seconds < float("inf") else None
    return None


def as_preferred(wait: p.Wait, request: Request) -> tuple[p.Wait, list[str]]:
    """A wait whose outcome is the answer, as short as its client prefers, and the headers that say so: nobody waits
    longer than the handler said.
    """
    seconds = patience(request)
    if seconds is None or not isinstance(wait, p.Next | p.UntilResult):
        return wait, []
    most = wait.options.timeout
    if most is not None and most < seconds:
        return wait, []
    return msgspec.structs.replace(wait, options=msgspec.structs.replace(wait.options, timeout=seconds)), applied(
        seconds
    )


def applied(seconds: float) -> list[str]:
    """The header of a preference that was honoured (RFC 7240, section 3)."""
    return ["preference-applied", f"wait={int(seconds) if seconds.is_integer() else seconds}"]


def wait_of_request(id: bytes, request: Request) -> p.UntilResult | p.Stream:
    """What a GET of a job's address waits for, at most: less if its client prefers."""
    if "text/event-stream" in request.headers.get("accept", ""):
        return p.Stream(channel_of(id), p.StreamOptions(request.cursor))
    return p.UntilResult(id, p.ResultOptions(0.0 if patience(request) is None else PATIENCE_MAX))


def channel_of(id: bytes) -> str:
    """The channel on which the job's progress is published."""
    return f"\x01jobs/{text_of_id(id)}"


def message_of(job: Enqueued) -> bytes:
    """The message that is published there."""
    return msgspec.json.encode(_described(job))


def answer_of_pending(job: Enqueued, jobs_path: str | None) -> p.Response:
    """The answer for a job that has not ended."""
    headers = {"cache-control": "no-store", "retry-after": "1"}
    if jobs_path is not None:
        headers["location"] = jobs_path.replace("{id:uuid}", job.id)
    return inline(Response({"id": job.id} | _described(job), 202, headers))


def answer_of_missing(id: bytes, request: Request) -> p.Response:
    """The answer when there is no such job."""
    return _problem(JobError("", reason="missing", id=text_of_id(id)), request)


def _problem(error: HTTPError, request: Request) -> p.Response:
    error.headers = {"cache-control": "no-store", "vary": "Accept, Prefer"}
    return inline(problem_response(error, request))


def answer_of_cancelled(job: Enqueued, request: Request) -> p.Response:
    """The answer for a DELETE."""
    match job.outcome:
        case p.Completed():
            return _problem(HTTPError(409, "the job has completed"), request)
        case p.NoResult(reason="dead"):
            return _problem(HTTPError(409, "the job has failed for good; there is nothing to cancel"), request)
        case _:
            return inline(Response({"id": job.id, "state": job.state}))


def _described(job: Enqueued) -> dict[str, Any]:
    if job.outcome is not None:
        return {"state": job.state}
    put_off = job.state == "ready" and not job.attempt and bool(job.told.options.delay or job.told.options.at)
    told: dict[str, Any] = {"state": "scheduled" if put_off else job.state, "attempt": job.attempt}
    if job.state == "running" and job.progress is not None:
        told["fraction"], told["text"] = job.progress
    return told
