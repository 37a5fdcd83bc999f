"""Runs an attempt of a job. The result is always how it ended, or what it waits for."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from functools import partial
from typing import Any

from .._job import Job, beginning_of, job_of_run
from .._limits import JOB_ERROR_MAX, JOB_KEPT_MAX
from .._link import port
from .._link.answers import FAULTS, Answer, Attempted, Deferred, Parked, Plain
from .._log import log_error, log_fault
from .._sql.outcomes import shape_of
from .._sql.transactions import Statement
from .._waits.functions import encode_state
from .._waits.wait import Wait, encode_park
from .._wire import frames as f
from .._wire import payloads as p
from .._wire.codec import encode_payload
from ..errors import Discard, InvalidResult, Retry, WaitError
from ._function import JobFunction
from ._values import encode_result


def run_job(function: JobFunction[..., object] | None, stream: int, run: p.Run) -> Answer | Plain | Deferred:
    """Runs the job. `function` is None when the application has no job of that name."""
    if function is None:
        return _error("unknown", f"the application has no job {run.name!r}")
    job = job_of_run(run, stream)

    def call() -> Any:
        args, kwargs = function._signature.decode(run.name, run.arguments, job)
        return function._function(*args, **kwargs)

    if function._asynchronous:
        return Deferred(partial(attempt_async, job, call))
    return Plain(partial(attempt, job, call))


def attempt(job: Job, call: Callable[[], Any]) -> Answer:
    """Calls the job's function, or the one that continues after a wait."""
    try:
        return _finish(job, call())
    except FAULTS as error:
        return failure(job, error)


async def attempt_async(job: Job, call: Callable[[], Any]) -> Answer:
    """As `attempt`, of a coroutine."""
    if (exchange := port.exchange.get()) is not None:
        exchange.is_job = True
    try:
        return _finish(job, await call())
    except CancelledError as error:
        if job.cancelled:
            raise
        return failure(job, error)  # raised by the job itself
    except FAULTS as error:
        return failure(job, error)


def failure(job: Job, error: BaseException) -> Attempted:
    """How an attempt ends that raised this error; logs it unless it was raised on purpose."""
    match error:
        case Retry(after=after):
            reason = str(error) or _reason(error.__cause__ or error.__context__) or "Retry was raised"
            return _error("retry", reason, after)
        case Discard():
            return _error("discard", str(error))
        case InvalidResult():
            text = f"{_told(job)}: it {error}" if str(error).startswith("returned") else f"{_told(job)}: {error}"
            log_fault(text, job=_named(job))
        case _:
            log_error(_told(job), error, job=_named(job))
    return _error("application", _reason(error))


def give(value: Any) -> Any:
    """Called after a wait that a job has returned: what the wait gave is the job's result."""
    return value


class Kept:
    """A result that was encoded before the wait."""

    __slots__ = ("result",)

    def __init__(self, result: bytes) -> None:
        self.result = result


def give_kept(result: bytes) -> Kept:
    """Called after `after(seconds, value)`."""
    return Kept(result)


def _finish(job: Job, result: object) -> Answer:
    if result is None:
        return _NOTHING
    if isinstance(result, Wait):
        return _park(job, result)
    encoded = result.result if isinstance(result, Kept) else encode_result(result)
    return Attempted(f.RESULT, encode_payload((encoded,)))


def _park(job: Job, wait: Wait) -> Parked:
    if isinstance(wait, Statement):
        raise InvalidResult("returned a query of a transaction, which ends with its block: await it there")
    if isinstance(wait._wait, p.Stream | p.File | p.Files):
        raise WaitError("a job cannot return a stream or a file: for messages, call channel(name).next() repeatedly")
    if wait._function is None:
        is_timer = isinstance(wait._wait, p.Timer)
        wait = wait.then(give_kept, result=_kept(wait._response)) if is_timer else wait.then(give)
    wait._used = True
    if wait._function is None:
        raise InvalidResult("returned a wait without a function that continues")
    name = wait._function.name
    state = encode_state(name, wait._state, None, shape_of(wait._wait), job._carried())
    return Parked(encode_park(wait._wait, ("call", name, state, wait._function.kind)))


def _kept(value: object) -> bytes:
    """An encoded result that is kept during a wait. Raises `InvalidResult` for one that is too long for that."""
    result = encode_result(value)
    if len(result) > JOB_KEPT_MAX:
        raise InvalidResult(
            f"returned a wait for a result of {len(result)} bytes: a wait keeps at most {JOB_KEPT_MAX}; "
            "return after(…).then(a function that makes them), or await it in an async def"
        )
    return result


def _error(reason: str, text: str, *after: float | None) -> Attempted:
    return Attempted(f.ERROR, encode_payload((reason, beginning_of(text, JOB_ERROR_MAX), *after)))


def _reason(error: BaseException | None) -> str:
    if error is None:
        return ""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _named(job: Job) -> str:
    return f"{job.name} {job.id}"


def _told(job: Job) -> str:
    return f"job {job.name} {job.id}, attempt {job.attempt}"


_NOTHING = Attempted(f.RESULT, encode_payload((encode_result(None),)))
