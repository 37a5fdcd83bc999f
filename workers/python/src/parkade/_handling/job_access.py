"""Asks the application whether a client may access a job at its address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from .._link.answers import Answer, Coming, Deferred, Parked, Plain, Run, at_once
from .._routing.patterns import Pattern
from .._routing.routes import Route, park
from .._wire import payloads as p
from ..jobs import JobFunction
from ..jobs._access import access_route, verdict


class JobAccess:
    """The `access` functions of jobs by the jobs' names, compiled as handlers are."""

    def __init__(
        self,
        jobs: Mapping[str, JobFunction[..., Any]],
        pattern: Pattern,
        compile: Callable[[Route], Run],
        concurrent: bool,
        all_async: bool,
    ) -> None:
        self._jobs = jobs
        self._concurrent = concurrent
        self._all_async = all_async
        self._runs: dict[str, tuple[bool, Run]] = {}  # whether it is a coroutine, and the function
        for job in jobs.values():
            if job._policy.access is not None:
                route = access_route(job, job._policy.access, pattern)
                self._runs[job.name] = route.asynchronous, compile(route)

    def answer(self, raw: p.Request) -> Answer | Coming | Plain | Deferred:
        """Answers the core's question whether one client may access one job."""
        name = raw.parameters[1]
        if name not in self._runs:
            # Another version of the application has an `access` function for this job: this version's own rule counts.
            job = self._jobs.get(name)
            answer = Parked(park(verdict(job is not None and job._policy.public), None))
            return at_once(answer) if self._concurrent else answer
        asynchronous, run = self._runs[name]
        call = partial(run, raw)
        if not self._concurrent:
            return cast(Answer, call())
        if asynchronous:
            # An older version of the code may have registered a plain function: then the core waits for BEGAN.
            return Deferred(call)
        return Deferred(call, occupies=True) if self._all_async else Plain(call)
