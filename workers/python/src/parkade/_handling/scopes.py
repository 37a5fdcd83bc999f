"""What is around the handlers of each router, compiled when the application loads."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .._hooks import Around, Hooks
from .._link.answers import Run
from .._routing.patterns import RouteTable
from .._routing.routes import Route
from .._wire import payloads as p
from .compiling import Compiler
from .failures import Failures
from .results import Results


class Scope:
    """What makes answers of results and of exceptions, with the hooks and error handlers of one router and of those
    that it is in. `asynchronous`: one of them is a coroutine, so all run in the event loop.
    """

    __slots__ = ("_around", "_dev", "_routes", "asynchronous", "compile", "failures", "results")

    def __init__(
        self, hooks: Sequence[Hooks], routes: Sequence[Route], dev: bool, keeps_requests: bool = False
    ) -> None:
        self._around = around = Around(hooks, keeps_requests)
        self._routes = routes
        self._dev = dev
        self.asynchronous = around.asynchronous
        self.results = Results(routes, around)
        self.failures = Failures(around, self.results, dev)
        self.compile = Compiler(around, self.results, self.failures).compile

    def keeping(self, added: p.Added) -> tuple[Results, Failures]:
        """What makes answers after a wait of a request for which headers were set before."""
        from .kept import KeptResults  # only applications that were not written for Parkade have them

        results = KeptResults(self._routes, self._around, added)
        return results, Failures(self._around, results, self._dev)


class Scopes:
    """The scope of each route. `outermost` is the application's own, for everything that has no route; for its
    `keeps_requests` see `Around`.
    """

    def __init__(self, hooks: Hooks, routes: Sequence[Route], dev: bool, keeps_requests: bool = False) -> None:
        self._table = RouteTable((route.methods, route.pattern) for route in routes)
        self.outermost = Scope((hooks,), routes, dev, keeps_requests)
        known: dict[tuple[Hooks, ...], Scope] = {(hooks,): self.outermost}
        self._scopes: list[Scope] = []
        for route in routes:
            if route.scopes not in known:
                known[route.scopes] = Scope(route.scopes, routes, dev)
            self._scopes.append(known[route.scopes])

    def of(self, raw: p.Request) -> Scope:
        """The scope of the request's route."""
        number = raw.route
        return self.outermost if number is None or number >= len(self._scopes) else self._scopes[number]

    def compiled(self, routes: Sequence[Route]) -> dict[int | None, Run]:
        """The functions that answer the requests of the routes, by their numbers."""
        return {number: self._scopes[number].compile(route) for number, route in enumerate(routes)}

    def asynchronous(self) -> frozenset[int | None]:
        """The numbers of the routes that have an asynchronous hook; None if the application has one itself."""
        numbers = {number for number, scope in enumerate(self._scopes) if scope.asynchronous}
        return frozenset(numbers | {None} if self.outermost.asynchronous else numbers)

    def allowed(self, path: str) -> list[str]:
        """The methods under which the path has a route."""
        return self._table.allowed(path)

    def with_other_slash(self, method: str, path: str) -> str | None:
        """The path with a slash more or less at its end, if that has a route."""
        return self._table.with_other_slash(method, path)

    def routed(self, raw: p.Request) -> p.Request:
        """A request that was kept, with the number that its route has here.

        The code that parked it may have been an older version, whose routes had other numbers.
        """
        head = p.read_head(raw.head)
        match = self._table.match(head.method, head.path)
        if match is None:
            return msgspec.structs.replace(raw, route=None, parameters=[])
        return msgspec.structs.replace(raw, route=match.route, parameters=list(match.parameters))
