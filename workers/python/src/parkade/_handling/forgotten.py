"""Under `parkade dev`: notes that a handler returned None and is not annotated so, as when `return` is forgotten."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from typing import Any

from .._link.answers import Answer
from .._log import log_warning
from .._requests.request import Request
from .._routing.parameters import Call
from .._routing.routes import Route
from .._validation.annotations import hints_of, members
from .._wire import payloads as p


def noting(route: Route) -> Route:
    """The route, with a handler that is noted when it first returns None; as it is, if its annotation admits None."""
    if route.call is None or _admits_none(route.target):
        return route
    return dataclasses.replace(route, call=_noting(route, route.call))


def _noting(route: Route, call: Call) -> Call:
    noted = False

    def check(result: Any) -> Any:
        nonlocal noted
        if result is None and not noted:
            noted = True
            log_warning(_told(route))
        return result

    async def checked(result: Any) -> Any:
        return check(await result)

    def run(raw: p.Request, request: Request | None) -> Answer | Any:
        result = call(raw, request)
        return checked(result) if isinstance(result, types.CoroutineType) else check(result)

    return run


def _told(route: Route) -> str:
    code = getattr(route.target, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return (
        f"{route.methods[0]} {route.pattern.path}: {route.name}{place} returned None, so the response is 204 without a "
        "body; if no `return` is missing, annotate it `-> None`"
    )


def _admits_none(target: Any) -> bool:
    while isinstance(target, functools.partial):
        target = target.func
    function = target if inspect.isroutine(target) else type(target).__call__
    try:
        hints = hints_of(function)
    except (NameError, TypeError):
        return True
    return "return" in hints and any(member is type(None) for member in members(hints["return"]))
