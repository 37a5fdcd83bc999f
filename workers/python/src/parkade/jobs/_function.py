"""A function that is a job: what `App.job` makes of it, and how it is enqueued."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, cast

from msgspec.structs import replace

from .._job import new_id
from .._link import port
from .._origin import source_of
from .._sql.open_transactions import open_transaction
from .._wire import payloads as p
from .._wire.codec import encode_payload
from .._wire.ready import Job as ReadyJob
from ..errors import SignatureError
from ._arguments import Signature
from ._handle import Handle
from ._options import checked_text, options
from ._policy import Policy
from ._script_transaction import open_here
from ._values import result_conversion

P = ParamSpec("P")
R = TypeVar("R")


class JobFunction(Generic[P, R]):
    """A function that is a job. A call runs it here and now, as before; `enqueue` has a worker run it."""

    def __init__(self, function: Callable[..., Any], policy: Policy) -> None:
        if not inspect.isroutine(function):
            raise SignatureError(f"a job is a function, not {function!r}")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise SignatureError(f"{function.__qualname__}: a job must return its result, not yield")
        update_wrapper(self, function)
        self._function = function
        self._signature = Signature(function)
        self._policy = policy
        self._convert = result_conversion(self.name, self._signature.returned)
        self._asynchronous = inspect.iscoroutinefunction(function)

    @property
    def name(self) -> str:
        """The job's name: that of its function, unless `App.job` was given another."""
        return self._policy.name if self._policy.name is not None else self._function.__name__

    def _fault(self) -> str | None:
        """Why its name cannot be a job's, or None."""
        if self.name == "<lambda>":
            return "a lambda has no name to enqueue it by: give it one with name="
        return p.fault_of_job(self.name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return cast("R", self._function(*args, **kwargs))

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Has a worker run it with these arguments, encoded as MessagePack and decoded by the function's annotations.
        The function's `Job` is not one of them. `options(…)` says when and how it runs.

        In a handler or a job it is stored before the response is sent; if it cannot be stored, the response is 507 or
        503. A hook, or a thread that a plain handler started, does not wait for that. In `transaction()` it is enqueued
        when the transaction commits.

        ```python
        @app.job
        def send(order: int) -> str:
            return f"order {order} is on its way"

        @app.post("/orders/{id:int}")
        def buy(id: int) -> Wait[str]:
            return send.enqueue(id).result(timeout=20)  # or send.enqueue(id), and an answer at once
        ```

        Raises `TypeError` for arguments that the function does not take, by their number or types, or that MessagePack
        cannot encode, `ValueError` over 524,288 bytes, `WaitError` where there is no core.
        """
        return self._enqueue(self._policy.usual, args, kwargs)

    def options(
        self,
        *,
        delay: float | None = None,
        at: datetime | float | None = None,
        priority: int | None = None,
        key: str | None = None,
        queue: str | None = None,
    ) -> JobWithOptions[P, R]:
        """The same job with options, such as when it runs.

        ```python
        @app.job
        def remind(order: int) -> None: ...

        @app.post("/reminders/{id:int}")
        def reminder(id: int) -> Status:
            remind.options(delay=3600, key=f"order {id}").enqueue(id)
            return Status(202)
        ```

        `delay`: seconds from now. `at`: when, a datetime with its time zone or seconds since 1970. `priority`: -1,000
        to 1,000, the higher first. `key`: 1 to 200 bytes; enqueuing returns the existing job while one of this name
        with this key is unfinished. `priority` and `queue` default to those of `App.job`.

        Raises `TypeError` and `ValueError` for options that no job can have.
        """
        return JobWithOptions(self, options(delay, at, priority, key, queue, self._policy.usual))

    def _enqueue(self, told: p.EnqueueOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Handle[R]:
        name, policy = self.name, self._policy
        arguments = self._signature.encode(name, args, kwargs)
        transaction = open_transaction()
        if policy.unique and told.key is None:
            told = replace(told, key=self._key(args, kwargs))
        if transaction is not None:
            told = replace(told, within=True)
        id = new_id()
        self._hand_over(id, arguments, told)
        return Handle(id, transaction, self._convert)

    def _send(self, id: bytes, arguments: bytes, told: p.EnqueueOptions) -> None:
        """Enqueues what is encoded, under that id."""
        self._hand_over(id, arguments, told if open_transaction() is None else replace(told, within=True))

    def _hand_over(self, id: bytes, arguments: bytes, told: p.EnqueueOptions) -> None:
        policy = self._policy
        encoded = policy.encoded if told is policy.usual else told
        payload = encode_payload((id, self.name, arguments, encoded))
        outside = open_here() if told.within else None
        if outside is None:
            port.port().enqueue(id, payload, told.within)
        else:
            outside.enqueue(payload)

    def _ready(self) -> ReadyJob:
        """For READY."""
        policy = self._policy
        return ReadyJob(
            name=self.name,
            kind="async" if self._asynchronous else "sync",
            queue=policy.queue,
            retries=policy.retries,
            deadline=policy.deadline,
            priority=policy.priority,
            access=policy.access_kind,
            source=source_of(self._function),
        )

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """The key that `unique` makes of the arguments. Raises `TypeError`, `ValueError`, and what `unique` raises."""
        unique = self._policy.unique
        if callable(unique):
            return checked_text("a key", unique(*args, **kwargs))
        return self._signature.key(self.name, args, kwargs) if unique else None

    def __repr__(self) -> str:
        return f"<job {self.name}>"


class JobWithOptions(Generic[P, R]):
    """A job with options. Make it with `JobFunction.options`."""

    __slots__ = ("_job", "_options")

    def __init__(self, job: JobFunction[P, R], options: p.EnqueueOptions) -> None:
        self._job = job
        self._options = options

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """As `JobFunction.enqueue`, with these options."""
        return self._job._enqueue(self._options, args, kwargs)

    def __repr__(self) -> str:
        return f"<job {self._job.name} with options>"


class AsyncJobFunction(JobFunction[P, R]):
    """A job whose function is an async def. `inspect` sees a call of it as a coroutine function's, too."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:  # type: ignore[override]
        return cast("R", await self._function(*args, **kwargs))


def make_job(function: Callable[..., Any], policy: Policy) -> JobFunction[..., Any]:
    """Makes a job of a function. Raises `SignatureError` for a function that cannot be one."""
    return (
        AsyncJobFunction(function, policy) if inspect.iscoroutinefunction(function) else JobFunction(function, policy)
    )
