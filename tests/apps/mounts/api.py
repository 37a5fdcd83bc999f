"""The application at `/live/api`, for ASGI."""

from __future__ import annotations

import json
import os
from typing import Any


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Tells what it has been given."""
    if scope["type"] == "websocket":
        return await echo(scope, receive, send)
    if scope["type"] != "http":
        return None
    told = {name: scope[name] for name in ("root_path", "path")} | {"raw_path": scope["raw_path"].decode()}
    body = json.dumps(told | {"by": "api", "colour": os.environ.get("COLOUR"), "pid": os.getpid()}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})
    return None


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Tells what it has been given, and sends back what it gets."""
    await receive()
    await send({"type": "websocket.accept"})
    told = {name: scope[name] for name in ("root_path", "path")}
    await send({"type": "websocket.send", "text": json.dumps(told)})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})
