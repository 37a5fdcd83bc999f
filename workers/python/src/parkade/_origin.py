"""Where the application's functions were written, for people: `parkade routes`, the admin page, the page of a 404."""

from __future__ import annotations

import inspect
import os
from functools import partial
from types import CodeType, FrameType
from typing import Any


def handler_of(target: Any) -> str:
    """A function, or an object that is called like one, as `module:name`."""
    function = _innermost(target)
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def source_of(target: Any) -> str | None:
    """Where a function begins, with its decorators, as `file:line`; None for what is not written in Python."""
    function = _innermost(target)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return _place(code.co_filename, code.co_firstlineno) if isinstance(code, CodeType) else None


def line_of(frame: FrameType) -> str:
    """The line that runs in a frame, as `file:line`."""
    return _place(frame.f_code.co_filename, frame.f_lineno)


def _innermost(target: Any) -> Any:
    """The function that decorators, methods and partials call."""
    while True:
        inner = target.func if isinstance(target, partial) else getattr(target, "__func__", inspect.unwrap(target))
        if inner is target:
            return target
        target = inner


def _place(file: str, line: int) -> str:
    """Relative to the working directory if the file is in it."""
    folder = os.path.join(os.getcwd(), "")
    return f"{file.removeprefix(folder)}:{line}"
