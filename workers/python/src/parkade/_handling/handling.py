"""An `App` as a link runs it. Every request and every call gets an answer, even if the application's code raises."""

from __future__ import annotations

from .._app import App
from .._link.answers import Answer, Coming, Deferred, Plain, Run
from .._log import log_error
from .._requests.request import Request
from .._responses.problems import NO_METHOD, no_route
from .._responses.redirects import redirect
from .._wire import payloads as p
from .._wire.ready import Application as ReadyApplication
from ..errors import HTTPError, IncompleteBody
from ..jobs._runs import run_job
from .calling import Calling, PlainCalling
from .continuations import Continuations
from .job_access import JobAccess
from .lifespan import Lifespan
from .scopes import Scopes


class Handling:
    """See `Application` in `_link.answers`. `dev` shows tracebacks to the client."""

    def __init__(
        self, app: App, dev: bool = False, concurrent: bool | None = None, calling: Calling | None = None
    ) -> None:
        """`concurrent` is whether coroutines can run, unless the application decides that; `calling` how functions are
        called after waits.
        """
        self._app = app
        routes = app._all_routes
        calling = calling or PlainCalling()
        self._scopes = scopes = Scopes(app._hooks, routes, dev, calling.keeps_requests)
        outermost = scopes.outermost
        self.concurrent: bool = app._is_concurrent if concurrent is None else concurrent
        self.runs: dict[int | None, Run] = {None: self._unmatched, **scopes.compiled(routes)}
        if app._jobs_pattern is not None:  # its number follows those of the handlers
            access = JobAccess(app.jobs, app._jobs_pattern, outermost.compile, self.concurrent, outermost.asynchronous)
            self.runs[len(routes)] = access.answer
        plain = frozenset({None, *(number for number, route in enumerate(routes) if not route.asynchronous)})
        self.plain: frozenset[int | None] = plain - scopes.asynchronous()
        self.deferred: frozenset[int | None] = (plain & scopes.asynchronous()) - {None}
        self.opens_early = frozenset(number for number, route in enumerate(routes) if route.streaming is not None)
        # The methods of the parts are used directly, without a call in between.
        self.call = Continuations(scopes, self.concurrent, calling).call
        lifespan = Lifespan(app._all_start_hooks, app._all_stop_hooks)
        self.start, self.stop = lifespan.start, lifespan.stop
        self.start_concurrent, self.stop_concurrent = lifespan.start_concurrent, lifespan.stop_concurrent

    def ready(self) -> ReadyApplication:
        """The application, for READY."""
        return self._app._ready()

    def attempt(self, stream: int, run: p.Run) -> Answer | Plain | Deferred:
        """Runs a job."""
        return run_job(self._app.jobs.get(run.name), stream, run)

    def failed(self, error: BaseException) -> str:
        """Logs an exception from the middle of a streamed answer. Nothing is left to be said with ERROR."""
        if not isinstance(error, IncompleteBody):
            log_error("while an answer was being streamed", error)
        return ""

    def _unmatched(self, raw: p.Request) -> Answer | Coming:
        request = Request(raw)
        scope, path = self._scopes.outermost, request.raw_path
        allowed = self._scopes.allowed(path)
        other = None if allowed else self._scopes.with_other_slash(request.method, path)
        other = None if other is None else self._app._mount + other
        if other is not None and self._app._redirect_slashes:
            response = redirect(f"{other}?{request.query_string}" if request.query_string else other, 307)
            answer = scope.results.answer_async if scope.asynchronous else scope.results.answer
            return answer(response, 307, raw, request)
        # In the words of the core, which answers alone if there is no error handler for this.
        if allowed:
            error = HTTPError(405, NO_METHOD, headers={"allow": ", ".join(allowed)})
        else:
            error = HTTPError(404, no_route(other))
        fail = scope.failures.answer_async if scope.asynchronous else scope.failures.answer
        return fail(error, raw, request)
