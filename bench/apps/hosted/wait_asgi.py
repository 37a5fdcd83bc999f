"""An application of ASGI that waits 100 ms for each request, as for a database that is far away."""

import asyncio

HEADERS = [(b"content-type", b"text/plain"), (b"content-length", b"5")]


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise ValueError("only HTTP")
    await asyncio.sleep(0.1)
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": b"done\n"})
