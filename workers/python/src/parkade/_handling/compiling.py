"""Makes one function from a route, its hooks, and the code that turns results and exceptions into answers."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from .._hooks import Around, settle
from .._link import port
from .._link.answers import FAULTS, Answer, Run
from .._requests.request import Request
from .._responses.encoding import SHORT_TEXT, TEXT_HEAD, encode_string
from .._routing.parameters import Call
from .._routing.routes import Route
from .._waits.wait import Wait
from .._wire import payloads as p
from .failures import Failures
from .forgotten import forgotten
from .results import Results
from .socket_runs import SocketRuns, is_asked, no_upgrade


class Compiler:
    """Compiles routes with the same hooks. Every one of them is a coroutine if a hook is one."""

    def __init__(self, around: Around, results: Results, failures: Failures) -> None:
        self._before = around.before
        self._is_hooked = bool(around.before or around.after)
        self._results = results
        self._failures = failures
        self._all_async = around.asynchronous

    def compile(self, route: Route) -> Run:
        """The function that answers the requests of this route."""
        call = route.call
        if call is None:
            call = _constant(route)
        if route.is_socket and not route.asynchronous:
            call = partial(_call_for_socket, call)
        elif route.is_socket:
            return SocketRuns(route, call, self._before, self._results, self._failures).run
        if route.asynchronous or self._all_async:
            awaited = inspect.iscoroutinefunction(route.target)
            if not (awaited or route.asynchronous):
                call, awaited = partial(_call_in_thread, call), True
            return self._async_hooked(route, call, awaited) if self._is_hooked else self._async(route, call, awaited)
        return self._plain_hooked(route, call) if self._is_hooked else self._plain(route, call)

    def _plain(self, route: Route, call: Call) -> Run:
        answer, park, fail = self._results.answer, self._results.park, self._failures.answer
        note = forgotten(route)

        def run(raw: p.Request) -> Answer:
            try:
                result = call(raw, None)
                if type(result) is str and len(result) <= SHORT_TEXT:
                    return TEXT_HEAD + encode_string(result)
                if isinstance(result, Wait):
                    return park(result, raw, None)
                if result is None and note is not None:
                    note()
                return answer(result, 200, raw, None)
            except FAULTS as error:
                return fail(error, raw, route.request(raw))

        return run

    def _plain_hooked(self, route: Route, call: Call) -> Run:
        before, answer, fail = self._before, self._results.answer, self._failures.answer
        note = forgotten(route)

        def run(raw: p.Request) -> Answer:
            request = route.request(raw)
            try:
                for hook in before:
                    if (early := hook.function(request)) is not None:
                        return answer(early, 200, raw, request)
                result = call(raw, request)
                if result is None and note is not None:
                    note()
                return answer(result, 200, raw, request)
            except FAULTS as error:
                return fail(error, raw, request)

        return run

    def _async(self, route: Route, call: Call, awaited: bool) -> Run:
        answer, fail = self._results.answer_async, self._failures.answer_async
        note = forgotten(route)

        async def run(raw: p.Request) -> Answer:
            try:
                result = await call(raw, None) if awaited else call(raw, None)
                if type(result) is str and len(result) <= SHORT_TEXT:
                    return TEXT_HEAD + encode_string(result)
                if result is None and note is not None:
                    note()
                return await answer(result, 200, raw, None)
            except FAULTS as error:
                return await fail(error, raw, route.request(raw))

        return run

    def _async_hooked(self, route: Route, call: Call, awaited: bool) -> Run:
        before, answer, fail = self._before, self._results.answer_async, self._failures.answer_async
        note = forgotten(route)

        async def run(raw: p.Request) -> Answer:
            request = route.request(raw)
            try:
                for hook in before:
                    if (early := await settle(hook, hook.function(request))) is not None:
                        return await answer(early, 200, raw, request)
                result = await call(raw, request) if awaited else call(raw, request)
                if result is None and note is not None:
                    note()
                return await answer(result, 200, raw, request)
            except FAULTS as error:
                return await fail(error, raw, request)

        return run


def _constant(route: Route) -> Call:
    target = route.target
    if isinstance(target, Wait) and isinstance(target._wait, p.Files):
        return lambda raw, request: route.answer_of_target(raw)
    return lambda raw, request: target


def _call_for_socket(call: Call, raw: p.Request, request: Request | None) -> Any:
    if not is_asked(raw):
        raise no_upgrade()
    return call(raw, request)


async def _call_in_thread(call: Call, raw: p.Request, request: Request | None) -> Any:
    return await port.port().in_thread(partial(call, raw, request))
