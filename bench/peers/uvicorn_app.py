"""Plain ASGI without a framework: what uvicorn can do at best."""

import asyncio
from typing import Any

waiting: set[asyncio.Future[bytes]] = set()


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    path: str = scope["path"]
    match path:
        case "/delayed" | "/later":
            await asyncio.sleep(2 if path == "/delayed" else 60)
            await answer(send, 200, b"done")
        case "/next":
            await long_poll(send)
        case "/publish":
            publish((await receive())["body"])
            await answer(send, 202, b"")
        case _:
            await answer(send, 200, f"Hola {path.removeprefix('/hola/')}".encode())


async def long_poll(send: Any) -> None:
    message: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    waiting.add(message)
    try:
        await answer(send, 200, await asyncio.wait_for(message, 60))
    except TimeoutError:
        await answer(send, 204, b"")
    finally:
        waiting.discard(message)


def publish(body: bytes) -> None:
    for message in waiting:
        if not message.done():
            message.set_result(body)
    waiting.clear()


async def answer(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
