"""An ordinary Starlette application, with middleware of both kinds."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from event_streams import begun, three
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[dict[str, str]]:
    yield {"shared": "from the start"}
    print("the lifespan ends", flush=True)


class Marking(BaseHTTPMiddleware):
    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        response = await call_next(request)
        response.headers["x-marked"] = "yes"
        return response


async def hola(request: Request) -> Response:
    return PlainTextResponse(f"Hola {request.path_params['name']}")


async def query(request: Request) -> Response:
    return JSONResponse({"a": request.query_params["a"], "b": request.query_params.getlist("b")})


async def order(request: Request) -> Response:
    told: dict[str, Any] = await request.json()
    return JSONResponse({"item": told["item"], "count": 2 * told["count"]})


async def upload(request: Request) -> Response:
    async with request.form() as form:
        file: Any = form["file"]
        return JSONResponse({"name": file.filename, "bytes": len(await file.read())})


async def count(request: Request) -> Response:
    return StreamingResponse((f"{number}\n" for number in range(request.path_params["end"])), media_type="text/plain")


async def events(request: Request) -> Response:
    return StreamingResponse(three(), media_type="text/event-stream")


async def endless(request: Request) -> Response:
    return StreamingResponse(begun(), media_type="text/event-stream")


async def shared(request: Request) -> Response:
    return PlainTextResponse(request.state.shared)


async def later(request: Request) -> Response:
    return PlainTextResponse("sent", background=BackgroundTask(print, "the later work is done", flush=True))


def thread(request: Request) -> Response:
    return PlainTextResponse(str(threading.current_thread() is threading.main_thread()))


async def whoami(request: Request) -> Response:
    return PlainTextResponse(request.headers["x-name"])


async def cookie(request: Request) -> Response:
    visits = int(request.cookies.get("visits", 0))
    response = JSONResponse({"visits": visits})
    response.set_cookie("visits", str(visits + 1))
    return response


async def url(request: Request) -> Response:
    return PlainTextResponse(str(request.url))


async def file(request: Request) -> Response:
    return FileResponse(__file__, media_type="text/plain")


async def broken(request: Request) -> Response:
    raise ValueError("a mistake")


async def socket_echo(socket: WebSocket) -> None:
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_text(f"echo {text}")
    print("the socket ends", flush=True)


async def socket_chat(socket: WebSocket) -> None:
    await socket.accept(subprotocol="chat")
    await socket.send_json({"hello": "you"})
    await socket.close(4000, "enough")


async def socket_denied(socket: WebSocket) -> None:
    await socket.send_denial_response(PlainTextResponse("not you", 401))


app = Starlette(
    lifespan=lifespan,
    middleware=[Middleware(Marking), Middleware(GZipMiddleware)],
    routes=[
        Route("/hola/{name}", hola),
        Route("/query", query),
        Route("/orders", order, methods=["POST"]),
        Route("/upload", upload, methods=["POST"]),
        Route("/count/{end:int}", count),
        Route("/events", events),
        Route("/endless", endless),
        Route("/shared", shared),
        Route("/later", later),
        Route("/thread", thread),
        Route("/whoami", whoami),
        Route("/cookie", cookie),
        Route("/url", url),
        Route("/file", file),
        Route("/broken", broken),
        WebSocketRoute("/socket/echo", socket_echo),
        WebSocketRoute("/socket/chat", socket_chat),
        WebSocketRoute("/socket/denied", socket_denied),
    ],
)
