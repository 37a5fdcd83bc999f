"""Responses that wait in their middle, in each framework: `/stream/{name}` streams what a generator yields."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from parkade import after, channel, query, transaction
from parkade.jobs import Jobs

jobs = Jobs()


@jobs.job
def log(line: str) -> None:
    print(f"job {line}", flush=True)


async def _text(name: str) -> str:
    message = await channel(name).next(timeout=60)
    return message.text if message is not None else "nothing"


async def follow() -> AsyncIterator[str]:
    """One wait after the other, the first before the response has begun."""
    try:
        while (text := await _text("news")) not in ("end", "nothing"):
            yield f"{text}\n"
    finally:
        print("the stream was closed", flush=True)


async def merge() -> AsyncIterator[str]:
    """Two at a time; either may begin the response."""
    waiting = {asyncio.create_task(_text(name)) for name in ("one", "two")}
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            yield f"{task.result()}\n"


async def abandon() -> AsyncIterator[str]:
    """A task still waits when the response ends."""
    task = asyncio.create_task(_text("never"))
    yield "begun\n"
    await asyncio.sleep(0)
    yield "ended\n"
    task.add_done_callback(lambda _: print("the task has ended", flush=True))


async def fail() -> AsyncIterator[str]:
    """The same, broken off."""
    task = asyncio.create_task(_text("never"))
    yield "begun\n"
    await _text("news")
    task.add_done_callback(lambda _: print("the task has ended", flush=True))
    raise ValueError("after a wait")


async def rows() -> AsyncIterator[str]:
    yield "begun\n"
    for row in await query("select n from generate_series(1, 20000) n"):
        if row["n"] % 5_000 == 0:
            yield f"{row['n']}\n"


async def slow() -> AsyncIterator[str]:
    yield "begun\n"
    await query("select pg_sleep(60)")


async def pay() -> AsyncIterator[str]:
    """A transaction, and a job in it."""
    yield "begun\n"
    async with transaction() as t:
        await t.query("create table if not exists paid (n int)")
        await t.query("insert into paid values (1)")
        log.enqueue("paid")
        yield "inserted\n"
        if await _text("news") == "undo":
            raise ValueError("undone")
    yield "committed\n"


async def store() -> AsyncIterator[str]:
    yield "begun\n"
    handle = log.enqueue("stored")
    try:
        await handle
    except Exception as error:
        yield f"{error}\n"


async def doze() -> AsyncIterator[str]:
    yield "begun\n"
    await after(2)
    yield "after more than the deadline\n"


async def sleep() -> AsyncIterator[str]:
    """Two things at a time, one of which does not end with the server."""
    task = asyncio.create_task(_text("never"))
    try:
        yield "begun\n"
        await after(60)
    finally:
        task.cancel()
        print("the stream was closed", flush=True)


STREAMS: dict[str, Callable[[], AsyncIterator[str]]] = {
    function.__name__: function for function in (follow, merge, abandon, fail, rows, slow, pay, store, doze, sleep)
}


async def read(pieces: AsyncIterator[bytes]) -> str:
    """A query between two pieces of a body."""
    size = len(await anext(pieces))
    (row,) = await query("select n from generate_series(7, 7) n")
    print("the row has come", flush=True)
    async for piece in pieces:
        size += len(piece)
    return f"{row['n']} {size}"


def _raw() -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": "open"})
            await asyncio.gather(_never(), after(60))
        elif scope["type"] == "http" and scope["method"] == "POST":
            answer = await read(_received(receive))
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": answer.encode()})
        elif (sender := SENDERS.get(scope["path"].removeprefix("/stream/"))) is not None:
            await sender(send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            name = scope["path"].removeprefix("/stream/")
            if name == "ping":
                await _ping(send)
            else:
                async for piece in STREAMS[name]():
                    await send({"type": "http.response.body", "body": piece.encode(), "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    return app


async def _start(send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def _piece(send: Any, body: bytes, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def _pump() -> None:
    """Waits again and again, whatever comes of it."""
    while True:
        await asyncio.gather(_text("a"), _text("b"), return_exceptions=True)
        await asyncio.sleep(0)


async def pumped(send: Any) -> None:
    task = asyncio.create_task(_pump())
    await asyncio.sleep(0)
    await _start(send)
    await _piece(send, b"begun\n")
    await _piece(send, b"ended\n", more=False)
    task.cancel()


async def pumped_whole(send: Any) -> None:
    task = asyncio.create_task(_pump())
    await asyncio.sleep(0)
    await _start(send)
    await _piece(send, b"whole\n", more=False)
    task.cancel()


async def impatient(send: Any) -> None:
    """Gives up sending: nothing of the first piece was sent, and of the last one everything but the end."""
    task = asyncio.create_task(_text("never"))
    await asyncio.sleep(0)
    await _start(send)
    for body, more in ((b"begun\n", True), (b"ended\n", False)):
        sending = asyncio.create_task(_piece(send, body, more))
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        if sending.cancelled():
            await _piece(send, body if more else b"", more)
    task.cancel()


async def two(send: Any) -> None:
    """Two tasks send while a third one waits."""
    task = asyncio.create_task(_text("never"))
    await asyncio.sleep(0)
    await _start(send)
    await asyncio.gather(_piece(send, b"one\n"), _piece(send, b"two\n"))
    await _piece(send, b"", more=False)
    task.cancel()


async def main_waits(send: Any) -> None:
    """Another task sends while the request's own one waits."""
    await _start(send)
    sending = asyncio.create_task(_piece(send, b"of another\n"))
    await _text("news")
    await sending
    await _piece(send, b"own\n", more=False)


SENDERS = {function.__name__: function for function in (pumped, pumped_whole, impatient, two, main_waits)}


async def _never() -> None:
    while True:
        await _text("never")
        await after(0.1)


async def _received(receive: Any) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        yield message["body"]


async def _ping(send: Any) -> None:
    """Another task begins the response while one waits."""

    async def wait() -> None:
        body = (await _text("news")).encode()
        await send({"type": "http.response.body", "body": body, "more_body": True})

    waiting = asyncio.create_task(wait())
    await _text("ping")
    await send({"type": "http.response.body", "body": b"ping\n", "more_body": True})
    await waiting


def _starlette() -> Any:
    from starlette.applications import Starlette
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, StreamingResponse
    from starlette.routing import Route

    async def stream(request: Request) -> StreamingResponse:
        return StreamingResponse(STREAMS[request.path_params["name"]]())

    async def upload(request: Request) -> PlainTextResponse:
        return PlainTextResponse(await read(request.stream()))

    async def unchanged(request: Request, call_next: Any) -> Any:
        return await call_next(request)

    app = Starlette(routes=[Route("/stream/{name}", stream), Route("/read", upload, methods=["POST"])])
    app.add_middleware(BaseHTTPMiddleware, dispatch=unchanged)  # which has tasks of its own
    return app


def _fastapi() -> Any:
    from fastapi import FastAPI
    from fastapi.responses import StreamingResponse

    app = FastAPI()

    @app.get("/stream/{name}")
    async def stream(name: str) -> StreamingResponse:
        return StreamingResponse(STREAMS[name]())

    return app


def _litestar() -> Any:
    from litestar import Litestar, get
    from litestar.response import Stream

    @get("/stream/{name:str}", sync_to_thread=False)
    def stream(name: str) -> Stream:
        return Stream(STREAMS[name]())

    return Litestar([stream])


def _quart() -> Any:
    from quart import Quart

    app = Quart(__name__)

    @app.get("/stream/<name>")
    async def stream(name: str) -> Any:
        return STREAMS[name](), 200

    return app


def _django() -> Any:
    import django
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.http import HttpRequest, StreamingHttpResponse
    from django.urls import path

    async def stream(request: HttpRequest, name: str) -> StreamingHttpResponse:
        return StreamingHttpResponse(STREAMS[name]())

    urls = type("urls", (), {"urlpatterns": [path("stream/<name>", stream)]})
    settings.configure(ALLOWED_HOSTS=["*"], MIDDLEWARE=[], ROOT_URLCONF=urls, SECRET_KEY="of a test")
    django.setup()
    return get_asgi_application()


def _native() -> Any:
    from parkade import App, Request

    app = App()

    @app.post("/read", stream=True)
    async def upload(request: Request) -> str:
        return await read(request.stream())

    @app.get("/stream/{name}")
    async def stream(name: str) -> Any:
        return STREAMS[name]()

    return app


_MAKERS = {
    function.__name__: function for function in (_raw, _starlette, _fastapi, _litestar, _quart, _django, _native)
}


def __getattr__(name: str) -> Any:
    """`streaming_waits:quart` is the application in Quart: no other framework is imported."""
    if (maker := _MAKERS.get(f"_{name}")) is None:
        raise AttributeError(name)
    app = globals()[name] = maker()
    return app
