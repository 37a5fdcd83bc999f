"""The application at `/`, for WSGI."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from letters import write

from parkade import channel, connect, park

Environ = dict[str, Any]
Start = Callable[..., object]


def application(environ: Environ, start: Start) -> Iterable[bytes]:
    """Tells what it has been given, and shares what the others have."""
    path = environ["PATH_INFO"]
    if path == "/hola/you":
        return answer(start, "Hola you")
    if path.startswith("/publish/"):
        channel("news").publish(path.removeprefix("/publish/"))
        return answer(start, "published")
    if path == "/letter":
        return park(write.enqueue("Ana").result(timeout=20))(environ, start)
    if path == "/count":
        with connect() as server:
            return answer(start, server.enqueue("count", "mississippi"))
    told = {name: environ[name] for name in ("SCRIPT_NAME", "PATH_INFO", "QUERY_STRING")}
    return answer(start, json.dumps(told | {"by": "front", "pid": os.getpid()}))


def answer(start: Start, text: str) -> Iterable[bytes]:
    """A page of text."""
    start("200 OK", [("Content-Type", "text/plain")])
    return [text.encode()]
