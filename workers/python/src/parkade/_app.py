"""The application: the outermost router, which workers run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ._hooks import Hook
from ._limits import CONSTANTS_MAX
from ._router import Router
from ._routing.routes import Route
from ._wire.payloads import byte_length
from ._wire.ready import Application
from .errors import HTTPError
from .jobs._registry import pattern_of_jobs


class App(Router):
    """A Parkade application.

    When all handlers are plain functions, a worker runs one request at a time. With one `async def` among handlers,
    hooks and jobs, or with `concurrent=True`, it runs many at once on an event loop, and plain functions in threads.

    An application with jobs also answers `GET` and `DELETE` under `jobs_path`, followed by a job's id; None turns that
    off. With `redirect_slashes`, a request for `/notes/` is sent on to `/notes` (307) when only that has a route, and
    the other way round; then requests that match no route go to a worker. Raises `SignatureError` for a path that does
    not begin with a slash, or has parameters.
    """

    def __init__(
        self, *, concurrent: bool = False, jobs_path: str | None = "/jobs", redirect_slashes: bool = False
    ) -> None:
        super().__init__()
        self.redirect_slashes = redirect_slashes
        self.jobs_pattern = None if jobs_path is None else pattern_of_jobs(jobs_path)
        self._concurrent = concurrent

    _is_application = True

    # For workers

    @property
    def routes(self) -> list[Route]:
        """The routes of the application and of all its routers, in the order that gives them their numbers."""
        return self._routes

    @property
    def start_hooks(self) -> list[Hook]:
        """The hooks that run when a worker starts, in their order."""
        return [hook for router in self._all_routers() for hook in router._start_hooks]

    @property
    def stop_hooks(self) -> list[Hook]:
        """The hooks that run when a worker stops, in their order: what was started last stops first."""
        return [hook for router in reversed(self._all_routers()) for hook in router._stop_hooks]

    @property
    def concurrent(self) -> bool:
        """Whether workers run many requests at once."""
        return (
            self._concurrent
            or any(route.asynchronous for route in self.routes)
            or any(router.hooks.asynchronous() for router in self._all_routers())
            or any(hook.asynchronous for hook in (*self.start_hooks, *self.stop_hooks))
            or any(job.asynchronous or job.policy.access_kind == "async" for job in self.jobs.values())
        )

    def ready(self) -> Application:
        """The application, for READY.

        Requests that match no route are sent to a worker only when there is a handler for 404 or 405, or one of them
        may be redirected.
        """
        interface: Literal["native"] = "native"
        errors = self.hooks.errors
        fallback = (
            self.redirect_slashes
            or any(status in errors.by_status for status in (404, 405))
            or HTTPError in errors.by_type
        )
        routes = []
        left = CONSTANTS_MAX
        for route in self.routes:
            ready = route.ready()
            left -= byte_length(ready.answer.body or b"") if ready.answer is not None else 0
            routes.append(ready if ready.answer is None or left >= 0 else route.ready(in_worker=True))
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

    def _places(self) -> Iterator[str]:
        yield ""

    def __repr__(self) -> str:
        return "App()"
