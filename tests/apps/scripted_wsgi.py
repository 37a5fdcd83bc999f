"""A WSGI application that is the Python of its query: a test says what an application does."""

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from gates import hold
from reading import read

Start = Callable[..., Callable[[bytes], object]]


class Text(str):
    pass


class Closing:
    """A body that says when it is closed, and may fail then."""

    def __init__(self, pieces: Iterable[Any], fails: bool = False) -> None:
        self._pieces = iter(pieces)
        self._fails = fails

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        print("closed", flush=True)
        if self._fails:
            raise ValueError("while it was closed")


class Indexed:
    """A body of the old kind: without `__iter__`."""

    def __getitem__(self, at: int) -> bytes:
        return [b"a", b"b"][at]


def fail(kind: str) -> Any:
    """Raises this exception."""
    faults: dict[str, BaseException] = {
        "error": ValueError("on purpose"),
        "exit": SystemExit("on purpose"),
        "cancelled": asyncio.CancelledError("on purpose"),
        "generator": GeneratorExit("on purpose"),
        "stop": StopIteration("on purpose"),
        "base": BaseException("on purpose"),
    }
    raise faults[kind]


def then(*steps: Callable[[], Any]) -> Iterator[Any]:
    """A body whose pieces are made one after the other."""
    for step in steps:
        yield step()


def held(gate: str, piece: bytes) -> bytes:
    """The piece, when the test opens this gate."""
    hold(gate)
    return piece


def failed() -> Any:
    """What an application passes to start_response after an exception."""
    try:
        raise ValueError("on purpose")
    except ValueError:
        return sys.exc_info()


def app(environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
    if environ["PATH_INFO"] == "/hola/you":
        start_response("200 OK", [])
        return [b"Hola you"]
    if environ["PATH_INFO"] == "/read":
        start_response("200 OK", [])
        return [b"|".join(read(environ["wsgi.input"], unquote(environ["QUERY_STRING"])))]

    def start(status: Any = "200 OK", fields: Any = (), *more: Any) -> Any:
        return start_response(status, [*fields] if isinstance(fields, tuple) else fields, *more)

    found: Iterable[bytes] = eval(unquote(environ["QUERY_STRING"]), globals() | {"start": start, "environ": environ})
    return found
