"""Turns the result of a handler into an answer: after hooks run, then the response is encoded or the wait is parked."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from .._hooks import Around, settle
from .._link import port
from .._link.answers import Answer, Parked
from .._mappings import Headers
from .._requests.request import Request
from .._responses.encoding import InThread, encode, encode_async
from .._responses.response import Response, normalise
from .._routing.routes import Route, park, response_of_timer
from .._waits.groups import answered
from .._waits.wait import Wait
from .._wire import payloads as p
from ..errors import InvalidResult


class Results:
    """Makes answers of results. `status` is for results without their own."""

    def __init__(self, routes: Sequence[Route], around: Around) -> None:
        self._routes = routes
        self._after = around.after
        self._keeps_requests = around.keeps_requests

    def answer(self, result: object, status: int, raw: p.Request | None, request: Request | None) -> Answer:
        """The answer of a plain function. Raises the exceptions of after hooks, and `InvalidResult`."""
        made = normalise(result, status)
        if self._after and (seen := _seen_by_hooks(made)) is not None:
            for hook in self._after:
                seen = _changed(hook.function(request, seen), seen)
            made = _left_by_hooks(made, seen)
        return self.park(made, raw, request) if isinstance(made, Wait) else encode(made)

    async def answer_async(self, result: object, status: int, raw: p.Request | None, request: Request | None) -> Answer:
        """As `answer`, in the event loop."""
        made = normalise(result, status)
        if self._after and (seen := _seen_by_hooks(made)) is not None:
            for hook in self._after:
                seen = _changed(await settle(hook, hook.function(request, seen)), seen)
            made = _left_by_hooks(made, seen)
        if isinstance(made, Wait):
            return self.park(made, raw, request)
        return await encode_async(made, _streams, _thread_of_exchange())

    def park(self, wait: Wait, raw: p.Request | None, request: Request | None) -> Parked:
        """Parks. The request is included if the function after the wait, or a hook after that, may need it."""
        wait = answered(wait)
        function = wait._function
        if function is None:
            return Parked(park(wait, None))
        # No hook runs for what the client of a WebSocket says.
        is_kept = function.request or (self._keeps_requests and not isinstance(wait._wait, p.Socket))
        if raw is None or not is_kept:
            return Parked(park(wait, None))
        return Parked(park(wait, (request or self.request(raw))._carried()))

    def request(self, raw: p.Request) -> Request:
        """The request as its route's handler sees it."""
        return (
            Request(raw)
            if raw.route is None or raw.route >= len(self._routes)
            else self._routes[raw.route].request(raw)
        )


def _streams() -> None:
    """An asynchronous iterator makes the answer of this request."""
    if (exchange := port.exchange.get()) is not None:
        exchange.streams = True


def _thread_of_exchange() -> InThread | None:
    """Runs the iterator that answers this request in the thread of its plain function; None is the loop, for an
    iterator that a coroutine returned.
    """
    exchange = port.exchange.get()
    return port.port().in_thread if exchange is not None and exchange.occupies else None


def _seen_by_hooks(made: Response | Wait) -> Response | None:
    """What after hooks see of a result. None: they run for what the function after the wait returns."""
    if not isinstance(made, Wait):
        return made
    is_answered_by_core = made._function is None and not isinstance(made._wait, p.Access | p.AllOf | p.FirstOf)
    return _response_of(made) if is_answered_by_core else None


def _left_by_hooks(made: Response | Wait, seen: Response) -> Response | Wait:
    """The result, with what after hooks have left of its response."""
    changed = _with_response(made, seen) if isinstance(made, Wait) else None
    return seen if changed is None else changed


def _response_of(wait: Wait) -> Response:
    """What after hooks see of an answer that is still to come: for a timer the answer, for others its headers."""
    if isinstance(wait._wait, p.Timer):
        return response_of_timer(wait)
    response = Response(wait)
    added = wait._added or p.Added(None, None)
    response.status, response.headers = added.status or 200, Headers._of_request(added.headers or [])
    return response


def _with_response(wait: Wait, response: Response) -> Wait | None:
    """The wait, with what after hooks have left of its response; None if that is the answer at once."""
    if isinstance(wait._wait, p.Timer):
        return Wait(wait._wait, response)
    if response.body is not wait:
        return None
    made = copy(wait)
    made._added = None
    changed = normalise(
        Response(made, None if response.status == 200 else response.status, response.headers.pairs()), 0
    )
    return changed if isinstance(changed, Wait) else None


def _changed(result: object, response: Response) -> Response:
    """The result of an after hook; None leaves the response as it was."""
    if result is None or result is response:
        return response
    if isinstance(result, Response) and result.body is response.body and isinstance(result.body, Wait):
        return result
    made = normalise(result, response.status or 200)
    if isinstance(made, Wait):
        raise InvalidResult("returned a wait from an after hook: there is a response already")
    return made
