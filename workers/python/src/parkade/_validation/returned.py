"""What a function says that it returns. A number is JSON, so one that was meant as a status has to be found: by what
stands in its code, when the application loads.
"""

from __future__ import annotations

import dis
import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any, TypeGuard

from .._log import log_warning
from ..errors import SignatureError
from .annotations import bare, hints_of, members

_STATUSES = range(100, 600)


def check_returned(function: Callable[..., Any]) -> None:
    """Raises `SignatureError` for a function that returns a bare status; warns where it may be meant as a number."""
    told = f"{getattr(function, '__qualname__', repr(function))}{inspect.signature(function)}"
    if statuses := bare_statuses(function):
        raise SignatureError(
            f"{told} returns {', '.join(map(str, statuses))}, and a number is JSON: write Status({statuses[0]}) "
            "for the status, or annotate the function `-> int` if the number is the answer"
        )
    if is_always_a_status(function):
        log_warning(
            f"{told} always returns a number that could be a status: it is sent as JSON; for a status, return Status(…)"
        )


def bare_statuses(function: Callable[..., Any]) -> list[int]:
    """The numbers that a function returns as they stand in its code and that would be statuses, if it does not say that
    it returns a number: `return 404`.
    """
    return [] if _declares_number(function) else sorted(set(_literals(function)))


def is_always_a_status(function: Callable[..., Any]) -> bool:
    """Whether a function says that it returns a number, and returns nothing but numbers that would be statuses."""
    returned = list(_returned(function))
    return bool(returned) and all(_is_status(value) for value in returned) and _declares_number(function)


def _literals(function: Callable[..., Any]) -> Iterator[int]:
    return (value for value in _returned(function) if _is_status(value))


def _is_status(value: object) -> TypeGuard[int]:
    return type(value) is int and value in _STATUSES


_COMPUTED = object()


def _returned(function: Callable[..., Any]) -> Iterator[object]:
    """What each `return` gives: a constant of the code, or `_COMPUTED`."""
    while isinstance(function, functools.partial):
        function = function.func
    method = function if inspect.isroutine(function) else type(function).__call__
    code = getattr(method, "__code__", None)
    if code is None or inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        return
    before: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RETURN_CONST":
            yield instruction.argval
        elif instruction.opname == "RETURN_VALUE":
            is_constant = before is not None and before.opname in ("LOAD_CONST", "LOAD_SMALL_INT")
            yield before.argval if is_constant and before is not None else _COMPUTED
        before = instruction


def _declares_number(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    try:
        told = hints_of(function if inspect.isroutine(function) else type(function).__call__).get("return", _COMPUTED)
    except (NameError, TypeError):
        return True  # it says something
    return told is not _COMPUTED and any(_admits_number(member) for member in members(told))


def _admits_number(annotation: Any) -> bool:
    """Whether a number is of that type; True where that cannot be told."""
    kind = bare(annotation)
    kind = typing.get_origin(kind) or kind
    if kind is type(None):
        return False
    if not isinstance(kind, type):
        return True
    try:
        return kind is float or issubclass(int, kind) or (issubclass(kind, int) and not issubclass(kind, HTTPStatus))
    except TypeError:
        return True
