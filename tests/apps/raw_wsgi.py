"""A WSGI application without a framework, checked by `wsgiref.validate`: what PEP 3333 allows, and what it forbids."""

import io
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.validate import validator

from gates import hold

Environ = dict[str, Any]
Start = Callable[..., Callable[[bytes], object]]

TEXT = [("Content-Type", "text/plain")]


class Text(str):
    """Text of a class of its own, such as Django has for safe HTML."""


class Body:
    """Says that it was closed."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)

    def close(self) -> None:
        print("the body is closed", flush=True)


def pieces_at(gate: str) -> Iterator[bytes]:
    yield b"one "
    hold(gate)
    yield b"two"


def broken() -> Iterator[bytes]:
    yield b"one"
    raise ValueError("in the middle")


def endless() -> Iterator[bytes]:
    while True:
        yield b"x" * 65_536


def checked(environ: Environ, start: Start) -> Iterable[bytes]:
    path, body = environ["PATH_INFO"], environ["wsgi.input"]
    if path == "/environ":
        start("200 OK", [("Content-Type", "application/json")])
        told = {name: value for name, value in environ.items() if isinstance(value, str | bool | tuple)}
        return [json.dumps(told).encode()]
    if path == "/echo":
        start("200 OK", TEXT)
        return [body.read(int(environ.get("CONTENT_LENGTH") or 0))]
    if path == "/count":
        start("200 OK", TEXT)
        return [str(sum(len(piece) for piece in iter(lambda: body.read(65_536), b""))).encode()]
    if path == "/lines":
        start("200 OK", TEXT)
        return [b"|".join([body.readline(), body.read(2), *body])]
    if path == "/nothing":
        start("204 No Content", [])
        return []
    if path == "/empty":
        start("200 OK", TEXT)
        return Body([])
    if path == "/pieces":
        start("200 OK", TEXT)
        return Body([b"one ", b"", b"two"])
    if path.startswith("/held/"):
        start("200 OK", TEXT)
        return pieces_at(path.removeprefix("/held/"))
    if path.startswith("/written/"):
        write = start("200 OK", TEXT)
        write(b"written, ")
        hold(path.removeprefix("/written/"))
        return Body([b"returned"])
    if path == "/fields":
        start("201 Created", [*TEXT, ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
        return [b"fields"]
    if path == "/named":
        start("200 OK", [*TEXT, ("X-Name", "J\xfcrgen")])
        return [b""]
    if path == "/file":
        start("200 OK", TEXT)
        return environ["wsgi.file_wrapper"](io.BytesIO(b"x" * 200_000), 8_192)  # type: ignore[no-any-return]
    if path == "/replaced":
        start("200 OK", TEXT)
        try:
            raise ValueError("before the body")
        except ValueError:
            start("503 Service Unavailable", TEXT, sys.exc_info())
        return [b"replaced"]
    start("404 Not Found", TEXT)
    return [b"there is no such path"]


def wrapped(how: str, environ: Environ, start: Start) -> Iterable[bytes]:
    """The file of the query, in one of the ways in which applications have files."""
    path = environ["QUERY_STRING"]
    file: Any = open(path, "rb")  # noqa: SIM115
    if how == "removed":

        def close(close: Callable[[], None] = file.close) -> None:
            os.unlink(path)
            close()

        file.close = close
    elif how == "unclosable":
        file.close = lambda: 1 / 0
    elif how == "nameless":
        os.unlink(path)
    elif how == "temporary":
        with file:
            copy = tempfile.NamedTemporaryFile()  # noqa: SIM115
            shutil.copyfileobj(file, copy)
        file = copy
        file.seek(0)
    elif how == "rest":
        assert len(file.read(10)) == 10
    length = [("Content-Length", how)] if how.isdecimal() else []
    start("200 OK", [*TEXT, *length])
    return environ["wsgi.file_wrapper"](file, 8_192)  # type: ignore[no-any-return]


def lazy(start: Start) -> Iterator[bytes]:
    """Calls `start_response` as late as PEP 3333 allows."""
    start("202 Accepted", TEXT)
    yield b"late but "
    yield b"in time"


def unchecked(environ: Environ, start: Start) -> Iterable[bytes]:
    """Some of these are mistakes."""
    path = environ["PATH_INFO"]
    if path == "/hola/you":
        start("200 OK", TEXT)
        return [b"Hola you"]
    if path.startswith("/down/"):
        count = int(path.removeprefix("/down/"))
        start("200 OK", [*TEXT, ("Content-Length", str(count * 65_536))])
        return (b"x" * 65_536 for _ in range(count))
    if path.startswith("/wrapped/"):
        return wrapped(path.removeprefix("/wrapped/"), environ, start)
    if path == "/back":
        start("200 OK", TEXT)
        body = environ["wsgi.input"]
        return iter(lambda: body.read(65_536), b"")
    if path == "/sleep":
        print(f"sleeps in {os.getpid()} since {time.monotonic()}", flush=True)
        time.sleep(60)
    if path == "/dies":
        os._exit(7)
    if path == "/thread":
        start("200 OK", TEXT)
        return [f"{os.getpid()} {threading.current_thread().name}".encode()]
    if path == "/endless":
        start("200 OK", TEXT)
        return Body(endless())
    if path == "/broken":
        start("200 OK", TEXT)
        return Body(broken())
    if path == "/raises":
        raise ValueError("at once")
    if path == "/unstarted":
        return [b"without start_response"]
    if path == "/text":
        start("200 OK", TEXT)
        return ["text"]  # type: ignore[list-item]
    if path == "/twice":
        start("200 OK", TEXT)
        start("200 OK", TEXT)
    if path == "/status":
        start("fine", TEXT)
        return [b""]
    if path == "/informational":
        start("101 Switching Protocols", TEXT)
        return [b""]
    if path == "/lazy":
        return lazy(start)
    if path.startswith("/length/"):
        length, count = path.removeprefix("/length/").split("/")
        start("200 OK", [*TEXT, ("Content-Length", length)])
        return iter([b"x" * int(count), b""])
    if path == "/split":
        start("200 OK", [*TEXT, ("X-Name", "a\r\nSet-Cookie: forged=1")])
        return [b"split"]
    if path == "/own-text":
        start("200 OK", [*TEXT, (Text("X-Name"), Text("safe"))])
        return [b"own"]
    if path == "/tab":
        start("200 OK", [*TEXT, ("X-Name", "a\tb")])
        return [b"tab"]
    if path == "/late":
        start("200 OK", TEXT)(b"begun")
        try:
            raise ValueError("too late")
        except ValueError:
            start("500 Oh", TEXT, sys.exc_info())
        return []
    return validator(checked)(environ, start)  # type: ignore[arg-type]


application = unchecked
