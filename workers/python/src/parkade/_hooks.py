"""Functions of the application that run around its handlers: those of the application, and those of each router."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ._cors import Cors
from ._requests.request import Request
from ._validation.returned import check_returned
from .errors import HTTPError, SignatureError


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook, and whether it is an async def."""

    function: Callable[..., Any]
    asynchronous: bool


def make_hook(function: Callable[..., Any], arguments: int, what: str) -> Hook:
    """Checks that the function takes this many arguments. Raises `SignatureError`."""
    signature = inspect.signature(function)
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        raise SignatureError(f"{_name(function)}{signature}: {what}") from None
    check_returned(function)
    return Hook(function, is_asynchronous(function))


def make_after_hook(function: Callable[..., Any]) -> Hook:
    """Checks that the function takes the request, and then the response. Raises `SignatureError`."""
    what = "an after hook takes the request and the response"
    hook = make_hook(function, 2, what)
    signature = inspect.signature(function)
    meant = [_meant(parameter) for parameter in signature.parameters.values()]
    if meant[:1] == ["response"] or meant[1:2] == ["request"]:
        raise SignatureError(f"{_name(function)}{signature}: {what}, in this order")
    return hook


def _meant(parameter: inspect.Parameter) -> str:
    """Whether a parameter of an after hook looks like the request or the response, by its annotation or else its name;
    the hook is called by position.
    """
    annotation = parameter.annotation
    told = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if told in ("Request", "Response"):
        return told.lower()
    return {"req": "request", "res": "response", "resp": "response"}.get(parameter.name, parameter.name)


@dataclass(frozen=True, slots=True)
class ErrorHook:
    """An error handler; `takes` says, for each parameter, whether it gets the request or the error."""

    function: Callable[..., Any]
    asynchronous: bool
    takes: tuple[str, ...]

    def call(self, request: Request | None, error: BaseException) -> Any:
        """Calls it. What comes back may be a coroutine."""
        return self.function(*(request if wanted == "request" else error for wanted in self.takes))


@dataclass(slots=True)
class ErrorHandlers:
    """Error handlers by status and by type of exception."""

    by_status: dict[int, ErrorHook] = field(default_factory=dict)
    by_type: dict[type[BaseException], ErrorHook] = field(default_factory=dict)

    def add(self, key: int | type[BaseException], function: Callable[..., Any]) -> None:
        """Registers `function` for a status or a type.

        Raises `SignatureError` for parameters that are neither request nor error.
        """
        hook = ErrorHook(function, is_asynchronous(function), tuple(_takes(function)))
        check_returned(function)
        if isinstance(key, int):
            self.by_status[key] = hook
        else:
            self.by_type[key] = hook

    def find(self, error: BaseException, status: int) -> ErrorHook | None:
        """The handler of the nearest type, else of the status.

        A handler for `Exception` is for faults, so not for an `HTTPError`, which is an intended answer.
        """
        for kind in type(error).__mro__:
            if kind in self.by_type and not (kind is Exception and isinstance(error, HTTPError)):
                return self.by_type[kind]
        return self.by_status.get(status)

    def expect(self, error: BaseException) -> bool:
        """Whether there is a handler for its type, or for a base class other than `Exception`."""
        return any(kind in self.by_type for kind in type(error).__mro__ if kind is not Exception)

    def hooks(self) -> Iterator[ErrorHook]:
        """All error handlers."""
        yield from self.by_status.values()
        yield from self.by_type.values()

    def __bool__(self) -> bool:
        return bool(self.by_status or self.by_type)


@dataclass(slots=True, eq=False)
class Hooks:
    """The hooks and error handlers of an application, or of one router. More may be added until the worker starts."""

    before: list[Hook] = field(default_factory=list)
    after: list[Hook] = field(default_factory=list)
    errors: ErrorHandlers = field(default_factory=ErrorHandlers)
    cors: Cors | None = None  # the policy for other origins

    def asynchronous(self) -> bool:
        """Whether one of them is an async def."""
        hooks: tuple[Hook | ErrorHook, ...] = (*self.before, *self.after, *self.errors.hooks())
        return any(hook.asynchronous for hook in hooks)


class Around:
    """All hooks and error handlers around a handler, from its own router, which comes first in `scopes`, outwards.

    What the application does before comes first, and what it does after comes last. `keeps_requests`: a function after
    a wait is called with its request, also if it does not ask for it, as where hooks or handlers may follow.
    """

    __slots__ = ("after", "asynchronous", "before", "errors", "keeps_requests")

    def __init__(self, scopes: Sequence[Hooks], keeps_requests: bool = False) -> None:
        self.before = [hook for scope in reversed(scopes) for hook in scope.before]
        self.after = [hook for scope in scopes for hook in scope.after]
        self.errors = [scope.errors for scope in scopes if scope.errors]
        self.asynchronous = any(scope.asynchronous() for scope in scopes)
        self.keeps_requests = bool(keeps_requests or self.after or self.errors)

    def find(self, error: BaseException, status: int) -> ErrorHook | None:
        """The error handler of the nearest router that has one for this error."""
        found = (handlers.find(error, status) for handlers in self.errors)
        return next((hook for hook in found if hook is not None), None)

    def expect(self, error: BaseException) -> bool:
        """As `ErrorHandlers.expect`, for any of the routers."""
        return any(handlers.expect(error) for handlers in self.errors)


def _takes(function: Callable[..., Any]) -> Iterator[str]:
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise SignatureError(f"{_name(function)}: {error}") from None
    for name in inspect.signature(function).parameters:
        kind = hints.get(name)
        if kind is Request or (kind is None and name == "request"):
            yield "request"
        elif kind is None or (isinstance(kind, type) and issubclass(kind, BaseException)):
            yield "error"
        else:
            raise SignatureError(
                f"{_name(function)}: an error handler takes the request and the error, not {name}: {kind}"
            )


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))


def is_asynchronous(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine or an asynchronous generator."""
    if isinstance(function, partial):
        return is_asynchronous(function.func)
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004 (the method itself is wanted)
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


async def settle(hook: Hook | ErrorHook, result: Any) -> Any:
    """Awaits what an asynchronous hook returned; passes on what any other returned."""
    return await result if hook.asynchronous else result
