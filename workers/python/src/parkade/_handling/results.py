"""Turns the result of a handler into an answer: after hooks run, then the response is encoded or the wait is parked."""

from __future__ import annotations

from collections.abc import Sequence

from .._hooks import Around, settle
from .._link import port
from .._link.answers import Answer, Parked
from .._requests.request import Request
from .._responses.encoding import InThread, encode, encode_async
from .._responses.response import Response, normalise
from .._routing.routes import Route, park
from .._waits.wait import Wait
from .._wire import payloads as p
from ..errors import InvalidResult


class Results:
    """Makes answers of results. `status` is for results without their own."""

    def __init__(self, routes: Sequence[Route], around: Around) -> None:
        self._routes = routes
        self._after = around.after
        self._keeps_requests = bool(around.after or around.errors)

    def answer(self, result: object, status: int, raw: p.Request | None, request: Request | None) -> Answer:
        """The answer of a plain function. Raises the exceptions of after hooks, and `InvalidResult`."""
        made = normalise(result, status)
        if isinstance(made, Wait):
            return self.park(made, raw, request)
        for hook in self._after:
            made = _changed(hook.function(request, made), made)
        return encode(made)

    async def answer_async(self, result: object, status: int, raw: p.Request | None, request: Request | None) -> Answer:
        """As `answer`, in the event loop."""
        made = normalise(result, status)
        if isinstance(made, Wait):
            return self.park(made, raw, request)
        for hook in self._after:
            made = _changed(await settle(hook, hook.function(request, made)), made)
        return await encode_async(made, _thread_of_exchange())

    def park(self, wait: Wait, raw: p.Request | None, request: Request | None) -> Parked:
        """Parks. The request is included if the function after the wait, or a hook after that, may need it."""
        function = wait.function
        if function is None:
            return Parked(park(wait, None))
        if raw is None or not (function.request or self._keeps_requests):
            return Parked(park(wait, None))
        return Parked(park(wait, (request or self.request(raw))._carried()))

    def request(self, raw: p.Request) -> Request:
        """The request as its route's handler sees it."""
        return (
            Request(raw)
            if raw.route is None or raw.route >= len(self._routes)
            else self._routes[raw.route].request(raw)
        )


def _thread_of_exchange() -> InThread | None:
    """Runs the iterator that answers this request in the thread of its plain function; None is the loop, for an
    iterator that a coroutine returned.
    """
    exchange = port.exchange.get()
    return port.port().in_thread if exchange is not None and exchange.occupies else None


def _changed(result: object, response: Response) -> Response:
    """The result of an after hook; None leaves the response as it was."""
    if result is None:
        return response
    made = normalise(result, response.status or 200)
    if isinstance(made, Wait):
        raise InvalidResult("returned a wait from an after hook: there is a response already")
    return made
