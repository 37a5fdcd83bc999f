"""The stack of a coroutine that waits. The stack of a thread does not show it, because it is not running."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterable, Iterator
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from typing import Any

FRAMES_MAX = 100  # of one task, including the tasks that it waits for; then: the rest is left out


def print_overdue(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Prints where each of these is, to the log."""
    for task in tasks:
        lines = ["A coroutine that was cancelled but is still running (most recent call first):"]
        print(*lines, *_stack_of(task), sep="\n", file=sys.stderr, flush=True)


def _stack_of(task: asyncio.Task[Any]) -> list[str]:
    """The lines where it is waiting, most recent call first, in the form of `faulthandler` for threads."""
    found = [
        f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}'
        for frame, _ in zip(_frames(task), range(FRAMES_MAX), strict=False)
    ]
    return found[::-1]


def _frames(awaited: object) -> Iterator[FrameType]:
    """From the outermost inwards; if it waits for several, one after the other."""
    seen: set[int] = set()
    waiting = [awaited]
    while waiting:
        awaited = waiting.pop()
        if awaited is None or id(awaited) in seen:
            continue
        seen.add(id(awaited))
        match awaited:
            case CoroutineType():
                frame, behind = awaited.cr_frame, [awaited.cr_await]
            case AsyncGeneratorType():
                frame, behind = awaited.ag_frame, [awaited.ag_await]
            case GeneratorType():
                frame, behind = awaited.gi_frame, [awaited.gi_yieldfrom]
            case asyncio.Task():
                frame, behind = None, [awaited.get_coro()]
            case asyncio.Future():
                frame, behind = None, list(getattr(awaited, "_children", ()))  # those of `asyncio.gather`
            case _:  # an iterator in between, which does not show its owner
                frame, behind = None, [one for one in gc.get_referents(awaited) if isinstance(one, _WAITING)]
        if frame is not None:
            yield frame
        waiting += reversed(behind)


_WAITING = (CoroutineType, AsyncGeneratorType, GeneratorType, asyncio.Future)
