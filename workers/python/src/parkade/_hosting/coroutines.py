"""Jobs and functions after waits, in the context of a framework; their coroutines also in a worker without a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from types import CoroutineType
from typing import Any, NoReturn

from .._link import port
from .._link.answers import Answer, Coming, Deferred, Plain
from ..errors import WaitError
from .framework import Framework
from .park import parked


def within(framework: Framework, run: Callable[..., Any]) -> Callable[..., Any]:
    """The same, in the context of the framework."""

    def begun(*arguments: Any) -> Any:
        answer = run(*arguments)
        if isinstance(answer, Plain):
            return Plain(partial(_call, framework, answer.run))
        if isinstance(answer, Deferred):
            return Deferred(partial(_call_async, framework, answer.begin), answer.occupies)
        return answer

    return begun


def blocking(framework: Framework, run: Callable[..., Any]) -> Callable[..., Answer]:
    """The same, with an answer at once: a coroutine has the worker to itself until it is over."""
    begin = within(framework, run)

    def answered(*arguments: Any) -> Answer:
        answer = begin(*arguments)
        if isinstance(answer, Plain):
            return answer.run()
        if isinstance(answer, Deferred):
            answer = answer.begin()
        if isinstance(answer, CoroutineType):
            return asyncio.run(_without_waits(answer))
        return answer  # type: ignore[no-any-return]

    return answered


def _call(framework: Framework, run: Callable[[], Answer]) -> Answer:
    try:
        with framework.context():
            return run()
    finally:
        _forget_parked()


async def _call_async(framework: Framework, begin: Callable[[], Coming]) -> Answer:
    try:
        with framework.context():
            return await begin()
    finally:
        _forget_parked()


def _forget_parked() -> None:
    """A function that calls `park` and then raises, or a job that calls it, leaves the wait behind."""
    if parked:
        parked.pop(port.stream(), None)


async def _without_waits(coming: Coming) -> Answer:
    port.exchange.set(_NoExchange())
    return await coming


class _NoExchange:
    """Says why nothing can be awaited."""

    occupies = streams = is_job = False
    enqueued = None

    async def wait(self, park: bytes) -> NoReturn:
        raise WaitError(
            "a worker of a WSGI application runs one thing at a time, so a wait cannot be awaited in it: return the "
            "wait, with .then for what comes after it"
        )
