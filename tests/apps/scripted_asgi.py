"""An ASGI application that sends the messages of its query, which is Python: a test says what an application says."""

import asyncio
import builtins
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from gates import hold_async

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TEXT = [(b"content-type", b"text/plain")]


class Text(str):
    pass


class Bytes(bytes):
    pass


def start(status: object = 200, headers: object = TEXT, **more: object) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers, **more}


def body(piece: object = b"", more: object = False) -> Message:
    return {"type": "http.response.body", "body": piece, "more_body": more}


def accept(**more: object) -> Message:
    return {"type": "websocket.accept", **more}


def deny(status: object = 403, headers: object = TEXT) -> Message:
    return {"type": "websocket.http.response.start", "status": status, "headers": headers}


def denial(piece: object = b"", more: object = False) -> Message:
    return {"type": "websocket.http.response.body", "body": piece, "more_body": more}


def text(said: object) -> Message:
    return {"type": "websocket.send", "text": said}


def data(said: object) -> Message:
    return {"type": "websocket.send", "bytes": said}


def close(**more: object) -> Message:
    return {"type": "websocket.close", **more}


RECEIVE = {"type": "receive"}
"""Receives a message, and prints it."""


def hold(gate: str) -> Message:
    """Waits until the test opens this gate."""
    return {"type": "hold", "gate": gate}


def fail(kind: str) -> Message:
    """Raises this exception."""
    return {"type": "fail", "kind": kind}


class _Group(Exception):
    """What Python 3.10 does not have."""


FAULTS: dict[str, Callable[[], BaseException]] = {
    "error": lambda: ValueError("on purpose"),
    "cancelled": lambda: asyncio.CancelledError("on purpose"),
    "group": lambda: getattr(builtins, "ExceptionGroup", _Group)("on purpose", [ValueError("the inner one")]),
    "base": lambda: getattr(builtins, "BaseExceptionGroup", _Group)("on purpose", [asyncio.CancelledError()]),
    "timeout": lambda: TimeoutError("on purpose"),
    "stop": lambda: StopAsyncIteration("on purpose"),
}


async def said(messages: list[Any], receive: Receive, send: Send) -> None:
    for message in messages:
        match message:
            case {"type": "receive"}:
                print("received", {name: value for name, value in (await receive()).items() if value}, flush=True)
            case {"type": "hold", "gate": gate}:
                await hold_async(gate)
                print("goes on", flush=True)
            case {"type": "fail", "kind": kind}:
                raise FAULTS[kind]()
            case {"reused": piece}:
                sent = bytearray(piece)
                await send(body(sent, more=True))
                sent[:] = b"?" * len(sent)
            case _:
                await send(message)


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        if (script := os.environ.get("LIFESPAN")) is None:
            raise ValueError("there is none")
        scope["state"]["made"] = "at the start"
        return await said(eval(script), receive, send)
    if scope["path"] == "/hola/you":
        return await said([start(), body(b"Hola you")], receive, send)
    if scope["type"] == "websocket":
        assert (await receive())["type"] == "websocket.connect"
    return await said(eval(unquote(scope["query_string"].decode())), receive, send)
