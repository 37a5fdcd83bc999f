"""The jobs of an application: which there are, the limits of their queues, which recur."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, overload

from .._job import Job
from .._routing.patterns import Pattern, parse
from .._waits.wait import Wait
from .._wire import ready as r
from ..errors import SignatureError
from ._access import Access, make_access
from ._arguments import encode_arguments
from ._decorator import MakeJob
from ._function import AsyncJobFunction, JobFunction, make_job
from ._options import checked_text
from ._policy import Policy, Unique
from ._schedules import Missed, Schedule
from ._schedules import cron as cron_schedule
from ._schedules import every as every_schedule

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class JobRegistry:
    """The part of a `Router` that is about jobs."""

    jobs: dict[str, JobFunction[..., Any]]
    """The jobs by their names: `app.jobs[name].enqueue(…)` for a name that is not known before."""

    def __init__(self) -> None:
        self.jobs = {}
        self._jobs_pattern: Pattern | None = None  # of the address at which they are found
        self._implied: set[str] = set()  # jobs only because they recur: `job` may still give them options
        self._queues: dict[str, r.QueueOptions] = {}
        self._recurring: dict[str, tuple[Schedule, JobFunction[..., Any]]] = {}

    @overload
    def job(
        self, function: Callable[Concatenate[object, P], Coroutine[Any, Any, R]], /
    ) -> JobFunction[Concatenate[object, P], R]: ...
    @overload
    def job(self, function: Callable[Concatenate[object, P], R], /) -> JobFunction[Concatenate[object, P], R]: ...
    @overload
    def job(self, function: Callable[Concatenate[Job, P], Coroutine[Any, Any, R]], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[Concatenate[Job, P], Wait[R]], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[Concatenate[Job, P], R], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncJobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[P, Wait[R]], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...
    @overload
    def job(
        self,
        *,
        name: str | None = ...,
        retries: int = ...,
        deadline: float | None = ...,
        queue: str = ...,
        priority: int = ...,
        unique: Unique = ...,
        public: bool = ...,
        access: Access | None = ...,
    ) -> MakeJob: ...
    def job(
        self,
        function: Any = None,
        *,
        name: str | None = None,
        retries: int = 3,
        deadline: float | None = None,
        queue: str = "default",
        priority: int = 0,
        unique: Unique = False,
        public: bool = True,
        access: Access | None = None,
    ) -> Any:
        """Makes a function a job: `@app.job` or `@app.job(retries=5)`, then `function.enqueue(…)`.

        ```python
        @app.job(retries=5)
        def write_log(line: str) -> None: ...

        @app.post("/log")
        def log(body: str) -> Status:
            write_log.enqueue(body)
            return Status(202)
        ```

        It runs at least once. When it raises, or its worker dies, it is retried up to `retries` times, with growing
        pauses. `name` identifies it, for later versions of the application too (by default the function's name).
        `deadline`: seconds for one attempt (0 for none, None for the server's). `unique`: with True, enqueuing returns
        the existing job while one with the same arguments is unfinished; a function of the arguments gives a text to
        compare instead. `public`: with False, no client finds the job under `jobs_path`, whatever ids it knows; a
        handler may still return its `result()`. `access`: a function of the request and the job (`StoredJob`), plain
        or an async def, that decides for each request under `jobs_path`: True lets the client in, False answers as if
        there were no such job; it may also raise `HTTPError`. A handler that returns its `result()` decides for itself.

        Raises `SignatureError` for a function that cannot be a job, and for a second job of the same name.
        """
        hook = None if access is None else make_access(access)
        policy = Policy(name, retries, deadline, queue, priority, unique, public, hook)

        def register(function: Callable[..., Any]) -> JobFunction[..., Any]:
            return self._add(function, policy)

        return register if function is None else register(function)

    def queue(self, name: str, *, concurrency: int | None = None, rate: float | None = None) -> None:
        """Limits a queue of jobs: how many run at a time, how many begin in a second.

        Raises `ValueError` for an invalid name or limit, and for a queue that has limits already.
        """
        self._check_open()
        if checked_text("the name of a queue", name) in self._queues:
            raise ValueError(f"the queue {name!r} has limits already")
        if concurrency is not None and (not isinstance(concurrency, int) or not 1 <= concurrency <= 0xFFFF_FFFF):
            raise ValueError(f"the concurrency of a queue is an integer of 1 or more, not {concurrency!r}")
        if rate is not None and not (isinstance(rate, int | float) and 0 < rate <= 1e15):
            raise ValueError(f"the rate of a queue is a number above 0, not {rate!r}")
        self._queues[name] = r.QueueOptions(concurrency, rate)

    def every(self, period: str | float | timedelta, *, missed: Missed = "once", name: str | None = None) -> MakeJob:
        """Enqueues a job at regular intervals: `@app.every("5 minutes")`, or a number of seconds. Over or under
        `@app.job`; a function that is not a job becomes one.

        `missed` says what to do about times that passed while no server ran: `once` (one run for all of them), `skip`,
        `all`. `name` identifies the schedule in the store. By default it is the job's name; a second schedule of the
        same job appends itself, as in `report every 300 s`.

        Raises `SignatureError` for a job that needs arguments.
        """
        return self._recur(every_schedule(period, missed), name)

    def cron(self, fields: str, *, timezone: str = "UTC", missed: Missed = "once", name: str | None = None) -> MakeJob:
        """As `every`, at times of the day: minute, hour, day, month, weekday, in a zone of the IANA database.

        When the clocks change, a time that is skipped runs at the next one that exists; a time that occurs twice runs
        once.
        """
        return self._recur(cron_schedule(fields, timezone, missed), name)

    # For workers

    def _ready_jobs(self) -> list[r.Job]:
        """The jobs, for READY."""
        return [job._ready() for job in self.jobs.values()]

    def _ready_queues(self) -> list[r.Queue]:
        """The queues that have limits, for READY."""
        return [r.Queue(name, options) for name, options in self._queues.items()]

    def _ready_recurring(self) -> list[r.Recurring]:
        """The recurring jobs, for READY. Raises `SignatureError` where `unique` gives no key without arguments."""
        return [
            schedule.ready(name, job.name, encode_arguments(job.name, (), {}), _key_of(job))
            for name, (schedule, job) in self._recurring.items()
        ]

    def _ready_job_routes(self) -> list[r.Route]:
        """The route at which the core answers for jobs."""
        if not self.jobs or self._jobs_pattern is None:
            return []
        return [r.Route(methods=["GET", "DELETE"], path=self._jobs_pattern.path, kind="job", name="job")]

    def _add(self, function: Callable[..., Any], policy: Policy) -> JobFunction[..., Any]:
        if isinstance(function, JobFunction):
            return self._say_more(function, policy)
        job = make_job(function, policy)
        self._enter(job)
        return job

    def _say_more(self, job: JobFunction[P, R], policy: Policy) -> JobFunction[P, R]:
        if job.name not in self._implied or self.jobs.get(job.name) is not job:
            raise SignatureError(f"{job.name} is a job already")
        self._implied.discard(job.name)
        del self.jobs[job.name]
        job._policy = policy
        self._enter(job)
        return job

    def _adopt(self, other: JobRegistry) -> None:
        """Takes the jobs, queues and schedules of another one. Raises `SignatureError` for a name that is taken."""
        for job in other.jobs.values():
            if self.jobs.get(job.name) is not job:
                self._enter(job)
        self._implied |= other._implied
        _merge("queues with limits", self._queues, other._queues)
        _merge("recurring jobs", self._recurring, other._recurring)

    def _check_open(self) -> None:
        """Raises `SignatureError` if nothing may be registered any more."""

    def _enter(self, job: JobFunction[P, R]) -> None:
        self._check_open()
        if (reason := job._fault()) is not None:
            raise SignatureError(reason)
        if job.name in self.jobs:
            raise SignatureError(f"two jobs are named {job.name!r}: rename one of them with name=")
        self.jobs[job.name] = job

    def _recur(self, schedule: Schedule, name: str | None) -> MakeJob:
        def register(function: Any) -> Any:
            self._check_open()
            if isinstance(function, JobFunction):
                job = function
            else:
                job = self._add(function, Policy())
                self._implied.add(job.name)
            try:
                job._signature.check(job.name, (), {})
            except TypeError as error:
                raise SignatureError(f"a recurring job is called without arguments: {error}") from error
            self._recurring[self._name_of(schedule, job, name)] = (schedule, job)
            return job

        return cast(MakeJob, register)

    def _name_of(self, schedule: Schedule, job: JobFunction[P, R], name: str | None) -> str:
        if name is None:
            name = job.name if job.name not in self._recurring else f"{job.name} {schedule}"
        if name in self._recurring:
            raise SignatureError(f"two recurring jobs are named {name!r}: rename one of them with name=")
        return checked_text("the name of a recurring job", name)


def _merge(what: str, own: dict[str, T], others: dict[str, T]) -> None:
    for name, value in others.items():
        if own.setdefault(name, value) is not value:
            raise SignatureError(f"two {what} are named {name!r}")


def pattern_of_jobs(path: str) -> Pattern:
    """The pattern of a job's address. A slash at the end of the path is the one before the id."""
    if "{" in path or "}" in path:
        raise SignatureError(f"jobs_path must not have parameters, because it is the same for all jobs: {path!r}")
    return parse(f"{path.removesuffix('/')}/{{id:uuid}}")


def _key_of(job: JobFunction[..., Any]) -> str | None:
    try:
        return job._key((), {})
    except Exception as error:
        raise SignatureError(
            f"{job.name} is a recurring job, so its unique is called without arguments: {error}"
        ) from error
