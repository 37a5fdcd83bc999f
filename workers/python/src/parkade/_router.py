"""A router: routes, hooks, error handlers and jobs of a part of an application, checked when they are registered."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ._cors import Cors
from ._hooks import Hook, Hooks, make_after_hook, make_hook
from ._origin import line_of
from ._responses.templates import Templates
from ._routing.patterns import Pattern, checked_prefix, join, parse
from ._routing.routes import About, Route, make_route, make_socket_route
from ._routing.streaming import streaming
from ._suggestions import for_attribute
from ._waits.files import files_of
from ._waits.histories import pattern_of_channel
from ._wire.ready import ChannelPattern
from .errors import LoadError, SignatureError
from .jobs._registry import JobRegistry

F = TypeVar("F", bound=Callable[..., Any])


class _Missing:
    """No target: then `get` is a decorator. Shown in the signatures of the reference and of editors."""

    def __repr__(self) -> str:
        return "MISSING"


_MISSING: Any = _Missing()
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "QUERY", "DELETE", "OPTIONS"})


class Router(JobRegistry):
    """A part of an application, in a module of its own: `orders = Router("/orders")`, and `app.include(orders)`.

    Its paths begin with `prefix`; the path `/` is the prefix itself. A prefix may have parameters, which its handlers
    may take. Its hooks and error handlers are for its own routes and those of the routers that it includes. `name`
    comes before the names of its routes, as in `orders.show`.

    Raises `SignatureError` for a malformed prefix or name.
    """

    prefix: str
    """What its paths begin with, without a slash at its end."""
    name: str | None
    """What the names of its routes begin with in the routers that include it."""

    def __init__(self, prefix: str = "", *, name: str | None = None) -> None:
        super().__init__()
        if name is not None and not name.isidentifier():
            raise SignatureError(f"the name of a router must be an identifier, such as `orders`, not {name!r}")
        self.prefix = checked_prefix(prefix)
        self.name = name
        self._tag = name or next((part for part in reversed(prefix.split("/")) if part and "{" not in part), None)
        self._hooks = Hooks()
        self._routes: list[Route] = []
        self._handled: dict[tuple[str, tuple[str, ...]], Route] = {}  # by method and place
        self._channels: list[ChannelPattern] = []
        self._start_hooks: list[Hook] = []
        self._stop_hooks: list[Hook] = []
        self._routers: list[Router] = []
        self._included_in: list[tuple[Router, str]] = []  # with the prefix that it has there

    # Routes

    def get(
        self,
        path: str,
        target: Any = _MISSING,
        *,
        deadline: float | None = None,
        name: str | None = None,
        responses: Mapping[int, Any] | None = None,
        hidden: bool = False,
        cors: Cors | bool | None = None,
    ) -> Callable[[F], F]:
        """Registers what answers GET, and HEAD: `@app.get("/orders/{id:int}")` over a function.

        Instead of being a decorator, it may get the function as `target`. A `target` may also be a wait or a constant,
        which needs no worker.

        `deadline`: seconds that a request may be queued or running (0 for none, None for the server's). `name` is for
        `path` and `request.route`, by default the function's. `responses` and `hidden` are for the description of the
        application (`App.openapi`): responses that annotations do not show, by status, as a text or the body's type;
        and whether to leave the route out. `cors` is the route's own policy for pages of other origins (see `cors`);
        False is none.

        Raises `SignatureError` for a malformed path, a second handler of the same path, and a function with a parameter
        that no request has.
        """
        return self._register(path, target, ("GET",), deadline, name, responses, hidden, cors)

    def post(
        self,
        path: str,
        target: Any = _MISSING,
        *,
        deadline: float | None = None,
        name: str | None = None,
        responses: Mapping[int, Any] | None = None,
        hidden: bool = False,
        cors: Cors | bool | None = None,
        stream: bool = False,
        body_limit: int | str | None = None,
    ) -> Callable[[F], F]:
        """As `get`, for POST.

        With `stream=True` the handler reads the body while it arrives, with `request.stream()`, and has no parameters
        from it. `body_limit` is the maximum size of such a body (`"2GB"`), instead of `--stream-limit`.
        """
        return self._register(path, target, ("POST",), deadline, name, responses, hidden, cors, stream, body_limit)

    def put(
        self,
        path: str,
        target: Any = _MISSING,
        *,
        deadline: float | None = None,
        name: str | None = None,
        responses: Mapping[int, Any] | None = None,
        hidden: bool = False,
        cors: Cors | bool | None = None,
        stream: bool = False,
        body_limit: int | str | None = None,
    ) -> Callable[[F], F]:
        """As `post`, for PUT."""
        return self._register(path, target, ("PUT",), deadline, name, responses, hidden, cors, stream, body_limit)

    def patch(
        self,
        path: str,
        target: Any = _MISSING,
        *,
        deadline: float | None = None,
        name: str | None = None,
        responses: Mapping[int, Any] | None = None,
        hidden: bool = False,
        cors: Cors | bool | None = None,
        stream: bool = False,
        body_limit: int | str | None = None,
    ) -> Callable[[F], F]:
        """As `post`, for PATCH."""
        return self._register(path, target, ("PATCH",), deadline, name, responses, hidden, cors, stream, body_limit)

    def delete(
        self,
        path: str,
        target: Any = _MISSING,
        *,
        deadline: float | None = None,
        name: str | None = None,
        responses: Mapping[int, Any] | None = None,
        hidden: bool = False,
        cors: Cors | bool | None = None,
    ) -> Callable[[F], F]:
        """As `get`, for DELETE."""
        return self._register(path, target, ("DELETE",), deadline, name, responses, hidden, cors)

    def query(
        self,
        path: str,
        target: Any = _MISSING,
        *,
        deadline: float | None = None,
        name: str | None = None,
        responses: Mapping[int, Any] | None = None,
        hidden: bool = False,
        cors: Cors | bool | None = None,
        stream: bool = False,
        body_limit: int | str | None = None,
    ) -> Callable[[F], F]:
        """As `post`, for QUERY (RFC 10008): a safe, idempotent request with a body, for what does not fit into a URL.

        Clients and proxies may repeat it, so the handler must not change anything. `App.openapi` leaves it out.
        """
        return self._register(path, target, ("QUERY",), deadline, name, responses, hidden, cors, stream, body_limit)

    def route(
        self,
        path: str,
        target: Any = _MISSING,
        *,
        methods: Sequence[str] = ("GET",),
        deadline: float | None = None,
        name: str | None = None,
        responses: Mapping[int, Any] | None = None,
        hidden: bool = False,
        cors: Cors | bool | None = None,
        stream: bool = False,
        body_limit: int | str | None = None,
    ) -> Callable[[F], F]:
        """As `post`, for several methods: `@app.route("/orders", methods=["GET", "POST"])`."""
        return self._register(path, target, tuple(methods), deadline, name, responses, hidden, cors, stream, body_limit)

    def websocket(self, path: str, *, deadline: float | None = None, name: str | None = None) -> Callable[[F], F]:
        """Registers what handles the WebSockets of a path: `@app.websocket("/rooms/{room}")`.

        A coroutine takes `socket: WebSocket`; a plain function returns `channel(…).socket(…)`. There is no body.
        `deadline`: seconds within which the WebSocket must be accepted; it is also the limit for a call for a message,
        and for a coroutine once its client has left. Other requests get 426. Raises `SignatureError` as `get` does.
        """
        if not isinstance(path, str):
            raise SignatureError(f"{getattr(path, '__qualname__', path)}: write @app.websocket('/path')")
        pattern, optional = parse(join(self.prefix, path)), parse(self.prefix).names if self.prefix else ()
        about = About(self._tag, {}, True, line_of(sys._getframe(1)))

        def register(function: F) -> F:
            self._add_route(make_socket_route(pattern, function, deadline, name, self._hooks, optional, about))
            return function

        return register

    def files(
        self,
        path: str,
        folder: str | Path,
        *,
        max_age: float | timedelta | None = None,
        index: str | None = "index.html",
        precompressed: bool = True,
        hidden_files: bool = False,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        name: str | None = None,
        cors: Cors | bool | None = None,
    ) -> None:
        """Serves the files of a folder: `app.files("/static", "static")`. The server answers alone, without a worker.

        A relative folder is next to the file that calls this. Nothing outside it is ever sent, whatever the path is and
        wherever links lead. Names that begin with a dot are 404 unless `hidden_files`. Folders are not listed: their
        `index` is sent (None for none). `name` is for `path`: `app.path("static", path="app.css")`.

        Browsers ask each time whether a file has changed; with `max_age` they use it for that many seconds without
        asking. With `precompressed`, `app.css.br`, `app.css.zst` or `app.css.gz` is sent instead of `app.css` to
        clients that accept it, unless it is older.

        With a before or after hook, which may refuse a request, a worker decides whether the server sends the file.
        Raises `LoadError` without the folder, `SignatureError` for a path that is taken.
        """
        caller = sys._getframe(1).f_globals.get("__file__")
        base = Path.cwd() if caller is None else Path(caller).parent
        full = (base / folder).absolute()
        if not full.is_dir():
            raise LoadError(f"files: there is no folder {full}")
        target = files_of(
            full,
            max_age=max_age,
            index=index,
            precompressed=precompressed,
            hidden_files=hidden_files,
            headers=headers,
        )
        prefix = join(self.prefix, path).rstrip("/")
        if not prefix and not self._is_application:
            raise SignatureError("the files of a router need a path, or a router with a prefix")
        if parse(prefix or "/").ends_with_rest:
            raise SignatureError(f"files: the path {path!r} must not end with a parameter for the rest of the path")
        about = About(self._tag, {}, True, line_of(sys._getframe(1)))
        for pattern, given in ((prefix, None), (f"{prefix}/", None), (f"{prefix}/{{path:path}}", name)):
            if pattern:
                route = make_route(("GET",), parse(pattern), target, None, given, self._hooks, (), about, cors)
                self._add_route(route)

    def path(self, name: str, /, **parameters: object) -> str:
        """The path of the route of that name with these parameters, encoded. Names are those of this router, so a
        module needs no other module to link to its own routes.

        Raises `KeyError` for a name that no route has, or several have; for a missing parameter; and for a router that
        is not included exactly once. If the server mounts the application, the path begins with the mount's prefix.
        """
        return self._mounted_at() + self._pattern_of(name).fill(parameters)

    def include(self, router: Router, *, prefix: str = "") -> None:
        """Adds the routes, hooks, error handlers, channels and jobs of a router, its paths under `prefix`.

        Register everything in the router first: from then on it takes no more routes and jobs. It may be included more
        than once, under different prefixes. Raises `SignatureError` for a path or a job that is there already.
        """
        if not isinstance(router, Router) or router._is_application:
            raise TypeError(f"include takes a Router, not {router!r}")
        if router is self:
            raise SignatureError("a router cannot include itself")
        self._check_open()
        full_prefix = self.prefix + checked_prefix(prefix)
        for route in router._routes:
            self._add_route(route.included(full_prefix, router.name, self._hooks))
        self._adopt(router)
        self._channels += [channel for channel in router._channels if channel not in self._channels]
        if router not in self._routers:
            self._routers.append(router)
        router._included_in.append((self, full_prefix))

    # Hooks

    def before(self, function: F) -> F:
        """Runs before every handler, with the request. If it returns anything but None, that is the answer, and the
        handler does not run. Those of the application run first.
        """
        self._hooks.before.append(make_hook(function, 1, "a before hook takes the request"))
        return function

    def after(self, function: F) -> F:
        """Runs after every handler with (request, response), also for errors; it may change the response or return
        another. Those of the application run last.

        For a wait that is returned it runs when the request parks. Then the body of the response is the wait itself
        (for a timer it is the response of the timer): what the hook does to status, headers and cookies is sent with
        the answer after the wait, and a response with another body is the answer at once. With a before or after hook,
        routes that are constants or waits are answered by a worker. It does not see errors of the server's own, such as
        404: `App.headers` is for all answers.
        """
        self._hooks.after.append(make_after_hook(function))
        return function

    def on_start(self, function: F) -> F:
        """Runs in each worker before it takes requests. If it raises, the worker does not start. Those of the
        application run first.
        """
        self._start_hooks.append(make_hook(function, 0, "a start-up hook takes nothing"))
        return function

    def on_stop(self, function: F) -> F:
        """Runs in each worker that stops, when its requests are finished. Those of the application run last."""
        self._stop_hooks.append(make_hook(function, 0, "a shut-down hook takes nothing"))
        return function

    def error(self, key: int | type[Exception]) -> Callable[[F], F]:
        """Registers a handler for a status (400 to 599) or a type of exception: `@app.error(404)`,
        `@app.error(KeyError)`. Where a router has one for an error of its routes, it comes before the application's.

        It may take the request (named `request`, or annotated `Request`) and the error. What it returns has the error's
        status, unless it sets another.
        """

        is_status = isinstance(key, int) and 400 <= key <= 599
        if not is_status and not (isinstance(key, type) and issubclass(key, Exception)):
            raise SignatureError(
                f"@app.error takes a status of 400 to 599 or a type of exception, as in @app.error(404), not {key!r}"
            )

        def register(function: F) -> F:
            self._hooks.errors.add(key, function)
            return function

        return register

    # Channels

    def channel(
        self, pattern: str, *, count: int | None = None, bytes: int | None = None, age: float | None = None
    ) -> None:
        """Limits the history of a channel, or of all channels whose name begins with what precedes a final `*`:
        messages, bytes, seconds. Channels are the same for all routers.

        The longest pattern that matches a name counts. Raises `ValueError` for a name that no channel can have.
        """
        made = pattern_of_channel(pattern, count, bytes, age)
        self._check_open()
        self._channels.append(made)

    # Other origins

    def cors(
        self,
        *,
        origins: str | Sequence[str],
        methods: Sequence[str] | None = None,
        headers: Sequence[str] | None = None,
        credentials: bool = False,
        max_age: float | timedelta | None = 600,
        expose: Sequence[str] = (),
    ) -> None:
        """Lets pages of other origins use the routes of this router and of those that it includes, unless they have a
        policy of their own. That of the application also covers paths that have no route.

        `origins`: those pages' origins (`"https://app.example.com"`, or `"https://*.example.com"` for all hosts under
        that), or `"*"` for any page. `methods` and `headers`: what such a request may have; None is whatever the page
        asks for. `credentials`: the browser may send cookies, and set them; not with `"*"`. `max_age`: seconds for
        which a browser may remember the answer to a preflight. `expose`: the headers of answers that scripts may read,
        apart from a few simple ones.

        The server answers preflights itself, and adds the headers to all answers: streams, and errors of its own, too.
        Raises `ValueError` for what no browser would accept.
        """
        self._check_open()
        self._hooks.cors = Cors(origins, methods, headers, credentials, max_age, expose)

    # Templates

    def templates(
        self,
        folder: str | Path,
        *,
        filters: Mapping[str, Callable[..., Any]] | None = None,
        globals: Mapping[str, Any] | None = None,
    ) -> Templates:
        """The Jinja2 templates in a folder: `pages = app.templates("templates")`, `pages.render("a.html", title="A")`.

        A relative folder is next to the file that calls this. All templates are compiled when the application loads,
        with these `filters` and `globals`, and values are escaped. Raises `LoadError` without Jinja2 or the folder.
        """
        caller = sys._getframe(1).f_globals.get("__file__")
        base = Path.cwd() if caller is None else Path(caller).parent
        return Templates((base / folder).resolve(), filters, globals)

    # What is in it

    _is_application = False

    def _all_routers(self) -> list[Router]:
        """This one and all that it includes, each once, the outer ones first."""
        found: dict[Router, None] = {self: None}
        for router in self._routers:
            found |= dict.fromkeys(router._all_routers())
        return list(found)

    def _register(
        self,
        path: str,
        target: Any,
        methods: tuple[str, ...],
        deadline: float | None,
        name: str | None,
        responses: Mapping[int, Any] | None,
        hidden: bool,
        cors: Cors | bool | None,
        stream: bool = False,
        body_limit: int | str | None = None,
    ) -> Callable[[F], F]:
        if not isinstance(path, str):
            told = getattr(path, "__qualname__", repr(path))
            raise SignatureError(f"{told}: a path comes first: write @app.{methods[0].lower()}('/path')")
        verbs = tuple(method.upper() for method in methods)
        if unknown := sorted(set(verbs) - _METHODS):
            raise ValueError(f"{path}: no method {', '.join(unknown)}")
        if cors is True:
            raise ValueError(f"{path}: cors is a policy, Cors(...), or False")
        body = streaming(f"{verbs[0]} {path}", stream, body_limit)
        pattern = parse(join(self.prefix, path))
        optional = parse(self.prefix).names if self.prefix else ()
        # The line is of the application, which has called `get` or another one.
        about = About(self._tag, dict(responses or {}), hidden, line_of(sys._getframe(2)))

        def register(handler: F) -> F:
            made = make_route(verbs, pattern, handler, deadline, name, self._hooks, optional, about, cors, body)
            self._add_route(made)
            return handler

        if target is not _MISSING:
            register(target)
        return register

    def _add_route(self, route: Route) -> None:
        self._check_open()
        for method in route.methods:
            first = self._handled.setdefault((method, route.pattern.place), route)
            if first is not route:
                raise SignatureError(f"{method} {route.pattern.path} has a handler already: {first.name}")
        self._routes.append(route)

    def _pattern_of(self, name: str) -> Pattern:
        found = [route for route in self._routes if route.name == name]
        if not found:
            raise KeyError(f"no route has the name {name!r}")
        patterns = {join(place, route.pattern.path) for route in found[:1] for place in self._places()}
        others = [route for route in found if route.pattern != found[0].pattern and route.target is not found[0].target]
        if others:
            told = ", ".join(route.pattern.path for route in (found[0], *others))
            raise KeyError(f"several routes have the name {name!r}: {told}; rename them or their routers")
        if len(patterns) != 1:
            told = ", ".join(sorted(patterns)) or "nowhere"
            raise KeyError(f"the router of {name!r} is not included exactly once, but at: {told}")
        return parse(patterns.pop())

    def _places(self) -> Iterator[str]:
        """The prefixes of the routers that it is in."""
        for router, prefix in self._included_in:
            yield from (place + prefix for place in router._places())

    def _mounted_at(self) -> str:
        """The prefix of the application that it is in, encoded. No route has it: the core has taken it away."""
        return self._included_in[0][0]._mounted_at() if self._included_in else ""

    def _check_open(self) -> None:
        if self._included_in:
            raise SignatureError(f"{self!r} is included already: register everything in it first")

    if not TYPE_CHECKING:  # checkers would take it for one that has every attribute

        def __getattr__(self, name: str) -> NoReturn:
            kind = "App" if self._is_application else "Router"
            raise AttributeError(f"{kind!r} object has no attribute {name!r}{for_attribute(self, name)}")

    def __repr__(self) -> str:
        return f"Router({self.prefix!r}, name={self.name!r})"
