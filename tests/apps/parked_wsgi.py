"""A bare WSGI application that parks."""

from collections.abc import Callable, Iterable
from typing import Any

from parked_waits import WAITS

from parkade import park


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    kind, _, name = environ["PATH_INFO"].lstrip("/").partition("/")
    if kind == "generator":
        return lazy(environ, start_response, name)
    response = park(WAITS[name]())
    response.headers["x-marked"] = "yes"
    return response if kind == "returned" else response(environ, start_response)


def lazy(environ: dict[str, Any], start_response: Callable[..., Any], name: str) -> Iterable[bytes]:
    yield from park(WAITS[name]())(environ, start_response)
