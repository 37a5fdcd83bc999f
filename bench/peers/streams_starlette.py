"""Event streams and WebSockets as one writes them with Starlette: a queue for each client, in one process."""

import asyncio
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

clients: set[asyncio.Queue[str]] = set()


async def messages() -> AsyncIterator[str]:
    queue: asyncio.Queue[str] = asyncio.Queue()
    clients.add(queue)
    try:
        while True:
            yield await queue.get()
    finally:
        clients.discard(queue)


async def events(request: Request) -> StreamingResponse:
    return StreamingResponse((f"data: {text}\n\n" async for text in messages()), media_type="text/event-stream")


async def told(socket: WebSocket) -> None:
    await socket.accept()
    async for text in messages():
        await socket.send_text(text)


async def publish(request: Request) -> PlainTextResponse:
    text = (await request.body()).decode()
    for queue in clients:
        queue.put_nowait(text)
    return PlainTextResponse("", 202)


async def waiting(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"waiting: {len(clients)}\n")


app = Starlette(
    routes=[
        Route("/events", events),
        WebSocketRoute("/socket", told),
        Route("/publish", publish, methods=["POST"]),
        Route("/", waiting),
    ]
)
