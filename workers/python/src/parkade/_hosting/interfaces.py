"""Which interface an application has, by what it can be called with."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias

WsgiCallable: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

Message: TypeAlias = MutableMapping[str, Any]

AsgiCallable: TypeAlias = Callable[
    [dict[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


def is_asgi(found: object) -> bool:
    """Whether it can be called with a scope, `receive` and `send`, and awaited then."""
    if isinstance(found, type):
        return hasattr(found, "__await__") and _takes(found, 3)
    return callable(found) and _takes(found, 3) and (_is_coroutine_function(found) or not _takes(found, 2))


def is_asgi_2(found: object) -> bool:
    """Whether it is called with a scope alone, and what it returns with `receive` and `send`."""
    return callable(found) and _takes(found, 1) and not _takes(found, 2) and not _takes(found, 0)


def is_wsgi(found: object) -> bool:
    """Whether it can be called with an environment and `start_response`."""
    return callable(found) and not isinstance(found, type) and _takes(found, 2)


def is_factory(found: object) -> bool:
    """Whether it can be called without arguments, and not with those of an application."""
    return callable(found) and _takes(found, 0) and not _takes(found, 2) and not _takes(found, 3)


def refuses(found: object, count: int) -> bool:
    """Whether it surely cannot be called with so many arguments. Nobody knows what some callables in C take."""
    try:
        signature = inspect.signature(found)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return True
    return False


def _is_coroutine_function(found: Any) -> bool:
    while isinstance(found, functools.partial):
        found = found.func
    called = found if inspect.isroutine(found) else getattr(found, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(called)


def _takes(found: Any, count: int) -> bool:
    try:
        inspect.signature(found).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True
