"""An ordinary FastAPI application."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from event_streams import begun, three
from fastapi import (
    BackgroundTasks,
    Cookie,
    Depends,
    FastAPI,
    Header,
    Query,
    Request,
    Response,
    UploadFile,
    WebSocket,
    WebSocketDisconnect,
    WebSocketException,
)
from fastapi.responses import FileResponse, PlainTextResponse, StreamingResponse
from pydantic import BaseModel


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, str]]:
    yield {"shared": "from the start"}
    print("the lifespan ends", flush=True)


app = FastAPI(lifespan=lifespan)


class Order(BaseModel):
    item: str
    count: int


def customer(x_name: Annotated[str, Header()]) -> Iterator[str]:
    """A dependency that cleans up."""
    yield x_name
    print(f"{x_name} was served", flush=True)


@app.get("/hola/{name}")
async def hola(name: str) -> PlainTextResponse:
    return PlainTextResponse(f"Hola {name}")


@app.get("/query")
async def query(a: str, b: Annotated[list[str], Query()]) -> dict[str, object]:
    return {"a": a, "b": b}


@app.post("/orders")
async def order(order: Order) -> dict[str, object]:
    return {"item": order.item, "count": 2 * order.count}


@app.post("/upload")
async def upload(file: UploadFile) -> dict[str, object]:
    return {"name": file.filename, "bytes": len(await file.read())}


@app.get("/count/{end}")
async def count(end: int) -> StreamingResponse:
    return StreamingResponse((f"{number}\n" for number in range(end)), media_type="text/plain")


@app.get("/events")
async def events() -> StreamingResponse:
    return StreamingResponse(three(), media_type="text/event-stream")


@app.get("/endless")
async def endless() -> StreamingResponse:
    return StreamingResponse(begun(), media_type="text/event-stream")


@app.get("/shared")
async def shared(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.state.shared)


@app.get("/later")
async def later(tasks: BackgroundTasks) -> PlainTextResponse:
    tasks.add_task(print, "the later work is done", flush=True)
    return PlainTextResponse("sent", background=tasks)


@app.get("/thread")
def thread() -> PlainTextResponse:
    return PlainTextResponse(str(threading.current_thread() is threading.main_thread()))


@app.get("/whoami")
async def whoami(name: Annotated[str, Depends(customer)]) -> PlainTextResponse:
    return PlainTextResponse(name)


@app.get("/cookie")
async def cookie(response: Response, visits: Annotated[int, Cookie()] = 0) -> dict[str, Any]:
    response.set_cookie("visits", str(visits + 1))
    return {"visits": visits}


@app.get("/url")
async def url(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(request.url))


@app.get("/file")
async def file() -> FileResponse:
    return FileResponse(__file__, media_type="text/plain")


@app.get("/broken")
async def broken() -> None:
    raise ValueError("a mistake")


@app.websocket("/socket/echo")
async def socket_echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_text(f"echo {await socket.receive_text()}")
    except WebSocketDisconnect:
        print("the socket ends", flush=True)


@app.websocket("/socket/chat")
async def socket_chat(socket: WebSocket) -> None:
    await socket.accept(subprotocol="chat")
    await socket.send_json({"hello": "you"})
    await socket.close(4000, "enough")


@app.websocket("/socket/denied")
async def socket_denied(socket: WebSocket) -> None:
    raise WebSocketException(1008)
