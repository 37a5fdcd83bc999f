"""Calls the function that continues after a wait, for a request or a job."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from .._job import Job
from .._link import port
from .._link.answers import FAULTS, Answer, Coming, Deferred, Plain
from .._requests.request import Request
from .._waits.functions import Function, decode_state, find
from .._waits.groups import give
from .._wire import payloads as p
from ..jobs._runs import attempt, attempt_async, failure
from ..jobs._values import value_of
from .calling import Calling, PlainCalling
from .failures import Failures
from .forgotten import note_function
from .results import Results
from .scopes import Scope, Scopes
from .socket_messages import SocketMessages

_PLAIN = PlainCalling()

_Prepare: TypeAlias = Callable[[], Callable[[], Any]]
"""Makes a call from the state of a wait and its outcome. Raises the errors of decoding them."""


class Continuations:
    """Calls functions by the names that were kept with waits. Where a hook around the route is a coroutine, a plain
    function is called from one.
    """

    def __init__(self, scopes: Scopes, concurrent: bool, calling: Calling) -> None:
        self._scopes = scopes
        self._concurrent = concurrent
        self._calling = calling
        self._socket_messages = SocketMessages(concurrent)

    def call(self, stream: int, function: str, state: bytes, outcome: p.Outcome) -> Answer | Coming | Plain | Deferred:
        """See `Application` in `_link.answers`."""
        if isinstance(outcome, p.Said):
            return self._socket_messages.call(function, state, outcome)
        if isinstance(outcome, p.Closed):
            return self._socket_messages.end(function, state, outcome)
        raw = request = job = None
        scope = self._scopes.outermost
        results, failures = scope.results, scope.failures
        try:
            kept = decode_state(state)
            job = None if kept.job is None else Job(kept.job, stream)
            raw, values = kept.request, kept.values
            if raw is not None:
                raw = self._scopes.routed(raw)
                scope = self._scopes.of(raw)
                results, failures = scope.results, scope.failures
                request = results.request(raw)
            if kept.added is not None:
                results, failures = scope.keeping(kept.added)
            calling = self._calling if kept.place is None else self._calling.at(kept.place)
            found = find(function, frozenset(values))
            if found.call is give:
                calling = _PLAIN  # what several waits gave is no result of a view
            if found.asynchronous and not self._concurrent:
                raise TypeError(
                    f"{function} is an async def, and this application has no other: write App(concurrent=True)"
                )
        except FAULTS as error:
            return failure(job, error) if job is not None else _failed(scope, failures, error, raw, request)

        def prepare() -> Callable[[], Any]:
            value = value_of(outcome, kept.shape)
            if found.convert is not None:
                value = found.convert(value)
            return found.prepared(values, _given(found, value, request, job))

        if job is not None:
            call = partial(_prepared, prepare)
            if found.asynchronous:
                return Deferred(partial(attempt_async, job, call))
            return Plain(partial(attempt, job, call))
        if found.asynchronous:
            # An older version of the code may have parked it as a plain function: then the core waits for BEGAN.
            return Deferred(partial(_call_async, found, calling, results, failures, prepare, raw, request))
        if scope.asynchronous:
            in_thread = partial(_prepared_in_thread, prepare)
            call_async = partial(_call_async, found, calling, results, failures, in_thread, raw, request)
            return Deferred(call_async, occupies=True)
        return Plain(partial(_call, found, calling, results, failures, prepare, raw, request))


def _failed(
    scope: Scope, failures: Failures, error: BaseException, raw: p.Request | None, request: Request | None
) -> Answer | Plain | Deferred:
    """The answer where there is no function to call."""
    if request is None:  # error handlers and hooks have nothing to look at
        return failures.usual_answer(error, None)
    if scope.asynchronous:
        return Deferred(partial(failures.answer_async, error, raw, request))
    return Plain(partial(failures.answer, error, raw, request))


def _call(
    found: Function,
    calling: Calling,
    results: Results,
    failures: Failures,
    prepare: _Prepare,
    raw: p.Request | None,
    request: Request | None,
) -> Answer:
    try:
        result = calling.call(partial(_prepared, prepare), raw)
        if result is None:
            note_function(found)
        return results.answer(result, 200, raw, request)
    except FAULTS as error:
        return failures.answer(error, raw, request)


async def _call_async(
    found: Function,
    calling: Calling,
    results: Results,
    failures: Failures,
    prepare: _Prepare,
    raw: p.Request | None,
    request: Request | None,
) -> Answer:
    try:
        result = await calling.call_async(partial(_prepared, prepare), raw)
        if result is None:
            note_function(found)
        return await results.answer_async(result, 200, raw, request)
    except FAULTS as error:
        return await failures.answer_async(error, raw, request)


def _prepared(prepare: _Prepare) -> Any:
    return prepare()()


def _prepared_in_thread(prepare: _Prepare) -> Callable[[], Any]:
    """As `prepare`, for a plain function of an application whose hooks are coroutines."""
    return partial(port.port().in_thread, prepare())


def _given(found: Function, value: Any, request: Request | None, job: Job | None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if found.outcome is not None:
        given[found.outcome] = value
    if found.request is not None:
        given[found.request] = request
    if found.job is not None and (job is not None or found.job != found.outcome):
        given[found.job] = job
    return given
