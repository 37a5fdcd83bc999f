"""An ordinary Litestar application."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from event_streams import begun, three
from litestar import Litestar, MediaType, Request, Response, WebSocket, get, post, websocket, websocket_listener
from litestar.background_tasks import BackgroundTask
from litestar.datastructures import UploadFile
from litestar.enums import RequestEncodingType
from litestar.exceptions import NotAuthorizedException
from litestar.params import Body
from litestar.response import File, Stream


@asynccontextmanager
async def lifespan(app: Litestar) -> AsyncIterator[None]:
    app.state.shared = "from the start"
    yield
    print("the lifespan ends", flush=True)


@dataclass
class Order:
    item: str
    count: int


@get("/hola/{name:str}", media_type=MediaType.TEXT)
async def hola(name: str) -> str:
    return f"Hola {name}"


@get("/query")
async def query(a: str, b: list[str]) -> dict[str, object]:
    return {"a": a, "b": b}


@post("/orders", status_code=200)
async def order(data: Order) -> dict[str, object]:
    return {"item": data.item, "count": 2 * data.count}


@post("/upload", status_code=200)
async def upload(
    data: Annotated[dict[str, UploadFile], Body(media_type=RequestEncodingType.MULTI_PART)],
) -> dict[str, object]:
    file = data["file"]
    return {"name": file.filename, "bytes": len(await file.read())}


@get("/count/{end:int}")
async def count(end: int) -> Stream:
    def numbers() -> Iterator[str]:
        for number in range(end):
            yield f"{number}\n"

    return Stream(numbers(), media_type="text/plain")


@get("/events")
async def events() -> Stream:
    return Stream(three(), media_type="text/event-stream")


@get("/endless")
async def endless() -> Stream:
    return Stream(begun(), media_type="text/event-stream")


@get("/shared", media_type=MediaType.TEXT)
async def shared(request: Request[Any, Any, Any]) -> str:
    return str(request.app.state.shared)


async def work() -> None:
    print("the later work is done", flush=True)


@get("/later", media_type=MediaType.TEXT)
async def later() -> Response[str]:
    return Response("sent", background=BackgroundTask(work))


@get("/thread", media_type=MediaType.TEXT, sync_to_thread=True)
def thread() -> str:
    return str(threading.current_thread() is threading.main_thread())


@get("/whoami", media_type=MediaType.TEXT)
async def whoami(request: Request[Any, Any, Any]) -> str:
    return request.headers["x-name"]


@get("/cookie")
async def cookie(request: Request[Any, Any, Any]) -> Response[dict[str, int]]:
    visits = int(request.cookies.get("visits", 0))
    response = Response({"visits": visits})
    response.set_cookie("visits", str(visits + 1))
    return response


@get("/url", media_type=MediaType.TEXT)
async def url(request: Request[Any, Any, Any]) -> str:
    return str(request.url)


@get("/file")
async def file() -> File:
    return File(__file__, media_type="text/plain")


@get("/broken")
async def broken() -> None:
    raise ValueError("a mistake")


async def tell(socket: WebSocket[Any, Any, Any]) -> None:
    print("the socket ends", flush=True)


@websocket_listener("/socket/echo", on_disconnect=tell)
async def socket_echo(data: str) -> str:
    return f"echo {data}"


@websocket("/socket/chat")
async def socket_chat(socket: WebSocket[Any, Any, Any]) -> None:
    await socket.accept(subprotocols="chat")
    await socket.send_json({"hello": "you"})
    await socket.close(4000, "enough")


def refuse(connection: Any, handler: Any) -> None:
    raise NotAuthorizedException("not you")


@websocket("/socket/denied", guards=[refuse])
async def socket_denied(socket: WebSocket[Any, Any, Any]) -> None: ...


app = Litestar(
    [
        hola,
        query,
        order,
        upload,
        count,
        events,
        endless,
        shared,
        later,
        thread,
        whoami,
        cookie,
        url,
        file,
        broken,
        socket_echo,
        socket_chat,
        socket_denied,
    ],
    lifespan=[lifespan],
)
