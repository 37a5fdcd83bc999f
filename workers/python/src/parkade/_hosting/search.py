"""Applications that are within others: in middleware, or mounted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType, ModuleType, NoneType
from typing import Any


def within(application: Any, *kinds: type) -> list[Any]:
    """The application, and those within it, that are of these kinds: the outer ones first."""
    found, seen, waiting = [], {id(application)}, deque([application])
    while waiting and len(seen) < _SEEN_MAX:
        one = waiting.popleft()
        if issubclass(type(one), kinds):  # a proxy claims to be of another class
            found.append(one)
        for inner in _held_by(one):
            if id(inner) not in seen and not issubclass(type(inner), _LEAVES):
                seen.add(id(inner))
                waiting.append(inner)
    return found


def _held_by(one: Any) -> Iterable[Any]:
    """What a middleware may keep its application in, and an application what is mounted in it. The views of Flask and
    Quart may use others, but do not serve them.
    """
    for name in ("wsgi_app", "asgi_app"):
        if hasattr(type(one), name):
            return (vars(one).get(name),)
    match one:
        case dict():
            return one.values()
        case list() | tuple():
            return one
        case MethodType():
            return one.__self__, one.__func__
        case partial():
            return one.func, *one.args, *one.keywords.values()
        case FunctionType():
            used = (one.__globals__.get(name) for name in one.__code__.co_names)
            return *_cells(one), *vars(one).values(), *used
    try:
        return tuple(object.__getattribute__(one, "__dict__").values())
    except AttributeError:
        return ()


def _cells(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # it is empty
            yield cell.cell_contents


_LEAVES = (ModuleType, type, NoneType, str, bytes, int, float)
_SEEN_MAX = 5_000  # objects; then: those further within are not found
