"""Access to a job at its address: the `access` function, and the route that runs it as a handler."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from .._hooks import Hook, make_hook
from .._requests.request import Request, once
from .._routing.patterns import Pattern
from .._routing.routes import Route
from .._waits.wait import Wait
from .._wire import payloads as p
from ..errors import InvalidResult, SignatureError
from ._function import JobFunction


class StoredJob:
    """A job in the store: the argument of an `access` function.

    `id` is a UUID as text, `name` the job's.
    """

    id: str
    """A UUID as text."""

    def __init__(self, id: str, function: JobFunction[..., Any], arguments: bytes) -> None:
        self.id = id
        self._function = function
        self._arguments = arguments

    @property
    def name(self) -> str:
        """The name under which it is stored."""
        return self._function.name

    @once
    def arguments(self) -> Mapping[str, Any]:
        """The arguments that it was enqueued with, by the names and annotations of its function's parameters, defaults
        included.

        Raises `TypeError` for arguments that the function no longer takes.
        """
        return self._function._signature.named(self.name, self._arguments)

    def __repr__(self) -> str:
        return f"<StoredJob {self.name} {self.id}>"


Access: TypeAlias = Callable[[Request, StoredJob], bool] | Callable[[Request, StoredJob], Awaitable[bool]]
"""Whether the client of this request may read and cancel this job."""


def make_access(function: Access) -> Hook:
    """Checks the function. Raises `SignatureError`."""
    if not callable(function) or inspect.isclass(function):
        raise SignatureError(f"access is a function of the request and the job, not {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SignatureError(f"{function.__qualname__}: an access function must return True or False, not yield")
    return make_hook(function, 2, "access takes the request and the job")


class AccessRoute(Route):
    """The address of jobs, as the route of a handler that is given a client's request and says whether it may."""

    __slots__ = ()

    def request(self, raw: p.Request) -> Request:
        """The client's request: what else the core has sent is about the job."""
        return super().request(replace(raw, parameters=raw.parameters[:1], body=b""))


def access_route(job: JobFunction[..., Any], access: Hook, pattern: Pattern) -> AccessRoute:
    """The route that runs the `access` function of this job."""

    def asked(raw: p.Request, request: Request | None) -> Any:
        stored = StoredJob(raw.parameters[0], job, raw.body or b"")
        return access.function(request if request is not None else route.request(raw), stored)

    def call(raw: p.Request, request: Request | None) -> Wait:
        return _verdict(asked(raw, request))

    async def call_async(raw: p.Request, request: Request | None) -> Wait:
        return _verdict(await asked(raw, request))

    target: Any = call_async if access.asynchronous else call
    route = AccessRoute(("GET", "DELETE"), pattern, target, None, "job", target)
    return route


def verdict(granted: bool) -> Wait:
    """The answer to the core: whether the client may have the job."""
    return Wait(p.Access(granted))


def _verdict(result: object) -> Wait:
    if not isinstance(result, bool):
        raise InvalidResult(
            f"returned {result!r}: access must return True or False at once, or raise HTTPError; an async def may "
            "await first"
        )
    return verdict(result)
