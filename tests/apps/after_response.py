"""WSGI responses after which their worker goes on: `close` of the body (PEP 3333) waits at a gate, or for ever."""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from gates import hold


class Body:
    """What is iterated over, and then closed."""

    def __init__(self, pieces: Iterator[bytes], name: str) -> None:
        self._pieces = pieces
        self._name = name

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        print(f"works in {os.getpid()}", flush=True)
        while self._name == "hang":
            time.sleep(0.01)
        hold(self._name)
        print(f"worked: {self._name}", flush=True)


def fails() -> Iterator[bytes]:
    yield b"one "
    raise RuntimeError("in the middle")


def endless() -> Iterator[bytes]:
    while True:
        yield b"x" * 10_000


BODIES: dict[str, Callable[[], Iterator[bytes]]] = {
    "whole": lambda: iter([b"done"]),
    "streamed": lambda: iter([b"one ", b"two"]),
    "fails": fails,
    "endless": endless,
}


def app(environ: dict[str, Any], start_response: Callable[..., object]) -> Any:
    kind, _, name = environ["PATH_INFO"][1:].partition("/")
    length = [("Content-Length", "4")] if kind == "whole" else []
    start_response("200 OK", [("Content-Type", "text/plain"), *length])
    if kind == "pid":
        return [b"%d" % os.getpid()]
    return Body(BODIES[kind](), name)
