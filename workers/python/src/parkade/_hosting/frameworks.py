"""Which framework a hosted application is of, also one that is within others."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType, ModuleType, NoneType
from typing import Any

from . import park
from .django_views import DjangoViews
from .flask_applications import FlaskApplications
from .framework import Framework
from .root_path import RootPath


def framework_of(application: Any, root_path: RootPath) -> Framework:
    """The framework of the application. `park` knows it from now on."""
    found = _found(application, root_path)
    park.place = found.place
    return found


def _found(application: Any, root_path: RootPath) -> Framework:
    if (flask := sys.modules.get("flask")) is not None and (applications := _within(application, flask.Flask)):
        return FlaskApplications(applications, root_path)
    return DjangoViews(root_path) if "django.core.handlers.base" in sys.modules else Framework()


def _within(application: Any, kind: type) -> list[Any]:
    """The application, and those within it, that are of this kind: the outer ones first."""
    found, seen, waiting = [], {id(application)}, deque([application])
    while waiting and len(seen) < _SEEN_MAX:
        one = waiting.popleft()
        is_found = issubclass(type(one), kind)  # a proxy claims to be of another class
        if is_found:
            found.append(one)
        for inner in [vars(one).get("wsgi_app")] if is_found else _held_by(one):
            if id(inner) not in seen and not issubclass(type(inner), _LEAVES):
                seen.add(id(inner))
                waiting.append(inner)
    return found


def _held_by(one: Any) -> Iterable[Any]:
    """What a middleware may keep its application in."""
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
