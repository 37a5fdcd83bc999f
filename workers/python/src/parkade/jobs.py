"""Jobs: functions that run later, in any worker, and survive whatever dies meanwhile. Made with `App.job`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import datetime
from functools import update_wrapper
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, cast
from uuid import UUID

from msgspec import Raw

from ._hooks import Hook
from ._job import new_id, text_of_id
from ._limits import RETRIES_MAX
from ._link import port
from ._sql.transactions import Transaction, open_transaction
from ._waits.wait import Wait, check_seconds
from ._wire import payloads as p
from ._wire.codec import encode_payload
from ._wire.ready import Job as ReadyJob
from .errors import InvalidJobId, SignatureError, WaitError
from .job_arguments import Signature, encode_arguments
from .job_client import Connection as Connection
from .job_client import connect as connect
from .job_options import checked_priority, checked_text, options
from .job_values import ResultWait

P = ParamSpec("P")
R = TypeVar("R")

QUEUE_DEFAULT = "default"  # that of a job of which nothing is said, here and in the core

Unique: TypeAlias = bool | Callable[..., str]
"""Whether one with the same arguments is the same job, or a function of the arguments that gives the key."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What `App.job` is told. Raises `SignatureError` for what no job can be.

    `usual` is what it makes of an enqueue that says nothing of its own, and `encoded` is that for ENQUEUE. It does not
    leave this to the core, which may not know the function yet: a start-up hook enqueues before READY.
    """

    name: str | None = None
    retries: int = 3
    deadline: float | None = None
    queue: str = QUEUE_DEFAULT
    priority: int = 0
    unique: Unique = False
    public: bool = True
    access: Hook | None = None
    usual: p.EnqueueOptions = field(init=False, repr=False)
    encoded: Raw = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            if not isinstance(self.retries, int) or not 0 <= self.retries <= RETRIES_MAX:
                raise ValueError(f"retries are 0 to {RETRIES_MAX}, not {self.retries!r}")
            if self.deadline is not None:
                check_seconds(self.deadline)
            checked_text("a queue", self.queue)
            checked_priority(self.priority)
            if not isinstance(self.public, bool):
                raise TypeError(f"public is True or False, not {self.public!r}")
            if self.access is not None and not self.public:
                raise ValueError("public=False has no address, so there is nobody whose access is asked about")
        except (TypeError, ValueError) as error:
            raise SignatureError(f"a job cannot be registered so: {error}") from error
        usual = p.EnqueueOptions(
            priority=self.priority or None, queue=None if self.queue == QUEUE_DEFAULT else self.queue
        )
        object.__setattr__(self, "usual", usual)
        object.__setattr__(self, "encoded", Raw(encode_payload(usual)))

    @property
    def told_access(self) -> Literal["public", "private", "sync", "async"]:
        """Who finds it at its address, for READY."""
        if self.access is not None:
            return "async" if self.access.asynchronous else "sync"
        return "public" if self.public else "private"


class JobFunction(Generic[P, R]):
    """A function that is a job. Called, it runs here and now as it always did; `enqueue` has a worker run it."""

    def __init__(self, function: Callable[P, R], policy: Policy) -> None:
        if not inspect.isroutine(function):
            raise SignatureError(f"a job is a function, not {function!r}")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise SignatureError(f"{function.__qualname__}: a job returns what it gives, it does not yield")
        update_wrapper(self, function)
        self.function = function
        self.signature = Signature(function)
        self.policy = policy
        self.asynchronous = inspect.iscoroutinefunction(function)

    @property
    def name(self) -> str:
        """What everybody knows the job by: its function's name unless it was given another."""
        return self.policy.name if self.policy.name is not None else self.function.__name__

    def fault(self) -> str | None:
        """Why it cannot be known by its name, or None."""
        if self.name == "<lambda>":
            return "a lambda has no name that others could enqueue it by: give it one with name="
        return p.fault_of_job(self.name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return cast("R", self.function(*args, **kwargs))

    def enqueue(
        self,
        *args: Any,
        delay: float | None = None,
        at: datetime | float | None = None,
        priority: int | None = None,
        key: str | None = None,
        queue: str | None = None,
        **kwargs: Any,
    ) -> Handle:
        """Has a worker run it with these arguments, which go by MessagePack and the function's annotations.

        In a handler, or a job, it is durable before that's answer leaves; if it cannot be, the answer is 507 or 503. A
        thread that a plain handler started, and a hook, does not wait for that. In `transaction()` it is enqueued when
        that commits.

        `delay`: seconds from now. `at`: when, a datetime with its time zone or seconds since 1970. `priority`: -1,000
        to 1,000, the higher first. `key`: 1 to 200 bytes; while a job of this name with this key has not ended, this
        one is that one. `priority` and `queue` are by default what `App.job` said.

        Raises `TypeError` for arguments that the function does not take or MessagePack cannot tell, `ValueError` over
        524,288 bytes, `WaitError` where there is no core.
        """
        name = self.name
        self.signature.check(name, args, kwargs)
        transaction = open_transaction()
        key = key if key is not None else self.key(args, kwargs)
        policy = self.policy
        told = options(delay, at, priority, key, queue, transaction is not None, policy.usual)
        encoded = policy.encoded if told is policy.usual else told
        id = new_id()
        job = encode_payload((id, name, encode_arguments(name, args, kwargs), encoded))
        port.port().enqueue(id, job, told.within)
        return Handle(id, transaction)

    def told(self) -> ReadyJob:
        """For READY."""
        policy = self.policy
        return ReadyJob(
            name=self.name,
            kind="async" if self.asynchronous else "sync",
            queue=policy.queue,
            retries=policy.retries,
            deadline=policy.deadline,
            priority=policy.priority,
            access=policy.told_access,
        )

    def key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """What `unique` makes of these arguments. Raises `TypeError`, `ValueError`, and what a function raises."""
        unique = self.policy.unique
        if callable(unique):
            return checked_text("a key", unique(*args, **kwargs))
        return self.signature.key(self.name, args, kwargs) if unique else None

    def __repr__(self) -> str:
        return f"<job {self.name}>"


class AsyncJobFunction(JobFunction[P, Any]):
    """One whose function is an async def: so is a call of it, for whoever looks."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        return await self.function(*args, **kwargs)


def make_job(function: Callable[P, R], policy: Policy) -> JobFunction[P, R]:
    """Raises `SignatureError` for a function that can be no job."""
    return (
        AsyncJobFunction(function, policy) if inspect.iscoroutinefunction(function) else JobFunction(function, policy)
    )


class Handle:
    """A job that was enqueued."""

    __slots__ = ("_asked", "_id", "_transaction")

    def __init__(self, id: bytes, transaction: Transaction | None = None) -> None:
        self._asked = self._id = id  # under which it was enqueued, and that it has
        self._transaction = transaction

    @classmethod
    def of(cls, id: str | UUID) -> Handle:
        """For an id that was kept. Raises `InvalidJobId`, a `ValueError` which answers 404, for what is no UUID."""
        try:
            return cls((id if isinstance(id, UUID) else UUID(id)).bytes)
        except (ValueError, TypeError, AttributeError) as error:  # UUID tries to read whatever it is given
            raise InvalidJobId(f"a job's id is a UUID, not {id!r:.100}") from error

    @property
    def id(self) -> str:
        """A UUID as text.

        With `key` or `unique` it is an id that no job has where there was one already, until the handle is awaited: a
        plain function, which cannot, hands out no ids of such jobs. `result` finds the other one all the same in the
        request that has enqueued.
        """
        return text_of_id(self._id)

    def result(self, timeout: float | None = None) -> Wait:
        """Until the job has ended, or for `timeout` seconds.

        Returned, what the job returned is the answer, 202 with its `Location` when the time is up. With `.then` and
        awaited it gives what the job returned (None when the time is up, too), and raises `JobError` for a job that
        has failed for good, was cancelled, or is not there.
        """
        return ResultWait(p.UntilResult(self._id, p.ResultOptions(None if timeout is None else check_seconds(timeout))))

    def __await__(self) -> Generator[Any, None, Handle]:
        """Until it is stored; then `id` is the one that it has: another's, when there was one with its key. Several may
        be awaited at the same time.

        Raises `Refused` when it cannot be stored, `WaitError` outside the coroutine that has enqueued it.
        """
        return self._stored().__await__()

    async def _stored(self) -> Handle:
        exchange = port.exchange.get()
        enqueued = None if exchange is None else exchange.enqueued
        if exchange is None or enqueued is None or self._asked not in enqueued:
            if exchange is not None and self._transaction is not None:
                raise WaitError("its transaction was rolled back: the job was not enqueued")
            raise WaitError("a job is awaited in the async def that enqueued it; elsewhere await its result()")
        self._id = await enqueued.id_of(self._asked, exchange)
        return self

    def __repr__(self) -> str:
        return f"<job {self.id}>"
