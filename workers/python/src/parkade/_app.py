"""The application: routes, hooks, error handlers, channels and, from `JobRegistry`, jobs. Everything is checked when
it is registered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Protocol, TypeVar, cast, overload

from ._hooks import ErrorHandlers, ErrorHook, Hook, make_hook
from ._limits import CONSTANTS_MAX
from ._routing.patterns import parse
from ._routing.routes import Route, make_route
from ._wire.payloads import byte_length, fault_of_channel
from ._wire.ready import Application, ChannelOptions, ChannelPattern
from .errors import HTTPError
from .jobs._registry import JobRegistry

F = TypeVar("F", bound=Callable[..., Any])

_MISSING: Any = object()
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Register(Protocol):
    """How a handler is registered for one method: `app.get`, `app.post`, …"""

    @overload
    def __call__(self, path: str, *, deadline: float | None = ..., name: str | None = ...) -> Callable[[F], F]: ...
    @overload
    def __call__(self, path: str, target: Any, *, deadline: float | None = ..., name: str | None = ...) -> None: ...
    def __call__(self, path: str, target: Any = _MISSING, **options: Any) -> Any:
        """Used as a decorator, or with the handler as `target`. A `target` may also be a wait or a constant, which
        needs no worker.

        `path` as in `/auction/{lot:int}/bids`. `deadline`: seconds that a request may be queued or running (0 for none,
        None for the server's). `name` is for `app.path` and `request.route`, by default the function's. Raises
        `SignatureError` for a handler with a parameter that no request has.
        """


class App(JobRegistry):
    """A Parkade application.

    When all handlers are plain functions, a worker runs one request at a time. With one `async def` among handlers,
    hooks and jobs, or with `concurrent=True`, it runs many at once on an event loop, and plain functions in threads.

    An application with jobs also answers `GET` and `DELETE` under `jobs_path`, followed by a job's id; None turns that
    off. Raises `SignatureError` for a path that does not begin with a slash, or has parameters.
    """

    def __init__(self, *, concurrent: bool = False, jobs_path: str | None = "/jobs") -> None:
        super().__init__(jobs_path)
        self.routes: list[Route] = []
        self.before_hooks: list[Hook] = []
        self.after_hooks: list[Hook] = []
        self.start_hooks: list[Hook] = []
        self.stop_hooks: list[Hook] = []
        self.error_handlers = ErrorHandlers()
        self._channels: list[ChannelPattern] = []
        self._concurrent = concurrent
        self.get: Register = self._register("GET")
        self.post: Register = self._register("POST")
        self.put: Register = self._register("PUT")
        self.patch: Register = self._register("PATCH")
        self.delete: Register = self._register("DELETE")

    # Routes

    @overload
    def route(
        self, path: str, *, methods: Sequence[str] = ..., deadline: float | None = ..., name: str | None = ...
    ) -> Callable[[F], F]: ...
    @overload
    def route(
        self,
        path: str,
        target: Any,
        *,
        methods: Sequence[str] = ...,
        deadline: float | None = ...,
        name: str | None = ...,
    ) -> None: ...
    def route(
        self,
        path: str,
        target: Any = _MISSING,
        *,
        methods: Sequence[str] = ("GET",),
        deadline: float | None = None,
        name: str | None = None,
    ) -> Callable[[F], F] | None:
        """As `get`, for several methods."""
        verbs = tuple(method.upper() for method in methods)
        if unknown := sorted(set(verbs) - _METHODS):
            raise ValueError(f"{path}: no method {', '.join(unknown)}")
        pattern = parse(path)

        def register(handler: F) -> F:
            self.routes.append(make_route(verbs, pattern, handler, deadline, name))
            return handler

        if target is _MISSING:
            return register
        register(target)
        return None

    def _register(self, method: str) -> Register:
        return cast(Register, partial(self.route, methods=(method,)))

    def path(self, name: str, /, **parameters: object) -> str:
        """The path of the route of that name with these parameters, encoded.

        Raises `KeyError` for an unknown name or a missing parameter.
        """
        for route in self.routes:
            if route.name == name:
                return route.pattern.fill(parameters)
        raise KeyError(f"no route has the name {name!r}")

    # Hooks

    def before(self, function: F) -> F:
        """Runs before every handler, with the request. If it returns anything but None, that is the answer, and the
        handler does not run.
        """
        self.before_hooks.append(make_hook(function, 1, "a before hook takes the request"))
        return function

    def after(self, function: F) -> F:
        """Runs after every handler with (request, response), also for errors; it may change the response or return
        another.

        It does not see what the core answers alone: the messages of a channel and the response of a timer. With a
        before or after hook, routes that are constants or waits are answered by a worker.
        """
        self.after_hooks.append(make_hook(function, 2, "an after hook takes the request and the response"))
        return function

    def on_start(self, function: F) -> F:
        """Runs in each worker before it takes requests. If it raises, the worker has not started."""
        self.start_hooks.append(make_hook(function, 0, "a start-up hook takes nothing"))
        return function

    def on_stop(self, function: F) -> F:
        """Runs in each worker that stops, when its requests are finished."""
        self.stop_hooks.append(make_hook(function, 0, "a shut-down hook takes nothing"))
        return function

    def error(self, key: int | type[Exception]) -> Callable[[F], F]:
        """Registers a handler for a status (400 to 599) or a type of exception: `@app.error(404)`,
        `@app.error(KeyError)`.

        It may take the request (named `request`, or annotated `Request`) and the error. What it returns has the error's
        status, unless it sets another.
        """

        if isinstance(key, int):
            HTTPError(key)  # refuses other statuses

        def register(function: F) -> F:
            self.error_handlers.add(key, function)
            return function

        return register

    # Channels

    def channel(
        self, pattern: str, *, count: int | None = None, bytes: int | None = None, age: float | None = None
    ) -> None:
        """Limits the history of a channel, or of all channels whose name begins with what precedes a final `*`:
        messages, bytes, seconds.

        The longest pattern that matches a name counts. Raises `ValueError` for a name that no channel can have.
        """
        if (reason := fault_of_channel(pattern)) is not None:
            raise ValueError(f"{pattern!r}: {reason}")
        if any(value is not None and value < 0 for value in (count, bytes, age)):
            raise ValueError(f"{pattern!r}: a bound is not negative")
        self._channels.append(ChannelPattern(pattern, ChannelOptions(count, bytes, age)))

    # For workers

    @property
    def concurrent(self) -> bool:
        """Whether workers run many requests at once."""
        hooks: tuple[Hook | ErrorHook, ...] = (
            *self.before_hooks,
            *self.after_hooks,
            *self.start_hooks,
            *self.stop_hooks,
            *self.error_handlers.hooks(),
        )
        return (
            self._concurrent
            or any(route.asynchronous for route in self.routes)
            or any(hook.asynchronous for hook in hooks)
            or any(job.asynchronous or job.policy.access_kind == "async" for job in self.jobs.values())
        )

    def ready(self) -> Application:
        """The application, for READY.

        Requests that match no route are sent to a worker only when there is a handler for 404 or 405.
        """
        interface: Literal["native"] = "native"
        hooked = bool(self.before_hooks or self.after_hooks)
        fallback = (
            any(status in self.error_handlers.by_status for status in (404, 405))
            or HTTPError in self.error_handlers.by_type
        )
        routes = []
        left = CONSTANTS_MAX
        for route in self.routes:
            ready = route.ready(hooked)
            left -= byte_length(ready.answer.body or b"") if ready.answer is not None else 0
            routes.append(ready if ready.answer is None or left >= 0 else route.ready(hooked=True))
        return Application(
            interface=interface,
            concurrent=self.concurrent,
            fallback=fallback,
            routes=routes + self.ready_job_routes(),
            channels=self._channels,
            jobs=self.ready_jobs(),
            queues=self.ready_queues(),
            recurring=self.ready_recurring(),
        )
