"""An application of ASGI that goes on when its client has the response: until a gate opens."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

from gates import hold_async


async def app(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[dict[str, Any]], Awaitable[None]]
) -> None:
    if scope["type"] != "http":
        raise ValueError("only HTTP")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"done"})
    print(f"works in {os.getpid()}", flush=True)
    await hold_async(scope["path"].strip("/"))
    print("has worked", flush=True)
