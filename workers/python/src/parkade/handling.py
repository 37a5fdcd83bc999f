"""Runs the application's code for a request: hooks, handler, error handlers. What comes out is always an answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, cast

from ._hooks import ErrorHandlers, ErrorHook, Hook
from ._job import Job
from ._link import port
from ._link.answers import FAULTS, Answer, Coming, Deferred, Parked, Plain, Run
from ._log import format_error, log_error, log_fault
from ._requests.request import Request
from ._responses.encoding import SHORT_TEXT, TEXT_HEAD, Beside, encode, encode_async, encode_string
from ._responses.error_pages import error_response, failure_response
from ._responses.response import InvalidResult, Response, normalise
from ._routing.parameters import Call
from ._routing.patterns import Router
from ._routing.routes import Route, park
from ._waits.functions import Function, decode_state, find
from ._waits.wait import Wait
from ._wire import payloads as p
from ._wire.ready import Application as ReadyApplication
from .app import App
from .errors import HTTPError, LoadError, QueryError
from .jobs._access import access_route, verdict
from .jobs._runs import attempt, attempt_async, failure, run_job
from .jobs._values import value_of

_Asked: TypeAlias = tuple[bool, Run]
"""What says who may have jobs of a name, and whether it is a coroutine."""

Prepare: TypeAlias = Callable[[], Callable[[], Any]]
"""Makes a call from what a wait has kept, and its outcome. Raises what these do."""


class Handling:
    """An `App` as a link runs it (`_answers.Application`). `dev` shows tracebacks to the client."""

    def __init__(self, app: App, dev: bool = False) -> None:
        self._app = app
        self._dev = dev
        self._before: list[Hook] = app.before_hooks
        self._after: list[Hook] = app.after_hooks
        self._errors: ErrorHandlers = app.error_handlers
        self._router = Router((route.methods, route.pattern) for route in app.routes)
        hooks: tuple[Hook | ErrorHook, ...] = (*self._before, *self._after, *self._errors.hooks())
        self._all_async = any(hook.asynchronous for hook in hooks)
        self.concurrent: bool = app.concurrent
        self.runs: dict[int | None, Run] = {None: self._unmatched}
        self.runs |= {number: self._compile(route) for number, route in enumerate(app.routes)}
        self.runs |= self._compile_access()
        plain = frozenset({None, *(number for number, route in enumerate(app.routes) if not route.asynchronous)})
        self.plain: frozenset[int | None] = frozenset() if self._all_async else plain
        self.deferred: frozenset[int | None] = plain - {None} if self._all_async else frozenset()

    def ready(self) -> ReadyApplication:
        """What READY tells."""
        return self._app.told()

    def attempt(self, stream: int, run: p.Run) -> Answer | Plain | Deferred:
        """Runs a job."""
        return run_job(self._app.jobs.get(run.name), stream, run)

    def call(self, stream: int, function: str, state: bytes, outcome: p.Outcome) -> Answer | Coming | Plain | Deferred:
        """Calls a function for a wait that is over, a request's or a job's."""
        request = job = None
        try:
            kept = decode_state(state)
            job = None if kept.job is None else Job(kept.job, stream)
            raw, values = kept.request, kept.values
            if raw is not None:
                request = self._request(raw)
            found = find(function, frozenset(values))
            if found.asynchronous and not self.concurrent:
                raise TypeError(
                    f"{function} is an async def, and this application has no other: write App(concurrent=True)"
                )
        except FAULTS as error:
            return self._fail_now(error, request) if job is None else failure(job, error)

        def prepare() -> Callable[[], Any]:
            arguments = {name: found.decoders[name](value) for name, value in values.items()}
            arguments |= _given(found, value_of(outcome, kept.shape), request, job)
            return partial(found.call, **arguments)

        if job is not None:
            call = partial(_prepared, prepare)
            if found.asynchronous:
                return Deferred(partial(attempt_async, job, call))
            return Plain(partial(attempt, job, call))
        if found.asynchronous:
            # Older code may have parked it, and said that it is plain: then the core waits to be told.
            return Deferred(partial(self._call_async, prepare, raw, request))
        if self._all_async:
            return Deferred(partial(self._call_async, partial(_prepared_beside, prepare), raw, request), occupies=True)
        return Plain(partial(self._call, prepare, raw, request))

    def failed(self, error: BaseException) -> str:
        """Logs what was raised in the middle of a streamed answer."""
        log_error("while an answer was being streamed", error)
        return f"{type(error).__name__}: {error}"

    def start(self) -> None:
        for hook in self._app.start_hooks:
            with _starting():
                hook.function()

    def stop(self) -> None:
        for hook in self._app.stop_hooks:
            with _stopping(hook):
                hook.function()

    async def start_concurrent(self) -> None:
        for hook in self._app.start_hooks:
            with _starting():
                await _settle(hook, hook.function())

    async def stop_concurrent(self) -> None:
        for hook in self._app.stop_hooks:
            with _stopping(hook):
                await _settle(hook, hook.function())

    # Asking the application about a job

    def _compile_access(self) -> dict[int | None, Run]:
        """What answers requests for jobs, which have the number behind those of the handlers."""
        pattern = self._app.jobs_pattern
        if pattern is None:
            return {}
        asked: dict[str, _Asked] = {}
        for job in self._app.jobs.values():
            if job.policy.access is not None:
                route = access_route(job, job.policy.access, pattern)
                asked[job.name] = route.asynchronous, self._compile(route)
        return {len(self._app.routes): partial(self._ask, asked)}

    def _ask(self, asked: Mapping[str, _Asked], raw: p.Request) -> Answer | Coming | Plain | Deferred:
        name = raw.parameters[1]
        if name not in asked:  # another release has told of it: what this one says counts
            job = self._app.jobs.get(name)
            answer = Parked(park(verdict(job is not None and job.policy.public), None))
            return _at_once(answer) if self.concurrent else answer
        asynchronous, run = asked[name]
        call = partial(run, raw)
        if not self.concurrent:
            return cast(Answer, call())
        if asynchronous:
            # Older code may have told that the function is plain: then the core waits to be told.
            return Deferred(call)
        return Deferred(call, occupies=True) if self._all_async else Plain(call)

    # Compiling a route into one function

    def _compile(self, route: Route) -> Run:
        call = route.call
        if call is None:
            call = _constant(route.target)
        if route.asynchronous or self._all_async:
            return self._compile_async(route, call)
        if self._before or self._after:
            return self._compile_hooked(route, call)

        def run(raw: p.Request) -> Answer:
            try:
                result = call(raw, None)
                if type(result) is str and len(result) <= SHORT_TEXT:
                    return TEXT_HEAD + encode_string(result)
                if isinstance(result, Wait):
                    return self._park(result, raw, None)
                return self._finish(result, 200, raw, None)
            except FAULTS as error:
                return self._fail(error, raw, route.request(raw))

        return run

    def _compile_hooked(self, route: Route, call: Call) -> Run:
        def run(raw: p.Request) -> Answer:
            request = route.request(raw)
            try:
                for hook in self._before:
                    if (early := hook.function(request)) is not None:
                        return self._finish(early, 200, raw, request)
                return self._finish(call(raw, request), 200, raw, request)
            except FAULTS as error:
                return self._fail(error, raw, request)

        return run

    def _compile_async(self, route: Route, call: Call) -> Run:
        awaited = inspect.iscoroutinefunction(route.target)
        if not (awaited or route.asynchronous):
            call, awaited = partial(_call_beside, call), True
        if self._before or self._after:
            return self._compile_async_hooked(route, call, awaited)

        async def run(raw: p.Request) -> Answer:
            try:
                result = await call(raw, None) if awaited else call(raw, None)
                if type(result) is str and len(result) <= SHORT_TEXT:
                    return TEXT_HEAD + encode_string(result)
                return await self._finish_async(result, 200, raw, None)
            except FAULTS as error:
                return await self._fail_async(error, raw, route.request(raw))

        return run

    def _compile_async_hooked(self, route: Route, call: Call, awaited: bool) -> Run:
        async def run(raw: p.Request) -> Answer:
            request = route.request(raw)
            try:
                for hook in self._before:
                    if (early := await _settle(hook, hook.function(request))) is not None:
                        return await self._finish_async(early, 200, raw, request)
                result = await call(raw, request) if awaited else call(raw, request)
                return await self._finish_async(result, 200, raw, request)
            except FAULTS as error:
                return await self._fail_async(error, raw, request)

        return run

    def _call(self, prepare: Prepare, raw: p.Request | None, request: Request | None) -> Answer:
        try:
            call = prepare()
        except FAULTS as error:
            return self._fail_now(error, request)
        try:
            return self._finish(call(), 200, raw, request)
        except FAULTS as error:
            return self._fail(error, raw, request)

    async def _call_async(self, prepare: Prepare, raw: p.Request | None, request: Request | None) -> Answer:
        try:
            call = prepare()
        except FAULTS as error:
            return self._fail_now(error, request)
        try:
            return await self._finish_async(await call(), 200, raw, request)
        except FAULTS as error:
            return await self._fail_async(error, raw, request)

    # From a result to an answer

    def _finish(self, result: object, status: int, raw: p.Request | None, request: Request | None) -> Answer:
        made = normalise(result, status)
        if isinstance(made, Wait):
            return self._park(made, raw, request)
        for hook in self._after:
            made = _changed(hook.function(request, made), made)
        return encode(made)

    async def _finish_async(
        self, result: object, status: int, raw: p.Request | None, request: Request | None
    ) -> Answer:
        made = normalise(result, status)
        if isinstance(made, Wait):
            return self._park(made, raw, request)
        for hook in self._after:
            made = _changed(await _settle(hook, hook.function(request, made)), made)
        return await encode_async(made, _beside_of_exchange())

    def _park(self, wait: Wait, raw: p.Request | None, request: Request | None) -> Parked:
        function = wait.function
        if function is None:
            return Parked(park(wait, None))
        if raw is None or not (function.request or self._after or self._errors):
            return Parked(park(wait, None))
        return Parked(park(wait, (request or self._request(raw)).carried()))

    # From an error to an answer

    def _fail(self, error: BaseException, raw: p.Request | None, request: Request | None) -> Answer:
        try:
            status, hook = self._judged(error, request)
            result = self._default(error, request) if hook is None else hook.call(request, error)
            return self._finish(result, status, raw, request)
        except FAULTS as another:
            return self._fail_now(another, request)

    async def _fail_async(self, error: BaseException, raw: p.Request | None, request: Request | None) -> Answer:
        try:
            status, hook = self._judged(error, request)
            result = self._default(error, request) if hook is None else await _settle(hook, hook.call(request, error))
            return await self._finish_async(result, status, raw, request)
        except FAULTS as another:
            return self._fail_now(another, request)

    def _fail_now(self, error: BaseException, request: Request | None) -> Answer:
        """When even the error handler, or a hook behind it, raised."""
        if _is_fault(error):
            self._log(error, request)
        return encode(self._default(error, request))

    def _judged(self, error: BaseException, request: Request | None) -> tuple[int, ErrorHook | None]:
        """The status, and the error handler. Logs what is the application's fault.

        An exception for whose type there is a handler was expected: that is no fault, and what is to be logged of it
        the handler knows. One for `Exception`, or for 500, makes the page for what nobody expected.
        """
        if _is_fault(error) and not self._errors.expect(error):
            self._log(error, request)
        status = error.status if isinstance(error, HTTPError) else 500
        return status, self._errors.find(error, status)

    def _log(self, error: BaseException, request: Request | None) -> None:
        what = f"{request.method} {request.raw_path}" if request is not None else "after a wait"
        if isinstance(error, InvalidResult):
            log_fault(f"{what}: the handler {error}" if str(error).startswith("returned") else f"{what}: {error}")
        else:
            log_error(what, error)

    def _default(self, error: BaseException, request: Request | None) -> Response:
        if isinstance(error, HTTPError) and not isinstance(error, QueryError):
            return error_response(error, request)
        return failure_response(error, request, self._dev)

    def _unmatched(self, raw: p.Request) -> Answer | Coming:
        request = Request(raw)
        allowed = self._router.allowed(request.raw_path)
        error = HTTPError(405, headers={"allow": ", ".join(allowed)}) if allowed else HTTPError(404)
        fail = self._fail_async if self._all_async else self._fail
        return fail(error, raw, request)

    def _request(self, raw: p.Request) -> Request:
        return (
            Request(raw)
            if raw.route is None or raw.route >= len(self._app.routes)
            else self._app.routes[raw.route].request(raw)
        )


async def _at_once(answer: Answer) -> Answer:
    return answer


def _prepared(prepare: Prepare) -> Any:
    return prepare()()


def _prepared_beside(prepare: Prepare) -> Callable[[], Any]:
    """As `prepare`, of a plain function whose hooks are coroutines."""
    return partial(port.port().beside, prepare())


def _beside_of_exchange() -> Beside | None:
    """Where the iterator runs that answers this request; None is the loop, for one that a coroutine answers."""
    exchange = port.exchange.get()
    return port.port().beside if exchange is not None and exchange.occupies else None


async def _call_beside(call: Call, raw: p.Request, request: Request | None) -> Any:
    return await port.port().beside(partial(call, raw, request))


@contextmanager
def _starting() -> Iterator[None]:
    try:
        yield
    except FAULTS as error:
        raise LoadError(format_error(error)) from error


@contextmanager
def _stopping(hook: Hook) -> Iterator[None]:
    """One that raises does not keep the others from running."""
    try:
        yield
    except FAULTS as error:
        log_error(f"the shut-down hook {getattr(hook.function, '__qualname__', hook.function)}", error)


def _is_fault(error: BaseException) -> bool:
    """Whether it is the application's: any but the answers that were meant, and a query that was wrong in itself."""
    return error.status == 500 if isinstance(error, QueryError) else not isinstance(error, HTTPError)


async def _settle(hook: Hook | ErrorHook, result: Any) -> Any:
    return await result if hook.asynchronous else result


def _changed(result: object, response: Response) -> Response:
    """What an after hook gave: None leaves the response as it was."""
    if result is None:
        return response
    made = normalise(result, response.status or 200)
    if isinstance(made, Wait):
        raise InvalidResult("returned a wait from an after hook: the answer is there already")
    return made


def _constant(target: Wait | Response) -> Call:
    return lambda raw, request: target


def _given(found: Function, value: Any, request: Request | None, job: Job | None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if found.outcome is not None:
        given[found.outcome] = value
    if found.request is not None:
        given[found.request] = request
    if found.job is not None and (job is not None or found.job != found.outcome):
        given[found.job] = job
    return given
