"""The application: the outermost router, which workers run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import msgspec

from ._cors import Cors
from ._hooks import Hook
from ._limits import CONSTANTS_MAX, HEADERS_MAX
from ._mappings import Headers
from ._router import Router
from ._routing.patterns import parse
from ._routing.routes import About, Route, make_route
from ._wire.payloads import byte_length
from ._wire.ready import Application, CorsPolicy
from .errors import HTTPError, SignatureError
from .jobs._registry import pattern_of_jobs

if TYPE_CHECKING:
    from ._openapi.document import Settings


class App(Router):
    """A Parkade application.

    ```python
    app = App()

    @app.get("/hola/{name}")
    def hola(name: str) -> str:
        return f"Hola {name}"
    ```

    When all handlers are plain functions, a worker runs one request at a time. With one `async def` among handlers,
    hooks and jobs, or with `concurrent=True`, it runs many at once on an event loop, and plain functions in threads.

    An application with jobs also answers `GET` and `DELETE` under `jobs_path`, followed by a job's id; None turns that
    off. With `redirect_slashes`, a request for `/notes/` is redirected to `/notes` (307) when only that has a route,
    and the other way round; then requests that match no route go to a worker. Raises `SignatureError` for a path that
    does not begin with a slash, or has parameters.
    """

    def __init__(
        self, *, concurrent: bool = False, jobs_path: str | None = "/jobs", redirect_slashes: bool = False
    ) -> None:
        super().__init__()
        self._redirect_slashes = redirect_slashes
        self._mount = ""
        self._jobs_pattern = None if jobs_path is None else pattern_of_jobs(jobs_path)
        self._concurrent = concurrent
        self._described: Settings | None = None
        self._made_for = 0  # so many routes, when the description was made
        self._headers = Headers()

    _is_application = True

    # Its description

    def openapi(
        self,
        title: str,
        version: str = "1",
        *,
        description: str = "",
        path: str = "/openapi.json",
        page: str | None = "/docs",
    ) -> None:
        """Describes the application in OpenAPI 3.1 at `path`, and shows that as a page at `page` (None for no page).

        It is off by default, because it shows everyone all routes that are not `hidden`, and what they take. The
        annotations of handlers give parameters, bodies and responses; their docstrings give texts, routers give tags.
        Hooks of the application run for both. Raises `SignatureError` for a path that is taken.
        """
        from ._openapi.document import Settings  # most applications are not described

        if self._described is not None:
            raise SignatureError("the application is described already: call openapi only once")
        about = About(hidden=True)
        self._described = Settings(title, version, description, path, page)
        for one in filter(None, (path, page)):
            self._add_route(make_route(("GET",), parse(one), "", None, one, self._hooks, (), about))

    # Headers

    def headers(self, headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        """Adds these headers to every answer that has no header of that name: those of handlers, constants and waits,
        streams, and the server's own errors, such as 404 and 503.

        Only requests that no application has seen are answered without them: malformed ones, and all that come before
        the application has loaded for the first time. Raises `ValueError` for headers that describe one answer, such as
        `content-type`.
        """
        given = Headers(headers)
        for name in given:
            if name in _OF_ONE_ANSWER or (name.startswith("content-") and not name.startswith(_FOR_ALL)):
                raise ValueError(f"{name} is different for each answer: set it on the response")
            self._headers.pop(name, None)
        for name, value in given.pairs():
            self._headers.add(name, value)
        if sum(len(text) for pair in self._headers.pairs() for text in pair) > HEADERS_MAX:
            raise ValueError(f"the headers for all answers have more than {HEADERS_MAX} characters")

    # For workers

    @property
    def _all_routes(self) -> list[Route]:
        """The routes of the application and of all its routers, in the order that gives them their numbers."""
        if self._described is None or self._made_for == len(self._routes):
            return self._routes
        from ._openapi import document

        pattern = self._jobs_pattern if self.jobs else None
        made = document.document(self._described, self._routes, pattern, self._mount)
        answers = {self._described.path: document.response(made)}
        if self._described.page is not None:
            answers[self._described.page] = document.page(self._described, self._mount)
        self._routes = [
            replace(route, target=answers[route.name]) if route.about.hidden and route.name in answers else route
            for route in self._routes
        ]
        self._made_for = len(self._routes)
        return self._routes

    @property
    def _all_start_hooks(self) -> list[Hook]:
        """The hooks that run when a worker starts, in their order."""
        return [hook for router in self._all_routers() for hook in router._start_hooks]

    @property
    def _all_stop_hooks(self) -> list[Hook]:
        """The hooks that run when a worker stops, in their order: what was started last stops first."""
        return [hook for router in reversed(self._all_routers()) for hook in router._stop_hooks]

    @property
    def _is_concurrent(self) -> bool:
        """Whether workers run many requests at once."""
        return (
            self._concurrent
            or any(route.asynchronous for route in self._all_routes)
            or any(router._hooks.asynchronous() for router in self._all_routers())
            or any(hook.asynchronous for hook in (*self._all_start_hooks, *self._all_stop_hooks))
            or any(job._asynchronous or job._policy.access_kind == "async" for job in self.jobs.values())
        )

    def _ready(self) -> Application:
        """The application, for READY.

        Requests that match no route are sent to a worker only when there is a handler for 404 or 405, or one of them
        may be redirected.
        """
        interface: Literal["native"] = "native"
        errors = self._hooks.errors
        fallback = (
            self._redirect_slashes
            or any(status in errors.by_status for status in (404, 405))
            or HTTPError in errors.by_type
        )
        routes = []
        policies: list[CorsPolicy] = []
        left = CONSTANTS_MAX
        for route in self._all_routes:
            ready = route.ready()
            left -= byte_length(ready.answer.body or b"") if ready.answer is not None else 0
            ready = ready if ready.answer is None or left >= 0 else route.ready(in_worker=True)
            routes.append(msgspec.structs.replace(ready, cors=_number(route.cors, policies)))
        unmatched = _number(self._hooks.cors, policies)
        job_routes = [msgspec.structs.replace(ready, cors=unmatched) for ready in self._ready_job_routes()]
        return Application(
            interface=interface,
            concurrent=self._is_concurrent,
            fallback=fallback,
            routes=routes + job_routes,
            channels=self._channels,
            jobs=self._ready_jobs(),
            queues=self._ready_queues(),
            recurring=self._ready_recurring(),
            headers=self._headers._flat(),
            cors=policies,
            unmatched_cors=unmatched,
        )

    def _places(self) -> Iterator[str]:
        yield ""

    def _mounted_at(self) -> str:
        return self._mount

    def __repr__(self) -> str:
        return "App()"


def _number(cors: Cors | None, policies: list[CorsPolicy]) -> int | None:
    """The number of a policy in the list, to which it is added if it is not there."""
    if cors is None:
        return None
    policy = cors._policy()
    if policy not in policies:
        policies.append(policy)
    return policies.index(policy)


_FOR_ALL = "content-security-policy"  # and its report-only form
_OF_ONE_ANSWER = frozenset(
    {"connection", "date", "etag", "keep-alive", "last-modified", "location", "transfer-encoding", "upgrade"}
)
