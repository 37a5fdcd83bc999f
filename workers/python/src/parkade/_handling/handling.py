"""An `App` as a link runs it. Every request and every call gets an answer, even if the application's code raises."""

from __future__ import annotations

from .._app import App
from .._hooks import ErrorHook, Hook
from .._link.answers import Answer, Coming, Deferred, Plain, Run
from .._log import log_error
from .._requests.request import Request
from .._routing.patterns import Router
from .._wire import payloads as p
from .._wire.ready import Application as ReadyApplication
from ..errors import HTTPError
from ..jobs._runs import run_job
from .compiling import Compiler
from .continuations import Continuations
from .failures import Failures
from .job_access import JobAccess
from .lifespan import Lifespan
from .results import Results


class Handling:
    """See `Application` in `_link.answers`. `dev` shows tracebacks to the client."""

    def __init__(self, app: App, dev: bool = False) -> None:
        self._app = app
        self._router = Router((route.methods, route.pattern) for route in app.routes)
        hooks: tuple[Hook | ErrorHook, ...] = (*app.before_hooks, *app.after_hooks, *app.error_handlers.hooks())
        self._all_async = any(hook.asynchronous for hook in hooks)
        self.concurrent: bool = app.concurrent
        results = Results(app.routes, app.after_hooks, app.error_handlers)
        self._failures = Failures(app.error_handlers, results, dev)
        compiler = Compiler(app.before_hooks, app.after_hooks, results, self._failures, self._all_async)
        self.runs: dict[int | None, Run] = {None: self._unmatched}
        self.runs |= {number: compiler.compile(route) for number, route in enumerate(app.routes)}
        if app.jobs_pattern is not None:  # its number follows those of the handlers
            access = JobAccess(app.jobs, app.jobs_pattern, compiler.compile, self.concurrent, self._all_async)
            self.runs[len(app.routes)] = access.answer
        plain = frozenset({None, *(number for number, route in enumerate(app.routes) if not route.asynchronous)})
        self.plain: frozenset[int | None] = frozenset() if self._all_async else plain
        self.deferred: frozenset[int | None] = plain - {None} if self._all_async else frozenset()
        # The methods of the parts are used directly, without a call in between.
        self.call = Continuations(results, self._failures, self.concurrent, self._all_async).call
        lifespan = Lifespan(app.start_hooks, app.stop_hooks)
        self.start, self.stop = lifespan.start, lifespan.stop
        self.start_concurrent, self.stop_concurrent = lifespan.start_concurrent, lifespan.stop_concurrent

    def ready(self) -> ReadyApplication:
        """The application, for READY."""
        return self._app.ready()

    def attempt(self, stream: int, run: p.Run) -> Answer | Plain | Deferred:
        """Runs a job."""
        return run_job(self._app.jobs.get(run.name), stream, run)

    def failed(self, error: BaseException) -> str:
        """Logs an exception from the middle of a streamed answer."""
        log_error("while an answer was being streamed", error)
        return f"{type(error).__name__}: {error}"

    def _unmatched(self, raw: p.Request) -> Answer | Coming:
        request = Request(raw)
        allowed = self._router.allowed(request.raw_path)
        error = HTTPError(405, headers={"allow": ", ".join(allowed)}) if allowed else HTTPError(404)
        fail = self._failures.answer_async if self._all_async else self._failures.answer
        return fail(error, raw, request)
