"""Which interface an application has, by what it can be called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

WsgiCallable: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def is_asgi(found: object) -> bool:
    """Whether it is a coroutine function of three arguments, or has one as `__call__`."""
    called = found if inspect.isfunction(found) or inspect.ismethod(found) else getattr(found, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(called) and _takes(found, 3)


def is_wsgi(found: object) -> bool:
    """Whether it can be called with an environment and `start_response`."""
    return callable(found) and not isinstance(found, type) and _takes(found, 2)


def _takes(found: Any, count: int) -> bool:
    try:
        inspect.signature(found).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True
