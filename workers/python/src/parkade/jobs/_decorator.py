"""What `@app.job` makes of a function, as type checkers see it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from .._job import Job
from .._waits.wait import Wait
from ._function import AsyncJobFunction, JobFunction

P = ParamSpec("P")
R = TypeVar("R")


class MakeJob(Protocol):
    """Makes a function a job. Its result is what the function returns, awaits or waits for; a `Job` that is its first
    parameter is not one of its arguments. (Checkers know no other place for that. A first parameter that takes anything
    is an argument.)
    """

    @overload
    def __call__(self, function: JobFunction[P, R], /) -> JobFunction[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(
        self, function: Callable[Concatenate[object, P], Coroutine[Any, Any, R]], /
    ) -> JobFunction[Concatenate[object, P], R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[object, P], R], /) -> JobFunction[Concatenate[object, P], R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Job, P], Coroutine[Any, Any, R]], /) -> JobFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Job, P], Wait[R]], /) -> JobFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Job, P], R], /) -> JobFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncJobFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Wait[R]], /) -> JobFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...
