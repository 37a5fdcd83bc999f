"""An ASGI application with WebSockets, without a framework. The path says what it does."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from gates import hold, hold_async

Message = MutableMapping[str, Any]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def say(*words: object) -> None:
    print(*words, flush=True)


async def answer(send: Send, body: bytes, status: int = 200) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": body})


async def http(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"].startswith("/hola/"):
        return await answer(send, f"Hola {scope['path'].removeprefix('/hola/')}".encode())
    if scope["path"] == "/events":  # until the worker is about to be stopped
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b"data: begun\n\n", "more_body": True})
        await scope["parkade.shutdown"]
        await send({"type": "http.response.body", "body": b"data: told\n\n"})
        return None
    return await answer(send, f"{scope['type']} {scope['path']}".encode())


async def echo(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})
    say("disconnected", message["code"], message["reason"])


async def scope_told(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    await send({"type": "websocket.accept"})
    names = ("type", "scheme", "path", "raw_path", "query_string", "http_version", "root_path", "subprotocols")
    told = [*(scope[name] for name in names), scope["client"][0], "method" in scope, dict(scope["extensions"])]
    await send({"type": "websocket.send", "text": repr(told)})


async def subprotocol(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    fields = [(b"x-a", b"1"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")]
    await send({"type": "websocket.accept", "subprotocol": rest or None, "headers": fields})
    await receive()


async def deny(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    if rest == "close":
        return await send({"type": "websocket.close"})
    if rest == "raise":
        raise ValueError("before the handshake")
    if rest == "silent":
        return None
    status = 200 if rest == "kindly" else 401
    await send({"type": "websocket.http.response.start", "status": status, "headers": [(b"x-why", b"stranger")]})
    await send({"type": "websocket.http.response.body", "body": b"not ", "more_body": True})
    await send({"type": "websocket.http.response.body", "body": b"you"})
    return None


async def close(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    """With this code; 0: raises; 1: returns."""
    await send({"type": "websocket.accept"})
    await receive()
    if rest == "0":
        raise ValueError("in the middle")
    if rest != "1":
        await send({"type": "websocket.close", "code": int(rest), "reason": "because"})


async def flood(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    """Sends without end, and says how much."""
    await send({"type": "websocket.accept"})
    count = 0
    try:
        while True:
            await send({"type": "websocket.send", "bytes": bytes(50_000)})
            count += 1
            if count in (1, 100):
                say("sent", count)
    except OSError as error:
        say("flood ends:", type(error).__mro__[1].__name__)


async def lazy(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    """Receives nothing until the gate opens; then counts the bytes up to an empty message."""
    await send({"type": "websocket.accept"})
    say("accepted")
    await hold_async(rest)
    count = 0
    while (message := await receive())["type"] == "websocket.receive" and message.get("bytes"):
        count += len(message["bytes"])
    await send({"type": "websocket.send", "text": str(count)})


async def busy(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    """Blocks its event loop, from the first message on until the gate opens."""
    await send({"type": "websocket.accept"})
    await receive()
    hold(rest)
    await send({"type": "websocket.send", "text": "busy no longer"})
    await receive()


async def late(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    """Receives nothing until the gate opens; then everything."""
    await send({"type": "websocket.accept"})
    await hold_async(rest)
    while (message := await receive())["type"] == "websocket.receive":
        say("received late", message["text"])
    say("then", message["code"])


async def closed(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    """Sends after it has closed."""
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close"})
    try:
        await send({"type": "websocket.send", "text": "too late"})
    except Exception as error:
        say("after the close:", type(error).__name__)


async def push(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    """So many messages of so many bytes."""
    await send({"type": "websocket.accept"})
    count, size = map(int, rest.split("x"))
    for number in range(count):
        await send({"type": "websocket.send", "bytes": number.to_bytes(4, "big") + bytes(size - 4)})
    await receive()


async def both(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    """Sends in one task what comes in another."""
    await send({"type": "websocket.accept"})
    queue: asyncio.Queue[Message] = asyncio.Queue()

    async def forward() -> None:
        while (message := await queue.get())["type"] == "websocket.receive":
            await send({**message, "type": "websocket.send"})

    task = asyncio.create_task(forward())
    while True:
        message = await receive()
        queue.put_nowait(message)
        if message["type"] != "websocket.receive":
            break
    await task


async def until_shutdown(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": "begun"})
    await scope["parkade.shutdown"]
    await send({"type": "websocket.send", "text": "told"})
    await send({"type": "websocket.close", "code": 1001, "reason": "restarting"})


async def deaf(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    """Waits for something else. `rest`: cancel or notify."""
    scope["parkade.on_disconnect"](rest or "notify")
    await send({"type": "websocket.accept"})
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        say("deaf was cancelled")
        raise


async def wait(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
    """Sends the next message of a channel."""
    from parkade import channel

    await send({"type": "websocket.accept"})
    message = await channel(rest).next(timeout=20)
    await send({"type": "websocket.send", "text": message.text if message else "none"})


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        raise ValueError("it has none")
    if scope["type"] == "http":
        return await http(scope, receive, send)
    assert (await receive())["type"] == "websocket.connect"
    name, _, rest = scope["path"].removeprefix("/").partition("/")
    found = {"scope": scope_told, "until-shutdown": until_shutdown}.get(name) or globals()[name]
    return await found(scope, receive, send, rest)  # type: ignore[no-any-return]
