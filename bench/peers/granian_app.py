"""Granian's own interface (RSGI): its fastest way to answer from Python."""

from typing import Any


async def app(scope: Any, protocol: Any) -> None:
    name = scope.path.removeprefix("/hola/")
    protocol.response_str(200, [("content-type", "text/plain; charset=utf-8")], f"Hola {name}")
