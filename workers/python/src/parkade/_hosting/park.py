"""`park`: a wait as the response of a view that was not written for Parkade."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from copy import copy
from typing import Any, NoReturn

from .._link import port
from .._log import log_fault
from .._sql.transactions import Statement
from .._validation.annotations import article_of
from .._waits.functions import Place
from .._waits.groups import answered
from .._waits.wait import Wait
from ..errors import InvalidResult, WaitError

MARK = "parkade-parked"
"""The header of a response that stands for a wait. No client sees it."""


def park(wait: Wait[Any], response: Any = None) -> Any:
    """A response that parks the request, for a view of Flask, Django, Starlette, FastAPI, Litestar, Quart, or of bare
    WSGI and ASGI.

    ```python
    @app.get("/news")                                        # Flask
    def news():
        return park(channel("news").next(timeout=30))

    def report(request, year):                               # Django
        return park(query("select * from sales where year = $1", year).then(render, title="Sales"))
    ```

    The view's worker is free at once. Middleware and hooks that run after the view see a response without a body, and
    the headers and cookies that they set are sent with the answer. When the wait is over, the server answers as it does
    for a view of an `App`, or any worker calls the function of `.then`. What that returns is the answer, as that of a
    handler would be; it may also be a response of the framework.

    `response` is a response of the framework to set headers and cookies on; by default one of the calling framework is
    made. Its body has to be empty. Raises `WaitError` where no request is being answered, and where it is not clear
    which framework calls; `TypeError` for anything but a wait.
    """
    if not isinstance(wait, Wait):
        raise TypeError(f"park takes a wait, such as channel(name).next(), not {article_of(type(wait).__name__)}")
    if isinstance(wait, Statement):
        raise InvalidResult("parked with a query of a transaction, which ends with its block: await it there")
    stream = port.port().stream()
    if not stream:
        raise WaitError("park(…) makes the response of a view: there is no request here that could be parked")
    wait._used = True
    if response is None:
        response = _response()
    response.headers[MARK] = str(stream)
    with suppress(AttributeError):  # a class with __slots__
        response._parkade = _NOT_FOR_CACHES
    wait = answered(wait)
    if wait._function is not None and (at := place()) is not None:
        wait = copy(wait)
        wait._place = at
    parked[stream] = wait
    return response


def _nowhere() -> None:
    """No application is hosted."""


place: Callable[[], Place | None] = _nowhere
"""Where the calling view is: the framework of the hosted application knows it."""

parked: dict[int, Wait[Any]] = {}
"""By their streams: the waits of requests that are about to be answered. Whoever answers a request takes its own."""


class _NotForCaches:
    """Has no copy in a cache, and so neither has the response that it belongs to: whoever got it would get no body.

    Logs that, too: frameworks take what is raised for an exception of a view, and Django logs none by default.
    """

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        log_fault(_CACHED)
        raise InvalidResult(_CACHED)

    def __deepcopy__(self, memo: object) -> _NotForCaches:
        return self


_NOT_FOR_CACHES = _NotForCaches()
_CACHED = (
    "a cache was about to keep a response of park(…), whose request is parked, so there is no body yet: leave the view "
    "out of the cache (cache_page of Django), or have the cache skip it (never_cache)"
)


class ParkedResponse:
    """The response for those who take any application of WSGI or ASGI for one."""

    __slots__ = ("headers",)

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}

    def __call__(self, first: dict[str, Any], *rest: Any) -> Any:
        """With an environment and `start_response`, or with a scope, `receive` and `send`."""
        return self._wsgi(*rest) if len(rest) == 1 else self._asgi(*rest)

    def _wsgi(self, start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", list(self.headers.items()))
        return [b""]

    async def _asgi(self, receive: object, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _response() -> Any:
    """The response of the framework that calls, without a body and its type. No framework is imported for it."""
    for name in ("flask", "quart"):
        framework = sys.modules.get(name)
        if framework is not None and framework.has_request_context():
            made = framework.current_app.response_class()
            made.headers.pop("content-type", None)
            return made
    kinds = [kind for module, kind in _KINDS.items() if module in sys.modules]
    if len(kinds) > 1:
        names = " and ".join(sorted(module.partition(".")[0] for module in _KINDS if module in sys.modules))
        raise WaitError(f"{names} are both loaded: pass a response of the right one, as in park(wait, HttpResponse())")
    return kinds[0]() if kinds else ParkedResponse()


def _of_django() -> Any:
    made = sys.modules["django.http"].HttpResponse()
    del made["content-type"]
    return made


def _of_starlette() -> Any:
    return sys.modules["starlette.responses"].Response()


def _of_litestar() -> Any:
    return sys.modules["litestar.response.base"].ASGIResponse(media_type=None)


_KINDS: dict[str, Callable[[], Any]] = {
    "django.core.handlers.base": _of_django,
    "litestar.app": _of_litestar,
    "starlette.applications": _of_starlette,
}
"""What a framework imports for an application of its own, and its response."""
