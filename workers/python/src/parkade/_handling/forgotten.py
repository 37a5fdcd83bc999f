"""Notes that a handler, or a function after a wait, returned None and is not annotated so: perhaps by mistake."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .._log import log_warning
from .._routing.routes import Route
from .._validation.annotations import hints_of, members
from .._waits.functions import Function


def forgotten(route: Route) -> Callable[[], None] | None:
    """What to call when the handler of a route has returned None: it logs that once. None if the annotation of the
    handler admits it, so that nothing is to be noted.
    """
    if route.call is None:
        return None
    return _noting(f"{route.methods[0]} {route.pattern.path}: {route.name}", route.target)


def note_function(function: Function) -> None:
    """A function after a wait has returned None: logs that once, unless its annotation admits it."""
    if (note := _note_of(function.name, function.call)) is not None:
        note()


@functools.lru_cache(maxsize=1_024)
def _note_of(name: str, call: Callable[..., Any]) -> Callable[[], None] | None:
    return _noting(f"after a wait: {name}", call)


def _noting(what: str, function: Callable[..., Any]) -> Callable[[], None] | None:
    if _admits_none(function):
        return None

    @functools.cache
    def note() -> None:
        code = getattr(function, "__code__", None)
        place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
        log_warning(
            f"{what}{place} returned None, so the response is 204 without a body; "
            "if no `return` is missing, annotate it `-> None`"
        )

    return note


def _admits_none(target: Any) -> bool:
    while isinstance(target, functools.partial):
        target = target.func
    function = target if inspect.isroutine(target) else type(target).__call__
    try:
        hints = hints_of(function)
    except (NameError, TypeError):
        return True
    return "return" in hints and any(member is type(None) for member in members(hints["return"]))
